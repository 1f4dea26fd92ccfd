"""Troubles: findings with one cause, told once, ranked by the harm that they do."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.topics import SEGMENT, namespace_of, partitioned_topic
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime


class Harm(StrEnum):
    """Harm that a finding does, the worst first."""

    CUT_OFF = "cut off now"
    LOSING = "losing data now"
    AT_RESTART = "at the next restart"
    SOON = "soon"
    SLOW = "slow or standing still"
    SETTING = "settings"

    @property
    def rank(self) -> int:
        """0 for the worst, rising."""
        return list(Harm).index(self)

    @property
    def label(self) -> str:
        """Its name in addresses and metrics: ``cut-off``."""
        return self.name.lower().replace("_", "-")

    @staticmethod
    def worst(harms: Iterable[Harm]) -> Harm:
        """The worst of several."""
        return min(harms, key=lambda each: each.rank)

    @staticmethod
    def worst_rank(harms: Iterable[Harm]) -> int:
        """Rank of the worst of several; of none, one behind the least harm."""
        return min((each.rank for each in harms), default=len(Harm))


def by_severity(critical: Harm, others: Harm) -> Callable[[Finding], Harm]:
    """Harm of a check whose critical findings do worse harm than its others."""
    return lambda finding: critical if finding.severity is Severity.CRITICAL else others


HarmOf = Harm | Callable[[Finding], Harm]
"""Harm of all findings of a check, or a function from a finding to it."""


class Explained(Protocol):
    """The part of a check that troubles need.

    Attributes:
        harm: Harm of its findings.
        explained_by: Ids of checks whose findings of the same subject are the cause of its own, the likeliest first.
        tied: `tied(cause, finding)` is True if the cause explains the finding, for causes of another subject; None: the
            subjects, or the evidence, name each other.
    """

    @property
    def harm(self) -> HarmOf: ...  # noqa: D102 - see above
    @property
    def explained_by(self) -> tuple[str, ...]: ...  # noqa: D102 - see above
    @property
    def tied(self) -> Callable[[Finding, Finding], bool] | None: ...  # noqa: D102 - see above


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one cause. Every finding of a snapshot is in exactly one trouble.

    Attributes:
        root: The check that found the cause.
        harm: The worst harm that its findings do.
        harmful: The check whose findings do it: the cause itself, or a consequence.
        met: Its listed findings that do it, the worst first: whom it meets, and since when.
        findings: All its listed findings.
        found: Number of its findings by severity, listed or not.
        affected: Number of subjects that it meets, listed or not; those that are not listed may be met by less.
        beyond: Namespaces of subjects that are not listed; an empty name: some are not known.
    """

    root: str
    harm: Harm
    harmful: str
    met: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    found: Mapping[Severity, int]
    affected: int
    beyond: frozenset[str] = frozenset()

    @property
    def trouble_id(self) -> str:
        """The same while cause and harm are."""
        return f"{self.root}.{self.harm.label}"

    @property
    def severity(self) -> Severity:
        """The worst of its findings."""
        return max(self.found, key=lambda each: each.rank)

    @property
    def count(self) -> int:
        """Number of its findings, listed or not."""
        return sum(self.found.values())

    @property
    def since(self) -> datetime | None:
        """Time of the first snapshot that shows the harm; None: this is the first, or it was not looked up."""
        stood = (each.first_seen for each in self.met if each.snapshots_in_a_row > 1)
        return min((each for each in stood if each is not None), default=None)

    @property
    def bytes(self) -> int | None:
        """Bytes of its listed subjects: what they store, or else their backlog; None: its findings tell neither."""
        for name in ("storage_bytes", "backlog_bytes"):
            told = [each.figures[name] for each in self.met if name in each.figures]
            if told:
                return sum(told)
        return None

    @property
    def causes(self) -> tuple[str, ...]:
        """Subjects of its cause, where that is another check's; empty: what does harm is the cause."""
        return tuple(each.subject for each in self.findings if each.check_id == self.root != self.harmful)

    @property
    def where(self) -> str:
        """Whom it meets, in words: the only subject, or how many in how many namespaces."""
        subjects = [each.subject for each in self.met]
        names = [each.partition(" ")[0] for each in subjects if is_topic(each)]
        if self.affected == 1:
            return subjects[0]
        if len(names) < len(subjects):
            return f"{subjects[0]} and {self.affected - 1:,} more"
        topics = set(names)
        namespaces = counted(len({*map(namespace_of, names), *self.beyond} - {""}), "namespace")
        kind = "topic" if subjects == names else "subscription"
        if self.affected > len(subjects):
            return f"up to {counted(self.affected, kind)} in {'at least ' if '' in self.beyond else ''}{namespaces}"
        if len({partitioned_topic(each) for each in topics}) == 1:
            whole = partitioned_topic(names[0])
            kind = kind if kind == "subscription" or whole in topics else "partition"
            return f"{counted(len(subjects), kind)} of {whole}"
        return f"{counted(self.affected, kind)} in {namespaces}"


