"""All bundles of all namespaces: the bundles between the boundaries, joined with the ones that brokers own."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import defaultdict
from heapq import nsmallest
from typing import TYPE_CHECKING

import duckdb
import msgspec
import pyarrow as pa

from pulsar_steward.collect.rows import UNFIT
from pulsar_steward.errors import AdminError, TimedOut, Unreachable
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, range_holding, tc_topic
from pulsar_steward.model.tables import BUNDLES
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.policy.schema import CollectPolicy
    from pulsar_steward.pulsar.reader import Reader
    from pulsar_steward.pulsar.statistics import BundleStatistics, TopicStatistics


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
"""


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


class SystemBundle(msgspec.Struct, frozen=True):
    """A bundle of ``pulsar/system``: its range as text, its owner (None: no owner), and whether the owner is known."""

    bundle: str
    owner: str | None
    owner_known: bool


class Coordinator(msgspec.Struct, frozen=True):
    """A row of the table `transaction_coordinators`."""

    coordinator: int
    position: int
    bundle: str | None
    broker: str | None
    broker_known: bool


def placement(count: int, bundles: Iterable[SystemBundle]) -> list[Coordinator]:
    """Computes the placement of the coordinators 0 to `count` - 1.

    Args:
        count: Number of the cluster's transaction coordinators.
        bundles: The bundles of ``pulsar/system``. A bundle split during collecting may be present besides its halves:
            owned bundles take precedence.
    """
    bundles = tuple(bundles)
    owned = _Ranges([bundle for bundle in bundles if bundle.owner is not None])
    others = _Ranges([bundle for bundle in bundles if bundle.owner is None])
    return [_placed(number, owned, others) for number in range(count)]


def _placed(number: int, owned: _Ranges, others: _Ranges) -> Coordinator:
    position = position_of(tc_topic(number))
    bundle = owned.holding(position) or others.holding(position)
    if bundle is None:
        return Coordinator(number, position, None, None, broker_known=False)
    return Coordinator(number, position, bundle.bundle, bundle.owner, bundle.owner_known)


class _Ranges:
    """Bundles by hash position; there may be gaps between them."""

    def __init__(self, bundles: Sequence[SystemBundle]) -> None:
        pairs = [(BundleRange.parse(bundle.bundle), bundle) for bundle in bundles]
        self._ranges = sorted(pairs, key=lambda pair: pair[0])

    def holding(self, position: int) -> SystemBundle | None:
        index = bisect_right(self._ranges, position, key=lambda pair: pair[0].lower) - 1
        if index < 0 or position not in self._ranges[index][0]:
            return None
        return self._ranges[index][1]


# Statistics are up to a minute old. They still contain a bundle that was unloaded since, and a split bundle as a
# whole. So topics are assigned by hash position to the bundles that the broker owns now.


Owned = dict[str, dict[str, BundleRange]]
"""Bundles that one broker owns: namespace → range as text → range."""


def owned_by_namespace(bundles: Iterable[str]) -> Owned:
    """Groups the bundles of `Reader.owned_bundles` (``tenant/ns/range``) by namespace."""
    owned: Owned = defaultdict(dict)
    for bundle in bundles:
        namespace, _, text = bundle.rpartition("/")
        owned[namespace][text] = BundleRange.parse(text)
    return dict(owned)


def as_owned_now(statistics: BundleStatistics, owned: Owned) -> Iterator[tuple[str, dict[str, TopicStatistics]]]:
    """Yields the topics that the broker still owns, by the ranges that it owns now; other topics have moved away."""
    ranges = owned.get(statistics.namespace, {})
    if statistics.bundle in ranges:
        yield statistics.bundle, statistics.topics
        return
    found: dict[str, dict[str, TopicStatistics]] = defaultdict(dict)
    written = {bundle: text for text, bundle in ranges.items()}
    ordered = sorted(written)
    for name, topic in statistics.topics.items() if ordered else ():
        position = position_of(name)
        bundle = range_holding(ordered, position)
        if position in bundle:
            found[written[bundle]][name] = topic
    yield from found.items()


