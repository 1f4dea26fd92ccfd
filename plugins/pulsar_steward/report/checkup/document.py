"""The document of a check-up, as frozen data: terminal, page and JSON show exactly this.

Others may rely on its JSON form: `VERSION` rises when a field is removed or changes its meaning; new fields may come
within a version. docs/checkup.schema.json is made from these classes (`report.checkup.schema`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.outside_text import shown_json
from pulsar_steward.report.checkup.measures import Measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMAT: Literal["pulsar-steward/checkup"] = "pulsar-steward/checkup"
VERSION: Literal[2] = 2

FLEET: Literal["pulsar-steward/fleet-checkup"] = "pulsar-steward/fleet-checkup"
"""Format of a document with check-ups of several clusters (`report.checkup.fleet`)."""


class CheckupOutcome(StrEnum):
    """Result of a check-up as a whole."""

    HEALTHY = "healthy"
    FINDINGS = "findings"
    COULD_NOT_LOOK = "could not look"

    @property
    def exit_code(self) -> int:
        """Exit code of the command line: 0, 1 and 2."""
        return list(CheckupOutcome).index(self)


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be read, so that nothing is known of it."""

    kind: Annotated[Literal["broker", "namespace", "part"], Meta(description="part: of a Kafka cluster, in words")]
    name: str
    reason: Annotated[str | None, Meta(description="why; null where that is not recorded")]

    @property
    def words(self) -> str:
        """What it is, and why it could not be read."""
        what = self.name if self.kind == "part" else f"{self.kind} {self.name}"
        return f"{what}: {self.reason}" if self.reason else what


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Cluster and snapshot of a check-up."""

    snapshot_id: str
    cluster: Annotated[str, Meta(description="the name that Steward knows the cluster by")]
    pulsar_cluster: Annotated[str, Meta(description="the cluster's own name (clusterName), or Kafka's cluster id")]
    pulsar_version: Annotated[str, Meta(description="empty: of Kafka")]
    load_manager: Annotated[str, Meta(description="class name of the brokers' load manager")]
    taken_at: Annotated[datetime, Meta(description="when collecting began, UTC")]
    span: Annotated[str | None, Meta(description="when brokers were read, where that took a minute or more")] = None
    stale_seconds: Annotated[
        int | None, Meta(description="age when this was reported, if over 30 minutes; null: it is not stale")
    ] = None
    complete: Annotated[bool, Meta(description="false: the snapshot is partial, and no check can be clear")]
    unread: Annotated[tuple[Unread, ...], Meta(description="what could not be read; empty where complete")]
    brokers: Annotated[int, Meta(description="brokers that the cluster lists")]
    brokers_read: Annotated[int, Meta(description="of them, those that answered")]
    namespaces: int
    bundles: int
    topics: Annotated[int, Meta(description="topics loaded on the brokers that answered; a partition is a topic")]
    coordinators: Annotated[int, Meta(description="transaction coordinators; 0 where transactions are off")]
    servers: Annotated[str | None, Meta(description="addresses of a Kafka cluster; null: it is Pulsar")] = None
    configuration_store_id: Annotated[
        str | None, Meta(description="of its configuration store's addresses; clusters that share one have the same")
    ] = None
    client_versions: Annotated[
        tuple[str, ...], Meta(description="versions that clients tell, those of most clients first; 20 at most")
    ]
    system: Annotated[System, Meta(description="of Kafka, a topic is a partition, and there are no namespaces")] = (
        System.PULSAR
    )
    groups: Annotated[int | None, Meta(description="consumer groups of a Kafka cluster; null: of Pulsar")] = None

    @property
    def runs(self) -> str:
        """System and version of the brokers; Kafka's tell no version."""
        return f"{self.system.called} {self.pulsar_version}".rstrip()


