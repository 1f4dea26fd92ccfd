"""Backlog quota, retention, message TTL, delayed delivery, persistence: get, set, delete, of namespaces and topics."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import quotas, replies
from lab.simulator.quotas import QUOTAS
from lab.simulator.replies import Refusal
from lab.simulator.routing import here, known_namespace, must_own, namespace_of, topic_of

RETENTION, TTL = "retention_policies", "message_ttl_in_seconds"
DELAYED, PERSISTENCE = "delayed_delivery_policies", "persistence"
NOT_SET_HERE = (
    "compactionThreshold",
    "deduplication",
    "dispatchRate",
    "inactiveTopicPolicies",
    "maxConsumersPerSubscription",
    "maxConsumersPerTopic",
    "maxProducersPerTopic",
    "publishRate",
    "subscriptionExpirationTime",
)


class Holder(Protocol):
    """A namespace or a topic, as something that holds policies."""

    word: str
    name: str

    def get(self, policy: str) -> Any:
        """Value that is set, or None."""

    def set(self, policy: str, value: object | None) -> None:
        """Sets it, or with None removes it."""


class OfNamespace:
    """The namespace in the path, which every broker can tell about."""

    word = "namespace"

    def __init__(self, request: Request) -> None:
        self._state = here(request).state
        self.name = namespace_of(request)
        known_namespace(request, _namespace_is_missing(request))

    def get(self, policy: str) -> Any:
        """Value that is set, or None."""
        return self._state.namespaces[self.name].policies.get(policy)

    def set(self, policy: str, value: object | None) -> None:
        """Sets it, or with None removes it."""
        self._state.set_policy(self.name, policy, value)


class OfTopic:
    """The topic in the path, which the owner of it or of its first partition tells about: asking loads that bundle."""

    word = "topic"

    def __init__(self, request: Request) -> None:
        self._state = here(request).state
        self.name = topic_of(request)
        known_namespace(request, "Namespace not found")
        if self._is_partition():
            raise Refusal(412, "Not allowed to set/get topic policy for a partition")
        asked = f"{self.name}-partition-0" if self.name in self._state.partitioned else self.name
        must_own(request, self._state.bundle_of(asked), loads=True)
        if self.name not in {*self._state.partitioned, *self._state.topics[namespace_of(request)].by_name}:
            raise Refusal(404, f"Topic {self.name} not found")

    def _is_partition(self) -> bool:
        return self.name.rpartition("-partition-")[0] in self._state.partitioned

    def get(self, policy: str) -> Any:
        """Value that is set, or None."""
        return self._state.topic_policies.get(self.name, {}).get(policy)

    def set(self, policy: str, value: object | None) -> None:
        """Sets it, or with None removes it."""
        policies = self._state.topic_policies.setdefault(self.name, {})
        if value is None:
            policies.pop(policy, None)
        else:
            policies[policy] = value


def _namespace_is_missing(request: Request) -> str:
    """Each endpoint words its 404 in its own way."""
    if request.method == "GET" or request.url.path.endswith("/messageTTL"):
        return "Namespace does not exist"
    return "Namespace policies does not exist" if request.url.path.endswith("/retention") else ""


def quota_map(of: Callable[[Request], Holder]) -> Callable[[Request], Awaitable[Response]]:
    """``backlogQuotaMap``: ``{}`` when nothing is set."""

    async def get(request: Request) -> Response:
        return replies.document(of(request).get(QUOTAS) or {})

    return get


def quota(of: Callable[[Request], Holder]) -> Callable[[Request], Awaitable[Response]]:
    """``backlogQuota``: sets or deletes that of one type."""

    async def change(request: Request) -> Response:
        kind = request.query_params.get("backlogQuotaType", quotas.STORAGE)
        if kind not in quotas.TYPES:
            raise HTTPException(404)
        given = await _json(request) if request.method == "POST" else None
        holder = of(request)
        kept = {name: value for name, value in (holder.get(QUOTAS) or {}).items() if name != kind}
        if given is not None:
            kept[kind] = quotas.quota_stored(given, f"{holder.word}[{holder.name}]")
            if kind == quotas.STORAGE and not quotas.fits(kept, holder.get(RETENTION)):
                wording = f"for {holder.word}. Please increase retention quota and retry"
                raise Refusal(412, f"Backlog Quota exceeds configured retention quota {wording}")
        holder.set(QUOTAS, kept or None)
        return replies.done()

    return change


def whole(
    of: Callable[[Request], Holder], name: str, stored: Callable[[Any], Any]
) -> Callable[[Request], Awaitable[Response]]:
    """A policy that is set whole: get, set as `stored` has it, delete.

    The time to live of a topic comes in the query, all else in the body.
    """

    async def change(request: Request) -> Response:
        given = None
        if request.method == "POST":
            in_query = request.query_params.get("messageTTL")
            given = await _json(request) if in_query is None else in_query
        holder = of(request)
        if request.method == "GET":
            value = holder.get(name)
            return replies.unset() if value is None else replies.document(value)
        value = None if given is None else stored(given)
        if name == RETENTION and not quotas.fits(holder.get(QUOTAS) or {}, value):
            raise Refusal(412, f"Retention Quota must exceed configured backlog quota for {holder.word}.")
        holder.set(name, value)
        return replies.done()

    return change


def never_set(of: Callable[[Request], Holder]) -> Callable[[Request], Awaitable[Response]]:
    """A policy that the simulator has not got: as one that nobody has set."""

    async def get(request: Request) -> Response:
        of(request)
        return replies.unset()

    return get


async def _json(request: Request) -> Any:
    """The body.

    Raises:
        HTTPException: 415, it is not called JSON.
    """
    if not request.headers.get("content-type", "").startswith(replies.JSON_TYPE):
        raise HTTPException(415)
    return json.loads(await request.body())


def _routes(path: str, of: Callable[[Request], Holder]) -> list[Route]:
    each_whole: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "retention": (RETENTION, quotas.retention_stored),
        "messageTTL": (TTL, lambda given: quotas.ttl_stored(int(given))),
        "delayedDelivery": (DELAYED, quotas.delays_stored),
        "persistence": (PERSISTENCE, quotas.persistence_stored),
    }
    return [
        Route(f"{path}/backlogQuotaMap", quota_map(of)),
        Route(f"{path}/backlogQuota", quota(of), methods=["POST", "DELETE"]),
        *(
            Route(f"{path}/{last}", whole(of, name, stored), methods=["GET", "POST", "DELETE"])
            for last, (name, stored) in each_whole.items()
        ),
        *(Route(f"{path}/{name}", never_set(of)) for name in NOT_SET_HERE),
    ]


ROUTES = [
    *_routes("/admin/v2/namespaces/{tenant}/{namespace}", OfNamespace),
    *_routes("/admin/v2/persistent/{tenant}/{namespace}/{topic}", OfTopic),
]
