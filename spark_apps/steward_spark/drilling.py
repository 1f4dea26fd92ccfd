"""From suspects to the table `drilled`: whose each of them is, what its owner says, put together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.collect.arrow import OWN_POLICIES
from pulsar_steward.collect.drill import DrillTask, Wanted
from pulsar_steward.collect.suspects import base_of
from pulsar_steward.model.bundles import position_of, range_holding, ranges_of
from pulsar_steward.model.tables import DRILLED
from steward_spark.gather import rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyspark.sql import DataFrame

INTERNALS_OF = 4
"""One in so many suspects, the worst ones, is asked for ledgers and cursors too: a long answer."""

BUCKET_SERIES = "pulsar_delayed_message_index_bucket_total"


def wanted_of(topics: Sequence[str], namespaces: DataFrame) -> list[Wanted]:
    """What is to be asked about suspects, the worst first, and of which bundle's owner.

    Args:
        topics: Full names.
        namespaces: The table `namespaces`.
    """
    known = frozenset(topics)
    bundle_of = _BundleOf(namespaces, {_namespace_of(topic) for topic in topics})
    wanted = [
        Wanted(bundle, topic, internals=number * INTERNALS_OF < len(topics))
        for number, topic in enumerate(topics)
        if (bundle := bundle_of(topic))
    ]
    for base in dict.fromkeys(base_of(topic) for topic in topics):
        # Of a partitioned topic's own policies the owner of its first partition tells.
        bundle = bundle_of(base if base in known else f"{base}-partition-0")
        if bundle:
            wanted.append(Wanted(bundle, base, policies=True))
    return wanted


def tasks_of(wanted: Iterable[Wanted], bundles: DataFrame, pulsar_cluster: str) -> list[DrillTask]:
    """What each broker is to be asked; where nobody owns a bundle, or it is not known who, nobody is.

    Args:
        wanted: What is to be asked.
        bundles: The table `bundles`.
        pulsar_cluster: The cluster's own name.
    """
    by_bundle: dict[str, list[Wanted]] = defaultdict(list)
    for each in wanted:
        by_bundle[each.bundle].append(each)
    full_name = F.concat_ws("/", "namespace", "bundle")
    owned = bundles.where(F.col("owner").isNotNull() & full_name.isin(list(by_bundle)))
    by_owner: dict[str, list[Wanted]] = defaultdict(list)
    for bundle, owner in owned.select(full_name, "owner").collect():
        by_owner[owner] += by_bundle[bundle]
    return [DrillTask(owner, pulsar_cluster, tuple(sorted(by_owner[owner]))) for owner in sorted(by_owner)]


def drilled(answers: DataFrame, metrics: DataFrame) -> DataFrame:
    """The table `drilled`.

    Args:
        answers: What owners said, a struct column for each of `DRILL_TABLES`.
        metrics: The table `metrics`, which alone tells the buckets of a delayed index.
    """
    known = rows_of(answers, DRILLED).drop("topic_quota_json", "topic_retention_json", "delayed_buckets")
    buckets = metrics.where((F.col("series") == BUCKET_SERIES) & F.col("subscription").isNotNull())
    counted = buckets.groupBy("topic", "subscription").agg(F.max("value").try_cast("int").alias("delayed_buckets"))
    base = F.regexp_replace("topic", r"-partition-\d+$", "")
    joined = known.withColumn("base", base).join(rows_of(answers, OWN_POLICIES), "base", "left")
    return joined.join(counted, ["topic", "subscription"], "left").select(*DRILLED.names)


def _namespace_of(topic: str) -> str:
    return "/".join(topic.partition("://")[2].split("/")[:2])


class _BundleOf:
    """Finds the bundle (``tenant/ns/range``) that holds a topic, from the boundaries of some namespaces."""

    def __init__(self, namespaces: DataFrame, names: Collection[str]) -> None:
        found = namespaces.where(F.col("namespace").isin(list(names))).select("namespace", "boundaries")
        self._ranges = {row["namespace"]: sorted(ranges_of(row["boundaries"])) for row in found.collect()}

    def __call__(self, topic: str) -> str | None:
        """None where the namespace is not known, or has no bundle there."""
        namespace = _namespace_of(topic)
        ranges = self._ranges.get(namespace)
        if not ranges:
            return None
        return f"{namespace}/{range_holding(ranges, position_of(topic))}"
