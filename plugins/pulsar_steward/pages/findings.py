"""Findings of the newest snapshot, by pages: filtered, searched and sorted by Arrow, as there may be 100,000."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.checks.registry import BY_ID, groups_of
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import FINDINGS
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.pages.clusters import title_of
from pulsar_steward.pages.troubles import troubles_in

if TYPE_CHECKING:
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.report.overview import SnapshotSummary
    from pulsar_steward.snapshots.read import Snapshot

PAGE = 25
MAX_PAGE = 500


class Order(StrEnum):
    """Order of findings; each has its own direction."""

    SEVERITY = "severity"
    OLDEST = "oldest"
    NEWEST = "newest"
    CHECK = "check"
    SUBJECT = "subject"


_RANK = ("rank", "descending")
_SORTED_BY = {
    Order.SEVERITY: [_RANK, ("first_seen", "ascending"), ("check_id", "ascending"), ("subject", "ascending")],
    Order.OLDEST: [("first_seen", "ascending"), _RANK, ("check_id", "ascending"), ("subject", "ascending")],
    Order.NEWEST: [("first_seen", "descending"), _RANK, ("check_id", "ascending"), ("subject", "ascending")],
    Order.CHECK: [("check_id", "ascending"), _RANK, ("first_seen", "ascending"), ("subject", "ascending")],
    Order.SUBJECT: [("subject", "ascending"), _RANK, ("check_id", "ascending")],
}


_PARTITION = r"-partition-\d+( .*)?$"


class FindingQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for findings; an empty field does not filter.

    Attributes:
        text: Part of the subject or the evidence, in upper or lower case.
        subject: The whole subject, as it is.
        together: True: findings of one check on partitions of one topic are one row, the first one.
        page: Number of the page, from 1.
    """

    severity: str = ""
    check: str = ""
    text: str = ""
    subject: str = ""
    order: Order = Order.SEVERITY
    together: bool = False
    page: int = 1
    size: int = PAGE

    @property
    def is_narrow(self) -> bool:
        """True if it asks for some of the findings only."""
        return bool(self.severity or self.check or self.text or self.subject)


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        first_seen: Time of the first of the consecutive snapshots with it.
        trouble_id: Its trouble; every listed finding has one.
        alike: Number of findings that the row stands for, itself included.
        topic: The topic of these; empty: the row stands for itself.
    """

    check_id: str
    title: str
    severity: Severity
    subject: str
    evidence: str
    first_seen: datetime
    snapshots_in_a_row: int
    trouble_id: str
    alike: int = 1
    topic: str = ""


class FindingPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of findings.

    Attributes:
        snapshot_id: The snapshot of the findings.
        total: Number of matching findings on all pages.
        pages: Number of pages, at least 1.
    """

    snapshot_id: str
    findings: tuple[FindingRow, ...]
    page: int
    pages: int
    total: int