def is_topic(subject: str) -> bool:
    """True for a topic, or a subscription of one."""
    return subject.startswith(("persistent://", "non-persistent://", SEGMENT))


BySeverityAndNamespace = Mapping[Severity, Mapping[str, int]]
"""Numbers of findings; an empty name is of no namespace, or of some that are not told apart."""


def troubles_of(
    findings: Sequence[Finding],
    more: Mapping[str, BySeverityAndNamespace],
    checks: Mapping[str, Explained],
) -> tuple[Trouble, ...]:
    """Joins the findings of a snapshot into troubles, the worst first.

    Findings beyond a check's list are known by number, severity and namespace only. They count for the trouble with
    most of the check's listed findings of that severity.

    Args:
        findings: All listed findings.
        more: Number of further findings of checks with listed ones, by check, severity and namespace.
        checks: The checks by id; one that is missing explains nothing, and is a setting.
    """
    joined = _joined(findings, more, checks)
    troubles: dict[tuple[str, Harm], Trouble] = {}
    for (root, harm), members in joined.items():
        harmful = min(
            (each for each in members if harm_of(each, checks) is harm), key=lambda each: each.check_id != root
        )
        met = tuple(each for each in members if each.check_id == harmful.check_id and harm_of(each, checks) is harm)
        troubles[root, harm] = Trouble(
            root=root,
            harm=harm,
            harmful=harmful.check_id,
            met=met,
            findings=tuple(members),
            found=Counter(each.severity for each in members),
            affected=len(met),
        )
    for check_id, severity, by_name in ((name, *each) for name, unlisted in more.items() for each in unlisted.items()):
        own = {
            key: Counter(each.severity for each in trouble.findings if each.check_id == check_id)
            for key, trouble in troubles.items()
        }
        place = {key: (-each[severity], -each.total(), key[1].rank) for key, each in own.items()}
        key = min(own, key=place.__getitem__)
        trouble = troubles[key]
        number = sum(by_name.values())
        trouble = msgspec.structs.replace(trouble, found=Counter(trouble.found) + Counter({severity: number}))
        if check_id == trouble.harmful and any(each.severity is severity for each in trouble.met):
            beyond, affected = trouble.beyond.union(by_name), trouble.affected + number
            trouble = msgspec.structs.replace(trouble, affected=affected, beyond=beyond)
        troubles[key] = trouble
    return tuple(
        sorted(troubles.values(), key=lambda each: (each.harm.rank, -each.severity.rank, -each.count, each.root))
    )


