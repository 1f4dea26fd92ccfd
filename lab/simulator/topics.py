"""``/admin/v2/persistent``: names, partitions, one topic's figures; creation and deletion."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import builder, ranges, replies, stats
from lab.simulator.model import TC_TOPIC, Topic
from lab.simulator.replies import Refusal
from lab.simulator.routing import here, known_namespace, must_own, topic_of
from lab.simulator.spec import SubscriptionSpec, TopicSpec
from lab.simulator.state import ClusterState

NOT_FOUND = "Namespace not found"


async def names(request: Request) -> Response:
    """Every topic and partition; never the coordinators, which have no ledger."""
    return replies.document(list(here(request).state.topics[known_namespace(request).name].by_name))


async def partitioned_names(request: Request) -> Response:
    """Every partitioned topic."""
    prefix = f"persistent://{known_namespace(request).name}/"
    return replies.document([name for name in here(request).state.partitioned if name.startswith(prefix)])


async def partitions(request: Request) -> Response:
    """Number of a topic's partitions, 0 for one without; the creation of a partitioned one; a raise of the number."""
    state, name, namespace = here(request).state, topic_of(request), known_namespace(request, NOT_FOUND).name
    exists = name in state.partitioned or name in state.topics[namespace].by_name
    if request.method == "PUT":
        if exists:
            raise Refusal(409, "This topic already exists")
        builder.add_topic(
            state, namespace, TopicSpec(request.path_params["topic"], partitions=int(await request.body()))
        )
        return replies.done()
    if request.method == "POST":
        return _more_partitions(here(request).state, namespace, name, int(await request.body()))
    if name == TC_TOPIC:
        return replies.document({"partitions": state.coordinators, "deleted": False})
    if not exists:
        raise Refusal(404, f"Topic {name} not found")
    return replies.document({"partitions": state.partitioned.get(name, 0), "deleted": False})


def _more_partitions(state: ClusterState, namespace: str, name: str, number: int) -> Response:
    """Raises the number; the new ones get the durable subscriptions of the first, for which those are loaded."""
    now, most = state.partitioned.get(name, 0), int(state.configuration.get("maxNumPartitionsPerPartitionedTopic", 0))
    if not now:
        raise Refusal(409, f"Topic {name} is not the partitioned topic.")
    if number < now:
        raise Refusal(422, f"Desired partitions {number} can't be less than the current partitions {now}.")
    if 0 < most < number:
        raise Refusal(422, f"Expect partitions {number} grater than maximum partitions per topic {most}")
    index = state.topics[namespace]
    first = index.by_name[f"{name}-partition-0"]
    made = datetime.fromtimestamp(state.now_ms / 1000, UTC).isoformat()
    names = [each.name for each in first.spec.subscriptions if each.durable]
    copied = tuple(SubscriptionSpec(each, kind="None", made=made) for each in names)
    state.partitioned[name] = number
    for place in range(now, number):
        part = f"{name}-partition-{place}"
        spec = TopicSpec(first.spec.name, partitions=number, subscriptions=copied)
        index.put(Topic(name=part, position=ranges.position(part), spec=spec))
        if copied:
            state.load(state.bundle_of(part))
    state.load(state.bundle_of(first.name))
    return replies.done()


async def topic(request: Request) -> Response:
    """Creates or deletes one that is not partitioned, at the broker that owns its bundle."""
    state, name, namespace = here(request).state, topic_of(request), known_namespace(request, NOT_FOUND).name
    must_own(request, state.bundle_of(name), loads=True)
    exists = name in state.topics[namespace].by_name
    if request.method == "PUT":
        if exists:
            raise Refusal(409, "This topic already exists")
        builder.add_topic(state, namespace, TopicSpec(request.path_params["topic"]))
    elif exists:
        state.topics[namespace].remove(name)
    else:
        raise Refusal(404, f"Topic {name} not found")
    return replies.done()


async def subscription(request: Request) -> Response:
    """Creates a subscription or deletes one, on every partition where there are some."""
    if request.method == "DELETE":
        return _delete_subscription(request)
    state, name, namespace = here(request).state, topic_of(request), known_namespace(request, NOT_FOUND).name
    count = state.partitioned.get(name)
    names = [name] if count is None else [f"{name}-partition-{index}" for index in range(count)]
    index = state.topics[namespace]
    if names[0] not in index.by_name:
        raise Refusal(404, f"Topic {name} not found")
    wanted, body = _subscription_of(request), await request.body()
    parts = [index.by_name[each] for each in names]
    if all(wanted in {each.name for each in topic.spec.subscriptions} for topic in parts):
        raise Refusal(409, "Subscription already exists for topic")
    made = datetime.fromtimestamp(state.now_ms / 1000, UTC).isoformat()
    for topic in parts:
        state.load(state.bundle_of(topic.name))
        left = tuple(each for each in topic.spec.subscriptions if each.name != wanted)
        new = SubscriptionSpec(wanted, kind="None", backlog=_unread(topic, body), made=made)
        index.put(replace(topic, spec=replace(topic.spec, subscriptions=(*left, new))))
    return replies.done()


def _unread(topic: Topic, body: bytes) -> int:
    """Entries from a position on, a JSON object or nothing (the end); a ledger before the first means the start."""
    position = json.loads(body) if body else None
    if not isinstance(position, dict) or position["ledgerId"] > 1:
        return 0
    return topic.spec.entries - (max(position["entryId"], 0) if position["ledgerId"] == 1 else 0)


