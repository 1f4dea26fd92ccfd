"""The definition of a check: its texts, its queries of a snapshot, its judgement of the rows, and what was not read."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from pulsar_steward.decoding import convert
from pulsar_steward.model.finding import Figures, Finding, Severity, Unlisted
from pulsar_steward.model.section import Section
from pulsar_steward.model.system import System
from pulsar_steward.model.topics import namespace_in, partitioned_topic
from pulsar_steward.model.trouble import Harm, HarmOf
from pulsar_steward.model.units import named

if TYPE_CHECKING:
    from datetime import datetime

LIMITS = TypeVar("LIMITS", bound=Section)

MAX_FINDINGS = 100
"""Maximum number of findings that a check lists: a large cluster may have as many problems as partitions."""

Row = Mapping[str, Any]
"""One row of a query's result, by column."""


def grouped(rows: Iterable[Row], *columns: str) -> Mapping[tuple[Any, ...], list[Row]]:
    """Rows by the values of some columns, in order; no rows for other values."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in columns)].append(row)
    return found


@dataclass(frozen=True)
class Query:
    """A query of a check, in DuckDB's SQL.

    Tables are those of the snapshot (`pulsar_steward.model.tables`) and the views of `pulsar_steward.checks.views`.
    A parameter ``$name`` is a field of the check's section of the policy, ``$section__name`` one of another section,
    ``$now`` the snapshot time in seconds since the epoch. If tenants or namespaces may have thresholds of their own,
    ``limits`` is a table of thresholds: `namespace` and the fields of the section.

    A sum of whole numbers is cast (``sum(x)::bigint``); other sums are sums of decimals. Sums of floating point depend
    on the order, and the result must not depend on how a snapshot is divided into shards.

    Attributes:
        sql: A SELECT statement.
        worst_first: ORDER BY expressions, which have to be unambiguous. Only the first `most` rows are kept, and all
            rows are counted. None: all rows are kept, so there must be few.
        most: Number of rows that are kept.
        detail: A SELECT over ``worst`` (the rows that are kept) for expensive lookups; at most one row each.
        small: True if it uses small tables only. Among the queries of shards it then runs once, for lookups of
            `earlier`.
    """

    sql: str
    worst_first: str | None = None
    most: int = MAX_FINDINGS
    detail: str | None = None
    small: bool = False


@dataclass(frozen=True)
class LookBack:
    """A query of earlier snapshots, run on each of their shards.

    Its rows gain the column `taken_at`.

    Attributes:
        minutes: Function from the check's limits to the maximum age of a snapshot. If tenants or namespaces have limits
            of their own, the maximum of all is used, and the judge ignores snapshots too old for the others.
        sql: A SELECT over the tables of the earlier shard and this check's rows from the shards of this snapshot.
        small: True if it uses small tables only, and so runs once per snapshot.
    """

    minutes: Callable[[Any], int]
    sql: str
    small: bool = False


@dataclass(frozen=True)
class QueryRows:
    """Result of one query.

    Attributes:
        rows: The rows, in order if the query has one.
        count: Number of rows before they were limited.
        cut: Numbers of the rows that are not among `rows`, by `namespace` and the columns that decide a severity: those
            that are true or false, and `rank`. Empty if the rows have none of these.
    """

    rows: tuple[Row, ...]
    count: int
    cut: tuple[tuple[Row, int], ...] = ()

    @property
    def more(self) -> int:
        """Number of rows that are not among `rows`."""
        return self.count - len(self.rows)

    def more_by(self, severity: Severity | Callable[[Row], Severity]) -> Counter[Unlisted]:
        """Severities and namespaces of the rows that are not among `rows`; none if a severity depends on more."""
        found: Counter[Unlisted] = Counter()
        try:
            for row, number in self.cut or (({}, self.more),):
                graded = severity if isinstance(severity, Severity) else severity(row)
                found[graded, row.get("namespace") or ""] += number
        except KeyError:
            return Counter()
        return +found

    @property
    def one(self) -> Row:
        """The only row.

        Raises:
            ValueError: If there is another number of rows.
        """
        (row,) = self.rows
        return row


Queried = Mapping[str, QueryRows]
"""Results by the query's name."""


@dataclass(frozen=True)
class Earlier:
    """An earlier snapshot of the same cluster.

    Attributes:
        taken_at: Snapshot time, UTC.
        partial: True if something could not be read.
    """

    taken_at: datetime
    partial: bool


