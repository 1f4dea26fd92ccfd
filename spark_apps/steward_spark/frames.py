"""What checks are given: one snapshot's tables as lazy DataFrames, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.model.tables import BROKERS, BUNDLES, SNAPSHOT, TRANSACTION_COORDINATORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pulsar_steward.model.tables import Table


@dataclass(frozen=True)
class About:
    """What a snapshot is.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        coordinators: Transaction coordinators; 0 where transactions are off.
        tcs_by_bundle: Whether bundles place them.
    """

    cluster: str
    unread: tuple[str, ...]
    coordinators: int
    tcs_by_bundle: bool


class Frames:
    """One snapshot's tables; each is read when a check asks for it.

    Args:
        read: Gives a table's DataFrame, with all columns of `pulsar_steward.model.tables`.
    """

    def __init__(self, read: Callable[[Table], DataFrame]) -> None:
        self._read = read

    @cached_property
    def about(self) -> About:
        """What the snapshot is."""
        row = self._read(SNAPSHOT).first()
        if row is None:
            raise ValueError("the table `snapshot` is empty")
        return About(
            cluster=row["cluster"],
            unread=(*row["unread_brokers"], *row["unread_namespaces"]),
            coordinators=row["coordinators"],
            tcs_by_bundle=row["tcs_by_bundle"],
        )

    @cached_property
    def brokers(self) -> DataFrame:
        """The table `brokers`."""
        return self._read(BROKERS)

    @cached_property
    def bundles(self) -> DataFrame:
        """The table `bundles`."""
        return self._read(BUNDLES)

    @cached_property
    def coordinators(self) -> DataFrame:
        """The table `transaction_coordinators`."""
        return self._read(TRANSACTION_COORDINATORS)
