"""Routing of requests to the broker they belong to: by way of the leader to the owner, as real brokers redirect.

Measured: a broker that is not the leader sends an unowned bundle's request to the leader (``authoritative=false``); the
leader chooses a broker and sends it there (``authoritative=true``); that one loads the bundle. A request for an owned
bundle goes to its owner at once, ``authoritative`` telling whether the leader sent it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from starlette.requests import Request

from lab.simulator import ranges
from lab.simulator.model import Broker, Namespace, Topic
from lab.simulator.replies import Elsewhere, Refusal, crashed
from lab.simulator.spec import TopicSpec
from lab.simulator.state import ClusterState

HEARTBEAT = TopicSpec("healthcheck")


@dataclass(frozen=True, slots=True)
class Here:
    """One broker's view of the cluster, which every handler is given."""

    state: ClusterState
    broker_id: str

    @property
    def broker(self) -> Broker:
        """The broker that was called."""
        return self.state.brokers[self.broker_id]

    @property
    def heartbeat(self) -> Topic:
        """The topic of the broker's own health check."""
        return Topic(f"persistent://{self.broker.heartbeat_namespaces[1]}/healthcheck", 0, HEARTBEAT)

    def loaded(self) -> dict[str, dict[str, list[Topic]]]:
        """Namespace to bundle to topics, of the bundles that the broker owns and that hold a topic."""
        found: dict[str, dict[str, list[Topic]]] = {}
        for full_name in self.state.owned_by(self.broker_id):
            namespace, _, bundle = full_name.rpartition("/")
            if held := self.state.topics_in(namespace, bundle):
                found.setdefault(namespace, {})[bundle] = held
        return found

    def kept(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A document of the broker by its name: made for each answer, or once where the cluster is steady."""
        steady = self.state.steady_documents
        return make() if steady is None else steady.get(self.broker_id, name, make)

    @property
    def leads(self) -> bool:
        """True if it is the leader."""
        return self.state.leader.broker_id == self.broker_id


def here(request: Request) -> Here:
    """The broker that was called, put there when its application was made."""
    return cast("Here", request.app.state.here)


def namespace_of(request: Request) -> str:
    """``tenant/namespace`` from the path."""
    return f"{request.path_params['tenant']}/{request.path_params['namespace']}"


def topic_of(request: Request) -> str:
    """The full topic name from the path; persistent where the path says no domain."""
    domain = request.path_params.get("domain", "persistent")
    return f"{domain}://{namespace_of(request)}/{request.path_params['topic']}"


def known_namespace(request: Request, reason: str = "Namespace does not exist") -> Namespace:
    """The namespace in the path, or 404 with the reason that this endpoint gives."""
    namespace = here(request).state.namespaces.get(namespace_of(request))
    if namespace is None:
        raise Refusal(404, reason)
    return namespace


def known_bundle(request: Request, namespace: Namespace, *, rubbish_is_412: bool = True) -> str:
    """The bundle in the path as the API spells it, or 412 as it no longer exists."""
    given = request.path_params["bundle"]
    try:
        lower, upper = ranges.bounds(given)
    except ValueError:
        if rubbish_is_412:
            raise Refusal(412, f"Invalid bundle range: {given}") from None
        raise crashed("java.lang.IllegalArgumentException", "Invalid bundle range") from None
    bundle = ranges.bundle_name(lower, upper)
    if lower not in namespace.boundaries[:-1]:
        raise Refusal(412, f"Cannot find bundle {namespace.name}/{bundle} in the bundles list")
    actual = ranges.bundle_at(namespace.boundaries, lower)
    if actual != bundle:
        expected = f"Expected upper boundary of {namespace.name}/{actual}"
        raise Refusal(412, f"Invalid upper boundary for bundle {namespace.name}/{bundle}. {expected}")
    return bundle


def must_own(request: Request, bundle: str, *, loads: bool) -> bool:
    """Returns whether this broker owns ``tenant/ns/range``; sends the caller on where another does.

    Args:
        request: The request, whose query goes with the redirect.
        bundle: ``tenant/ns/0x.._0x..``.
        loads: Whether this kind of request makes somebody own an unowned bundle; else False is returned for one.

    Raises:
        Elsewhere: Another broker owns the bundle, or is to decide who does.
    """
    me = here(request)
    owner = me.state.owner(bundle)
    if owner is None and loads:
        owner = candidate(request, bundle)
        if owner.broker_id == me.broker_id or me.state.spec.is_extensible:
            me.state.ownership.give(bundle, owner.broker_id)
    if owner is None:
        return False
    if owner.broker_id != me.broker_id:
        raise Elsewhere(redirected(request, owner, authoritative=me.leads))
    return True


def must_lead(request: Request) -> None:
    """Sends the caller to the leader, with the whole query, unless this broker is it; ``extensible`` ones need none."""
    me = here(request)
    if not me.leads and not me.state.spec.is_extensible:
        query = [(key, value) for key, value in request.query_params.multi_items() if key != "authoritative"]
        url = f"{me.state.leader.admin_url}{path_as_sent(request)}"
        raise Elsewhere(f"{url}?{urlencode([*query, ('authoritative', 'false')])}")


def redirected(request: Request, broker: Broker, *, authoritative: bool) -> str:
    """The same request at another broker; ``destinationBroker`` is dropped where the leader has stored it."""
    dropped = {"authoritative"} if here(request).state.spec.is_extensible else {"authoritative", "destinationBroker"}
    query = [(key, value) for key, value in request.query_params.multi_items() if key not in dropped]
    first = ("authoritative", "true" if authoritative else "false")
    return f"{broker.admin_url}{path_as_sent(request)}?{urlencode([first, *query])}"


def path_as_sent(request: Request) -> str:
    """The path with its escapes, as a redirect repeats it."""
    raw: bytes = request.scope["raw_path"]
    return raw.decode("ascii")


def candidate(request: Request, bundle: str) -> Broker:
    """Broker that is to own an unowned bundle: the leader decides, and the one that it redirects to accepts.

    Raises:
        Elsewhere: The leader has not been asked yet.
    """
    me = here(request)
    if request.query_params.get("authoritative") == "true":
        return me.broker
    if me.leads or me.state.spec.is_extensible:
        return me.state.choose_broker(bundle)
    raise Elsewhere(redirected(request, me.state.leader, authoritative=False))