@dataclass(frozen=True)
class AboutSnapshot:
    """Metadata of a snapshot.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        taken_at: When collecting began, UTC: the only current time that a check uses.
        pulsar_version: Version of the first broker that responded.
        load_manager: Class name of the load manager.
        coordinators: Number of transaction coordinators; 0 if transactions are off.
        topics: Number of loaded topics on the brokers that were read.
        metrics_cut_off: Brokers whose Prometheus text was read only in part, as it is too large.
        earlier: Earlier snapshots that may be compared with, the newest first.
        system: System of the cluster.
    """

    cluster: str
    unread: tuple[str, ...]
    taken_at: datetime
    pulsar_version: str
    load_manager: str
    coordinators: int
    topics: int = 0
    metrics_cut_off: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    system: System = System.PULSAR


@dataclass(frozen=True)
class CheckContext(Generic[LIMITS]):
    """Input of a check besides the rows.

    Attributes:
        about: Metadata of the snapshot.
        policy: The cluster's policy, a `pulsar_steward.policy.schema.Policy`.
        limits: The check's own section of it.
        parts: Sets of limits, if tenants or namespaces have their own, each with the names that it applies to. The
            first set has no names: it applies to everything else. Empty if one set applies to all.
        results: Results of the checks in `rests_on`, by id; empty while queries run.
    """

    about: AboutSnapshot
    policy: Any
    limits: LIMITS
    parts: tuple[tuple[LIMITS, tuple[str, ...]], ...] = ()
    results: Mapping[str, JudgedRows] = field(default_factory=dict)

    def limits_of(self, namespace: str) -> LIMITS:
        """Section that is in force for a namespace."""
        own = {name: limits for limits, names in self.parts for name in names}
        return own.get(namespace, own.get(namespace.partition("/")[0], self.limits))

    def longest(self, minutes: Callable[[LIMITS], int]) -> int:
        """Maximum of a time limit over all sets of limits."""
        return max(minutes(limits) for limits, _ in self.parts or ((self.limits, ()),))

    def in_each_part(self, sentence: Callable[[LIMITS], str]) -> str:
        """Sentence with the limits in force: once if they are equal, else once for each set, with its names."""
        said: dict[str, str] = {}
        for limits, names in self.parts or ((self.limits, ()),):
            words = sentence(limits)
            said.setdefault(words, f"In {named(names)}: {words}" if names else words)
        return " ".join(said.values())


@dataclass(frozen=True)
class Judgement:
    """Result of a check for a snapshot.

    Attributes:
        findings: The problems found, the worst severity first; those beyond `MAX_FINDINGS` are only counted. Partitions
            of one topic alternate with other subjects.
        more: Number of further problems that are not listed.
        graded: Their numbers by severity and namespace, as far as they are known. None is worse than a listed problem.
        quiet: Sentence about what was checked, if there are no findings.
        cannot_tell: Reason why the check cannot judge this cluster at all; None if it can, or has findings.
        broke: True if the check itself failed, which is a defect; the next run may succeed.
    """

    findings: tuple[Finding, ...] = ()
    more: int = 0
    graded: Mapping[Unlisted, int] = field(default_factory=Counter)
    quiet: str = "Nothing was found."
    cannot_tell: str | None = None
    broke: bool = False

    def __post_init__(self) -> None:
        """Orders the findings, and moves those beyond the limit into the counts.

        A finding is an answer, whatever else is unknown; without any, there are no further ones either.
        """
        turns: Counter[tuple[Severity, str]] = Counter()
        placed: list[tuple[int, int, Finding]] = []
        for finding in self.findings:
            name = finding.subject.partition(" ")[0]  # of a subscription: its topic
            topic = partitioned_topic(name)
            placed.append((-finding.severity.rank, turns[finding.severity, topic], finding))
            turns[finding.severity, topic] += topic != name
        placed.sort(key=lambda each: each[:2])
        findings = tuple(finding for *_, finding in placed)
        beyond = Counter((each.severity, namespace_in(each.subject)) for each in findings[MAX_FINDINGS:])
        object.__setattr__(self, "more", self.more + beyond.total())
        object.__setattr__(self, "graded", beyond + Counter(self.graded))
        object.__setattr__(self, "findings", findings[:MAX_FINDINGS])
        if findings:
            object.__setattr__(self, "cannot_tell", None)
        else:
            object.__setattr__(self, "more", 0)
            object.__setattr__(self, "graded", Counter())


@dataclass(frozen=True)
class JudgedRows:
    """Result of a check, for checks that depend on it.

    Attributes:
        judgement: Its judgement.
        queried: The query results that it judged; empty if a query failed.
    """

    judgement: Judgement
    queried: Queried


