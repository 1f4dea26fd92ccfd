"""A move of a namespace as lines for a terminal: each stage with its state, the reasons, and the calls to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown
from pulsar_steward.planners.clusters.stages import Standing
from pulsar_steward.report.checkup.text import STYLES, fitting, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.planners.clusters.stages import StagedMove

_STYLES = {Standing.READY: "clear", Standing.NOT_YET: "warning", Standing.UNKNOWN: "unknown"}
_MARKS = {Standing.READY: "+ ", Standing.NOT_YET: "- ", Standing.UNKNOWN: "? "}


def move_lines(move: StagedMove, width: int) -> Iterator[Text]:
    """The move, stage by stage; calls are never wrapped, so that they can be copied."""
    width = fitting(width)
    yield from wrapped(f"{move.namespace}: from {move.source} to {move.target}", width, style="heading")
    yield from wrapped("People carry this out; Steward only looks. Look again after each stage.", width, style="quiet")
    for stage in move.stages:
        yield Text()
        yield Text.assemble(
            f"{stage.number}. {stage.title}: ", (stage.standing.upper(), STYLES[_STYLES[stage.standing]])
        )
        for point in stage.points:
            yield from wrapped(point.words, width, first=f"   {_MARKS[point.standing]}", indent=5)
            for call in point.calls:
                yield Text(f"       {shown(call)}")
            if point.more_calls:
                yield Text(f"       and {counted(point.more_calls, 'further call')} like these: look again after them")
