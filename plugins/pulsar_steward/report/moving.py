"""A move of a namespace: by snapshots, for a page, and as lines for a terminal, with the reasons and calls to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.staged_move import Standing
from pulsar_steward.model.units import MINUTE, counted
from pulsar_steward.outside_text import shown
from pulsar_steward.planners.clusters.moved_by_snapshots import look_in
from pulsar_steward.planners.clusters.moving import Empty, empty_looks, stages_of
from pulsar_steward.report.checkup.text import STYLES, fitting, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.model.staged_move import StagedMove
    from pulsar_steward.snapshots.read import Snapshot

_STYLES = {Standing.READY: "clear", Standing.NOT_YET: "warning", Standing.UNKNOWN: "unknown"}
_MARKS = {Standing.READY: "+ ", Standing.NOT_YET: "- ", Standing.UNKNOWN: "? "}


EMPTY_SECONDS = 60 * MINUTE
"""How long the source has to have had no client, unless somebody says otherwise."""


def move_by_snapshots(namespace: str, source: Snapshot, target: Snapshot, before: Iterable[Snapshot]) -> StagedMove:
    """All stages of a move, as far as the newest snapshots tell.

    Args:
        namespace: ``tenant/namespace``.
        source: Newest snapshot of the cluster that it leaves.
        target: Of the one that it goes to.
        before: Snapshots of the source, newest first, for how long it has had no client.

    Raises:
        ConfigurationError: If a snapshot does not tell the namespace's policies.
        SnapshotError: If a snapshot cannot be read.
    """
    here = look_in(source, namespace)
    if here.policies is None:
        raise ConfigurationError(f"the snapshot of {here.cluster} shows no namespace {namespace}")
    there = look_in(target, namespace, elsewhere=here)
    looks = () if here.clients else empty_looks(before, namespace)
    return stages_of(
        namespace, here, there, Empty(wanted_seconds=EMPTY_SECONDS, now=source.meta().taken_at, looks=looks)
    )


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
