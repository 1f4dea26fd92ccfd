"""Backlogs against quotas and retention, and what is delayed: from small tables, and never more than these know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import GIB, HOUR, MIB
from pulsar_steward.pages.backlogs import MAX_LISTED, BacklogRow, Backlogs, backlogs
from tests.builders import NOW, broker
from tests.cases import row_by_row
from tests.unit.pages.scenes import USUAL, observed, sources_of
from tests.unit.pages.test_pages import words
from tests.unit.report_checkup.snapshots import a_finding, a_verdict

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.pages.conftest import Client

NAMESPACE, OTHER = "acme/orders", "acme/logs"
TOPIC = f"persistent://{NAMESPACE}/t-0"
SIZED = (
    '{"backlog_quota_map":{"destination_storage":{"limitSize":%d,"policy":"producer_request_hold"}},'
    '"retention_policies":{"retentionTimeInMinutes":60,"retentionSizeInMB":%d}}'
)


def a_bundle(namespace: str = NAMESPACE, backlog: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A bundle with a backlog."""
    usual = {"namespace": namespace, "bundle": "0x00000000_0xffffffff", "owner": broker(0), "owner_known": True}
    return {**usual, "topics": 2, "backlog_bytes": backlog, **fields}


def full(check: str, severity: str = "warning", subject: str = TOPIC, **figures: int) -> dict[str, Any]:
    """A finding with its figures."""
    return a_finding(severity, check, subject=subject, figures_json=msgspec.json.encode(figures).decode())


def read(folder: Path, **tables: Any) -> Backlogs:
    """The page's content for a snapshot with these tables, where brokers set what is usual."""
    configuration = [{"broker": broker(0), "key": key, "value": value} for key, value in USUAL.items()]
    observed(folder / "snapshots", "east", NOW, **{"configuration": configuration, "namespaces": [], **tables})
    sources = sources_of(folder)
    snapshot = sources.newest("east")
    assert snapshot is not None
    return backlogs(sources, snapshot)


def only(folder: Path, **tables: Any) -> BacklogRow:
    """The namespace, of a snapshot that has this one."""
    usual = {"namespaces": [{"namespace": NAMESPACE, "policies_json": SIZED % (GIB, 2048)}]}
    (found,) = read(folder, **{**usual, **tables}).namespaces
    return found


def test_what_the_cluster_page_says(client: Client, golden: Golden) -> None:
    """The cluster page shows a growing backlog, delayed messages, a default quota and a namespace that was not read."""
    read = words(client, "/clusters/east")
    golden(read[read.index("Backlog of ") : read.index(" Trends Backlog")])


def test_hours_are_left_where_a_backlog_grows(tmp_path: Path) -> None:
    """The time left is that of the topic that reaches its quota next, beside the time until it outgrows retention."""
    half = GIB // 2
    found = only(
        tmp_path,
        bundles=[a_bundle(backlog=GIB)],
        findings=[
            full("backlog-near-quota", "critical", f"{TOPIC}-full", bytes_percent=97, limit_bytes=GIB),
            full("backlog-growing", seconds_to_quota=512, backlog_bytes=half, growth_bytes_per_second=MIB),
        ],
    )
    assert (found.seconds_left, found.topic, found.percent, found.severity) == (512, TOPIC, 97, Severity.CRITICAL)
    assert (found.bytes_per_second, found.seconds_to_retention) == (MIB, 2048 - 512)


def test_several_topics_that_grow_together_have_no_retention(tmp_path: Path) -> None:
    """No time until the retention is given for several topics together, as a retention is of one topic."""
    together = full("backlog-growing", subject=NAMESPACE, backlog_bytes=GIB, growth_bytes_per_second=MIB, topics=9)
    found = only(tmp_path, bundles=[a_bundle(backlog=GIB)], findings=[together])
    assert (found.bytes_per_second, found.seconds_to_retention, found.seconds_left) == (MIB, None, None)


def test_an_age_quota_counts_as_one(tmp_path: Path) -> None:
    """The percentage is that of the fuller quota, be it of size or of age."""
    near = full("backlog-near-quota", bytes_percent=3, seconds_percent=91, limit_bytes=GIB, limit_seconds=60)
    assert only(tmp_path, bundles=[a_bundle(backlog=MIB)], findings=[near]).percent == 91