class BundleSum(msgspec.Struct):
    """Totals that grow while a broker's statistics are read; rates are per second, sizes are bytes."""

    topics: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    backlog: int = 0

    @classmethod
    def of(cls, sums: Iterable[BundleSum]) -> BundleSum:
        """Total of several sums."""
        columns = zip(*(msgspec.structs.astuple(each) for each in sums), strict=True)
        return cls(*(sum(column) for column in columns))

    @property
    def rates(self) -> tuple[float, float, float, float]:
        """Messages in and out, bytes in and out, per second."""
        return self.rate_in, self.rate_out, self.throughput_in, self.throughput_out

    def add(self, topics: int, *columns: Sequence[float | None]) -> None:
        """Adds topics, given as columns: producers, consumers, rates and throughputs in and out, backlog bytes.

        A rate that is not told (None) adds nothing: the sum is a lower bound then.
        """
        sums = (sum(filter(None, column)) for column in columns)
        producers, consumers, rate_in, rate_out, throughput_in, throughput_out, backlog = sums
        self.topics += topics
        self.producers += int(producers)
        self.consumers += int(consumers)
        self.rate_in += rate_in
        self.rate_out += rate_out
        self.throughput_in += throughput_in
        self.throughput_out += throughput_out
        self.backlog += int(backlog)


log = logging.getLogger(__name__)


GIVING_UP = (Unreachable, TimedOut)
"""Errors after which the broker is not read any further: the next call would take as long."""

Positions = dict[tuple[str, str], list[int]]
"""Positions by namespace and range, in ascending order."""


def tc_positions(reader: Reader, owned: Owned) -> Positions:
    """Positions in the coordinators' bundles; an unreadable bundle is left out, as its positions can be computed.

    Raises:
        AdminError: If the owner does not respond.
    """
    found: Positions = {}
    for bundle in owned.get(TC_NAMESPACE, {}):
        try:
            positions = _asked(reader, TC_NAMESPACE, bundle)
        except GIVING_UP:
            raise
        except (AdminError, *UNFIT) as error:
            log.warning("left out: %s", error)
            continue
        if positions is not None:
            found[TC_NAMESPACE, bundle] = positions
    return found


def worst_positions(reader: Reader, sums: Mapping[tuple[str, str], BundleSum], policy: CollectPolicy) -> Positions:
    """Positions in a broker's largest bundles, if large enough; unreadable bundles are left out.

    Args:
        reader: Reader of the broker.
        sums: Sum of each of its bundles.
        policy: Size from which a bundle is large, and maximum number of bundles.
    """
    found: Positions = {}
    for namespace, bundle in worst(sums, policy):
        try:
            positions = _asked(reader, namespace, bundle)
        except GIVING_UP as error:
            log.warning("no more positions are asked for: %s", error)
            break
        except (AdminError, *UNFIT) as error:
            log.warning("left out: %s", error)
            continue
        if positions is not None:
            found[namespace, bundle] = positions
    return found


def worst(sums: Mapping[tuple[str, str], BundleSum], policy: CollectPolicy) -> list[tuple[str, str]]:
    """Bundles to read: the bundles with the highest multiple of a limit, at most `collect.positions_bundles`."""
    sizes = {name: _size(each, policy) for name, each in sums.items() if name[0] != TC_NAMESPACE and each.topics > 1}
    large = (name for name, size in sizes.items() if size >= 1)
    return nsmallest(policy.positions_bundles, large, key=lambda name: (-sizes[name], name))


def _size(each: BundleSum, policy: CollectPolicy) -> float:
    """Highest multiple of its limit among a bundle's figures."""
    return max(
        each.topics / policy.positions_from_topics,
        (each.producers + each.consumers) / policy.positions_from_clients,
        (each.throughput_in + each.throughput_out) / (policy.positions_from_megabytes * MEGABYTE),
    )


def _asked(reader: Reader, namespace: str, bundle: str) -> list[int] | None:
    positions = reader.topic_positions(namespace, bundle)
    return None if positions is None else sorted(positions.values())
