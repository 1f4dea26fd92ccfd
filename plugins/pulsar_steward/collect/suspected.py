"""The table `drilled`, built from suspects: requests to their owners, and the owners' responses, joined."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import duckdb

from pulsar_steward.collect.drill import DetailRequest, DrillTask
from pulsar_steward.model.bundles import position_of, range_holding, ranges_of
from pulsar_steward.model.tables import DRILLED
from pulsar_steward.model.topics import PARTITION_END, namespace_of, partitioned_topic
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

INTERNALS_OF = 4
"""Number of worst suspects whose ledgers and cursors are read: these responses are long.

They are also read for topics with a subscription that may be proposed for deletion.
"""

_OWN = ("topic_quota_json", "topic_retention_json", "delayed_buckets")

_DRILLED = f"""
with counted as (
    select topic, subscription, try_cast(max(value) as integer) as delayed_buckets
    from buckets where subscription is not null group by topic, subscription),
known as (
    select * exclude ({", ".join(_OWN)}), regexp_replace(topic, '{PARTITION_END}', '') as base from answers)
select {", ".join(DRILLED.names)}
from known left join own_policies using (base) left join counted using (topic, subscription)
order by topic, subscription
"""  # noqa: S608 - names of columns


def wanted_of(topics: Sequence[str], namespaces: pa.Table, unattended: Collection[str] = ()) -> list[DetailRequest]:
    """Requests about suspects, the worst first, each with the bundle whose owner gets it.

    Args:
        topics: Full names.
        namespaces: The table `namespaces`.
        unattended: Topics with a subscription without consumers.
    """
    known = frozenset(topics)
    bundle_of = _BundleOf(namespaces, {namespace_of(topic) for topic in topics})
    wanted = [
        DetailRequest(bundle, topic, internals=number * INTERNALS_OF < len(topics) or topic in unattended)
        for number, topic in enumerate(topics)
        if (bundle := bundle_of(topic))
    ]
    for base in dict.fromkeys(partitioned_topic(topic) for topic in topics):
        # A partitioned topic's own policies are reported by the owner of its first partition.
        bundle = bundle_of(base if base in known else f"{base}-partition-0")
        if bundle:
            wanted.append(DetailRequest(bundle, base, policies=True))
    return wanted


def tasks_of(wanted: Iterable[DetailRequest], bundles: pa.Table, pulsar_cluster: str) -> list[DrillTask]:
    """Requests for each broker; none for bundles without an owner or with an unknown one.

    Args:
        wanted: The requests.
        bundles: The table `bundles`.
        pulsar_cluster: The cluster's own name.
    """
    by_bundle: dict[str, list[DetailRequest]] = defaultdict(list)
    for each in wanted:
        by_bundle[each.bundle].append(each)
    by_owner: dict[str, list[DetailRequest]] = defaultdict(list)
    for row in bundles.select(["namespace", "bundle", "owner"]).to_pylist():
        if row["owner"] is not None:
            by_owner[row["owner"]] += by_bundle.get(f"{row['namespace']}/{row['bundle']}", [])
    return [
        DrillTask(owner, pulsar_cluster, tuple(sorted(by_owner[owner])))
        for owner in sorted(by_owner)
        if by_owner[owner]
    ]


def drilled_of(answers: pa.Table, own_policies: pa.Table, buckets: pa.Table) -> pa.Table:
    """Builds the table `drilled`.

    Args:
        answers: The owners' responses about topics, in columns of the table.
        own_policies: The owners' responses about policies, columns of `OWN_POLICIES`.
        buckets: Rows of `metrics` of `DELAYED_BUCKETS`, the only series with the buckets of a delayed index.
    """
    with duckdb.connect() as connection:
        for name, rows in (("answers", answers), ("own_policies", own_policies), ("buckets", buckets)):
            connection.register(name, rows)
        return connection.sql(_DRILLED).to_arrow_table().cast(schema_of(DRILLED))


class _BundleOf:
    """Finds the bundle (``tenant/ns/range``) of a topic, from the boundaries of some namespaces."""

    def __init__(self, namespaces: pa.Table, names: Collection[str]) -> None:
        rows = namespaces.select(["namespace", "boundaries"]).to_pylist()
        self._ranges = {
            row["namespace"]: sorted(ranges_of(row["boundaries"])) for row in rows if row["namespace"] in names
        }

    def __call__(self, topic: str) -> str | None:
        """Bundle of the topic; None if the namespace is not known, or has no bundle there."""
        namespace = namespace_of(topic)
        ranges = self._ranges.get(namespace)
        if not ranges:
            return None
        return f"{namespace}/{range_holding(ranges, position_of(topic))}"
