"""Load, broker-stats, topic stats and metrics: which figures stand where, under which names."""

import time
from collections.abc import Callable
from typing import Any

from tests.contract.api import Api, shape

STATS_WITHIN_S = 60

LOAD_REPORT = {
    f"{area}.{part}: number"
    for area in ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
    for part in ("usage", "limit")
} | {
    "webServiceUrl: text",
    "pulsarServiceUrl: text",
    "msgThroughputIn: number",
    "msgThroughputOut: number",
    "msgRateIn: number",
    "msgRateOut: number",
    "lastUpdate: number",
    "startTimestamp: number",
    "numTopics: number",
    "numBundles: number",
    "numConsumers: number",
    "numProducers: number",
    "maxResourceUsage: number",
    "brokerVersionString: text",
    "loadManagerClassName: text",
}


def test_the_load_report_has_its_figures_in_their_places(api: Api) -> None:
    """The load report of a broker has the usage and limit of each resource, the totals and its own address."""
    report = api.get("/admin/v2/broker-stats/load-report", at=2)
    assert {path.replace(".:", ":") for path in shape(report)} >= LOAD_REPORT
    assert report["webServiceUrl"] == f"http://{api.ids[2]}"
    assert report["brokerVersionString"] == api.version


def seen_in_broker_stats(api: Api, at: int, found: Callable[[dict[str, Any]], Any]) -> Any:
    """Result of ``found`` for the document of a broker, which refreshes it at intervals."""
    deadline = time.monotonic() + STATS_WITHIN_S
    while True:
        if (hit := found(api.get("/admin/v2/broker-stats/topics", at))) is not None:
            return hit
        assert time.monotonic() < deadline, "the topic never came into the broker's document"
        time.sleep(0.2)


TOPIC_KEYS = {
    "publishers",
    "replication",
    "subscriptions",
    "producerCount",
    "averageMsgSize",
    "msgRateIn",
    "msgRateOut",
    "msgInCount",
    "bytesInCount",
    "msgOutCount",
    "bytesOutCount",
    "msgThroughputIn",
    "msgThroughputOut",
    "storageSize",
    "backlogSize",
    "pendingAddEntriesCount",
    "filteredEntriesCount",
}
IDLE_SUBSCRIPTION = {
    "consumers": [],
    "msgBacklog": 0,
    "msgRateExpired": 0.0,
    "msgRateOut": 0.0,
    "messageAckRate": 0.0,
    "msgThroughputOut": 0.0,
    "msgRateRedeliver": 0.0,
    "numberOfEntriesSinceFirstNotAckedMessage": 1,
    "totalNonContiguousDeletedMessagesRange": 0,
    "type": "None",
}


def test_broker_stats_nest_topics_under_namespace_and_bundle(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 1)
    api.final("PUT", f"/admin/v2/persistent/{topic}/subscription/idle")
    name, bundle = f"persistent://{topic}-partition-0", api.bundle_of(f"{topic}-partition-0")
    owner = api.look_up(f"{topic}-partition-0")

    def with_a_subscription(seen: dict[str, Any]) -> dict[str, Any] | None:
        """The topic; the document may be of the moment between it and its subscription."""
        found: dict[str, Any] = seen.get(namespace, {}).get(bundle, {}).get("persistent", {}).get(name, {})
        return found if found.get("subscriptions") else None

    figures = seen_in_broker_stats(api, owner, with_a_subscription)
    assert set(figures) == TOPIC_KEYS
    assert figures["subscriptions"] == {"idle": IDLE_SUBSCRIPTION}


def test_topic_stats_hold_what_broker_stats_leave_out(api: Api, namespace: str) -> None:
    """The ``/stats`` of a topic have delayed messages, ack holes, quota limits and the owner."""
    topic = api.new_partitioned(namespace, 1)
    api.final("PUT", f"/admin/v2/persistent/{topic}/subscription/idle")
    figures = api.get(f"/admin/v2/persistent/{topic}-partition-0/stats")
    wanted = {"backlogQuotaLimitSize": -1, "backlogQuotaLimitTime": -1, "nonContiguousDeletedMessagesRanges": 0}
    assert wanted.items() <= figures.items()
    assert figures["ownerBroker"] == api.ids[api.look_up(f"{topic}-partition-0")]
    idle = {"msgBacklog": 0, "msgBacklogNoDelayed": 0, "msgDelayed": 0, "unackedMessages": 0, "type": "None"}
    assert idle.items() <= figures["subscriptions"]["idle"].items()
    assert figures["subscriptions"]["idle"]["earliestMsgPublishTimeInBacklog"] == 0
    aged = api.get(f"/admin/v2/persistent/{topic}-partition-0/stats?getEarliestTimeInBacklog=true")
    assert aged["subscriptions"]["idle"]["earliestMsgPublishTimeInBacklog"] == -1


def test_partitioned_stats_hold_every_partition_unless_told_not_to(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 2)
    figures = api.get(f"/admin/v2/persistent/{topic}/partitioned-stats")
    assert set(figures["partitions"]) == {f"persistent://{topic}-partition-{index}" for index in range(2)}
    assert figures["metadata"] == {"partitions": 2, "deleted": False}
    assert api.get(f"/admin/v2/persistent/{topic}/partitioned-stats?perPartition=false")["partitions"] == {}


def test_metrics_are_open_to_all_and_want_a_slash(api: Api) -> None:
    """Metrics are answered without a token in the Prometheus format, and the path without a slash is redirected."""
    bare = api.call("GET", "/metrics")
    redirected = (301, "/metrics/") if api.since_4_2 else (302, f"http://{api.ids[0]}/metrics/")
    assert (bare.status_code, bare.headers["Location"]) == redirected
    answer = api.call("GET", "/metrics/", headers={"Authorization": ""})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert '\njvm_memory_bytes_used{cluster="local",area="heap"} ' in answer.text
