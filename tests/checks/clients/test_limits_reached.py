"""Limits of a broker, namespace or topic that are reached; clients of old versions, and very many of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients.client_numbers import CLIENT_VERSIONS, CONSUMER_FANOUT, PRODUCER_FANOUT
from pulsar_steward.checks.clients.limits_reached import LIMIT_REACHED
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DISPATCHING_LIMITED, PUBLISHING_LIMITED
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.golden import Golden

TOLD = PUBLISHING_LIMITED
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
        assert findings[0].figures == {"allowed": limit, "amount": 3, "shut_out": 3 - limit}
        golden(findings[0].evidence)


@pytest.mark.parametrize(
    ("topic", "namespace", "found"),
    [("persistent://t/n/__transaction_buffer_snapshot-x", "t/n", True), (SYSTEM, "pulsar/system", False)],
)
def test_topics_of_pulsars_own_tenant_are_left_out(scene: Any, topic: str, namespace: str, found: bool) -> None:
    """Others that begin with two underscores count."""
    limited(scene, namespace, max_subscriptions_per_topic=1).topic(topic)
    assert bool(scene.judged(LIMIT_REACHED).findings) is found


CHANGES = "persistent://t/n/__change_events"
FORBIDDEN: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, int], bool]] = {
    "by the namespace": ({"is_allow_auto_update_schema": False}, {}, ("__compaction", 1), True),
    "by brokers": ({}, {"isAllowAutoUpdateSchemaEnabled": "false"}, ("reader-1f", 0), True),
    "allowed by the namespace": (
        {"is_allow_auto_update_schema": True},
        {"isAllowAutoUpdateSchemaEnabled": "false"},
        ("__compaction", 1),
        False,
    ),
    "not said": ({}, {}, ("__compaction", 1), False),
    "a broker reads": ({"is_allow_auto_update_schema": False}, {}, ("__system_reader-1f", 1), False),
    "no topic may have policies": (
        {"is_allow_auto_update_schema": False},
        {"topicLevelPoliciesEnabled": "false"},
        ("__compaction", 1),
        False,
    ),
}


@pytest.mark.parametrize(("policies", "settings", "reads", "found"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_schema_rule_that_shuts_brokers_out_of_topic_policies_is_found(
    scene: Any, policies: dict[str, Any], settings: dict[str, str], reads: tuple[str, int], found: bool
) -> None:
    """Nobody reads `__change_events` of a namespace that forbids schema updates (apache/pulsar#16331)."""
    limited(scene, **policies)
    for key, value in ({"topicLevelPoliciesEnabled": "true"} | settings).items():
        scene.add("configuration", broker="a:8080", key=key, value=value)
    name, consumers = reads
    findings = scene.subscription(CHANGES, name, consumers=consumers).judged(LIMIT_REACHED).findings
    assert [each.subject for each in findings] == [CHANGES] * found
    assert all("is_allow_auto_update_schema" in each.evidence for each in findings)


def publishing(cluster: str, messages: int, size: int = 0) -> dict[str, Any]:
    """A publish rate under a cluster's name."""
    rate = {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}
    return {"publishMaxMessageRate": {cluster: rate}}


def dispatching(member: str, messages: int, period: int = 1) -> dict[str, Any]:
    rate = {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": period}
    return {member: {"lab": rate}}


RATE = publishing("lab", 10, -1)
OF_TOPICS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "more producers, and as many consumers": (
        {"max_producers_per_topic": 4, "max_consumers_per_topic": 1, "max_subscriptions_per_topic": 10},
        {"producers": 5, "consumers": 1, "subscriptions": 11},
        True,
    ),
    "producers": ({"max_producers_per_topic": 4}, {"producers": 4}, True),
    "one producer less": ({"max_producers_per_topic": 4}, {"producers": 3}, False),
    "subscriptions": ({"max_subscriptions_per_topic": 10}, {"subscriptions": 10}, True),
    "messages": (publishing("lab", 100), {"message_rate_in": 95.0}, True),
    "fewer messages": (publishing("lab", 100), {"message_rate_in": 94.0}, False),
    "a limit of another cluster": (publishing("foo", 1), {"message_rate_in": 95.0}, False),
    "bytes": (publishing("lab", 0, 10**7), {"throughput_in_bytes": 1e7}, True),
}


@pytest.mark.parametrize(("policies", "topic", "found"), OF_TOPICS.values(), ids=OF_TOPICS)
def test_a_namespaces_limit_that_a_topic_reaches_is_found(
    scene: Any, golden: Golden, policies: dict[str, Any], topic: dict[str, Any], found: bool
) -> None:
    """By the numbers and rates of the topic."""
    findings = limited(scene, **policies).topic("t", **topic).judged(LIMIT_REACHED).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)


@pytest.mark.parametrize(("backlog", "times", "found"), [(1000, 100, True), (999, 100, False), (1000, 99, False)])
@pytest.mark.parametrize("drilled", [True, False])
def test_a_dispatch_rate_is_told_where_messages_wait(
    scene: Any, backlog: int, times: int, drilled: bool, found: bool
) -> None:
    """With fewer entries of backlog what was held back is on its way; brokers' metrics tell it of all topics."""
    limited(scene).subscription("t", backlog_entries=backlog)
    if drilled:
        scene.drilled("t", namespace="t/n", dispatching_limited=times)
    else:
        held_back(scene, "subscription", messages=times - 1, size=1)
    assert bool(scene.judged(LIMIT_REACHED).findings) is found


