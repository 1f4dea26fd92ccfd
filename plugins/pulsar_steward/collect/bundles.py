"""All bundles of all namespaces: the bundles between the boundaries, joined with the ones that brokers own."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.tables import BUNDLES
from pulsar_steward.snapshots.arrow import schema_of

_FIGURES = tuple(
    name for name in BUNDLES.names if name not in {"namespace", "bundle", "owner", "owner_known", "positions"}
)

_ALL = f"""
with divided as (
    select namespace, unnest(list_transform(range(1, bundles + 1), lambda i: boundaries[i] || '_' || boundaries[i + 1]))
        as bundle
    from namespaces where bundles >= 1),
-- A bundle that two brokers reported, as it moved while they were read, has no known owner.
settled as (
    select namespace, bundle, case when count(*) = 1 then max(owner) end as owner, count(*) = 1 as told_once,
        {", ".join(f"max({name}) as {name}" for name in (*_FIGURES, "positions"))}
    from owned group by namespace, bundle),
joined as (
    select *, coalesce(told_once, not $partial) as owner_known
    from divided full join settled using (namespace, bundle))
select namespace, bundle, owner, owner_known,
    {", ".join(f"coalesce({name}, case when owner_known then 0 end) as {name}" for name in _FIGURES)},
    positions
from joined order by namespace, bundle
"""  # noqa: S608 - names of columns


def all_bundles(namespaces: pa.Table, owned: pa.Table, *, partial: bool) -> pa.Table:
    """Builds the table `bundles`.

    Args:
        namespaces: The table `namespaces`.
        owned: Bundles that brokers own, columns of `bundles`.
        partial: True if a broker could not be read: it may own any bundle that no other broker reported.
    """
    with duckdb.connect() as connection:
        connection.register("namespaces", namespaces)
        connection.register("owned", owned)
        return connection.sql(_ALL, params={"partial": partial}).to_arrow_table().cast(schema_of(BUNDLES))


def with_positions(bundles: pa.Table, computed: dict[str, list[int]]) -> pa.Table:
    """Adds computed positions to bundles of ``pulsar/system`` without an owner to report them.

    Args:
        bundles: The table `bundles`.
        computed: The positions of the coordinators in a bundle of ``pulsar/system``, by its range.
    """
    rows = bundles.select(["namespace", "bundle", "positions"]).to_pylist() if computed else []
    if not rows:
        return bundles
    positions = [
        sorted(computed[row["bundle"]])
        if row["positions"] is None and row["namespace"] == TC_NAMESPACE and row["bundle"] in computed
        else row["positions"]
        for row in rows
    ]
    index = BUNDLES.names.index("positions")
    return bundles.set_column(index, "positions", pa.array(positions, schema_of(BUNDLES).field(index).type))