class FindingReport(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble."""

    severity: Severity
    subject: Annotated[str, Meta(description="a cluster, broker, namespace, bundle or topic, as Pulsar writes it")]
    evidence: Annotated[str, Meta(description="the trouble in a sentence, with its numbers")]
    figures: Annotated[dict[str, int], Meta(description="the same numbers by name, units in the names")]
    first_seen: Annotated[
        datetime | None, Meta(description="when the first of the snapshots in a row that show it was taken, UTC")
    ]
    snapshots_in_a_row: int


class BySeverity(msgspec.Struct, frozen=True, kw_only=True):
    """Findings by severity, listed or not."""

    critical: int
    warning: int
    info: int

    @classmethod
    def of(cls, counts: Mapping[Severity, int]) -> BySeverity:
        """Takes the numbers from a mapping."""
        return cls(**{severity.value: counts.get(severity, 0) for severity in Severity})

    @property
    def pressing(self) -> int:
        """Number of those that are more than information."""
        return self.critical + self.warning


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what it can say of the cluster, what it found, and what to do about it."""

    check_id: str
    section: Annotated[str, Meta(description="which part of the guide it belongs to")]
    title: str
    outlook: Annotated[Outlook, Meta(description="found, clear or unknown")]
    reason: Annotated[str, Meta(description="why, in a sentence")]
    severity: Annotated[Severity | None, Meta(description="of the worst finding; null where there is none")]
    findings: Annotated[tuple[FindingReport, ...], Meta(description="worst first")]
    not_listed: Annotated[int, Meta(description="further findings, none of a worse severity than a listed one")]
    not_graded: Annotated[
        int,
        Meta(description="unlisted findings of unknown severity; `found` counts them as the least bad listed one"),
    ]
    not_listed_in: Annotated[
        Mapping[Severity, Mapping[str, int]],
        Meta(description="unlisted findings by severity and namespace; empty name: of none, or not told apart"),
    ]
    found: Annotated[BySeverity, Meta(description="all findings, listed or not")]
    advice: Annotated[tuple[str, ...], Meta(description="steps, in this order")]
    source: Annotated[str, Meta(description="where this was learned")]
    remedied_by: Annotated[str | None, Meta(description="Steward's planner that can propose a remedy; null: none")]

    @property
    def unlisted(self) -> Counter[Severity]:
        """Number of findings that are not listed, by severity, the worst first."""
        every = {each: sum(self.not_listed_in.get(each, {}).values()) for each in reversed(Severity)}
        return +Counter(every)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Findings by severity, and checks that found nothing."""

    critical: Annotated[int, Meta(description="findings of all checks, listed or not")]
    warning: Annotated[int, Meta(description="findings of all checks, listed or not")]
    info: Annotated[int, Meta(description="findings of all checks, listed or not")]
    listed: Annotated[BySeverity, Meta(description="those of them that are listed")]
    checks_clear: int
    checks_unknown: int


def by_reason(checks: Iterable[CheckReport]) -> dict[str, list[str]]:
    """Ids of checks by the reason that they have in common."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for check in checks:
        found[check.reason].append(check.check_id)
    return found


class TroubleReport(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one cause; every finding is in exactly one trouble."""

    trouble_id: Annotated[str, Meta(description="the same in every snapshot that shows it")]
    harm: Harm
    headline: Annotated[str, Meta(description="what is wrong, in a few words")]
    where: Annotated[str, Meta(description="whom it meets: the only subject, or how many in how many namespaces")]
    affected: Annotated[int, Meta(description="how many subjects it meets at most, listed or not")]
    bytes: Annotated[
        int | None, Meta(description="what its listed subjects store, or else their backlog; null: not told")
    ]
    because: Annotated[
        str, Meta(description="the cause, where the headline is of a consequence; empty: it is the cause")
    ]
    beware: Annotated[str, Meta(description="what not to do meanwhile; empty: nothing is known")]
    since: Annotated[datetime | None, Meta(description="when the first snapshot that shows it was taken, UTC")]
    severity: Annotated[Severity, Meta(description="of its worst finding")]
    found: Annotated[BySeverity, Meta(description="its findings, listed or not")]
    check_ids: Annotated[tuple[str, ...], Meta(description="checks that found it; the first found the cause")]
    subjects: Annotated[tuple[str, ...], Meta(description="listed subjects of the cause, the worst first")]
    to_do: Annotated[tuple[str, ...], Meta(description="steps, in this order, with the worst subject filled in")]
    proposal: Annotated[str, Meta(description="what Steward proposes for it, or that it proposes nothing")]
    batch_id: Annotated[str | None, Meta(description="the proposed batch; null: none is proposed")]

    @property
    def warns_of_restarts(self) -> bool:
        """True if it says what a restart of brokers would do."""
        return "restart" in self.beware.lower()


def pressing(troubles: Sequence[TroubleReport]) -> tuple[TroubleReport, ...]:
    """The troubles that are more than information, the worst first."""
    return tuple(each for each in troubles if each.severity is not Severity.INFO)


MOST_NAMED = 3
"""Maximum number of new, worse or gone troubles that are named, and of checks that can no longer judge."""


class NoLongerJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A check that cannot judge now, and found trouble in the last look that it could judge."""

    check_id: str
    severity: Annotated[Severity, Meta(description="of the worst finding of that look")]
    taken_at: Annotated[datetime, Meta(description="when that look was taken, UTC")]
    reason: Annotated[str, Meta(description="why the check cannot judge now, in its own words")]

    @property
    def words(self) -> str:
        """The same in a sentence."""
        was = f"{self.check_id} was {self.severity} at {time_in_words(self.taken_at)}"
        return f"{was} and cannot be judged now: {self.reason}"


class ChangedTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble that is new, worse or gone."""

    trouble_id: str
    headline: str
    where: Annotated[str, Meta(description="whom it meets, or met")]
    change: Annotated[
        str, Meta(description="how it got worse, from old to new, or why it was not seen; empty: it is new, or gone")
    ] = ""

    @property
    def words(self) -> str:
        """Headline, with whom it meets and how it changed."""
        return f"{self.headline}: {self.where}{f' ({self.change})' if self.change else ''}"


class SinceLook(msgspec.Struct, frozen=True, kw_only=True):
    """Difference from an earlier snapshot; information is no trouble here.

    Attributes:
        taken_at: When the earlier snapshot was taken.
        looked: False: no snapshot was taken in that time, and this one itself is the earlier one.
    """

    taken_at: Annotated[datetime, Meta(description="when the earlier snapshot was taken, UTC")]
    new: tuple[ChangedTrouble, ...]
    worse: tuple[ChangedTrouble, ...]
    gone: tuple[ChangedTrouble, ...]
    unseen: Annotated[
        tuple[ChangedTrouble, ...], Meta(description="not found, and not known to be over; `change` says why")
    ]
    note: Annotated[str, Meta(description="how the earlier snapshot differs from the one that was asked for")] = ""
    looked: Annotated[bool, Meta(description="false: no snapshot was taken in that time, so nothing is known")] = True

    @property
    def words(self) -> str:
        """The difference in a line: ``Since 02:00: +2 troubles, 1 worse, 3 gone``."""
        if not self.looked:
            return f"No look since {time_in_words(self.taken_at)}: what changed is not known"
        parts = (
            f"+{counted(len(self.new), 'trouble')}" if self.new else "",
            f"{len(self.worse):,} worse" if self.worse else "",
            f"{len(self.gone):,} gone" if self.gone else "",
            f"{len(self.unseen):,} not seen this time" if self.unseen else "",
        )
        since = f"Since {time_in_words(self.taken_at)}{f' ({self.note})' if self.note else ''}"
        return f"{since}: {', '.join(filter(None, parts)) or 'nothing new, worse or gone'}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The troubles by name: new ones, worse ones, those that are gone, and those that were not looked at again."""
        kinds = (("New", self.new), ("Worse", self.worse), ("Gone", self.gone), ("Not seen this time", self.unseen))
        return tuple(f"{kind}: {words}" for kind, troubles in kinds for words in _named(troubles))


def _named(troubles: Sequence[ChangedTrouble]) -> tuple[str, ...]:
    more = len(troubles) - MOST_NAMED
    return (*(each.words for each in troubles[:MOST_NAMED]), *([f"and {more:,} more"] if more > 0 else []))


class ProposedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that a person would be asked to approve together."""

    batch_id: str
    kind: str
    title: str
    check_ids: Annotated[tuple[str, ...], Meta(description="checks with findings that it resolves")]
    steps: int
    clients: Annotated[int, Meta(description="connections that would have to be made anew")]
    undoable: Annotated[bool, Meta(description="false: at least one step cannot be undone")]


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """Steward's proposals, and the reasons that they are no more."""

    batches: tuple[ProposedBatch, ...]
    reasons: Annotated[tuple[str, ...], Meta(description="never empty where no batch is proposed")]

    def proposes_for(self, check: CheckReport) -> bool:
        """True if a batch resolves findings of a check."""
        return any(check.check_id in batch.check_ids for batch in self.batches)


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """A check-up of one cluster. Checks are in the order in which trouble is best looked for."""

    format: Literal["pulsar-steward/checkup"]
    version: Annotated[Literal[2], Meta(description="rises when a field goes or changes its meaning")]
    steward_version: str
    policy_digest: Annotated[str, Meta(description="SHA-256 of the thresholds and limits that were in force")]
    outcome: Annotated[CheckupOutcome, Meta(description="healthy (exit code 0), findings (1) or could not look (2)")]
    about: About
    counts: Counts
    no_longer_judged: Annotated[
        tuple[NoLongerJudged, ...],
        Meta(description="checks that cannot judge now, and last found a warning or worse, by the snapshots beside it"),
    ]
    troubles: Annotated[tuple[TroubleReport, ...], Meta(description="more than information, the worst first")]
    information: Annotated[tuple[TroubleReport, ...], Meta(description="the same of findings that are no trouble")]
    checks: tuple[CheckReport, ...]
    planning: Planning
    measures: Measures
    since: Annotated[
        SinceLook | None,
        Meta(description="difference from an earlier snapshot; null: not asked for, or none is there"),
    ]

    @property
    def every_trouble(self) -> tuple[TroubleReport, ...]:
        """Troubles, and after them what is information alone."""
        return *self.troubles, *self.information

    def with_outlook(self, outlook: Outlook) -> tuple[CheckReport, ...]:
        """Checks of one outlook, in order."""
        return tuple(check for check in self.checks if check.outlook is outlook)

    def worst_first(self) -> tuple[CheckReport, ...]:
        """Checks with findings, by descending severity, then by their number, then in the guide's order."""
        found = self.with_outlook(Outlook.FOUND)
        return tuple(sorted(found, key=lambda check: msgspec.structs.astuple(check.found), reverse=True))


def as_json(checkup: msgspec.Struct) -> str:
    """A document as JSON, indented, with a line break at its end; invisible characters are escaped."""
    return shown_json(msgspec.json.format(msgspec.json.encode(checkup), indent=2)).decode() + "\n"