class Scope(enum.Enum):
    """Data that a check needs to judge one subject, and so the level at which thresholds may differ."""

    CLUSTER = "cluster"
    """More than one namespace: brokers, the cluster, or several namespaces. One set of thresholds per cluster."""
    NAMESPACE = "namespace"
    """One namespace, and the brokers' configuration. Each tenant and namespace may have its own thresholds."""


@dataclass(frozen=True, kw_only=True)
class CheckWords:
    """Texts of a check.

    Attributes:
        check_id: The id that findings carry.
        order: Its place among the checks of its folder.
        title: The problem in a few words.
        advice: Steps to take, one per line.
        source: Source of this knowledge.
        remedied_by: The planner that can propose a remedy; None if there is none.
        harm: The harm that its findings do, or a function from a finding to it.
        explained_by: Ids of checks whose findings of the same subject are the cause of its own, the likeliest first.
        tied: `tied(cause, finding)` is True if the cause explains the finding, for causes of another subject.
        headlines: Name of a trouble by its harm, where that is not the title.
        beware: Warning against a harmful reaction, in a sentence, by the harm of a finding.
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    order: int = 0
    remedied_by: str | None = None
    harm: HarmOf = Harm.SETTING
    explained_by: tuple[str, ...] = ()
    tied: Callable[[Finding, Finding], bool] | None = None
    headlines: Mapping[Harm, str] = field(default_factory=dict)
    beware: Mapping[Harm, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Check(CheckWords):
    """A check: its texts, its queries, and its judgement.

    Attributes:
        policy: Its section of the policy: the thresholds.
        judge: Makes a judgement from the results of all its queries.
        shards: Queries of each shard of the snapshot. A shard has the topics, subscriptions, clients and metrics of
            some brokers, and all small tables. The rows of all shards are combined, ordered and limited again.
        earlier: Queries of each shard of earlier snapshots, run after `shards`.
        cluster: Queries run last, once, over the small tables and the results of the queries before (one table each, by
            name).
        scope: Data that it needs to judge one subject.
        reads: Other sections of the policy that it reads, and that namespaces may override.
        rests_on: Ids of checks whose results its judge reads (`CheckContext.results`), so that nothing is judged twice.
            They run before it, and depend on no other check.
        system: System whose snapshots it is for.
    """

    policy: type[Section]
    judge: Callable[[Queried, CheckContext[Any]], Judgement]
    shards: Mapping[str, Query] = field(default_factory=dict)
    earlier: Mapping[str, LookBack] = field(default_factory=dict)
    cluster: Mapping[str, Query] = field(default_factory=dict)
    scope: Scope = Scope.CLUSTER
    reads: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    system: System = System.PULSAR

    @property
    def section(self) -> str:
        """Name of its section of the policy."""
        return self.check_id.replace("-", "_")

    @property
    def sections(self) -> tuple[str, ...]:
        """All sections that its judgement of a namespace depends on."""
        return (self.section, *self.reads)

    def finding(self, *, severity: Severity, subject: str, evidence: str, figures: dict[str, int]) -> Finding:
        """A finding of this check."""
        return Finding(check_id=self.check_id, severity=severity, subject=subject, evidence=evidence, figures=figures)


def ranked(row: Row) -> Severity:
    """Severity by the column `rank`: 0 information, 1 warning, 2 critical."""
    return tuple(Severity)[row["rank"]]


def critical_or_warning(row: Row) -> Severity:
    """Severity by the column `critical`."""
    return Severity.CRITICAL if row["critical"] else Severity.WARNING


Reason = Callable[[Queried, CheckContext[Any]], str | None]
"""Function that says why the absence of findings proves nothing; None if it does."""


def if_any(selected: str, words: str) -> Reason:
    """Reason that holds if a result has rows.

    Args:
        selected: The result's name.
        words: The sentence, with `{names}` for its first column, and `{limits.NAME}` for a limit of the check.
    """

    def said(queried: Queried, context: CheckContext[Any]) -> str | None:
        names = [str(next(iter(row.values()))) for row in queried[selected].rows]
        return words.format(names=named(names), limits=context.limits) if names else None

    return said


def if_none(selected: str, words: str) -> Reason:
    """Reason that holds if a result has no rows."""
    return lambda queried, _context: None if queried[selected].rows else words


def if_counted(selected: str, words: Callable[[int], str]) -> Reason:
    """Reason that holds if a result counts anything: its first column, added up over all shards, which `words` gets."""

    def said(queried: Queried, _context: CheckContext[Any]) -> str | None:
        count = sum(next(iter(row.values())) for row in queried[selected].rows)
        return words(count) if count else None

    return said


@dataclass(frozen=True, kw_only=True)
class RowCheck(Check):
    """A check whose query `found` returns one row for each finding, the worst first.

    Attributes:
        severity: Severity of every finding, or a function from a row to its severity.
        subject: Column with the subject, or a function from a row to it; null: the cluster.
        evidence: Function from a row to the evidence.
        figures: Columns that are figures, the type that takes them from a row, or a function from a row to the figures
            by name. Fractions are cut off, and null is left out.
        also_cut: Further queries whose rows beyond their limit would be findings.
        missing: Reasons why the absence of rows proves nothing; the first that holds is given.
        quiet: Sentence about what was checked, or a function that gives it, if there are no rows.
    """

    severity: Severity | Callable[[Row], Severity]
    subject: str | Callable[[Row], str | None]
    evidence: Callable[[Row], str]
    figures: tuple[str, ...] | type[Figures] | Callable[[Row], Mapping[str, float | None]]
    also_cut: tuple[str, ...] = ()
    missing: Reason | tuple[Reason, ...] = ()
    quiet: str | Callable[[Queried, CheckContext[Any]], str]
    judge: Callable[[Queried, CheckContext[Any]], Judgement] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Judges by the rows."""
        object.__setattr__(self, "judge", self._judged)

    def _judged(self, queried: Queried, context: CheckContext[Any]) -> Judgement:
        found = queried["found"]
        if found.rows:
            findings = tuple(self._finding(row, context.about.cluster) for row in found.rows)
            more = found.more + sum(queried[name].more for name in self.also_cut)
            return Judgement(findings=findings, more=more, graded=found.more_by(self.severity))
        quiet = self.quiet if isinstance(self.quiet, str) else self.quiet(queried, context)
        reasons = self.missing if isinstance(self.missing, tuple) else (self.missing,)
        holding = (words for reason in reasons if (words := reason(queried, context)))
        return Judgement(quiet=quiet, cannot_tell=next(holding, None))

    def _finding(self, row: Row, cluster: str) -> Finding:
        return self.finding(
            severity=self.severity if isinstance(self.severity, Severity) else self.severity(row),
            subject=(row[self.subject] if isinstance(self.subject, str) else self.subject(row)) or cluster,
            evidence=self.evidence(row),
            figures={name: int(value) for name, value in self._figures(row).items() if value is not None},
        )

    def _figures(self, row: Row) -> Mapping[str, float | None]:
        if isinstance(self.figures, tuple):
            return {name: row[name] for name in self.figures}
        if isinstance(self.figures, type):
            return convert(row, self.figures).by_name
        return self.figures(row)


