"""Sources of the pages: the ledger, and the newest snapshots; each is opened at its first use and cached."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from pulsar_steward.errors import StewardError
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.report.overview import SnapshotSummary, summary_of
from pulsar_steward.snapshots.latest import SnapshotShelf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable
    from datetime import datetime

    from sqlalchemy import Engine

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.snapshots.read import Snapshot

T = TypeVar("T")

MAX_KEPT = 2_000
"""Maximum number of cached results from snapshots, enough for the trends of 50 clusters: none of them expires."""

MAX_KEPT_LARGE = 42
"""The same for results that grow with findings or bundles: seven per snapshot, so enough for six clusters."""


class NotKnown(StewardError):
    """There is no cluster, plan, batch, step or question of that name."""


class NotUnderstood(StewardError):
    """A request contains text that cannot be a name here, and that no database accepts."""


class SnapshotCache:
    """Cache of the most recently used results, at `most` as many, by key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """The result for a key, read if it is not cached; an error is not cached."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                kept: T = self._things[key]
                return kept
        thing = read()
        with self._lock:
            self._things[key] = thing
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        return thing


class Sources:
    """Ledger and snapshots.

    Args:
        open_ledger: Opens the ledger to be read (`pulsar_steward.ledger.store.open_to_read`).
        snapshots: URI of the folder of snapshots.
        clock: Current time, UTC.
        noted: Ends of the ledger's chain that were recorded elsewhere.
        halted_elsewhere: Function from a cluster to the reason if a switch outside of the ledger halts it, such as an
            Airflow variable; None: it does not.
        is_paused: Function from a DAG to whether it is paused; it returns None if that is not known.
    """

    def __init__(
        self,
        open_ledger: Callable[[], Engine],
        snapshots: str,
        clock: Callable[[], datetime],
        noted: Callable[[], Collection[Head]] = tuple,
        halted_elsewhere: Callable[[str], str | None] = lambda _: None,
        is_paused: Callable[[str], bool | None] = lambda _: None,
    ) -> None:
        self._open_ledger = open_ledger
        self._engine: Engine | None = None
        self._lock = Lock()
        self.shelf = SnapshotShelf(snapshots)
        self.now = clock
        self.noted = noted
        self.halted_elsewhere = halted_elsewhere
        self.is_paused = is_paused
        self.kept = SnapshotCache(MAX_KEPT)
        self.kept_large = SnapshotCache(MAX_KEPT_LARGE)

    @property
    def engine(self) -> Engine:
        """The ledger, opened once.

        Raises:
            LedgerError: If it cannot be reached.
            ConfigurationError: If there is none yet.
        """
        with self._lock:
            if self._engine is None:
                self._engine = self._open_ledger()
            return self._engine

    @property
    def ledger(self) -> LedgerReader:
        """Reader of the ledger."""
        return LedgerReader(self.engine)

    def newest(self, cluster: str) -> Snapshot | None:
        """A cluster's newest diagnosed snapshot; None: there is none.

        Raises:
            SnapshotError: If the folder cannot be read.
        """
        return next(iter(self.shelf.diagnosed(cluster)), None)

    def summary(self, snapshot: Snapshot) -> SnapshotSummary:
        """Summary of a snapshot.

        Raises:
            SnapshotError: If it cannot be read.
        """
        return self.kept.get(("summary", snapshot.uri), lambda: summary_of(snapshot))


def newest_of(sources: Sources, cluster: str) -> Snapshot:
    """A cluster's newest diagnosed snapshot.

    Raises:
        NotKnown: If there is none.
    """
    snapshot = sources.newest(cluster) if cluster in sources.shelf.clusters() else None
    if snapshot is None:
        raise NotKnown(f"cluster {cluster!r} has no diagnosed snapshot")
    return snapshot
