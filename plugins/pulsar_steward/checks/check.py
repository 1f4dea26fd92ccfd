"""What a check is: its words, what it asks of a snapshot, and how it judges the answers."""

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
"""Findings of one check that are listed: a cluster of a million partitions may have as many troubles of one kind."""

Row = Mapping[str, Any]
"""One row of an answer, by column."""


@dataclass(frozen=True)
class Question:
    """Something that a check asks, in DuckDB's SQL.

    Tables are those of the snapshot (`pulsar_steward.model.tables`) and the views of `pulsar_steward.checks.views`.
    A parameter ``$name`` is a field of the check's section of the policy, ``$section__name`` one of another section,
    ``$now`` the seconds since the epoch at which the snapshot was taken. Where tenants or namespaces may have
    thresholds of their own, ``limits`` is a table of them: `namespace` and the fields of the section.

    A sum of whole numbers is cast (``sum(x)::bigint``), one of others is of decimals: floating point depends on the
    order, and the answer must be the same however a snapshot is cut into shards.

    Attributes:
        sql: A select.
        worst_first: What its rows are ordered by, nothing left to chance; only the first `most` are kept then, and all
            are counted. None: all rows are kept, which must be few.
        most: How many are kept.
        detail: A select over ``worst``, the rows that are kept, for what takes long to look up; at most one row each.
    """

    sql: str
    worst_first: str | None = None
    most: int = MAX_FINDINGS
    detail: str | None = None


@dataclass(frozen=True)
class LookBack:
    """A question about earlier snapshots, asked of each of their shards.

    The answers gain the column `taken_at`.

    Attributes:
        minutes: Given the check's limits, how old a snapshot may be. Where tenants or namespaces have limits of their
            own, the oldest that any of them allows counts: the judge leaves out what is too old for the others.
        sql: A select, over the tables of the earlier shard and this check's answers from this snapshot's shards.
        small: Whether it looks at small tables only, and so is asked once a snapshot.
    """

    minutes: Callable[[Any], int]
    sql: str
    small: bool = False


@dataclass(frozen=True)
class Answer:
    """What was answered to one question.

    Attributes:
        rows: The rows, in order where the question has one.
        count: How many there were before they were limited.
    """

    rows: tuple[Row, ...]
    count: int

    @property
    def more(self) -> int:
        """Rows that are not among `rows`."""
        return self.count - len(self.rows)

    @property
    def one(self) -> Row:
        """The only row.

        Raises:
            ValueError: If there is another number of rows.
        """
        (row,) = self.rows
        return row


Answers = Mapping[str, Answer]
"""By the question's name."""


@dataclass(frozen=True)
class Earlier:
    """An earlier snapshot of the same cluster.

    Attributes:
        taken_at: When it was taken, UTC.
        partial: Whether something could not be read.
    """

    taken_at: datetime
    partial: bool


@dataclass(frozen=True)
class About:
    """What a snapshot is.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        taken_at: When collecting began, UTC: a check's only "now".
        pulsar_version: As the first broker that answered says it.
        load_manager: Class name of the brokers' load manager.
        coordinators: Transaction coordinators; 0 where transactions are off.
        tcs_by_bundle: Whether bundles place them.
        topics: Loaded topics, of brokers that were read.
        metrics_cut_off: Brokers of whose Prometheus text only the beginning was read, as it is too large.
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
    """What a check is told beside the answers.

    Attributes:
        about: What the snapshot is.
        policy: The cluster's, a `pulsar_steward.policy.schema.Policy`.
        limits: The check's own section of it.
        parts: Where tenants or namespaces have limits of their own: each set of limits, and for whom it is named (the
            first: for nobody, it is that of everything else). One without names where there is one for all.
    """

    about: About
    policy: Any
    limits: LIMITS
    parts: tuple[tuple[LIMITS, tuple[str, ...]], ...] = ()

    def limits_of(self, namespace: str) -> LIMITS:
        """The section that is in force for a namespace."""
        own = {name: limits for limits, names in self.parts for name in names}
        return own.get(namespace, own.get(namespace.partition("/")[0], self.limits))

    def in_each_part(self, sentence: Callable[[LIMITS], str]) -> str:
        """A sentence with the limits in force: once where they are the same, or else with whom it is about."""
        said: dict[str, str] = {}
        for limits, names in self.parts or ((self.limits, ()),):
            words = sentence(limits)
            said.setdefault(words, f"In {named(names)}: {words}" if names else words)
        return " ".join(said.values())


@dataclass(frozen=True)
class Judgement:
    """What a check says of a snapshot.

    Attributes:
        findings: The troubles that it found, the worst ones; at most `MAX_FINDINGS`.
        more: How many further ones there are, that are not listed.
        quiet: Where there are none, what it looked at, in a sentence.
        cannot_tell: Why the check cannot judge this cluster at all; None where it can.
    """

    findings: tuple[Finding, ...] = ()
    more: int = 0
    quiet: str = "Nothing was found."
    cannot_tell: str | None = None


class Scope(enum.Enum):
    """What a check has to see to judge one subject; so, how far down the policy may say other thresholds for it."""

    CLUSTER = "cluster"
    """More than one namespace: brokers, the cluster, or a comparison of namespaces. One set of thresholds a cluster."""
    NAMESPACE = "namespace"
    """One namespace, beside what brokers are and are set to. Each tenant and namespace may have its own thresholds."""


@dataclass(frozen=True, kw_only=True)
class CheckWords:
    """A check in words.

    Attributes:
        check_id: The id that findings carry.
        order: Its place among the checks of its folder.
        title: The trouble in a few words.
        advice: What to do about it, one step a line.
        source: Where this was learned.
        remedied_by: The planner that can propose a remedy; None where there is none.
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    order: int = 0
    remedied_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check(CheckWords):
    """A check: its words, what it asks, and how it judges.

    Attributes:
        policy: Its section of the policy: the thresholds.
        judge: Makes a judgement of the answers to all its questions.
        shards: Asked of each shard of the snapshot (some brokers' topics, subscriptions, clients and metrics, with all
            small tables beside them); the answers of all shards are put together, ordered and limited again.
        earlier: Asked of each shard of earlier snapshots after that.
        cluster: Asked last, once: over the small tables, the answers of shards (a table each, by name) and those of
            questions before it.
        scope: What it has to see to judge one subject.
        reads: Sections of the policy that it looks at beside its own, and that namespaces may set apart.
    """

    policy: type[Section]
    judge: Callable[[Answers, CheckContext[Any]], Judgement]
    shards: Mapping[str, Question] = field(default_factory=dict)
    earlier: Mapping[str, LookBack] = field(default_factory=dict)
    cluster: Mapping[str, Question] = field(default_factory=dict)
    scope: Scope = Scope.CLUSTER
    reads: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The name of its section of the policy."""
        return self.check_id.replace("-", "_")

    @property
    def sections(self) -> tuple[str, ...]:
        """Every section that its judgement of a namespace rests on."""
        return (self.section, *self.reads)
