"""A check-up as one page that needs nothing else: scripts and style within it, no address, light and dark."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pulsar_steward.model.finding import Outlook
from pulsar_steward.outside_text import shown
from pulsar_steward.report.checkup.terminal import remedy, standing, tally, verdict

if TYPE_CHECKING:
    from jinja2 import Template

    from pulsar_steward.report.checkup.document import Checkup

MOST_OPEN = 5
"""Findings of one check that lie open on the page; the others unfold."""


def as_html(checkup: Checkup) -> str:
    """The page. Whatever comes from the cluster is escaped."""
    from pulsar_steward.report.checkup.charts.all import charts_of  # noqa: PLC0415 - plotly takes long to load
    from pulsar_steward.report.checkup.charts.script import figures_json, scripts  # noqa: PLC0415 - as above

    charts = charts_of(checkup)
    return _template().render(
        checkup=checkup,
        verdict=verdict(checkup),
        tally=tally(checkup.counts),
        found=checkup.with_outlook(Outlook.FOUND),
        worst=checkup.worst_first(),
        most_open=MOST_OPEN,
        quiet=[
            ("Could not be judged", "unknown", checkup.with_outlook(Outlook.UNKNOWN)),
            ("Clear", "clear", checkup.with_outlook(Outlook.CLEAR)),
        ],
        charts=charts,
        figures=figures_json(charts),
        scripts=scripts(),
        remedy=remedy,
        standing=standing,
    )


def coded(words: object) -> Markup:
    """Words of Steward's own, with what stands between backticks as code; a name would lose its backticks by that."""
    line = shown(words)
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return escape(line)
    tags = (Markup("<code>{}</code>") if number % 2 else Markup("{}") for number in range(len(parts)))
    return Markup().join(tag.format(part) for tag, part in zip(tags, parts, strict=True))


def _shown(value: object) -> object:
    """Every value that the template names, before it is escaped; markup was made here, of what was shown already."""
    return value if isinstance(value, Markup) else shown(value)


@cache
def _template() -> Template:
    loader = PackageLoader("pulsar_steward.report.checkup", "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coded"] = coded
    return environment.get_template("checkup.html.j2")
