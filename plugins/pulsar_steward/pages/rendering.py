"""Rendering of pages from templates: every value is shown as text, whatever it holds."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pulsar_steward.model.units import counted
from pulsar_steward.notify.links import PAGES, question_path
from pulsar_steward.outside_text import shown
from pulsar_steward.pages import words as in_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from fastapi import Request

ASSETS = {
    "steward.css": "text/css; charset=utf-8",
    "steward.js": "text/javascript; charset=utf-8",
    "steward.svg": "image/svg+xml",
}
"""Files that pages load, with their types."""


class Renderer:
    """Renders templates.

    Args:
        clock: Current time, UTC.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page.

        Args:
            request: What is answered; links are relative to where the application is mounted.
            template: The template's name.
            status: HTTP status.
            **values: Values of the template.
        """
        now, root = self._clock(), str(request.scope.get("root_path", ""))
        airflow = root.removesuffix(PAGES)
        text = (
            _templates()
            .get_template(template)
            .render(
                **values,
                now=now,
                ago=in_words.ago(now),
                link=lambda *parts, **query: link_to(root, *parts, **query),
                airflow=lambda *parts, **query: link_to(airflow, *parts, **query),
                question=lambda run, voice: f"{airflow}{question_path(run, voice)}",
            )
        )
        return HTMLResponse(text, status)


def link_to(root: str, *parts: object, **query: object) -> str:
    """Address of a page; every part is one part of a path, whatever it holds, and empty queries are left out."""
    path = "".join(f"/{quote(str(part), safe='')}" for part in parts)
    asked = urlencode({name: str(value) for name, value in query.items() if value not in {None, ""}})
    return f"{root}{path or '/'}" + (f"?{asked}" if asked else "")


def below_api(request: Request) -> bool:
    """True if a program asks, and wants JSON."""
    return request.url.path.removeprefix(str(request.scope.get("root_path", ""))).startswith("/api/")


@cache
def asset(name: str) -> bytes:
    """A file that pages load."""
    return files("pulsar_steward.pages").joinpath("assets", name).read_bytes()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("pulsar_steward.pages", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    for name in ("number", "percent", "size", "rate", "moment", "duration", "seconds"):
        environment.filters[name] = getattr(in_words, name)
    for helper in (in_words.heat_step, in_words.polyline, in_words.number, in_words.rate):
        environment.globals[helper.__name__] = helper
    return environment


def _shown(value: object) -> object:
    """Applies `shown` to every value of a template before it is escaped; markup is the template's own."""
    return value if isinstance(value, Markup) else shown(value)