OWN_RATES = {
    "publishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1},
    "subscriptionDispatchRate": {"dispatchThrottlingRateInMsg": 120, "ratePeriodInSecond": 60},
    "dispatchRate": {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": 2_000_000},
}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("publishRate", {"publishing_limited": 173}),
        ("subscriptionDispatchRate", {"dispatching_limited": 738}),
        ("dispatchRate", {"reason": "topic"}),
    ],
    ids=["publish", "subscription", "topic"],
)
def test_a_topics_own_rate_goes_before_all_others(
    scene: Any, golden: Golden, policy: str, told: dict[str, Any]
) -> None:
    """With its value, where the topic was asked for it, as something was held back."""
    policies = {**publishing("lab", 50_000), **dispatching("subscriptionDispatchRate", 70)}
    limited(scene, **policies, **dispatching("topicDispatchRate", 80)).subscription("t")
    own = {"topic_rates_json": json.dumps({policy: OWN_RATES[policy]})}
    if reason := told.get("reason"):  # a topic's statistics do not say by which rate
        held_back(scene, reason, messages=738)
    scene.drilled("t", namespace="t/n", **own, **({} if reason else told))
    (finding,) = scene.judged(LIMIT_REACHED).findings
    golden(finding.evidence)


def test_a_topic_at_its_own_rate_is_found_by_what_it_takes(scene: Any, golden: Golden) -> None:
    """As of a namespace's rate, of which this topic has none."""
    limited(scene, **publishing("lab", 50_000)).topic("t", message_rate_in=9.9)
    scene.drilled("t", namespace="t/n", topic_rates_json=json.dumps(OWN_RATES))
    (finding,) = scene.judged(LIMIT_REACHED).findings
    golden(finding.evidence)


def held_back(scene: Any, reason: str, messages: int, size: int = 0) -> Any:
    """A broker's count of what a dispatch rate held back."""
    for series, value in zip(DISPATCHING_LIMITED, (size, messages), strict=True):
        labels = {"labels_json": json.dumps({"reason": reason}), "topic": "persistent://t/n/t", "subscription": "s"}
        scene.measured({series: value}, **labels)
    return scene


@pytest.mark.parametrize(("times", "found"), [(100, True), (99, False)])
@pytest.mark.parametrize("policies", [{}, RATE])
def test_metrics_tell_of_topics_that_were_not_drilled(
    scene: Any, golden: Golden, policies: dict[str, Any], times: int, found: bool
) -> None:
    """Brokers count how often they paused producers, for a rate or as entries are still to be written."""
    limited(scene, **policies).topic("t").measured({TOLD: times}, topic="persistent://t/n/t")
    findings = scene.judged(LIMIT_REACHED).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)


def test_what_it_says(golden: Golden) -> None:
    """A namespace's limit goes before the brokers'; who is refused is worse off than who waits."""

    def of_brokers(setting: str, policies: dict[str, Any], **topic: Any) -> Any:
        scene = limited(limited(Scene()), "t/own", **policies).configured(**{setting: "20"})
        return scene.topic("t", **topic).topic("persistent://t/own/t", **topic)

    def dispatch(reason: str, policies: dict[str, Any], **settings: str) -> Any:
        scene = limited(Scene(), **policies).configured(**settings).subscription("t")
        return held_back(scene, reason, messages=738)

    own_period = dispatching("subscriptionDispatchRate", 60, period=60)
    of_topics, of_subscriptions = "dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerSubscriptionInByte"
    both = limited(Scene(), **RATE, max_producers_per_topic=2).topic("t", producers=2, message_rate_in=10.0)
    cases = {
        "the brokers' limit of producers, and a namespace's": of_brokers(
            "maxProducersPerTopic", {"max_producers_per_topic": 30}, producers=20
        ),
        "the brokers' publish rate, and a namespace's": of_brokers(
            "maxPublishRatePerTopicInMessages", publishing("lab", 30), message_rate_in=20.0
        ),
        "the namespace's dispatch rate": dispatch("subscription", own_period),
        "the namespace's before the brokers'": dispatch(
            "topic", dispatching("topicDispatchRate", 10), **{of_topics: "7"}
        ),
        "the brokers'": dispatch("subscription", {}, **{of_subscriptions: "10000000"}),
        "a broker's of all topics together": dispatch("broker", {}, dispatchThrottlingRateInMsg="5000"),
        "the topic's own": dispatch("subscription", {}, **{of_topics: "7"}),
        "clients come before rates": both.drilled("t", namespace="t/n", publishing_limited=173),
    }
    golden(told({rule: scene.judged(LIMIT_REACHED) for rule, scene in cases.items()}))


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def clients(version: str, consumers: int = 20, broker: str = "a:1", **more: Any) -> dict[str, Any]:
    """Clients of one version of a broker's part of a namespace, with their hosts."""
    row = {"broker": broker, "namespace": "acme/orders", "client_version": version, "producers": 1}
    named = {"hosts": 2, "busiest_hosts": ["10.0.0.7", "10.0.0.8"]}
    example = {"example_topic": f"persistent://acme/orders/{broker[0]}", "example_client": "billing-0"}
    return row | {"consumers": consumers} | named | example | more


