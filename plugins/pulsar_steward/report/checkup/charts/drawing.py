"""Interface to plotly, which has no types: traces, figures, their JSON, and the script that draws them."""

from __future__ import annotations

from typing import Any, TypeAlias

from plotly import graph_objects, io, offline  # type: ignore[import-untyped]  # it has none

Figure: TypeAlias = Any
"""`plotly.graph_objects.Figure`; it rejects unknown properties."""

Trace: TypeAlias = Any
"""`plotly.graph_objects.Bar` or `Scatter`."""


def bars(**fields: object) -> Trace:
    """Trace of horizontal bars."""
    return graph_objects.Bar(orientation="h", textposition="outside", cliponaxis=False, **fields)


def points(**fields: object) -> Trace:
    """Trace of points, or a line through them."""
    return graph_objects.Scatter(**fields)


def drawn(*traces: Trace, height: int, **layout: object) -> Figure:
    """A figure in the page's style, without a template of its own.

    Args:
        *traces: The traces that it draws.
        height: Pixels.
        **layout: Settings besides the ones that all charts share.
    """
    figure = graph_objects.Figure(traces, layout={"template": graph_objects.layout.Template()})
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 16, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 12, "family": "system-ui, sans-serif"},
        bargap=0.35,
        showlegend=False,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        hoverlabel={"align": "left"},
        dragmode=False,
    )
    figure.update_xaxes(automargin=True, zeroline=False, fixedrange=True, gridcolor="#999")
    figure.update_yaxes(automargin=True, zeroline=False, fixedrange=True, gridcolor="#999")
    figure.update_layout(**layout)
    return figure


def as_json(figure: Figure) -> str:
    """The figure as JSON for the script."""
    return str(io.to_json(figure))


def library() -> str:
    """Plotly's script, from its package."""
    return str(offline.get_plotlyjs())
