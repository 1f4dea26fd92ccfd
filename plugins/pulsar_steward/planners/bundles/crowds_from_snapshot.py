"""Crowded and hot bundles of a snapshot: their hash positions and topics, and the load they are compared with."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.tables import BUNDLES, CONFIGURATION, TOPICS
from pulsar_steward.model.units import MIB
from pulsar_steward.planners.bundles.columns import FIGURES, loads, of_bundles, whole, without_heartbeats
from pulsar_steward.planners.bundles.facts import BrokerLimits, Busy, Load, NamespaceToSplit, SplitCandidate, TopicFact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pulsar_steward.planners.bundles.facts import BundleTrouble
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

MAX_TOPICS = 250_000
"""Number of topics that are read one by one for a plan; the bundle that goes beyond is the last."""

LIMITS = {
    "loadBalancerNamespaceBundleMaxSessions": "clients",
    "loadBalancerNamespaceBundleMaxMsgRate": "messages",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes": "bytes",
}
"""Brokers' settings for splitting by themselves, and their fields in `BrokerLimits`."""


def crowds_of(
    snapshot: Snapshot, troubles: Mapping[str, BundleTrouble], policy: Policy
) -> tuple[NamespaceToSplit, ...]:
    """The namespaces with these troubles, with the bundles that may have to be split.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    if not troubles:
        return ()
    columns = ["namespace", "bundle", "owner", *FIGURES]
    table = snapshot.table(BUNDLES, columns, [("namespace", "in", sorted(troubles))])
    found = {name: _crowd(rows, name, troubles[name], policy) for name, rows in _by_namespace(table)}
    suspects = [(name, suspect) for name, crowd in sorted(found.items()) for suspect in crowd.suspects]
    known = _known(snapshot, suspects)
    return tuple(
        NamespaceToSplit(
            namespace=name,
            bundles=crowd.bundles,
            topics=crowd.topics,
            rest_topics=crowd.rest_topics,
            suspects=tuple(known[name, suspect.bundle] for suspect in crowd.suspects),
        )
        for name, crowd in sorted(found.items())
    )


def busy_bundles(snapshot: Snapshot) -> Busy:
    """The load of owned bundles in all, heartbeats aside, as `hot-bundle` compares it.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    table = without_heartbeats(snapshot.table(BUNDLES, ["namespace", "owner", *FIGURES]))
    owned = table.filter(pc.is_valid(table["owner"]))
    flow = whole(owned, "throughput_in_bytes", "throughput_out_bytes")
    clients = whole(owned, "producers", "consumers")
    (bytes_, with_bytes), (clients_, with_clients) = map(_without_busiest, (flow, clients))
    return Busy(
        bytes=bytes_,
        with_bytes=with_bytes,
        clients=clients_,
        with_clients=with_clients,
        all_bytes=_sum(flow),
        all_clients=_sum(clients),
        brokers=len(set(owned["owner"].to_pylist())),
    )


def broker_limits(snapshot: Snapshot, brokers: Collection[str]) -> dict[str, BrokerLimits]:
    """The limits beyond which brokers would split a bundle by themselves.

    Raises:
        SnapshotError: If the table cannot be read.
    """
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    wanted = [("key", "in", list(LIMITS)), ("broker", "in", sorted(brokers))]
    for row in snapshot.table(CONFIGURATION, filters=wanted).to_pylist() if brokers else ():
        text = row["value"] or ""
        if text.isdecimal():
            unit = MIB if LIMITS[row["key"]] == "bytes" else 1
            found[row["broker"]][LIMITS[row["key"]]] = int(text) * unit
    return {broker: BrokerLimits(**found[broker]) for broker in sorted(found)}


