"""The definition of a check: its texts, its questions to a snapshot, and its judgement of the answers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pulsar_steward.checks.words import named
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.model.finding import Finding

LIMITS = TypeVar("LIMITS", bound=Section)

MAX_FINDINGS = 100
"""Most findings of one check that are listed: a large cluster may have as many problems as partitions."""

Row = Mapping[str, Any]
"""One row of an answer, by column."""


@dataclass(frozen=True)
class Question:
    """A query of a check, in DuckDB's SQL.

    Tables are those of the snapshot (`pulsar_steward.model.tables`) and the views of `pulsar_steward.checks.views`.
    A parameter ``$name`` is a field of the check's section of the policy, ``$section__name`` one of another section,
    ``$now`` the snapshot time in seconds since the epoch. Where tenants or namespaces may have thresholds of their own,
    ``limits`` is a table of them: `namespace` and the fields of the section.

    A sum of whole numbers is cast (``sum(x)::bigint``), other sums are of decimals: floating point depends on the
    order, and the answer must be the same however a snapshot is divided into shards.

    Attributes:
        sql: A SELECT statement.
        worst_first: ORDER BY expressions, which have to be unambiguous; only the first `most` rows are kept then, and
            all are counted. None: all rows are kept, which must be few.
        most: Number of rows that are kept.
        detail: A SELECT over ``worst``, the rows that are kept, for expensive lookups; at most one row each.
        small: True if it uses small tables only: as a question to shards it is asked once, for what `earlier` looks up.
    """

    sql: str
    worst_first: str | None = None
    most: int = MAX_FINDINGS
    detail: str | None = None
    small: bool = False


@dataclass(frozen=True)
class LookBack:
    """A question about earlier snapshots, asked of each of their shards.

    The answers gain the column `taken_at`.

    Attributes:
        minutes: Function from the check's limits to the maximum age of a snapshot. Where tenants or namespaces have
            limits of their own, the maximum of all is used: the judge leaves out what is too old for the others.
        sql: A SELECT over the tables of the earlier shard and this check's answers from this snapshot's shards.
        small: True if it uses small tables only, and so is asked once per snapshot.
    """

    minutes: Callable[[Any], int]
    sql: str
    small: bool = False


@dataclass(frozen=True)
class CheckAnswer:
    """Answer to one question.

    Attributes:
        rows: The rows, in order where the question has one.
        count: Number of rows before they were limited.
    """

    rows: tuple[Row, ...]
    count: int

    @property
    def more(self) -> int:
        """Number of rows that are not among `rows`."""
        return self.count - len(self.rows)

    @property
    def one(self) -> Row:
        """The only row.

        Raises:
            ValueError: If there is another number of rows.
        """
        (row,) = self.rows
        return row


Answers = Mapping[str, CheckAnswer]
"""Answers by the question's name."""


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
        tcs_by_bundle: True if bundles place them.
        topics: Number of loaded topics on the brokers that were read.
        metrics_cut_off: Brokers whose Prometheus text was read only in part, as it is too large.
        earlier: Earlier snapshots that may be compared with, the newest first.
    """

    cluster: str
    unread: tuple[str, ...]
    taken_at: datetime
    pulsar_version: str
    load_manager: str
    coordinators: int
    tcs_by_bundle: bool
    topics: int = 0
    metrics_cut_off: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()


@dataclass(frozen=True)
class CheckContext(Generic[LIMITS]):
    """Input of a check besides the answers.

    Attributes:
        about: Metadata of the snapshot.
        policy: The cluster's policy, a `pulsar_steward.policy.schema.Policy`.
        limits: The check's own section of it.
        parts: Sets of limits, if tenants or namespaces have their own: each with the names that it applies to (the
            first has none: it applies to everything else). Empty if one set applies to all.
        results: Results of the checks that this one rests on, by id; empty while questions are asked.
    """

    about: AboutSnapshot
    policy: Any
    limits: LIMITS
    parts: tuple[tuple[LIMITS, tuple[str, ...]], ...] = ()
    results: Mapping[str, JudgedAnswers] = field(default_factory=dict)

    def limits_of(self, namespace: str) -> LIMITS:
        """Section that is in force for a namespace."""
        own = {name: limits for limits, names in self.parts for name in names}
        return own.get(namespace, own.get(namespace.partition("/")[0], self.limits))

    def longest(self, minutes: Callable[[LIMITS], int]) -> int:
        """Maximum of a time over all sets of limits."""
        return max(minutes(limits) for limits, _ in self.parts or ((self.limits, ()),))

    def in_each_part(self, sentence: Callable[[LIMITS], str]) -> str:
        """Sentence with the limits in force: once if they are the same, else for each set with its names."""
        said: dict[str, str] = {}
        for limits, names in self.parts or ((self.limits, ()),):
            words = sentence(limits)
            said.setdefault(words, f"In {named(names)}: {words}" if names else words)
        return " ".join(said.values())


@dataclass(frozen=True)
class Judgement:
    """Result of a check for a snapshot.

    Attributes:
        findings: The troubles that it found, the worst ones; at most `MAX_FINDINGS`.
        more: How many further ones there are, that are not listed.
        quiet: Where there are none, what it looked at, in a sentence.
        cannot_tell: Why the check cannot judge this cluster at all; None where it can.
        broke: Whether that is because the check itself failed, which is a defect: on the next try it may say something.
    """

    findings: tuple[Finding, ...] = ()
    more: int = 0
    quiet: str = "Nothing was found."
    cannot_tell: str | None = None
    broke: bool = False


@dataclass(frozen=True)
class JudgedAnswers:
    """Result of a check for those that rest on it.

    Attributes:
        judgement: Its judgement.
        answers: The answers that it judged; empty if a question failed.
    """

    judgement: Judgement
    answers: Answers


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
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    order: int = 0
    remedied_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check(CheckWords):
    """A check: its texts, its questions, and its judgement.

    Attributes:
        policy: Its section of the policy: the thresholds.
        judge: Makes a judgement of the answers to all its questions.
        shards: Questions to each shard of the snapshot (some brokers' topics, subscriptions, clients and metrics, with
            all small tables beside them); the answers of all shards are combined, ordered and limited again.
        earlier: Questions to each shard of earlier snapshots, asked after that.
        cluster: Questions asked last, once: over the small tables, the answers of shards (a table each, by name) and
            those to the questions before it.
        scope: Data that it needs to judge one subject.
        reads: Sections of the policy that it reads besides its own, and that namespaces may override.
        rests_on: Checks whose results its judge reads (`CheckContext.results`), so that nothing is judged twice. They
            are judged before it, and rest on no other check.
    """

    policy: type[Section]
    judge: Callable[[Answers, CheckContext[Any]], Judgement]
    shards: Mapping[str, Question] = field(default_factory=dict)
    earlier: Mapping[str, LookBack] = field(default_factory=dict)
    cluster: Mapping[str, Question] = field(default_factory=dict)
    scope: Scope = Scope.CLUSTER
    reads: tuple[str, ...] = ()
    rests_on: tuple[Check, ...] = ()

    @property
    def section(self) -> str:
        """Name of its section of the policy."""
        return self.check_id.replace("-", "_")

    @property
    def sections(self) -> tuple[str, ...]:
        """Every section that its judgement of a namespace depends on."""
        return (self.section, *self.reads)
