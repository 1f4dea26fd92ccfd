"""The application: one access check guards every route, and pages load nothing from elsewhere."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response

from pulsar_steward.errors import StewardError
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown, shown_json
from pulsar_steward.pages.api import Api
from pulsar_steward.pages.html import Pages
from pulsar_steward.pages.rendering import Renderer, below_api
from pulsar_steward.pages.sources import NotKnown, NotUnderstood
from pulsar_steward.pages.stories import Verification

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pulsar_steward.pages.sources import Sources

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self';"
        " frame-ancestors 'self'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Pages run no script and load only their own files, and only Airflow's own pages may frame them."""


STATUSES = {NotKnown: 404, NotUnderstood: 400}
"""Status of an error; all others get 503."""

MAX_TEXT = 1_000
"""Maximum length of a parameter, in characters: the longest names of Pulsar are shorter."""

_UNTAKEABLE = re.compile("[\0\ud800-\udfff]")


def make_app(sources: Sources, may_look: Callable[..., Any]) -> FastAPI:
    """The application, to be mounted in Airflow's API server.

    Args:
        sources: Ledger and snapshots.
        may_look: A FastAPI dependency that raises an error if access is not allowed. Every route has it.
    """
    app = FastAPI(
        title="Pulsar Steward",
        description="What Steward sees, asks and did. Everything here only reads.",
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # it would respond without a login; `/api/openapi.json` is a route like any other
        dependencies=[Depends(may_look), Depends(_require_legible)],
    )
    verification = Verification(sources)
    renderer = Renderer(sources.now)
    app.include_router(Api(sources, verification).router(app))
    app.include_router(Pages(sources, verification, renderer).router())

    @app.middleware("http")
    async def guarded(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await go_on(request)
        response.headers.update(HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.exception_handler(StewardError)
    def told(request: Request, error: StewardError) -> Response:
        status = STATUSES.get(type(error), 503)
        if status == 503:  # noqa: PLR2004 - as above
            log.warning("%s could not be shown: %s", request.url.path, error)
        if below_api(request):
            document = shown_json(msgspec.json.encode({"detail": shown(error)}))
            return Response(document, status, media_type="application/json")
        return renderer.page(request, "trouble.html.j2", status=status, words=str(error), status_code=status)

    return app


def _require_legible(request: Request) -> None:
    """Refuses text that a database does not accept, at one place for all filters and names of all routes.

    PostgreSQL accepts no NUL, no driver accepts half a character, and SQLite no pattern over 50,000 bytes.

    Raises:
        NotUnderstood: Names the parameter.
    """
    for name, text in (*request.query_params.multi_items(), *request.path_params.items()):
        if len(text) > MAX_TEXT:
            raise NotUnderstood(f"{name} has {counted(len(text), 'character')}, and {MAX_TEXT:,} are the most")
        if found := _UNTAKEABLE.search(text):
            raise NotUnderstood(f"{name} holds the character {shown(found[0])}, which no name has")