def snapshot(*rows: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    topics = [{"topic": "persistent://acme/orders/t", "broker": "a:1", "producers": 0, "consumers": 20}]
    return {
        "snapshot": [{"cluster": "east", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": broker, "read": True} for broker in ("a:1", "b:1")],
        "topics": topics,
        "client_versions": list(rows),
    }


def test_what_it_says_of_numbers(golden: Golden) -> None:
    """A version with a known bug is one warning over all brokers, with an example; other old ones are information.

    As a host may have clients on both brokers, hosts are at least as many as one broker tells.
    """
    own = {"namespaces": {"acme/orders": {"client_versions": {"minimum_clients": 50}}}}
    busy = clients("2.6.2", 30, "b:1", hosts=3, busiest_hosts=["10.0.0.9"])
    few = clients(""), clients("2.6.2", 8), clients("2.7.0", namespace="acme/old")
    go = clients("Pulsar-Go-v0.16.0", namespace="acme/go"), clients("Pulsar-Java-v4.0.7", hosts=None)
    pulsars_own = [clients("2.6.2", namespace=name) for name in ("pulsar/system", "pulsar/east/a:1")]
    new = clients("Pulsar-Java-v4.0.7", hosts=None), clients("Pulsar-Go-v0.20.0", 5, hosts=None)
    cases: dict[str, tuple[Any, ...]] = {
        "a known bug": (snapshot(clients("2.6.2", 5, producers=7), busy),),
        "an unknown and an old version": (snapshot(clients(""), few[2]),),
        "few clients with a known bug": (snapshot(few[1]),),
        "few clients with a known bug come after many": (snapshot(*few, *go),),
        "fewer than the namespace's own threshold": (snapshot(clients("2.6.2")), Policy.model_validate(own)),
        "all is well, without Pulsar's own namespaces": (snapshot(*new, *pulsars_own),),
        "no client is connected": (snapshot(),),
    }
    golden(told({rule: judge_rows(CLIENT_VERSIONS, *case) for rule, case in cases.items()}))


CONSUMERS, PRODUCERS = CONSUMER_FANOUT, PRODUCER_FANOUT
BOTH = pytest.mark.parametrize(
    ("check", "clients", "warning"),
    [(CONSUMERS, "consumers", 2000), (PRODUCERS, "producers", 1000)],
    ids=["consumers", "producers"],
)


@BOTH
def test_severity_follows_from_their_number(scene: Any, check: Check, clients: str, warning: int) -> None:
    """Partitions are judged by their number of clients, the fullest first, and Pulsar's own are left out."""
    numbers = {"few": warning - 1, "many": warning, "nearly": 9999, "most": 10_000, "unknown": None}
    for name, number in numbers.items():
        scene.topic(name, **{clients: number})
    scene.topic("persistent://pulsar/system/functions", **{clients: 20_000})
    found = by_name(scene.judged(check))
    assert found == {"most": Severity.CRITICAL, "nearly": Severity.WARNING, "many": Severity.WARNING}
    assert list(found) == ["most", "nearly", "many"]


@BOTH
def test_the_worst_are_listed_and_the_others_counted(scene: Any, check: Check, clients: str, warning: int) -> None:
    for number in range(MAX_FINDINGS + 2):
        scene.topic(f"t{number}", **{clients: warning + number})
    judgement = scene.judged(check)
    assert judgement.more == 2
    listed = [finding.figures[clients] for finding in judgement.findings]
    assert listed == list(range(warning + MAX_FINDINGS + 1, warning + 1, -1))  # without the two emptiest


@BOTH
def test_silence_tells_the_highest_number(scene: Any, check: Check, clients: str, warning: int, golden: Golden) -> None:
    """Without findings the check names the highest number of clients, and it cannot tell if no broker was read."""
    scene.topic("t", **{clients: warning - 1})
    golden(scene.judged(check).quiet)
    scene.rows["brokers"] = []
    assert scene.judged(check).cannot_tell == "No broker was read."


def test_what_it_says_of_fanout(golden: Golden) -> None:
    """The largest subscription is named; new producers are counted if they were read."""
    scene = Scene().topic("t", consumers=8100, producers=120, subscriptions=2)
    for name, consumers in (("small", 100), ("large", 8000)):
        row = {"topic": "persistent://t/n/t", "subscription": name, "type": "Shared"}
        scene.add("subscriptions", **row, consumers=consumers, ack_holes=77)
    new = [Scene().topic("t", producers=1200, producers_connected_recently=recent) for recent in (40, None)]
    cases = {
        "the largest subscription": scene.judged(CONSUMERS),
        "some producers are new": new[0].judged(PRODUCERS),
        "how many are new was not read": new[1].judged(PRODUCERS),
    }
    golden(told(cases))
