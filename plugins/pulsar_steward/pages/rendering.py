"""Rendering of pages from templates: every value is shown as text, whatever it contains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi.responses import HTMLResponse
from markupsafe import Markup

from pulsar_steward.model.units import DAY, HOUR, MINUTE, bytes_in_words, number_in_words, seconds_in_words
from pulsar_steward.notify.compose import PAGES, question_path
from pulsar_steward.report.checkup.html import coded, templates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import Request
    from jinja2 import Environment


MISSING = "–"  # noqa: RUF001 - a dash where there is no figure

_DARK_HEAT = 5
"""Number of colour steps on the map of bundles."""


def number(value: float | None) -> str:
    """A number with separators; a dash for None."""
    return MISSING if value is None else number_in_words(value)


def percent(value: float | None) -> str:
    """A percentage without decimals; a dash for None."""
    return MISSING if value is None else f"{value:,.0f} %"


def size(value: float | None) -> str:
    """Bytes in words; a dash for None."""
    return MISSING if value is None else bytes_in_words(value, rounded=True)


def rate(value: float | None) -> str:
    """Bytes per second, in megabytes with one decimal; a dash for None."""
    return MISSING if value is None else f"{value / 1_000_000:,.1f}"


def moment(value: datetime) -> str:
    """A time without its zone, which the page states once: ``2026-01-31 12:00:00``."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``3 d 4 h``, ``2 h 5 min``, ``40 s``."""
    whole = int(abs(seconds))
    for large, unit, small, small_unit in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", MINUTE, ""),
    ):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{whole} s"


def seconds(value: float) -> str:
    """A forecast in the words of findings, to the second if it is short: ``95 s``, ``2.5 min``."""
    return seconds_in_words(value, rounded=True)


COPY = Markup('<button type="button" data-copy>Copy</button>')


def with_copies(step: str) -> Markup:
    """A step of advice, with a button behind each of its commands."""
    return coded(step, behind=lambda code: COPY if " " in code else Markup())


def ago(now: datetime) -> Callable[[datetime], str]:
    """Filter for the time from a moment until now, or from now until a moment."""
    return lambda value: duration((now - value).total_seconds())


def heat_step(heat: float) -> int:
    """Colour step for a throughput between 0 and 1: by the square root, so that small differences show."""
    return min(int(heat**0.5 * _DARK_HEAT), _DARK_HEAT - 1)


def polyline(values: Sequence[float], width: int, height: int, most: float = 0) -> str:
    """Points of a line through values, from 0 at the bottom to `most`, or the largest, in SVG's notation."""
    most = max([*values, most, 1e-9])
    step = width / max(len(values) - 1, 1)
    points = ((place * step, height - value / most * (height - 2) - 1) for place, value in enumerate(values))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


ASSETS = {
    "steward.css": "text/css; charset=utf-8",
    "steward.js": "text/javascript; charset=utf-8",
    "steward.svg": "image/svg+xml",
}
"""Files that pages load, with their types."""


@dataclass(frozen=True)
class Renderer:
    """Renders templates."""

    clock: Callable[[], datetime]

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page of a template; its links are relative to where the application is mounted."""
        now, root = self.clock(), str(request.scope.get("root_path", ""))
        airflow = root.removesuffix(PAGES)
        text = (
            _templates()
            .get_template(template)
            .render(
                **values,
                now=now,
                ago=ago(now),
                link=lambda *parts, **query: link_to(root, *parts, **query),
                airflow=lambda *parts, **query: link_to(airflow, *parts, **query),
                question=lambda run, voice: f"{airflow}{question_path(run, voice)}",
            )
        )
        return HTMLResponse(text, status)


def link_to(root: str, *parts: object, **query: object) -> str:
    """Address of a page; every part is one segment of the path, whatever it contains; empty queries are left out."""
    path = "".join(f"/{quote(str(part), safe='')}" for part in parts)
    asked = urlencode({name: str(value) for name, value in query.items() if value not in {None, ""}})
    return f"{root}{path or '/'}" + (f"?{asked}" if asked else "")


def below_api(request: Request) -> bool:
    """True if the request comes from a program that needs JSON."""
    return request.url.path.removeprefix(str(request.scope.get("root_path", ""))).startswith("/api/")


@cache
def asset(name: str) -> bytes:
    """A file that pages load."""
    return files("pulsar_steward.pages").joinpath("assets", name).read_bytes()


@cache
def _templates() -> Environment:
    environment = templates_of("pulsar_steward.pages")
    for words in (number, percent, size, rate, moment, duration, seconds, coded, with_copies):
        environment.filters[words.__name__] = words
    for helper in (heat_step, polyline, number, rate):
        environment.globals[helper.__name__] = helper
    return environment