def _crowd(rows: list[SplitCandidate], name: str, trouble: BundleTrouble, policy: Policy) -> NamespaceToSplit:
    remedy, skew = policy.bundle_split_remedy, policy.for_namespace(name).bundle_topic_skew
    rows = sorted(rows, key=lambda row: (-row.load.topics, row.bundle))
    topics = sum(row.load.topics for row in rows)
    # No more than these can be split, and each more bundle makes the mean less: below this, nothing can get too full.
    by_mean = skew.warning_times_mean * topics // (len(rows) + remedy.most_splits)
    least = min(skew.warning_topics_per_bundle, by_mean) * (100 - remedy.room_percent) // 100
    full = [row for row in rows[: remedy.most_splits] if row.load.topics >= max(least, remedy.least_topics)]
    chosen = {row.bundle for row in (full if trouble.by_topics else ())} | trouble.hot
    return NamespaceToSplit(
        namespace=name,
        bundles=len(rows),
        topics=topics,
        rest_topics=max((row.load.topics for row in rows if row.bundle not in chosen), default=0),
        suspects=tuple(row for row in rows if row.bundle in chosen),
    )


def _by_namespace(table: pa.Table) -> Iterator[tuple[str, list[SplitCandidate]]]:
    for name in sorted(set(table["namespace"].to_pylist())):
        rows = table.filter(pc.field("namespace") == name)
        carried = {field: column.to_pylist() for field, column in loads(rows).items()}
        bundles, owners = rows["bundle"].to_pylist(), rows["owner"].to_pylist()
        yield (
            name,
            [
                SplitCandidate(bundle=bundle, owner=owner, load=Load(**dict(zip(carried, values, strict=True))))
                for bundle, owner, *values in zip(bundles, owners, *carried.values(), strict=True)
            ],
        )


def _known(snapshot: Snapshot, suspects: Sequence[tuple[str, SplitCandidate]]) -> dict[tuple[str, str], SplitCandidate]:
    """The suspects with their positions, and with topics where there are not too many of them."""
    if not suspects:
        return {}
    names = [(namespace, suspect.bundle) for namespace, suspect in suspects]
    rows = snapshot.table(BUNDLES, ["namespace", "bundle", "positions"], of_bundles(names)).to_pylist()
    positions = {(row["namespace"], row["bundle"]): row["positions"] for row in rows}
    told = [pair for pair in suspects if positions.get((pair[0], pair[1].bundle)) is not None]
    topics = _topics(snapshot, _within_budget(told))
    return {
        (namespace, each.bundle): SplitCandidate(
            bundle=each.bundle,
            owner=each.owner,
            load=each.load,
            positions=_rising(positions.get((namespace, each.bundle))),
            topics=topics.get((namespace, each.bundle), ()),
        )
        for namespace, each in suspects
    }


def _within_budget(suspects: Sequence[tuple[str, SplitCandidate]]) -> list[tuple[str, str]]:
    chosen, total = [], 0
    for namespace, suspect in sorted(suspects, key=lambda pair: (-pair[1].load.topics, pair[0], pair[1].bundle)):
        if total >= MAX_TOPICS:
            break
        chosen.append((namespace, suspect.bundle))
        total += suspect.load.topics
    return chosen


def _topics(snapshot: Snapshot, bundles: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[TopicFact, ...]]:
    if not bundles:
        return {}
    names = ["topic", "namespace", "bundle", *(name for name in FIGURES if name != "topics")]
    table = snapshot.table(TOPICS, names, of_bundles(bundles))
    columns = (
        whole(table, "throughput_in_bytes", "throughput_out_bytes"),
        whole(table, "message_rate_in", "message_rate_out"),
        whole(table, "producers"),
        whole(table, "consumers"),
    )
    rows: zip[Any] = zip(*(table[name].to_pylist() for name in names[:3]), *map(_plain, columns), strict=True)
    found: defaultdict[tuple[str, str], list[TopicFact]] = defaultdict(list)
    for topic, namespace, bundle, *figures in rows:
        found[namespace, bundle].append(TopicFact(position_of(topic), topic, *figures))
    return {name: tuple(sorted(topics, key=lambda each: (each.position, each.topic))) for name, topics in found.items()}


def _rising(positions: list[int] | None) -> tuple[int, ...] | None:
    return None if positions is None else tuple(sorted(positions))


def _plain(column: pa.ChunkedArray) -> list[int]:
    return list(column.to_pylist())


def _without_busiest(column: pa.ChunkedArray) -> tuple[int, int]:
    """The sum and number of the values above 0, without the largest tenth of them."""
    busy = sorted(value for value in column.to_pylist() if value and value > 0)
    rest = busy[: len(busy) - len(busy) // 10]
    return sum(rest), len(rest)


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)
