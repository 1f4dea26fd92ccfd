"""Troubles: findings with one cause, told once, ranked by the harm that they do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.topics import namespace_of, partitioned_topic
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


HarmOf = Harm | Callable[[Finding], Harm]
"""Harm of all findings of a check, or a function from a finding to it."""


class Explained(Protocol):
    """What troubles need to know of a check.

    Attributes:
        harm: Harm of its findings.
        explained_by: Ids of checks whose findings of the same subject are the cause of its own, the likeliest first.
    """

    @property
    def harm(self) -> HarmOf: ...  # noqa: D102 - see above
    @property
    def explained_by(self) -> tuple[str, ...]: ...  # noqa: D102 - see above


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one cause. Every finding of a snapshot is in exactly one trouble.

    Attributes:
        root: The check that found the cause.
        harm: The worst harm that its findings do.
        harmful: The check whose findings do it: the cause itself, or a consequence.
        findings: Its listed findings, the worst first; those of one subject together, the cause before consequences.
        found: Number of its findings by severity, listed or not.
        affected: Number of subjects of the root, listed or not; those that are not listed may do less harm.
    """

    root: str
    harm: Harm
    harmful: str
    findings: tuple[Finding, ...]
    found: Mapping[Severity, int]
    affected: int

    @property
    def trouble_id(self) -> str:
        """The same in every snapshot that shows it."""
        return f"{self.root}.{self.harm.name.lower().replace('_', '-')}"

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
        """Time of the first snapshot that shows it; None: not looked up."""
        return min((each.first_seen for each in self.findings if each.first_seen is not None), default=None)

    @property
    def roots(self) -> tuple[Finding, ...]:
        """Its listed findings of the cause."""
        return tuple(each for each in self.findings if each.check_id == self.root)

    @property
    def where(self) -> str:
        """Its subjects in words: the only one, or how many in how many namespaces."""
        subjects = [each.subject for each in self.roots]
        topics = [each.partition(" ")[0] for each in subjects if "://" in each]
        if len(topics) < len(subjects):
            return subjects[0] if self.affected == 1 else f"{subjects[0]} and {self.affected - 1:,} more"
        if len(of_topic := set(map(partitioned_topic, topics))) == 1 and self.affected == len(topics):
            (topic,) = of_topic
            return subjects[0] if len(topics) == 1 else f"{counted(len(topics), 'partition')} of {topic}"
        namespaces = len(set(map(namespace_of, topics)))
        if self.affected > len(topics):
            return f"up to {counted(self.affected, 'topic')} in at least {counted(namespaces, 'namespace')}"
        return f"{counted(self.affected, 'topic')} in {counted(namespaces, 'namespace')}"


def troubles_of(
    findings: Sequence[Finding], more: Mapping[str, Mapping[Severity, int]], checks: Mapping[str, Explained]
) -> tuple[Trouble, ...]:
    """Joins the findings of a snapshot into troubles, the worst first.

    Findings beyond a check's list are known by number and severity only. They count for the trouble with most of the
    check's listed findings of that severity.

    Args:
        findings: All listed findings.
        more: Number of further findings, which are not listed, by check and severity.
        checks: The checks by id; one that is missing explains nothing, and is a setting.
    """
    joined = _joined(findings, checks)
    found = {key: Counter(each.severity for each in members) for key, members in joined.items()}
    affected = {key: sum(each.check_id == key[0] for each in members) for key, members in joined.items()}
    for check_id, severity, number in ((name, *each) for name, unlisted in more.items() for each in unlisted.items()):
        own = {
            key: Counter(each.severity for each in members if each.check_id == check_id)
            for key, members in joined.items()
        }
        place = {key: (-each[severity], -each.total(), key[1].rank) for key, each in own.items()}
        key = min(own, key=place.__getitem__)
        found[key][severity] += number
        affected[key] += number if key[0] == check_id and own[key][severity] else 0
    troubles = [
        Trouble(
            root=root,
            harm=harm,
            harmful=next(each.check_id for each in members if _harm(each, checks) is harm),
            findings=tuple(members),
            found=found[root, harm],
            affected=affected[root, harm],
        )
        for (root, harm), members in joined.items()
    ]
    return tuple(sorted(troubles, key=lambda each: (each.harm.rank, -each.severity.rank, -each.count, each.root)))


def _joined(findings: Sequence[Finding], checks: Mapping[str, Explained]) -> dict[tuple[str, Harm], list[Finding]]:
    """Findings by the check of their cause and by the worst harm that this cause does to one subject."""
    at: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        at.setdefault((finding.check_id, finding.subject.partition(" ")[0]), finding)
    cases: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in sorted(findings, key=lambda each: -each.severity.rank):
        root = _root(finding, at, checks)
        case = cases[root.check_id, root.subject]
        case.insert(0, finding) if finding is root else case.append(finding)
    joined: defaultdict[tuple[str, Harm], list[Finding]] = defaultdict(list)
    for (root_check, _), case in cases.items():
        worst = min((_harm(each, checks) for each in case), key=lambda each: each.rank)
        joined[root_check, worst] += case
    return joined


def _root(finding: Finding, at: Mapping[tuple[str, str], Finding], checks: Mapping[str, Explained]) -> Finding:
    """The first cause of a finding: itself, if nothing explains it."""
    check = checks.get(finding.check_id)
    for check_id in check.explained_by if check else ():
        for place in _places(finding.subject):
            if cause := at.get((check_id, place)):
                return _root(cause, at, checks)
    return finding


def _places(subject: str) -> Iterator[str]:
    """Subjects of a cause, from the nearest on: the topic of a subscription, its partitioned topic, its namespace."""
    name = subject.partition(" ")[0]
    yield name
    if "://" in name:
        yield from dict.fromkeys((partitioned_topic(name), namespace_of(name)))


def _harm(finding: Finding, checks: Mapping[str, Explained]) -> Harm:
    """Harm of one finding; information only is a matter of settings, whatever its check is about."""
    check = checks.get(finding.check_id)
    if check is None or finding.severity is Severity.INFO:
        return Harm.SETTING
    return check.harm if isinstance(check.harm, Harm) else check.harm(finding)
