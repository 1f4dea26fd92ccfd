"""Brokers' series of the quotas in force for topics, and of how old their backlogs are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.quota_settings import BACKLOG_QUOTA_MISSING, COMPACTION_OVER_QUOTA
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA as NEAR_QUOTA
from pulsar_steward.checks.backlog.replication_stopped import CHECK as REPLICATION_STOPPED
from pulsar_steward.checks.backlog.retention import OFFLOAD_FAILING
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import DAY
from tests.checks.backlog.conftest import TAKEN_AT, Scene
from tests.checks.backlog.documents import EVICT, age, retention, size
from tests.checks.backlog.histories import GIB, judged, scenes
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

TOPIC = "persistent://acme/orders/t"
CRITICAL = Severity.CRITICAL


def tells(scene: Scene, figure: str, value: float, topic: str = TOPIC, **more: str) -> Scene:
    """A sample of a topic's backlog, of its owner, whose metrics were read to their end."""
    owner = next((row["broker"] for row in scene.rows["topics"] if row["topic"] == topic), "a:8080")
    for row in scene.rows["brokers"]:
        row.setdefault("metrics_read", True)
    sample = {"source": owner, "source_kind": "broker", "labels_json": "{}", "topic": topic, "value": value}
    scene.rows.setdefault("metrics", []).append(sample | {"series": f"pulsar_storage_backlog_{figure}"} | more)
    return scene


def with_limit(limit: float, backlog: int = 990, quotas: Any = None, producers: int = 4, **sample: str) -> Scene:
    """A topic of which brokers' metrics tell this size limit."""
    scene = Scene().configured().namespace(quotas=quotas).topic(backlog_bytes=backlog, producers=producers)
    return tells(scene, "quota_limit", limit, **sample)


def with_age(seconds: float) -> Scene:
    """A topic under an age quota of an hour, whose backlog's age metrics tell."""
    return tells(Scene().configured().namespace(quotas=age(3600)).topic(backlog_bytes=9), "age_seconds", seconds)


def test_what_it_says(golden: Golden) -> None:
    """A topic's own quota is known without asking it, and its policy is not; an age that metrics tell is known."""
    near, risk, largest = BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, 2**63 - 1
    asked = Scene().configured().namespace().topic(backlog_bytes=990).add("drilled", quota_limit_bytes=2000)
    cases = {
        "a quota of its own": with_limit(1000.0).judged(near),
        "whose policy was not read": with_limit(1000.0).judged(risk),
        "which is no missing one": with_limit(1000.0).judged(BACKLOG_QUOTA_MISSING),
        "and may be stuck": with_limit(1000.0, 1000, producers=0).judged(QUOTA_STUCK),
        "a wider one than its namespace's": with_limit(10_000.0, quotas=size(1000)).judged(near),
        "no risk by a wider one": with_limit(10_000.0, quotas=size(1000)).judged(risk),
        "none, though its namespace has one": with_limit(-1.0, quotas=size(1000)).judged(near),
        "no risk without one": with_limit(-1.0, quotas=size(1000)).judged(risk),
        "the same as its namespace's, whose policy is known": with_limit(1000.0, 1000, size(1000)).judged(risk),
        "the largest, as its namespace's": with_limit(float(largest), 1000, size(largest)).judged(risk),
        "another broker tells it": with_limit(1000.0, source="b:8080").judged(near),
        "the topic itself tells another": tells(asked, "quota_limit", 1000.0).judged(near),
        "an age near its quota": with_age(3599.0).judged(near),
        "and the risk of it": with_age(3599.0).judged(risk),
        "a young age": with_age(60.0).judged(near),
        "and no risk of it": with_age(60.0).judged(risk),
    }
    golden(told(cases))


SILENT: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = {
    "all others are told": ({}, {}, True),
    "the rest was not read": ({"metrics_read": False}, {}, False),
    "partitions have a label": ({}, {"labels_json": '{"partition":"-1"}'}, True),
    "ages are told of nobody": ({}, {"series": "pulsar_storage_backlog_quota_limit"}, False),
    "another broker tells": ({}, {"source": "b:8080"}, False),
}


@pytest.mark.parametrize(("broker", "sample", "known"), SILENT.values(), ids=SILENT)
def test_an_age_that_is_not_told_is_not_known_to_the_broker(
    scene: Scene, broker: dict[str, Any], sample: dict[str, str], known: bool
) -> None:
    """The check can tell without a topic's age only if its owner's complete metrics show the ages of other topics."""
    scene.namespace(quotas=age(3600)).topic(backlog_bytes=9)
    scene.rows["brokers"][0] |= broker
    tells(scene, "age_seconds", -1.0, "persistent://acme/orders/first", **sample)
    assert (scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell is None) is known


def test_an_age_quota_that_a_topic_sets_itself_needs_its_age(scene: Scene, golden: Golden) -> None:
    """The checks cannot tell about a topic's own age quota until the age of its backlog is reported."""
    scene.namespace(quotas=size(10**12, EVICT)).topic(backlog_bytes=9)
    tells(scene, "quota_limit_time", 3600.0)
    for check in (BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK):
        golden(scene.judged(check).cannot_tell)
    tells(scene, "age_seconds", 60.0)
    for check in (BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK):
        assert scene.judged(check).cannot_tell is None


