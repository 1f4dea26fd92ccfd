"""Whoever holds a backlog that fills a quota is named: an application's subscription, or a cursor of Pulsar's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.quota_settings import COMPACTION_OVER_QUOTA
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK
from pulsar_steward.checks.backlog.replication_stopped import CHECK as REPLICATION_STOPPED
from pulsar_steward.checks.backlog.retention import OFFLOAD_FAILING
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import DAY, GIB
from tests.checks.backlog.conftest import TAKEN_AT, Scene
from tests.checks.backlog.documents import retention, size
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

WEST = json.dumps([{"cluster": "west", "connected": False, "backlog_entries": 1_000_000}])
HOLDERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "an application": ({}, {"subscription": "app", "backlog_entries": 9}, {}),
    "a replicator": ({"replication_json": WEST}, {"subscription": "app", "backlog_entries": 0}, {}),
    "compaction": ({}, {"subscription": "__compaction", "backlog_entries": 1_000_000}, {}),
    "deduplication, which was read": ({}, {"subscription": "app", "backlog_entries": 0}, {"deduplication_entries": 7}),
    "deduplication, perhaps": ({"deduplicated": True}, {"subscription": "app", "backlog_entries": 0}, {}),
    "the broker's favourite with nothing left": (
        {"replication_json": WEST},
        {"subscription": "app", "backlog_entries": 0},
        {"slowest_subscription": "app"},
    ),
}


def held(scene: Scene, topic: dict[str, Any], subscription: dict[str, Any], drilled: dict[str, Any]) -> Scene:
    """A topic of 12 GiB over a quota of 10 GiB that shuts producers out."""
    more = dict(topic)
    scene.namespace(quotas=size(10 * GIB), deduplicationEnabled=more.pop("deduplicated", False))
    scene.topic(backlog_bytes=12 * GIB, **more).add("subscriptions", **subscription)
    return scene.add("drilled", quota_limit_bytes=10 * GIB, **drilled)


def test_whoever_holds_it_is_named(golden: Golden) -> None:
    """The evidence names the cursor with most left, and what helps against it; never one with nothing left."""
    judged = {name: held(Scene().configured(), *case).judged(BACKLOG_NEAR_QUOTA) for name, case in HOLDERS.items()}
    assert not any(" with 0 entries" in each.findings[0].evidence for each in judged.values())
    golden(told(judged))


@pytest.mark.parametrize("name", ["a replicator", "compaction"])
def test_no_quota_is_stuck_that_a_cursor_explains(scene: Scene, name: str) -> None:
    """A backlog of a replicator or of compaction explains a full quota as well as an application's does."""
    assert held(scene, *HOLDERS[name]).found(QUOTA_STUCK) == {}


@pytest.mark.parametrize(("deduplicated", "severity"), [(True, Severity.WARNING), (False, Severity.CRITICAL)])
def test_deduplication_may_explain_it(scene: Scene, deduplicated: bool, severity: Severity) -> None:
    """Without a known holder a quota is stuck; where topics are deduplicated, that may be all."""
    topic = {"deduplicated": deduplicated, "producers": 0}
    found = held(scene, topic, {"subscription": "app", "backlog_entries": 0}, {}).found(QUOTA_STUCK)
    assert list(found.values()) == [severity]


def test_a_stopped_replication_that_shuts_producers_out_is_critical(scene: Scene, golden: Golden) -> None:
    """At the first look already, as producers are shut out now."""
    (finding,) = held(scene, *HOLDERS["a replicator"]).judged(REPLICATION_STOPPED).findings
    assert finding.severity is Severity.CRITICAL
    golden(finding.evidence)


@pytest.mark.parametrize(
    ("threshold", "limit", "found"),
    [(10 * GIB, 10 * GIB, True), (10 * GIB - 1, 10 * GIB, False), (0, 1, False), (1, 0, True), (1, -1, False)],
)
def test_a_compaction_comes_before_its_quota_is_full(scene: Scene, threshold: int, limit: int, found: bool) -> None:
    """A compaction threshold at or above a size quota is found, where there is such a quota."""
    scene.namespace(quotas=size(limit), compaction_threshold=threshold)
    assert bool(scene.found(COMPACTION_OVER_QUOTA)) is found


LATELY = int(TAKEN_AT.timestamp() - 60) * 1000
OFFLOADS: dict[str, tuple[str, dict[str, int], bool]] = {
    "works": ("aws-s3", {"offloaded_bytes": 5, "offloaded_milliseconds": 9, "offload_failed_milliseconds": 3}, False),
    "nothing to offload yet": ("aws-s3", {"offloaded_bytes": 0}, False),
    "no driver": ("", {"offloaded_bytes": 0}, True),
    "fails": ("aws-s3", {"offloaded_milliseconds": 0, "offload_failed_milliseconds": LATELY}, True),
    "failed long ago": ("aws-s3", {"offload_failed_milliseconds": LATELY - 2 * DAY * 1000}, False),
}


@pytest.mark.parametrize("case", OFFLOADS.values(), ids=OFFLOADS)
def test_offloading_is_believed_by_what_topics_tell(scene: Scene, golden: Golden, case: Any) -> None:
    """That a namespace is set to offload proves nothing: its driver and its topics do."""
    driver, told, fails = case
    scene.configured(managedLedgerOffloadDriver=driver)
    scene.namespace(offload_threshold=0, retention_policies=retention(-1, -1)).topic(storage_bytes=GIB).add(
        "drilled", **told
    )
    findings = scene.judged(OFFLOAD_FAILING).findings
    assert bool(findings) is fails
    if findings:
        golden(findings[0].evidence)


def test_a_limit_that_a_version_does_not_report_is_the_holders_above(scene: Scene) -> None:
    """2.10 reports no limit of a topic: its own quota counts, else its namespace's, and never none."""
    untold = dict.fromkeys(("quota_limit_bytes", "quota_limit_seconds", "oldest_backlog_age_seconds"))
    scene.namespace(quotas=size(10 * GIB))
    for name, own in (("own", size(12 * GIB)), ("common", {})):
        scene.topic(f"acme/orders/{name}", 11 * GIB)
        scene.add("drilled", f"acme/orders/{name}", **untold, topic_quota_json=json.dumps(own))
    assert scene.found(BACKLOG_NEAR_QUOTA) == {
        "persistent://acme/orders/own": Severity.WARNING,
        "persistent://acme/orders/common": Severity.CRITICAL,
    }


def test_an_age_that_brokers_cannot_know_yet_is_estimated(scene: Scene, golden: Golden) -> None:
    """With its ledger open a backlog has no age for its broker: by what comes in it may be over its quota already."""
    quota = {"message_age": {"limitSize": -1, "limitTime": 60, "policy": "producer_request_hold"}}
    scene.namespace(quotas=quota).topic(backlog_bytes=18_000_000, throughput_in_bytes=20_000.0)
    scene.add("subscriptions", subscription="late", backlog_entries=45_000).add("drilled", quota_limit_seconds=60)
    (finding,) = scene.judged(PRODUCER_HOLD_RESTART_RISK).findings
    golden(finding.evidence)
