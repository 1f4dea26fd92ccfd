"""``/lookup/v2``: who owns a topic, which has its bundle loaded, and which bundle holds it, which loads nothing."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import ranges, replies
from lab.simulator.replies import Elsewhere
from lab.simulator.routing import candidate, here, known_namespace, namespace_of, redirected, topic_of


async def owner(request: Request) -> Response:
    """Any broker tells who owns a loaded bundle, the killed ones not excepted; an unowned one is loaded first."""
    me = here(request)
    known_namespace(request, "Namespace not found")
    bundle = me.state.bundle_of(topic_of(request))
    broker = me.state.owner(bundle)
    if broker is None:
        broker = candidate(request, bundle)
        if broker.broker_id != me.broker_id and not me.state.spec.is_extensible:
            raise Elsewhere(redirected(request, broker, authoritative=True))
        me.state.ownership.give(bundle, broker.broker_id)
    address = {"brokerUrl": broker.service_url, "httpUrl": broker.admin_url, "nativeUrl": broker.service_url}
    return replies.document({**address, "brokerUrlSsl": ""})


async def bundle(request: Request) -> Response:
    """Arithmetic only; of a namespace that does not exist it is the whole range."""
    found = here(request).state.namespaces.get(namespace_of(request))
    boundaries = found.boundaries if found is not None else ranges.even_boundaries(1)
    return replies.bare(ranges.bundle_at(boundaries, ranges.position(topic_of(request))))


TOPIC = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
ROUTES = [Route(TOPIC, owner), Route(f"{TOPIC}/bundle", bundle)]
