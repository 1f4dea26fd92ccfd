"""Scripts of the page: plotly from its package, the figures as data, and the code that draws them."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

from pulsar_steward.report.checkup.charts.chart import as_json, library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.report.checkup.charts.chart import Chart

_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that could end a script or begin a comment, and their escapes in JSON strings."""


class Script(msgspec.Struct, frozen=True):
    """A script of the page, with its source for the content security policy."""

    text: Markup
    source: str


def scripts() -> tuple[Script, ...]:
    """Plotly's script, and the script that draws the figures with it."""
    own = files("pulsar_steward.report.checkup").joinpath("templates/charts.js").read_text(encoding="utf-8")
    return _script(library()), _script(own)


def figures_json(charts: Sequence[Chart]) -> Markup:
    """The figures by id, as JSON that cannot end its HTML element, whatever names it contains."""
    each = {chart.chart_id: msgspec.Raw(as_json(chart.figure).encode()) for chart in charts if chart.figure}
    return Markup(msgspec.json.encode(each).decode().translate(_UNSAFE))  # noqa: S704 - translated just here


def _script(text: str) -> Script:
    """A script with its hash: a browser runs only scripts whose hash the content security policy lists."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - plotly's and our own, nothing from a cluster
