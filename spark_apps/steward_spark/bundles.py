"""All bundles of all namespaces: those that the boundaries make, with those that brokers say they own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import BUNDLES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEYS = ("namespace", "bundle")
_FIGURES = tuple(name for name in BUNDLES.names if name not in {*KEYS, "owner", "owner_known", "positions"})


def divided(namespaces: DataFrame) -> DataFrame:
    """The bundles that namespaces' boundaries make: `namespace`, `bundle`."""
    ranges = F.expr(
        "transform(sequence(1, bundles), i -> concat(element_at(boundaries, i), '_', element_at(boundaries, i + 1)))"
    )
    return namespaces.where(F.col("bundles") >= 1).select("namespace", F.explode(ranges).alias("bundle"))


def settled(owned: DataFrame) -> DataFrame:
    """One row a bundle: one that two brokers named, as it moved while they were asked, has no known owner."""
    once = F.count("*") == 1
    return owned.groupBy(*KEYS).agg(
        F.when(once, F.max("owner")).alias("owner"),
        once.alias("owner_known"),
        *(F.max(name).alias(name) for name in (*_FIGURES, "positions")),
    )


def all_bundles(namespaces: DataFrame, owned: DataFrame, *, partial: bool) -> DataFrame:
    """The table `bundles`.

    Args:
        namespaces: The table `namespaces`.
        owned: What brokers own, columns of `bundles`.
        partial: Whether a broker could not be read, so that a bundle that nobody named may be its.
    """
    joined = divided(namespaces).join(settled(owned), list(KEYS), "full_outer")
    known = F.coalesce("owner_known", F.lit(not partial))
    return joined.withColumn("owner_known", known).select(
        *KEYS,
        "owner",
        "owner_known",
        *(_or_zero_where_unloaded(name).alias(name) for name in _FIGURES),
        "positions",
    )


def with_positions(bundles: DataFrame, computed: DataFrame) -> DataFrame:
    """The same bundles; those whose positions nobody could be asked for get what can be computed.

    Args:
        bundles: The table `bundles`.
        computed: `bundle` of ``pulsar/system`` and `computed`, the positions of coordinators in it.
    """
    matches = (bundles["namespace"] == TC_NAMESPACE) & (bundles["bundle"] == computed["bundle"])
    joined = bundles.join(F.broadcast(computed), matches, "left").drop(computed["bundle"])
    return joined.withColumn("positions", F.coalesce("positions", "computed")).drop("computed")


def _or_zero_where_unloaded(name: str) -> Column:
    return F.coalesce(F.col(name), F.when(F.col("owner_known"), F.lit(0)))
