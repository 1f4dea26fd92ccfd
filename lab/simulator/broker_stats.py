"""``/admin/v2/broker-stats``: what one broker tells about all that it owns, in one answer each."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import replies, stats
from lab.simulator.model import HEARTBEAT_RANGE, Topic
from lab.simulator.routing import Here, here
from lab.simulator.spec import SubscriptionSpec, TopicSpec

DIGITS = 3  # rates in this document are rounded, those of /stats are not


async def topics(request: Request) -> Response:
    """Namespace → bundle → domain (``persistent``) → topic; a real one is up to 60 s old, this one is always of now.

    It is put together as text, a topic's figures being written once for all topics alike: a broker of 10,000 topics
    answers in milliseconds.
    """
    me = here(request)
    text = me.kept("topics", lambda: "".join(_topics_text(me)).encode())
    return Response(text, media_type=replies.JSON_TYPE)


def _topics_text(me: Here) -> Iterator[str]:
    healthcheck = me.broker.heartbeat_namespaces[1]
    just_now = me.state.just_now
    yield f'{{"{healthcheck}":{{{_bundle_text(HEARTBEAT_RANGE, [me.heartbeat], just_now)}}}'
    for namespace, bundles in me.loaded().items():
        texts = ",".join(_bundle_text(bundle, held, just_now) for bundle, held in bundles.items())
        yield f',"{namespace}":{{{texts}}}'
    yield "}"


def _bundle_text(bundle: str, held: list[Topic], just_now: str) -> str:
    domains: dict[str, list[str]] = {"persistent": []}
    for topic in held:
        if not topic.spec.just_made:
            text = _topic_text(topic.spec, stats.new_since(topic.spec, just_now))
            domain = "persistent" if topic.spec.segment else topic.spec.domain
            domains.setdefault(domain, []).append(f'"{topic.name}":{text}')
    texts = ",".join(f'"{domain}":{{{",".join(topics)}}}' for domain, topics in domains.items())
    return f'"{bundle}":{{{texts}}}'


@lru_cache(maxsize=4096)
def _topic_text(spec: TopicSpec, just_now: str) -> str:
    rate_out = sum(subscription.rate_out for subscription in spec.subscriptions)
    document = {
        "publishers": [_publisher(spec, number, just_now) for number in range(spec.producers)],
        "replication": {each.cluster: stats.replicator(each) for each in spec.replicators},
        "subscriptions": {each.name: _subscription(each, spec, just_now) for each in spec.subscriptions},
        "producerCount": spec.producers,
        "averageMsgSize": float(spec.message_bytes) if spec.rate_in else 0.0,
        "msgRateIn": round(spec.rate_in, DIGITS),
        "msgRateOut": round(rate_out, DIGITS),
        "msgInCount": 0,
        "bytesInCount": 0,
        "msgOutCount": 0,
        "bytesOutCount": 0,
        "msgThroughputIn": round(spec.rate_in * spec.message_bytes, DIGITS),
        "msgThroughputOut": round(rate_out * spec.message_bytes, DIGITS),
        "storageSize": spec.storage,
        "backlogSize": spec.backlog,
        "pendingAddEntriesCount": 0,
        "filteredEntriesCount": 0,
    }
    return json.dumps(document, separators=(",", ":"))


def _publisher(spec: TopicSpec, number: int, just_now: str) -> dict[str, Any]:
    rate = round(spec.rate_in / spec.producers, DIGITS)
    return {
        "msgRateIn": rate,
        "msgThroughputIn": rate * spec.message_bytes,
        "averageMsgSize": float(spec.message_bytes),
        "address": stats.address(number),
        "producerId": number,
        "producerName": f"producer-{number}",
        "connectedSince": stats.connected(number, spec.new_producers, just_now),
        **stats.version(spec.client_version),
        "metadata": {},
    }


def _subscription(spec: SubscriptionSpec, topic: TopicSpec, just_now: str) -> dict[str, Any]:
    """Unacknowledged messages are told of shared kinds only, and nothing of a filter while nobody ever came."""
    came = spec.kind != "None"
    filtered = (
        "filterProcessedMsgCount",
        "filterAcceptedMsgCount",
        "filterRejectedMsgCount",
        "filterRescheduledMsgCount",
    )
    unacked = {"blockedSubscriptionOnUnackedMsgs": spec.blocked, "unackedMessages": spec.unacked}
    return {
        "consumers": [_consumer(spec, number, topic, just_now) for number in range(spec.consumers)],
        "msgBacklog": spec.backlog,
        "msgRateExpired": 0.0,
        "msgRateOut": round(spec.rate_out, DIGITS),
        "messageAckRate": round(spec.acks, DIGITS),
        "msgThroughputOut": round(spec.rate_out * topic.message_bytes, DIGITS),
        "msgRateRedeliver": round(spec.redeliver_rate, DIGITS),
        "numberOfEntriesSinceFirstNotAckedMessage": spec.entries_since_gap,
        "totalNonContiguousDeletedMessagesRange": spec.ack_holes,
        "type": spec.kind,
        **(dict.fromkeys(filtered, 0) if came else {}),
        **(unacked if spec.is_shared else {}),
    }


def _consumer(spec: SubscriptionSpec, number: int, topic: TopicSpec, just_now: str) -> dict[str, Any]:
    own = spec.consumer(number)
    rate = round(own.rate_out, DIGITS)
    unacked = {"unackedMessages": own.unacked, "blockedConsumerOnUnackedMsgs": own.blocked}
    return {
        "address": stats.address(number),
        "consumerName": f"{spec.name}-{number}",
        "availablePermits": own.permits,
        "connectedSince": stats.consumer_connected(spec, number, just_now),
        "msgRateOut": rate,
        "msgThroughputOut": rate * topic.message_bytes,
        "msgRateRedeliver": 0.0,
        "avgMessagesPerEntry": spec.messages_per_entry,
        "messageAckRate": round(own.ack_rate, DIGITS),
        **(unacked if spec.is_shared else {}),
        **stats.version(spec.client_version),
        "metadata": {},
    }


async def load_report(request: Request) -> Response:
    """Load report of the broker, as it sends it to the leader; ``extensible`` ones have none."""
    me = here(request)
    if me.state.spec.is_extensible:
        raise replies.crashed("java.lang.UnsupportedOperationException", "null")
    text = me.kept("load-report", lambda: json.dumps(_load_report(me), separators=(",", ":")).encode())
    return Response(text, media_type=replies.JSON_TYPE)


def _load_report(me: Here) -> dict[str, Any]:
    healthcheck = f"{me.broker.heartbeat_namespaces[1]}/{HEARTBEAT_RANGE}"
    bundles = {healthcheck: _bundle_load([])}
    for namespace, held in me.loaded().items():
        bundles |= {f"{namespace}/{bundle}": _bundle_load(topics) for bundle, topics in held.items()}
    load = me.state.spec.load_of(me.broker.number)
    usage = {
        "cpu": {"usage": load.cpu_percent, "limit": load.cpu_limit_percent},
        "memory": {"usage": load.heap_mb, "limit": load.heap_limit_mb},
        "directMemory": {"usage": load.direct_mb, "limit": load.direct_limit_mb},
        "bandwidthIn": {"usage": _total(bundles, "msgThroughputIn") / 125, "limit": -1000.0},
        "bandwidthOut": {"usage": _total(bundles, "msgThroughputOut") / 125, "limit": -1000.0},
    }
    return {
        "webServiceUrl": me.broker.admin_url,
        "pulsarServiceUrl": me.broker.service_url,
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        **usage,
        **{name: _total(bundles, name) for name in RATES},
        "lastUpdate": me.state.now_ms,
        "lastStats": bundles,
        "numTopics": int(_total(bundles, "topics")),
        "numBundles": len(bundles),
        "numConsumers": int(_total(bundles, "consumerCount")),
        "numProducers": int(_total(bundles, "producerCount")),
        "bundles": list(bundles),
        "lastBundleGains": [],
        "lastBundleLosses": [],
        "brokerVersionString": me.state.spec.version_of(me.broker.number),
        "protocols": {},
        "advertisedListeners": {},
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
        "startTimestamp": me.broker.started_ms,
        "maxResourceUsage": max(part["usage"] / part["limit"] for part in usage.values()),
        "loadReportType": "LocalBrokerData",
    }


RATES = ("msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut")


def _total(bundles: dict[str, dict[str, float]], name: str) -> float:
    return sum(bundle[name] for bundle in bundles.values())


def _bundle_load(held: list[Topic]) -> dict[str, float]:
    specs = [topic.spec for topic in held]
    out = [sum(subscription.rate_out for subscription in spec.subscriptions) for spec in specs]
    return {
        "msgRateIn": sum((spec.rate_in for spec in specs), 0.0),
        "msgThroughputIn": sum((spec.rate_in * spec.message_bytes for spec in specs), 0.0),
        "msgRateOut": sum(out, 0.0),
        "msgThroughputOut": sum((rate * spec.message_bytes for rate, spec in zip(out, specs, strict=True)), 0.0),
        "consumerCount": sum(spec.consumers for spec in specs),
        "producerCount": sum(spec.producers for spec in specs),
        "topics": len(specs),
        "cacheSize": 0,
    }


ROUTES = [Route("/admin/v2/broker-stats/topics", topics), Route("/admin/v2/broker-stats/load-report", load_report)]
