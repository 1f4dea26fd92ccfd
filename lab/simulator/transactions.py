"""``/admin/v3/transactions``: where transaction coordinators are, for which all are loaded, and their number."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.simulator import replies
from lab.simulator.replies import Refusal, crashed
from lab.simulator.routing import here, must_own
from lab.simulator.state import tc_topics


async def coordinators(request: Request) -> Response:
    """Each coordinator's broker; those of a killed broker are still named with it while its session lasts."""
    state = here(request).state
    owners = [state.load(state.bundle_of(topic)) for topic in tc_topics(state.coordinators)]
    return replies.document([{"id": n, "brokerServiceUrl": owner.service_url} for n, owner in enumerate(owners)])


async def stats(request: Request) -> Response:
    """No client ever connects to the coordinators here, so none has begun to work: 404, and 500 for all at once."""
    state, asked = here(request).state, request.query_params.get("coordinatorId")
    reason = f"Transaction coordinator not found! coordinator id : {asked or 0}"
    if asked is None:
        raise crashed("org.apache.pulsar.client.admin.PulsarAdminException$NotFoundException", reason)
    topics = tc_topics(state.coordinators)
    if int(asked) < len(topics):
        must_own(request, state.bundle_of(topics[int(asked)]), loads=True)
    raise Refusal(404, reason)


async def raise_number(request: Request) -> Response:
    """More coordinators at once, of which none is loaded; brokers never take a number that is not higher."""
    state, number = here(request).state, int(await request.body())
    if number <= state.coordinators:
        reason = "Number of transaction coordinators should be more than the current number of transaction coordinator"
        raise Refusal(406, reason)
    state.coordinators = number
    return replies.done()


ROUTES = [
    Route("/admin/v3/transactions/coordinators", coordinators),
    Route("/admin/v3/transactions/coordinatorStats", stats),
    Route("/admin/v3/transactions/transactionCoordinator/replicas", raise_number, methods=["POST"]),
]