def _joined(
    findings: Sequence[Finding], more: Mapping[str, BySeverityAndNamespace], checks: Mapping[str, Explained]
) -> dict[tuple[str, Harm], list[Finding]]:
    """Findings by the check of their cause and by the worst harm that this cause does to one subject."""
    at: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    ordered = sorted(findings, key=lambda each: (-each.severity.rank, each.check_id, each.subject))
    for finding in ordered:
        at[finding.check_id, finding.subject.partition(" ")[0]].append(finding)
        at[finding.check_id, ""].append(finding)
    roots = [_root(finding, at, checks) for finding in ordered]
    cases: defaultdict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding, root in zip(ordered, roots, strict=True):
        if finding is not root:
            cases[root.check_id, root.subject, finding.subject.partition(" ")[0]].append(finding)
    joined: defaultdict[tuple[str, Harm], list[Finding]] = defaultdict(list)
    worst: dict[tuple[str, str], Harm] = {}
    by_name = {(each.check_id, each.subject): each for each in roots}
    for (check_id, subject, met), case in cases.items():
        root = by_name[check_id, subject]
        tied = any(checks[each.check_id].tied for each in case)
        itself = (root,) if tied or subject.partition(" ")[0] == met else ()
        harm = Harm.worst(harm_of(each, checks) for each in (*case, *itself))
        worst[check_id, subject] = Harm.worst((harm, worst.get((check_id, subject), harm)))
        joined[check_id, harm] += case
    loose: list[tuple[Finding, str]] = []
    for finding, root in zip(ordered, roots, strict=True):
        if finding is not root:
            continue
        if (finding.check_id, finding.subject) not in worst and (caused_by := _counted_cause(finding, more, checks)):
            loose.append((finding, caused_by))
            continue
        own = harm_of(finding, checks)
        harm = Harm.worst((own, worst.get((finding.check_id, finding.subject), own)))
        joined[finding.check_id, harm].append(finding)
    for finding, counted_cause in loose:
        members = {key: sum(each.check_id == counted_cause for each in own) for key, own in joined.items()}
        key = max(members, key=lambda each: (members[each], -each[1].rank), default=None)
        joined[key if key and members[key] else (finding.check_id, harm_of(finding, checks))].append(finding)
    return joined


def _counted_cause(
    finding: Finding, more: Mapping[str, BySeverityAndNamespace], checks: Mapping[str, Explained]
) -> str | None:
    """Check that likely has the cause of a finding, only counted; both checks have more findings there than they list.

    A list of each check has a hundred findings, and of a thousand topics they are not the same ones.
    """
    check, namespace = checks.get(finding.check_id), namespace_of(finding.subject.partition(" ")[0])
    if check is None or not is_topic(finding.subject) or not _counted(finding.check_id, namespace, more):
        return None
    return next((each for each in check.explained_by if _counted(each, namespace, more)), None)


def _counted(check_id: str, namespace: str, more: Mapping[str, BySeverityAndNamespace]) -> bool:
    """True if a check has unlisted findings in a namespace that are more than information."""
    unlisted = more.get(check_id, {})
    return any(namespace in by_name for severity, by_name in unlisted.items() if severity is not Severity.INFO)


def _root(
    finding: Finding, at: Mapping[tuple[str, str], Sequence[Finding]], checks: Mapping[str, Explained]
) -> Finding:
    """The first cause of a finding: itself, if nothing explains it."""
    check = checks.get(finding.check_id)
    tied = check.tied if check else None
    for check_id in check.explained_by if check else ():
        for place in ("",) if tied else _places(finding.subject):
            for cause in at.get((check_id, place), ()):
                if cause.severity is not Severity.INFO and (tied or _explains)(cause, finding):
                    return _root(cause, at, checks)
    return finding


def _places(subject: str) -> Iterator[str]:
    """Subjects of a cause, from the nearest on: the topic of a subscription, its partitioned topic, its namespace."""
    name = subject.partition(" ")[0]
    yield name
    if is_topic(name):
        yield from dict.fromkeys((partitioned_topic(name), namespace_of(name)))


def _explains(cause: Finding, finding: Finding) -> bool:
    """True if a finding is about its cause's own subject, or its evidence names it.

    A topic has several subscriptions, and a namespace several topics: only what the evidence names holds the backlog.
    """
    if cause.subject in {finding.subject, finding.subject.partition(" ")[0]}:
        return True
    own = re.search(" (?:subscription|to) (.+)", cause.subject)
    name = own[1] if own else cause.check_id.partition("-")[0]
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", finding.evidence) is not None


def harm_of(finding: Finding, checks: Mapping[str, Explained]) -> Harm:
    """Harm of one finding; information only is a matter of settings, whatever its check is about."""
    check = checks.get(finding.check_id)
    if check is None or finding.severity is Severity.INFO:
        return Harm.SETTING
    return check.harm if isinstance(check.harm, Harm) else check.harm(finding)