async def reset(request: Request) -> Response:
    """Sets a subscription's cursor to a position, which its own ledger then has; the entry there is the next one."""
    topic, wanted = _owned_topic(request), _subscription_of(request)
    found = next((each for each in topic.spec.subscriptions if each.name == wanted), None)
    if found is None:
        raise Refusal(404, f"Subscription {wanted} not found for topic {topic.name}")
    ledger = max(found.cursor_ledger, 3)
    figures = {"backlog": _unread(topic, await request.body()), "ack_holes": 0}
    figures |= {"cursor_ledger": ledger, "cursor_entry": max(found.cursor_entry, 0) + 1}
    builder.change_subscription(here(request).state, topic.name, wanted, figures)
    return replies.done()


def _subscription_of(request: Request) -> str:
    """The subscription in the path, whose name a broker decodes once more than the path."""
    return unquote_plus(request.path_params["subscription"])


def _delete_subscription(request: Request) -> Response:
    """Deletes a subscription that nobody is connected to; this loads the topic's bundle."""
    state, name, namespace = here(request).state, topic_of(request), known_namespace(request, NOT_FOUND).name
    if name not in state.partitioned:
        must_own(request, state.bundle_of(name), loads=True)
    count, wanted = state.partitioned.get(name), _subscription_of(request)
    names = [name] if count is None else [f"{name}-partition-{index}" for index in range(count)]
    index = state.topics[namespace]
    if names[0] not in index.by_name:
        raise Refusal(404, f"Topic {name} not found")
    held = [each for part in names for each in index.by_name[part].spec.subscriptions if each.name == wanted]
    if not held:
        raise Refusal(404, f"Subscription {wanted} not found for topic {name}")
    if any(each.consumers for each in held):
        raise Refusal(412, "Subscription has active connected consumers")
    for part in names:
        topic = index.by_name[part]
        left = tuple(each for each in topic.spec.subscriptions if each.name != wanted)
        index.put(replace(topic, spec=replace(topic.spec, subscriptions=left)))
    return replies.done()


def _owned_topic(request: Request) -> Topic:
    """The topic in the path, at its owner: this loads its bundle."""
    state, name, namespace = here(request).state, topic_of(request), known_namespace(request, NOT_FOUND).name
    if name not in state.partitioned:
        must_own(request, state.bundle_of(name), loads=True)
    found = state.topics[namespace].by_name.get(name)
    if found is None:
        raise Refusal(404, f"Topic {name} not found")
    return found


async def topic_stats(request: Request) -> Response:
    """All figures of one topic."""
    me, found = here(request), _owned_topic(request)
    document = stats.topic_document(found, me.broker_id, me.state.limits(found.name), me.state.just_now)
    if request.query_params.get("getEarliestTimeInBacklog") == "true":
        document = stats.with_publish_times(document, found.spec, me.state.now_ms)
    return replies.document(document)


async def internal_stats(request: Request) -> Response:
    """The ledgers and cursors of one topic."""
    found = _owned_topic(request)
    return replies.document(stats.internal_document(found, here(request).state.now_ms))


async def internal_info(request: Request) -> Response:
    """The ledgers and cursors of one topic as the metadata store has them, by any broker: nothing is loaded for it."""
    name, namespace = topic_of(request), known_namespace(request, NOT_FOUND).name
    found = here(request).state.topics[namespace].by_name.get(name)
    if found is None:
        return replies.jetty_page(request, 500, "Request failed.")
    return replies.document(stats.stored_document(found, here(request).state.now_ms))


async def partitioned_stats(request: Request) -> Response:
    """The figures of all partitions, each of which is loaded for it."""
    me, name, namespace = here(request), topic_of(request), known_namespace(request, NOT_FOUND)
    if name not in me.state.partitioned:
        raise Refusal(404, f"Partitioned Topic not found: {name}")
    by_name = me.state.topics[namespace.name].by_name
    limits = me.state.limits(name)
    documents = {}
    for index in range(me.state.partitioned[name]):
        part = by_name[f"{name}-partition-{index}"]
        owner = me.state.load(me.state.bundle_of(part.name))
        documents[part.name] = stats.topic_document(part, owner.broker_id, limits, me.state.just_now)
    per_partition = request.query_params.get("perPartition", "true") != "false"
    return replies.document(stats.partitioned_document(documents, per_partition=per_partition))


NAMESPACE = "/admin/v2/persistent/{tenant}/{namespace}"
ROUTES = [
    Route(NAMESPACE, names),
    Route(f"{NAMESPACE}/partitioned", partitioned_names),
    Route(f"{NAMESPACE}/{{topic}}/partitions", partitions, methods=["GET", "PUT", "POST"]),
    Route(f"{NAMESPACE}/{{topic}}/stats", topic_stats),
    Route(f"{NAMESPACE}/{{topic}}/internalStats", internal_stats),
    Route(f"{NAMESPACE}/{{topic}}/internal-info", internal_info),
    Route(f"{NAMESPACE}/{{topic}}/partitioned-stats", partitioned_stats),
    Route(f"{NAMESPACE}/{{topic}}/subscription/{{subscription:path}}/resetcursor", reset, methods=["POST"]),
    Route(f"{NAMESPACE}/{{topic}}/subscription/{{subscription:path}}", subscription, methods=["PUT", "DELETE"]),
    Route(f"{NAMESPACE}/{{topic}}", topic, methods=["PUT", "DELETE"]),
]