@row_by_row(
    "fields, percent, whole",
    ({"backlog": GIB // 4}, 25, True),
    ({"backlog": None}, None, False),
    ({"backlog": GIB // 4, "owner": None, "owner_known": False}, None, False),
)
def test_a_bound_where_no_check_found_anything(
    tmp_path: Path, fields: dict[str, Any], percent: int | None, *, whole: bool
) -> None:
    """Without a finding the fullest bundle bounds the percentage, and with an unread part there is no bound."""
    found = only(tmp_path, bundles=[a_bundle(backlog=MIB), a_bundle(**fields)])
    assert (found.percent, found.at_most_percent, found.whole, found.severity) == (None, percent, whole, None)
    assert found.at_most_percent_of_retention == (None if percent is None else percent // 2)


def test_who_has_no_quota_and_of_whom_it_is_not_known(tmp_path: Path) -> None:
    """The brokers' default counts where a namespace sets no quota, and unread policies count as not known."""
    unbounded = SIZED % (-1, -1)
    documents = [
        {"namespace": NAMESPACE, "policies_json": unbounded},
        {"namespace": OTHER, "policies_json": "{}"},
        {"namespace": "acme/unread", "policies_json": None},
    ]
    names = (NAMESPACE, OTHER, "acme/unread", "pulsar/system")
    found = read(tmp_path, namespaces=documents, bundles=[a_bundle(name, MIB) for name in names])
    assert (found.total, found.without_quota, found.not_known) == (3, 1, 1)
    limits = {each.namespace: (each.limit_bytes, each.policies_known) for each in found.namespaces}
    assert limits == {NAMESPACE: (-1, True), OTHER: (10 * GIB, True), "acme/unread": (None, False)}


def test_numbers_that_nobody_means_break_nothing(tmp_path: Path) -> None:
    """A retention of the largest possible size is accepted, and no time until a backlog outgrows it is given."""
    absurd = SIZED % (GIB, (1 << 63) - 1)
    found = only(
        tmp_path,
        namespaces=[{"namespace": NAMESPACE, "policies_json": absurd}],
        bundles=[a_bundle(backlog=MIB)],
        findings=[full("backlog-growing", backlog_bytes=MIB, growth_bytes_per_second=1, seconds_to_quota=9)],
    )
    assert (found.at_most_percent_of_retention, found.seconds_to_retention) == (0, None)


def test_the_nearest_come_first(tmp_path: Path) -> None:
    """Namespaces are ordered by severity, time left, percentage and bound, and only the first ones are listed."""
    names = [f"acme/n-{number:02d}" for number in range(40)]
    findings = [
        full("backlog-near-quota", "critical", f"persistent://{names[9]}/t", bytes_percent=96),
        full("backlog-growing", "warning", f"persistent://{names[8]}/t", seconds_to_quota=7200, backlog_bytes=1),
        full("backlog-growing", "warning", f"persistent://{names[7]}/t", seconds_to_quota=3600, backlog_bytes=1),
        full("backlog-near-quota", "warning", f"persistent://{names[6]}/t", bytes_percent=81),
    ]
    found = read(
        tmp_path,
        namespaces=[{"namespace": name, "policies_json": "{}"} for name in names],
        bundles=[a_bundle(name, (number == 5) * GIB) for number, name in enumerate(names)],
        findings=findings,
    )
    assert [each.namespace for each in found.namespaces[:5]] == [names[number] for number in (9, 7, 8, 6, 5)]
    assert (len(found.namespaces), found.total) == (MAX_LISTED, 40)


def test_a_namespace_whose_findings_are_only_counted_is_no_healthy_one(tmp_path: Path) -> None:
    """A namespace all of whose topics are beyond the list has the severity that the verdict has of it."""
    verdict = a_verdict("backlog-near-quota", "found", more=1000, critical={NAMESPACE: 900}, warning={NAMESPACE: 100})
    bundles = [a_bundle(backlog=GIB)]
    assert only(tmp_path, bundles=bundles, verdicts=[verdict]).severity is Severity.CRITICAL
    other = a_verdict("backlog-near-quota", "found", more=100, warning={OTHER: 100})
    assert only(tmp_path / "other", bundles=bundles, verdicts=[other]).severity is None


def test_delayed_messages_of_checks_and_of_topics_that_were_asked(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        namespaces=[{"namespace": NAMESPACE, "policies_json": '{"message_ttl_in_seconds":3600}'}],
        findings=[
            full(
                "delayed-past-ttl", subject=NAMESPACE, delayed_messages=9, subscriptions=2, longest_delay_seconds=HOUR
            ),
            full("delayed-holds-ledgers", held_bytes=GIB),
        ],
        verdicts=[a_verdict("delayed-past-ttl", "found", "One is."), a_verdict("tc-skew", "clear")],
        drilled=[
            {"topic": TOPIC, "namespace": NAMESPACE, "subscription": "s", "delayed_messages": 12},
            {"topic": f"{TOPIC}1", "namespace": NAMESPACE, "subscription": "s", "delayed_messages": 0},
            {"topic": f"persistent://{OTHER}/t", "namespace": OTHER, "subscription": "s", "delayed_messages": 1},
        ],
    )
    first, second = found.delayed
    assert (first.namespace, first.messages, first.subscriptions, first.most, first.topic) == (
        NAMESPACE,
        12,
        2,
        12,
        TOPIC,
    )
    assert (first.ttl_seconds, first.longest_delay_seconds, first.held_bytes, first.holder) == (3600, HOUR, GIB, TOPIC)
    assert (second.namespace, second.messages, second.ttl_seconds) == (OTHER, 1, None)
    assert [(each.check_id, each.count, each.reason) for each in found.checks] == [("delayed-past-ttl", 1, "One is.")]
