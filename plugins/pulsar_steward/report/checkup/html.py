"""A check-up as one page that needs nothing else: no script, no address, light and dark."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from pulsar_steward.model.finding import Outlook
from pulsar_steward.report.checkup.charts import Bar, bar_chart
from pulsar_steward.report.checkup.terminal import remedy, standing, tally, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Template
    from markupsafe import Markup

    from pulsar_steward.report.checkup.document import Checkup

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def as_html(checkup: Checkup) -> str:
    """The page. Whatever comes from the cluster is escaped."""
    return _template().render(
        checkup=checkup,
        verdict=verdict(checkup),
        tally=tally(checkup.counts),
        found=checkup.with_outlook(Outlook.FOUND),
        quiet=[
            ("Could not be judged", "unknown", checkup.with_outlook(Outlook.UNKNOWN)),
            ("Clear", "clear", checkup.with_outlook(Outlook.CLEAR)),
        ],
        charts=list(_charts(checkup)),
        remedy=remedy,
        standing=standing,
    )


def in_bytes(number: int) -> str:
    """Bytes in a unit that fits: ``1.5 GiB``."""
    size, unit = float(number), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:,.1f} {_UNITS[unit]}" if unit else f"{number:,} B"


@cache
def _template() -> Template:
    loader = PackageLoader("pulsar_steward.report.checkup", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("checkup.html.j2")


def _charts(checkup: Checkup) -> Iterator[tuple[str, Markup]]:
    measures = checkup.measures
    if checkup.about.coordinators:
        bars = [_counted(each.broker, each.coordinators) for each in measures.brokers]
        yield _chart("Transaction coordinators by broker", bars)
    yield _chart("Loaded topics by broker", [_counted(each.broker, each.topics) for each in measures.brokers])
    for crowded in measures.crowded:
        more = f" (and {crowded.not_listed:,} bundles with fewer)" if crowded.not_listed else ""
        bars = [_counted(each.bundle, each.topics) for each in crowded.bundles]
        yield _chart(f"Topics by bundle of {crowded.namespace}{more}", bars)
    backlog = [Bar(each.namespace, each.backlog_bytes, in_bytes(each.backlog_bytes)) for each in measures.backlog]
    if backlog:
        yield _chart("Backlog by namespace", backlog)


def _chart(title: str, bars: list[Bar]) -> tuple[str, Markup]:
    return title, bar_chart(title, bars)


def _counted(name: str, number: int | None) -> Bar:
    return Bar(name, number, "not known" if number is None else f"{number:,}")
