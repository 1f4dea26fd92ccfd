"""A move of a namespace to another cluster, stage by stage, by the newest snapshots of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.system import System
from pulsar_steward.pages.sources import NotKnown, NotUnderstood, newest_of
from pulsar_steward.report.moving import move_by_snapshots

if TYPE_CHECKING:
    from pulsar_steward.model.staged_move import StagedMove
    from pulsar_steward.pages.sources import Sources

MAX_LOOKS = 100
"""Snapshots of the source that are read for how long it has had no client."""


def clusters_to_move_between(sources: Sources) -> tuple[str, ...]:
    """Pulsar clusters with a diagnosed snapshot, by name.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    newest = {name: sources.newest(name) for name in sources.shelf.clusters()}
    return tuple(name for name, each in newest.items() if each and sources.summary(each).meta.system is System.PULSAR)


def observed_move(sources: Sources, namespace: str, source: str, target: str) -> StagedMove:
    """The stages of a move, as far as snapshots tell; reads topics of that namespace, once for each pair of snapshots.

    Raises:
        NotKnown: If a cluster has no diagnosed snapshot, or its snapshot does not tell the namespace.
        NotUnderstood: If both clusters are the same one.
        SnapshotError: If a snapshot cannot be read.
    """
    if source == target:
        raise NotUnderstood(f"{namespace} is at {source} already: name another cluster")
    here, there = (newest_of(sources, name) for name in (source, target))

    def made() -> StagedMove:
        try:
            return move_by_snapshots(namespace, here, there, sources.shelf.diagnosed(source, MAX_LOOKS))
        except ConfigurationError as error:
            raise NotKnown(f"{error}: `steward move-namespace {namespace} --to {target}` looks at both now") from error

    return sources.kept.get(("move", here.uri, there.uri, namespace), made)
