"""Limits of consumers, whose topics they hold for, and which of several limits of a topic is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.limits_reached import LIMIT_REACHED
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden

RATE: dict[str, Any] = {
    "publishMaxMessageRate": {"lab": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}}
}
TOLD = "pulsar_publish_rate_limit_times"
SYSTEM = "persistent://pulsar/system/t"


def limited(scene: Any, namespace: str = "t/n", **policies: object) -> Any:
    """The namespace with these limits, in a cluster that is called as in its policies."""
    scene.rows["snapshot"][0]["pulsar_cluster"] = "lab"
    return scene.add("namespaces", namespace=namespace, policies_json=json.dumps(policies))


@pytest.mark.parametrize(("limit", "found"), [(3, True), (2, True), (4, False), (0, False)])
@pytest.mark.parametrize("setting", ["max_consumers_per_topic", "max_consumers_per_subscription"])
def test_consumers_are_counted_by_topic_and_by_subscription(
    scene: Any, golden: Golden, setting: str, limit: int, found: bool
) -> None:
    """From the limit on, as a warning; 0 is none."""
    policies: dict[str, Any] = {setting: limit}
    findings = limited(scene, **policies).subscription("t").judged(LIMIT_REACHED).findings
    assert [each.severity for each in findings] == [Severity.WARNING] * found
    if findings:
        assert findings[0].figures == {"allowed": limit, "amount": 3}
        golden(findings[0].evidence)


@pytest.mark.parametrize(
    ("topic", "namespace", "found"),
    [("persistent://t/n/__transaction_buffer_snapshot-x", "t/n", True), (SYSTEM, "pulsar/system", False)],
)
def test_topics_of_pulsars_own_tenant_are_left_out(scene: Any, topic: str, namespace: str, found: bool) -> None:
    """Others that begin with two underscores count."""
    limited(scene, namespace, max_subscriptions_per_topic=1).topic(topic)
    assert bool(scene.judged(LIMIT_REACHED).findings) is found


@pytest.mark.parametrize(("backlog", "found"), [(1000, True), (999, False)])
def test_a_dispatch_rate_is_told_where_messages_wait(scene: Any, backlog: int, found: bool) -> None:
    """With fewer entries of backlog what was held back is on its way."""
    limited(scene).subscription("t", backlog_entries=backlog).drilled("t", namespace="t/n", dispatching_limited=100)
    assert bool(scene.judged(LIMIT_REACHED).findings) is found


@pytest.mark.parametrize(("times", "found"), [(100, True), (99, False)])
def test_metrics_tell_of_topics_that_were_not_drilled(scene: Any, times: int, found: bool) -> None:
    """Brokers count how often they made producers wait."""
    limited(scene).topic("t").measured({TOLD: times}, topic="persistent://t/n/t")
    assert bool(scene.judged(LIMIT_REACHED).findings) is found


def test_a_topic_has_one_finding_and_clients_come_first(
    scene: Any, by_name: Callable[..., dict[str, Severity]], golden: Golden
) -> None:
    """Who is refused is worse off than who waits."""
    limited(scene, **RATE, max_producers_per_topic=2)
    scene.topic("t", producers=2, message_rate_in=10.0).drilled("t", namespace="t/n", publishing_limited=173)
    judgement = scene.judged(LIMIT_REACHED)
    assert by_name(judgement) == {"t": Severity.WARNING}
    golden(judgement.findings[0].evidence)