AGES: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing comes in": ({"backlog_bytes": 1000}, True),
    "as much as that comes in": ({"backlog_bytes": 7200, "throughput_in_bytes": 2.0}, True),
    "twenty times as much would be there": ({"backlog_bytes": 1000, "throughput_in_bytes": 20_000 / 3600}, True),
    "more would be there": ({"backlog_bytes": 1000, "throughput_in_bytes": 20_004 / 3600}, False),
    "no backlog": ({"backlog_bytes": 0}, False),
}


@pytest.mark.parametrize("drilled", [True, False])
@pytest.mark.parametrize(("topic", "found"), AGES.values(), ids=AGES)
def test_an_age_that_the_backlog_belies_is_left_over(
    scene: Scene, topic: dict[str, Any], found: bool, drilled: bool
) -> None:
    """An age that does not fit the backlog is ignored, as brokers before apache/pulsar#24915 may report it."""
    scene.namespace(quotas=age(3600)).topic(**topic)
    if drilled:
        scene.add("drilled", quota_limit_seconds=3600, oldest_backlog_age_seconds=3600)
    else:
        tells(scene, "age_seconds", 3600.0)
    assert scene.found(BACKLOG_NEAR_QUOTA) == ({TOPIC: CRITICAL} if found else {})
    assert scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell is None


@pytest.mark.parametrize(
    ("value", "said"), [(1e300, True), (1e18, True), (float("inf"), True), (float("nan"), True), (-1e300, False)]
)
def test_figures_that_no_number_holds_break_nothing(scene: Scene, value: float, said: bool) -> None:
    """Figures that are huge, negative or not finite break no check, and only negative ones mean no quota."""
    scene.namespace(quotas=age(3600)).topic(backlog_bytes=9)
    for figure in ("quota_limit", "quota_limit_time", "age_seconds"):
        tells(scene, figure, value)
    for check in (BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK):
        judgement = scene.judged(check)
        assert not judgement.broke
        assert not any("None" in finding.evidence for finding in judgement.findings)
    near = scene.judged(BACKLOG_NEAR_QUOTA)
    assert bool(near.findings or near.cannot_tell) is said


def test_a_topic_that_keeps_nothing_has_no_quota(scene: Scene) -> None:
    """A limit of 0 that brokers tell of a non-persistent topic is no quota, as brokers look at none there."""
    name = "non-persistent://acme/orders/passing"
    scene.namespace().topic()
    scene.rows["topics"][-1]["topic"] = name
    tells(scene, "quota_limit", 0.0, name)
    assert not scene.found(BACKLOG_NEAR_QUOTA)
    assert not scene.found(PRODUCER_HOLD_RESTART_RISK)


SETTINGS = {
    "backlogQuotaCheckIntervalInSeconds": "300",
    "entryFilterNames": "[by-region]",
    "exposePreciseBacklogInPrometheus": "false",
}
EXACT = {
    "backlogQuotaCheckIntervalInSeconds": "60",
    "entryFilterNames": "[]",
    "exposePreciseBacklogInPrometheus": "true",
}


def near(scene: Scene, **settings: str) -> list[str]:
    """Evidence about two topics near their quota, where brokers have these settings."""
    scene.configured(**settings).namespace(quotas=size(100))
    scene.topic("acme/orders/fuller", 95).topic("acme/orders/full", 90)
    return [each.evidence for each in scene.judged(NEAR_QUOTA).findings]


def test_the_first_finding_has_them_all(golden: Golden) -> None:
    """Also of growing backlogs; the other findings name none."""
    made = scenes({"bound/t": [66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB], "free/u": [0, GIB, 2 * GIB, 3 * GIB]})
    made[-1].configured(**SETTINGS)
    first, second = near(Scene().configured(), **SETTINGS)
    grows_first, grows_second = (each.evidence for each in judged(made).findings)
    golden(first)
    assert all(name in grows_first for name in SETTINGS)
    assert not any(name in second + grows_second for name in SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_is_told_only_where_it_holds(scene: Scene, setting: str) -> None:
    """The first finding names only the setting that makes backlogs approximate."""
    first, _ = near(scene, **EXACT | {setting: SETTINGS[setting]})
    assert [name for name in SETTINGS if name in first] == [setting]


@pytest.mark.parametrize("settings", [{}, EXACT], ids=["not told", "exact"])
def test_nothing_is_told_of_what_is_exact_or_not_known(scene: Scene, settings: dict[str, str]) -> None:
    """Findings name no setting that is exact or was not read."""
    first, second = near(scene, **settings)
    assert not any(name in evidence for evidence in (first, second) for name in SETTINGS)


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
    [
        (10 * GIB, 10 * GIB, True),
        (10 * GIB - 1, 10 * GIB, False),
        (0, 1, False),
        (1, 0, True),
        (1, -1, False),
    ],
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