def unread_servers(context: CheckContext[Any], kinds: Collection[str], read: Collection[str]) -> str | None:
    """Reason why the absence of findings proves nothing, if `collect.metrics_urls` names servers without metrics.

    Args:
        context: Context of the calling check.
        kinds: The kinds of servers that it judges, as `collect.metrics_urls` names them.
        read: Servers of these kinds that are in the snapshot.
    """
    urls = (each.partition("=") for each in context.policy.collect.metrics_urls)
    servers = dict.fromkeys(urlsplit(url).netloc for kind, _, url in urls if kind in kinds)
    missing = [each for each in servers if each not in read]
    return f"The snapshot lacks metrics of {named(missing)}, named in collect.metrics_urls." if missing else None


def silent_in(selected: str) -> Query:
    """Query for the brokers that were read, but are no `source` in a result of the shards.

    Args:
        selected: The name of the shards' query.
    """
    heard = f"select source as broker from {selected}"
    return Query(f"select broker from brokers anti join ({heard}) using (broker) where read")


def brokers_of(selected: QueryRows) -> list[str]:
    """Names of the brokers, in order."""
    return [row["broker"] for row in selected.rows]


BROKERS_READ = Query("select count(*) as brokers from brokers where read")
"""Query for `nothing_read`: the number of brokers that were read."""


def nothing_read(queried: Queried, _context: CheckContext[Any] | None = None) -> str | None:
    """Reason why the absence of findings proves nothing, if no broker was read; from the query `read`."""
    return None if queried["read"].one["brokers"] else "No broker was read."


def not_telling(setting: str) -> Query:
    """Query for `setting_unread`: the brokers with topics that did not report a setting.

    Args:
        setting: Its name in ``broker.conf``.
    """
    return Query(f"""
        select broker from brokers anti join setting('{setting}') using (broker)
        where read and coalesce(topics, 1) > 0
    """)


def setting_unread(selected: QueryRows, setting: str) -> str | None:
    """Reason why the absence of findings proves nothing, if brokers with topics did not report a setting; else None."""
    names = named(brokers_of(selected))
    return f"The setting {setting} is not in the snapshot for {names}." if selected.rows else None
