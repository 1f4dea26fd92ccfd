"""What checks are given: one snapshot's tables as lazy DataFrames, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import TYPE_CHECKING, TypeVar

from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    CLIENTS,
    CONFIGURATION,
    DRILLED,
    METRICS,
    NAMESPACES,
    SNAPSHOT,
    SUBSCRIPTIONS,
    TOPICS,
    TRANSACTION_COORDINATORS,
)
from steward_spark.local import few_on_driver
from steward_spark.once import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pyspark.sql import DataFrame

    from pulsar_steward.model.tables import Table

T = TypeVar("T")


@dataclass(frozen=True)
class About:
    """What a snapshot is.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        taken_at: When collecting began, UTC: a check's only "now".
        pulsar_version: As the first broker that answered says it.
        load_manager: Class name of the brokers' load manager.
        coordinators: Transaction coordinators; 0 where transactions are off.
        tcs_by_bundle: Whether bundles place them.
    """

    cluster: str
    unread: tuple[str, ...]
    taken_at: datetime
    pulsar_version: str
    load_manager: str
    coordinators: int
    tcs_by_bundle: bool


class Frames:
    """One snapshot's tables; each is read when a check asks for it.

    Args:
        read: Gives a table's DataFrame, with all columns of `pulsar_steward.model.tables`.
        earlier: Earlier snapshots of the same cluster, the newest first.
        hold: Makes a frame of a few columns one that is computed only once; without it, each use computes it.
    """

    def __init__(
        self,
        read: Callable[[Table], DataFrame],
        earlier: Sequence[Frames] = (),
        hold: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    ) -> None:
        self.read = read
        self.earlier = earlier
        self.hold = hold
        self._derived = Once()

    def few(self, frame: DataFrame) -> DataFrame:
        """Rows that are hardly ever many: computed once and read into the driver, or held where they are many.

        What is done with few rows needs no scan, and a join with them no shuffle.
        """
        few = few_on_driver(frame)
        return self.hold(frame) if few is None else few

    def once(self, key: Hashable, derive: Callable[[], T]) -> T:
        """What is derived of this snapshot under a key, however many checks ask for it."""
        return self._derived.get(key, derive)

    @cached_property
    def about(self) -> About:
        """What the snapshot is."""
        row = self.read(SNAPSHOT).first()
        if row is None:
            raise ValueError("the table `snapshot` is empty")
        return About(
            cluster=row["cluster"],
            unread=(*row["unread_brokers"], *row["unread_namespaces"]),
            taken_at=row["taken_at"].astimezone(UTC),
            pulsar_version=row["pulsar_version"],
            load_manager=row["load_manager"],
            coordinators=row["coordinators"],
            tcs_by_bundle=row["tcs_by_bundle"],
        )

    @cached_property
    def brokers(self) -> DataFrame:
        """The table `brokers`."""
        return self.read(BROKERS)

    @cached_property
    def bundles(self) -> DataFrame:
        """The table `bundles`."""
        return self.read(BUNDLES)

    @cached_property
    def coordinators(self) -> DataFrame:
        """The table `transaction_coordinators`."""
        return self.read(TRANSACTION_COORDINATORS)

    @cached_property
    def topics(self) -> DataFrame:
        """The table `topics`."""
        return self.read(TOPICS)

    @cached_property
    def subscriptions(self) -> DataFrame:
        """The table `subscriptions`."""
        return self.read(SUBSCRIPTIONS)

    @cached_property
    def namespaces(self) -> DataFrame:
        """The table `namespaces`."""
        return self.read(NAMESPACES)

    @cached_property
    def clients(self) -> DataFrame:
        """The table `clients`."""
        return self.read(CLIENTS)

    @cached_property
    def configuration(self) -> DataFrame:
        """The table `configuration`."""
        return self.read(CONFIGURATION)

    @cached_property
    def metrics(self) -> DataFrame:
        """The table `metrics`."""
        return self.read(METRICS)

    @cached_property
    def drilled(self) -> DataFrame:
        """The table `drilled`."""
        return self.read(DRILLED)


def derived_once(derive: Callable[[Frames], T]) -> Callable[[Frames], T]:
    """A function of a snapshot that several checks call: carried out once a snapshot."""

    @wraps(derive)
    def kept(frames: Frames) -> T:
        return frames.once(derive, lambda: derive(frames))

    return kept


def few_once(derive: Callable[[Frames], DataFrame]) -> Callable[[Frames], DataFrame]:
    """A function that gives a frame, of hardly any rows as a rule, which is used several times: as `Frames.few`."""

    @wraps(derive)
    def kept(frames: Frames) -> DataFrame:
        return frames.once(derive, lambda: frames.few(derive(frames)))

    return kept


def held_once(derive: Callable[[Frames], DataFrame]) -> Callable[[Frames], DataFrame]:
    """A function that gives a frame which several checks use: made once a snapshot, and computed once."""

    @wraps(derive)
    def kept(frames: Frames) -> DataFrame:
        return frames.once(derive, lambda: frames.hold(derive(frames)))

    return kept