class CheckState(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict of one check: found, clear or unknown, with the reason.

    Attributes:
        count: Number of its listed findings.
        not_listed: Number of further ones.
    """

    check_id: str
    title: str
    outlook: Outlook
    severity: Severity | None
    count: int
    not_listed: int
    reason: str


class FindingSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the guide for a cluster in trouble, with its checks."""

    title: str
    checks: tuple[CheckState, ...]

    @property
    def worst(self) -> str:
        """Severity of its worst finding, else ``unknown`` or ``clear``."""
        found = [check.severity for check in self.checks if check.severity]
        if found:
            return max(found, key=lambda each: each.rank).value
        return "unknown" if any(check.outlook is Outlook.UNKNOWN for check in self.checks) else "clear"


def findings_page(sources: Sources, snapshot: Snapshot, asked: FindingQuery) -> FindingPage:
    """The requested page of findings; the last one if there are fewer pages."""
    listed = sources.kept_large.get(("findings", snapshot.uri), lambda: _Listed(snapshot))
    places = listed.asked_for(asked)
    rows = listed.together(places) if asked.together else pa.table({"place": places, "alike": [1] * len(places)})
    size = min(max(asked.size, 1), MAX_PAGE)
    pages = max(-(-len(rows) // size), 1)
    page = min(max(asked.page, 1), pages)
    on_page = rows.slice((page - 1) * size, size)
    some = listed.table.take(on_page["place"]).append_column("alike", on_page["alike"])
    meta, troubles = sources.summary(snapshot).meta, troubles_in(sources, snapshot).of
    found = tuple(
        FindingRow(
            check_id=row["check_id"],
            title=title_of(row["check_id"]),
            severity=Severity(row["severity"]),
            subject=row["subject"],
            evidence=row["evidence"],
            first_seen=row["first_seen"] or meta.taken_at,
            snapshots_in_a_row=row["snapshots_in_a_row"] or 1,
            trouble_id=troubles[row["check_id"], row["severity"], row["subject"]],
            alike=row["alike"],
            topic=partitioned_topic(row["subject"].partition(" ")[0]) if row["alike"] > 1 else "",
        )
        for row in some.to_pylist()
    )
    return FindingPage(snapshot_id=meta.snapshot_id, findings=found, page=page, pages=pages, total=len(places))


class _Listed:
    """Findings of a snapshot, with their places in each order; an order is sorted at its first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        columns = ["check_id", "severity", "subject", "evidence", "first_seen", "snapshots_in_a_row"]
        table = snapshot.table(FINDINGS, columns)
        ranks = pc.index_in(table["severity"], value_set=pa.array([each.value for each in Severity]))
        self.table = table.append_column("rank", ranks).combine_chunks()
        self._orders: dict[Order, pa.Array] = {}
        self._alike: pa.Array | None = None

    def together(self, places: pa.Array) -> pa.Table:
        """The first place of each check, severity and topic among these, in their order, and how many it stands for."""
        if self._alike is None:
            topics = pc.replace_substring_regex(self.table["subject"], _PARTITION, r"\1")
            key = pc.binary_join_element_wise(self.table["check_id"], self.table["severity"], topics, " ")
            self._alike = key.dictionary_encode().combine_chunks().indices
        keys = {"key": self._alike.take(places), "place": places, "at": pa.array(range(len(places)))}
        groups = pa.table(keys).group_by("key", use_threads=False)
        first = groups.aggregate([("place", "first"), ("at", "min"), ("at", "count")]).sort_by("at_min")
        return first.select(["place_first", "at_count"]).rename_columns(["place", "alike"])

    def asked_for(self, asked: FindingQuery) -> pa.Array:
        """Places of the matching findings, in their order."""
        if asked.order not in self._orders:
            self._orders[asked.order] = pc.sort_indices(self.table, sort_keys=_SORTED_BY[asked.order])
        order, table = self._orders[asked.order], self.table
        if not asked.is_narrow:
            return order
        matches = pc.is_valid(table["check_id"])
        if asked.severity:
            matches = pc.and_(matches, pc.equal(table["severity"], asked.severity))
        if asked.check:
            matches = pc.and_(matches, pc.equal(table["check_id"], asked.check))
        if asked.subject:
            matches = pc.and_(matches, pc.equal(table["subject"], asked.subject))
        if asked.text:
            texts = (table["subject"], table["evidence"])
            subject, evidence = (pc.match_substring(text, asked.text, ignore_case=True) for text in texts)
            matches = pc.and_(matches, pc.or_(subject, evidence))
        return order.filter(matches.combine_chunks().take(order))


def sections(summary: SnapshotSummary) -> tuple[FindingSection, ...]:
    """The guide's sections with the verdict of each check; checks that only the snapshot has come last."""
    verdicts = {verdict.check_id: verdict for verdict in summary.verdicts}
    groups = [(group.title, [check.check_id for check in group.checks]) for group in groups_of(summary.meta.system)]
    if others := sorted(verdicts.keys() - BY_ID.keys()):
        groups.append(("Other checks", others))

    def state(check_id: str) -> CheckState:
        verdict = verdicts.get(check_id)
        severities = [severity for check, severity in summary.found if check == check_id]
        return CheckState(
            check_id=check_id,
            title=title_of(check_id),
            outlook=verdict.outlook if verdict else Outlook.UNKNOWN,
            severity=max(severities, key=lambda each: each.rank, default=None),
            count=sum(each.listed for (check, _), each in summary.found.items() if check == check_id),
            not_listed=verdict.more if verdict else 0,
            reason=verdict.reason if verdict else "The snapshot was diagnosed without this check.",
        )

    return tuple(FindingSection(title=title, checks=tuple(map(state, ids))) for title, ids in groups)
