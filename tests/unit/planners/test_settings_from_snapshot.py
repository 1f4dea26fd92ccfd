"""What the planner of settings reads from a snapshot: ages and backlogs, and the topics that retain more themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.backlogs import Backlog, BacklogAges
from pulsar_steward.model.setting import Retention, SettingName
from pulsar_steward.planners.settings.from_snapshot import namespace_facts, topic_facts
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.report_checkup.snapshots import Rows, a_finding, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.snapshots.read import Snapshot

SHOP = "shop/orders"
KEPT = json.dumps({"retentionTimeInMinutes": 60, "retentionSizeInMB": 500})
QUOTA = json.dumps({"destination_storage": {"limitSize": 7000, "limitTime": -1, "policy": "producer_request_hold"}})


def named(name: str, namespace: str = SHOP) -> dict[str, Any]:
    """The columns that say which topic a row is about."""
    return {"topic": f"persistent://{namespace}/{name}", "namespace": namespace}


def a_topic(name: str, backlog: int, stored: int = 0, rate: float = 0.0) -> dict[str, Any]:
    """A loaded topic."""
    figures = {"backlog_bytes": backlog, "storage_bytes": stored, "throughput_in_bytes": rate, "producers": 1}
    return named(name) | figures


TABLES: dict[str, Rows] = {
    "namespaces": [{"namespace": SHOP, "policies_json": "{}"}],
    "topics": [
        a_topic("t", 100, 1000),
        a_topic("u", 300, 300, 10.0),
        a_topic("v", 0, 50),
        a_topic("big-partition-0", 5, 5, 1.0),
        a_topic("big-partition-1", 9, 9, 3.0),
        a_topic("__change_events", 10**9, 10**9),
    ],
    "subscriptions": [
        named(name) | {"subscription": subscription, "backlog_entries": messages}
        for name, subscription, messages in (("u", "s1", 30), ("u", "s2", 10), ("t", "s", 4), ("v", "s", 0))
    ],
    "drilled": [
        named("t") | {"oldest_backlog_age_seconds": 77, "topic_quota_json": QUOTA, "topic_retention_json": "{}"},
        named("u") | {"topic_quota_json": json.dumps({}), "topic_retention_json": None},
        named("big-partition-1") | {"topic_quota_json": "{}", "topic_retention_json": KEPT},
    ],
}
FINDINGS = [
    a_finding("warning", "backlog-quota-missing", subject=SHOP),
    *(a_finding("critical", "backlog-near-quota", subject=named(name)["topic"]) for name in ("u", "big-partition-1")),
    a_finding("info", "backlog-near-quota", subject=named("t")["topic"]),
]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """One namespace of which something was found, and of two of its topics."""
    return open_snapshot(written(tmp_path / "snapshot", findings=FINDINGS, **TABLES))


def test_a_namespace_is_known_by_what_its_topics_hold(snapshot: Snapshot) -> None:
    """Without Pulsar's own topics; the ages that brokers told go before those that are estimated."""
    (fact,) = namespace_facts(snapshot, snapshot.findings())

    assert fact.ages == BacklogAges(
        oldest_seconds=77, topic=named("t")["topic"], estimated=False, waiting=4, unknown=0, why_unknown=""
    )
    assert fact.backlogs[:2] == (
        Backlog(topic=named("u")["topic"], bytes=300, messages=(10, 30)),
        Backlog(topic=named("t")["topic"], bytes=100, messages=(4,)),
    )
    assert fact.consumed_bytes == 900 + 50
    assert fact.topic_quotas == (7000, 0)


def test_only_topics_that_retain_themselves_are_looked_at_for_a_quota_of_their_own(snapshot: Snapshot) -> None:
    """Each by what was found of it, under the name that settings have; its partitions count together."""
    (fact,) = topic_facts(snapshot, snapshot.findings())

    assert (fact.subject, fact.topic) == (named("big-partition-1")["topic"], named("big")["topic"])
    assert fact.own == {SettingName.RETENTION: Retention(minutes=60, megabytes=500)}
    assert (fact.peak, fact.busiest_bytes_per_second, fact.snapshots) == (9, 3.0, 1)
