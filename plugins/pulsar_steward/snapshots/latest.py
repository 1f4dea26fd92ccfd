"""Newest snapshots below a folder of snapshots, found by the names of their folders alone."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.tables import FINDINGS, SNAPSHOT, VERDICTS
from pulsar_steward.snapshots.folder import place_of
from pulsar_steward.snapshots.read import SUCCESS, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_KNOWN = 10_000
"""Number of snapshots remembered as diagnosed, to save calls: on an object store each check is a call."""

_CLUSTER = "cluster="
_TAKEN = re.compile(r"taken_at=\d{8}T\d{6}Z")


class SnapshotShelf:
    """The snapshots below one folder: ``cluster=<name>/taken_at=<UTC>``.

    Every method raises `SnapshotError` if the folder cannot be read; a missing folder has no snapshots.

    Args:
        uri: The folder: a path, or a URI that `snapshots.place` can open.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._known: dict[tuple[str, bool], Snapshot] = {}

    def clusters(self) -> tuple[str, ...]:
        """Clusters with a folder, by name; folders with other names are left out."""
        names = (name.removeprefix(_CLUSTER) for name in self._names("") if name.startswith(_CLUSTER))
        return tuple(name for name in names if _is_cluster(name))

    def diagnosed(self, cluster: str, most: int = 1, *, whole: bool = True) -> tuple[Snapshot, ...]:
        """A cluster's diagnosed snapshots, newest first.

        Args:
            cluster: The cluster.
            most: Maximum number of snapshots.
            whole: True: only snapshots with all tables; False: also snapshots of which housekeeping left only the small
                tables.
        """
        return tuple(islice(self._diagnosed(cluster, whole=whole), most))

    def named(self, cluster: str, snapshot_id: str) -> Snapshot | None:
        """The snapshot with this id, if it is diagnosed and has all tables; None: it is gone, or never existed."""
        return self._opened(cluster, f"taken_at={snapshot_id.removeprefix(f'{cluster}-')}", whole=True)

    def _diagnosed(self, cluster: str, *, whole: bool) -> Iterator[Snapshot]:
        names = reversed(self._names(_folder(cluster)))
        opened = (self._opened(cluster, name, whole=whole) for name in names)
        return (snapshot for snapshot in opened if snapshot is not None)

    def _opened(self, cluster: str, name: str, *, whole: bool) -> Snapshot | None:
        if not _TAKEN.fullmatch(name):
            return None
        needed = {SNAPSHOT.name, FINDINGS.name, VERDICTS.name, *([SUCCESS] if whole else [])}
        folder = f"{_folder(cluster)}/{name}"
        if known := self._known.get((folder, whole)):
            return known
        if not needed <= set(self._names(folder)):
            return None
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        files, path = place_of(self.uri)
        found = Snapshot(f"{self.uri}{folder}", files, f"{path}{folder}")
        self._known[folder, whole] = found
        return found

    def _names(self, folder: str) -> list[str]:
        """Names in a folder below this one, sorted."""
        files, path = place_of(self.uri)
        try:
            found = files.get_file_info(fs.FileSelector(f"{path}{folder}", allow_not_found=True))
        except (OSError, pa.ArrowException) as error:
            raise SnapshotError(f"{self.uri}{folder} cannot be read: {error}") from error
        return sorted(info.base_name for info in found)


def _folder(cluster: str) -> str:
    return f"/{_CLUSTER}{require_cluster_name(cluster)}"


def _is_cluster(name: str) -> bool:
    try:
        require_cluster_name(name)
    except ConfigurationError:
        return False
    return True
