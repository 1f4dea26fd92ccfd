"""A check-up as a self-contained HTML page: scripts and style included, no external address, light and dark."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown
from pulsar_steward.report.checkup.terminal import advice_of, remedy, result, since, standing, unlisted

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Template

    from pulsar_steward.report.checkup.document import Checkup

MAX_OPEN = 5
"""Number of findings of one check that are visible at first; the others unfold."""


def as_html(checkup: Checkup) -> str:
    """Renders the page. All data from the cluster is escaped."""
    from pulsar_steward.report.checkup.charts.all import charts_of, figures_json, scripts  # noqa: PLC0415 - plotly is slow

    charts = charts_of(checkup)
    return _template().render(
        checkup=checkup,
        verdict=result(checkup),
        found=checkup.with_outlook(Outlook.FOUND),
        most_open=MAX_OPEN,
        quiet=[
            ("Could not be judged", "unknown", checkup.with_outlook(Outlook.UNKNOWN)),
            ("Clear", "clear", checkup.with_outlook(Outlook.CLEAR)),
        ],
        charts=charts,
        figures=figures_json(charts),
        scripts=scripts(),
        advice_of=advice_of,
        remedy=remedy,
        since=since,
        standing=standing,
        unlisted=unlisted,
    )


def coded(words: object, behind: Callable[[str], Markup] = lambda _: Markup()) -> Markup:
    """Renders text between backticks as code; only for Steward's own texts, as a name would lose its backticks.

    Args:
        words: The text.
        behind: Function from the text of a code to markup that follows it.
    """
    line = shown(words)
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return escape(line)
    return Markup().join(
        Markup("<code>{}</code>{}").format(part, behind(part)) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


@cache
def _template() -> Template:
    environment = templates_of("pulsar_steward.report.checkup")
    environment.filters["coded"] = coded
    return environment.get_template("checkup.html.j2")


def templates_of(package: str) -> Environment:
    """Environment of a package's templates, in which every value is shown as text, whatever it contains."""
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(value),  # markup is of shown text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    return environment
