"""Brokers' series of the quotas in force for topics, and of how old their backlogs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.quota_settings import BACKLOG_QUOTA_MISSING
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK
from pulsar_steward.model.finding import Severity
from tests.checks.backlog.documents import EVICT, age, size

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden

TOPIC = "persistent://acme/orders/t"
CRITICAL = Severity.CRITICAL


def told(scene: Scene, figure: str, value: float, topic: str = TOPIC, **more: str) -> Scene:
    """A sample of a topic's backlog, of its owner, whose metrics were read to their end."""
    owner = next((row["broker"] for row in scene.rows["topics"] if row["topic"] == topic), "a:8080")
    for row in scene.rows["brokers"]:
        row.setdefault("metrics_read", True)
    sample = {"source": owner, "source_kind": "broker", "labels_json": "{}", "topic": topic, "value": value}
    scene.rows.setdefault("metrics", []).append(sample | {"series": f"pulsar_storage_backlog_{figure}"} | more)
    return scene


def test_a_quota_that_a_topic_sets_itself_counts_though_nobody_asked_it(scene: Scene, golden: Golden) -> None:
    """A topic's own quota is known from the brokers' metrics without asking the topic, but its policy is not."""
    scene.namespace().topic(backlog_bytes=990)
    told(scene, "quota_limit", 1000.0)
    (finding,) = scene.judged(BACKLOG_NEAR_QUOTA).findings
    assert (finding.severity, finding.figures["limit_bytes"]) == (CRITICAL, 1000)
    assert "its policy was not read" in finding.evidence
    golden(str(scene.judged(PRODUCER_HOLD_RESTART_RISK).cannot_tell))
    assert not scene.found(BACKLOG_QUOTA_MISSING)


def test_a_topic_over_a_quota_of_its_own_may_be_stuck(scene: Scene) -> None:
    """The check cannot tell about a topic over a quota of its own whose policy was not read."""
    scene.namespace().topic(backlog_bytes=1000, producers=0)
    told(scene, "quota_limit", 1000.0)
    assert "policy was not read" in str(scene.judged(QUOTA_STUCK).cannot_tell)


@pytest.mark.parametrize("own", [10_000.0, -1.0], ids=["a wider one", "none"])
def test_a_topic_may_be_allowed_more_than_its_namespace(scene: Scene, own: float) -> None:
    """A topic with a wider quota of its own, or with none, is not near its namespace's quota."""
    scene.namespace(quotas=size(1000)).topic(backlog_bytes=990)
    told(scene, "quota_limit", own)
    assert scene.judged(BACKLOG_NEAR_QUOTA).findings == ()
    assert scene.judged(PRODUCER_HOLD_RESTART_RISK).cannot_tell is None


@pytest.mark.parametrize("limit", [1000, 2**63 - 1])
def test_what_is_told_of_a_namespaces_quota_is_no_news(scene: Scene, limit: int) -> None:
    """A reported quota that equals the namespace's is judged by the namespace's policy."""
    scene.namespace(quotas=size(limit)).topic(backlog_bytes=1000)
    told(scene, "quota_limit", float(limit))
    assert scene.found(PRODUCER_HOLD_RESTART_RISK) == ({TOPIC: CRITICAL} if limit == 1000 else {})
    assert scene.judged(PRODUCER_HOLD_RESTART_RISK).cannot_tell is None


def test_what_another_broker_tells_does_not_count(scene: Scene) -> None:
    """A quota that another broker than the topic's owner reports is ignored."""
    scene.namespace().topic(backlog_bytes=990)
    told(scene, "quota_limit", 1000.0, source="b:8080")
    assert scene.found(BACKLOG_NEAR_QUOTA) == {}


def test_a_topic_that_was_asked_knows_better(scene: Scene) -> None:
    """A quota in the statistics of a topic goes before one in the brokers' metrics."""
    scene.namespace().topic(backlog_bytes=990).add("drilled", quota_limit_bytes=2000)
    told(scene, "quota_limit", 1000.0)
    assert scene.found(BACKLOG_NEAR_QUOTA) == {}


@pytest.mark.parametrize(("seconds", "found"), [(3599.0, True), (60.0, False)])
def test_an_age_that_is_told_is_known(scene: Scene, seconds: float, found: bool) -> None:
    """A backlog's age from brokers' metrics is used for topics that were not drilled."""
    scene.namespace(quotas=age(3600)).topic(backlog_bytes=9)
    told(scene, "age_seconds", seconds)
    for check in (BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK):
        judgement = scene.judged(check)
        assert bool(judgement.findings) is found
        assert judgement.cannot_tell is None


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
    told(scene, "age_seconds", -1.0, "persistent://acme/orders/first", **sample)
    assert (scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell is None) is known


def test_an_age_quota_that_a_topic_sets_itself_needs_its_age(scene: Scene, golden: Golden) -> None:
    """The checks cannot tell about a topic's own age quota until the age of its backlog is reported."""
    scene.namespace(quotas=size(10**12, EVICT)).topic(backlog_bytes=9)
    told(scene, "quota_limit_time", 3600.0)
    for check in (BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK):
        golden(scene.judged(check).cannot_tell)
    told(scene, "age_seconds", 60.0)
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
        told(scene, "age_seconds", 3600.0)
    assert scene.found(BACKLOG_NEAR_QUOTA) == ({TOPIC: CRITICAL} if found else {})
    assert scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell is None


@pytest.mark.parametrize(
    ("value", "said"), [(1e300, True), (1e18, True), (float("inf"), True), (float("nan"), True), (-1e300, False)]
)
def test_figures_that_no_number_holds_break_nothing(scene: Scene, value: float, said: bool) -> None:
    """Figures that are huge, negative or not finite break no check, and only negative ones mean no quota."""
    scene.namespace(quotas=age(3600)).topic(backlog_bytes=9)
    for figure in ("quota_limit", "quota_limit_time", "age_seconds"):
        told(scene, figure, value)
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
    told(scene, "quota_limit", 0.0, name)
    assert not scene.found(BACKLOG_NEAR_QUOTA)
    assert not scene.found(PRODUCER_HOLD_RESTART_RISK)
