"""Calls about one bundle: unload, split, positions of its topics."""

import json
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import ranges, replies
from lab.simulator.replies import Refusal
from lab.simulator.routing import here, known_bundle, known_namespace, must_lead, must_own, namespace_of

NOT_FOUND = "Namespace not found"


async def unload(request: Request) -> Response:
    """The owner gives a bundle up; an unowned one stays so, but a destination is remembered all the same."""
    destination = request.query_params.get("destinationBroker")
    state = here(request).state
    if destination is not None:
        _must_be_active(request, destination)
        must_lead(request)
    namespace = known_namespace(request, NOT_FOUND)
    hash_range = known_bundle(request, namespace, rubbish_is_412=False)
    bundle = f"{namespace.name}/{hash_range}"
    if destination is not None and not state.spec.is_extensible:
        state.affinities[hash_range] = destination
    if must_own(request, bundle, loads=False):
        if state.spec.is_extensible and destination == here(request).broker_id:
            words = f"Namespace bundle: {bundle} own by {destination}, cannot be transfer to same broker."
            raise replies.crashed("java.lang.IllegalArgumentException", words)
        state.unload(bundle, destination)
    return replies.done()


def _must_be_active(request: Request, destination: str) -> None:
    """Active means listed: a broker that was killed seconds ago still is."""
    if destination not in {broker.broker_id for broker in here(request).state.listed}:
        raise Refusal(409, "Not allowed unload namespace bundle to inactive destination broker")


async def unload_namespace(request: Request) -> Response:
    """Every bundle of the namespace is given up."""
    state, namespace = here(request).state, known_namespace(request, NOT_FOUND)
    for bundle in ranges.bundles_of(namespace.boundaries):
        state.unload(f"{namespace.name}/{bundle}")
    return replies.done()


async def split(request: Request) -> Response:
    """Cuts a bundle in parts, after whoever is to own it has loaded it."""
    algorithm = request.query_params.get("splitAlgorithmName") or "range_equally_divide"
    if algorithm not in ALGORITHMS:
        names = ", ".join(ALGORITHMS)
        raise Refusal(412, f"Unsupported namespace bundle split algorithm, supported algorithms are [{names}]")
    positions = await _positions_given(request, algorithm)
    namespace = known_namespace(request, NOT_FOUND)
    bundle = known_bundle(request, namespace)
    must_own(request, f"{namespace.name}/{bundle}", loads=True)
    state = here(request).state
    held = list(state.positions_in(namespace.name, bundle).values())
    cuts = ALGORITHMS[algorithm](bundle, held, positions)
    state.split(namespace.name, bundle, cuts, unload=request.query_params.get("unload") == "true")
    return replies.done()


async def _positions_given(request: Request, algorithm: str) -> list[int]:
    body = await request.body()
    positions = json.loads(body) if body else []
    if algorithm == "specified_positions_divide" and not positions:
        raise Refusal(412, f"With {algorithm} split algorithm, splitBoundaries must not be empty")
    return [int(position) for position in positions]


def _by_range(bundle: str, _held: list[int], _given: list[int]) -> list[int]:
    return [ranges.middle_of_range(*ranges.bounds(bundle))]


def _by_topics(_bundle: str, held: list[int], _given: list[int]) -> list[int]:
    middle = ranges.middle_of_topics(held)
    return [] if middle is None else [middle]


def _as_given(_bundle: str, held: list[int], given: list[int]) -> list[int]:
    return given if len(held) > 1 else []


ALGORITHMS: dict[str, Callable[[str, list[int], list[int]], list[int]]] = {
    "range_equally_divide": _by_range,
    "topic_count_equally_divide": _by_topics,
    "specified_positions_divide": _as_given,
    # By traffic in a real broker; where there is none, as here, halves of the topics are the same.
    "flow_or_qps_equally_divide": _by_topics,
}


async def positions(request: Request) -> Response:
    """The hash position of every topic in a bundle that somebody owns; loads nothing."""
    namespace = known_namespace(request)
    bundle = known_bundle(request, namespace)
    full_name = f"{namespace.name}/{bundle}"
    if not must_own(request, full_name, loads=False):
        raise Refusal(412, f"Failed to find ownership for ServiceUnit:{full_name}")
    held = here(request).state.positions_in(namespace_of(request), bundle)
    if wanted := request.query_params.getlist("topics"):
        held = {topic: ranges.position(topic) for topic in wanted}
    return replies.document({"namespace": namespace.name, "bundle": bundle, "topicHashPositions": held})


NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
ROUTES = [
    Route(f"{NAMESPACE}/unload", unload_namespace, methods=["PUT"]),
    Route(f"{NAMESPACE}/{{bundle}}/unload", unload, methods=["PUT"]),
    Route(f"{NAMESPACE}/{{bundle}}/split", split, methods=["PUT"]),
    Route(f"{NAMESPACE}/{{bundle}}/topicHashPositions", positions),
]
