"""One broker's own code: its routes, and the shapes of what goes wrong."""

import json
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from lab.simulator import (
    broker_stats,
    brokers,
    bundles,
    isolation_routes,
    lookup,
    namespaces,
    policies,
    prometheus,
    replies,
    topics,
    transactions,
)
from lab.simulator.replies import Elsewhere, Refusal
from lab.simulator.routing import Here

# Fixed words before path parameters: the first route that fits answers.
ROUTES: list[BaseRoute] = [
    *isolation_routes.ROUTES,
    *brokers.ROUTES,
    *broker_stats.ROUTES,
    *prometheus.ROUTES,
    *lookup.ROUTES,
    *transactions.ROUTES,
    *policies.ROUTES,
    *bundles.ROUTES,
    *namespaces.ROUTES,
    *topics.ROUTES,
]


def application(here: Here) -> Starlette:
    """The admin API of one broker."""
    handlers: dict[Any, Any] = {
        Refusal: _answered,
        Elsewhere: _answered,
        HTTPException: _page,
        json.JSONDecodeError: _no_json,
    }
    app = Starlette(routes=ROUTES, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.here = here
    return app


async def _answered(_: Request, error: Refusal | Elsewhere) -> Response:
    return error.response()


async def _page(request: Request, error: HTTPException) -> Response:
    return replies.jetty_page(request, error.status_code, error.detail)


async def _no_json(_: Request, error: json.JSONDecodeError) -> Response:
    return Response(f"Unexpected character: {error}", status_code=400, media_type="text/plain")
