"""Selection of the topics whose own statistics are read (*suspects*): the worst by each sign, within a budget.

Each task keeps the worst of the topics that it reads, so that no search over all subscriptions is needed.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.collect.arrow import SUSPECTS, TableBatch
from pulsar_steward.collect.drill import DetailRequest, DrillTask
from pulsar_steward.model.bundles import position_of, range_holding, ranges_of
from pulsar_steward.model.measures import (
    AGE,
    AGE_LIMIT,
    DELAYED_SERIES,
    DISPATCHING_LIMITED,
    PUBLISHING_LIMITED,
    SIZE_LIMIT,
)
from pulsar_steward.model.subscription import COMPACTION
from pulsar_steward.model.tables import BROKERS, CLIENTS, DRILLED, METRICS, SUBSCRIPTIONS, TOPICS
from pulsar_steward.model.topics import PARTITION_END, namespace_of, partitioned_topic
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.model.tables import Table

UNATTENDED, SIZE_QUOTA = "unattended", "size_quota"
"""Signs of a subscription without consumers, and of a size quota that is nearly full.

The first may be proposed for deletion, and that needs its cursor's identity. The second may be full of what
deduplication has not passed, which statistics do not show.
"""

HELD = "held"
"""Sign of a consumer that holds messages and does nothing: only its topic tells since when."""

COMPACTED = "compacted"
"""Sign of a large backlog of compaction, which may fail: also of the topics of topic policies."""

PAUSED, HELD_BACK = "paused", "held_back"
"""Signs of producers and subscriptions that a rate held back: its topic may have set that rate itself."""

OWN_RATES = {PAUSED: ("publishRate",), HELD_BACK: ("dispatchRate", "subscriptionDispatchRate")}
"""Rates of a topic itself that are read, by sign."""

SENT_ON = "sent_on"
"""Sign of a topic that is replicated to another cluster: only the topic tells which positions go along."""

MANY_TO_COMPACT = 1000

SIGNS = (
    "ack_holes",
    "unacked",
    HELD,
    SIZE_QUOTA,
    "age_quota",
    "backlog",
    "backlog_bytes",
    "redelivery",
    "delayed",
    "consumed_bytes",
    UNATTENDED,
    COMPACTED,
    PAUSED,
    HELD_BACK,
    SENT_ON,
)
"""Signs of trouble, in the order in which they take turns.

`consumed_bytes` are the bytes that a topic stores beyond its backlog: its own policy may retain them for ever, which
neither its namespace nor a metric shows.

`size_quota` and `age_quota` are shares of the quota in force, if brokers report it for each topic: a backlog that fills
a small quota is not among the largest.
"""

NEAR_A_QUOTA, NEARLY_FULL = 0.5, 0.8
"""Shares of a quota from which a topic is a suspect, and from which its cursors are read."""

_BLOCKED_FIRST = 1e15
"""More messages than any subscription has: blocked subscriptions come before merely slow ones."""

_PULSARS_OWN = r"^persistent://(pulsar/|[^/]+/[^/]+/__)"
_PERSISTENT = "persistent://"

_ROWS_AT_ONCE = 50_000
"""Rows that are collected before they are compared."""


class SuspectCollector:
    """The worst topics by each sign, among rows as they arrive.

    Only persistent topics; Pulsar's own and heartbeat topics are left out, except where compaction is behind.

    Args:
        most: Maximum number of topics for each sign.
        from_consumed_bytes: Bytes stored beyond its backlog from which a topic is a suspect.
    """

    def __init__(self, most: int, from_consumed_bytes: int) -> None:
        self._most = most
        self._from_consumed_bytes = from_consumed_bytes
        self._kept: dict[str, list[pa.Table]] = {sign: [] for sign in SIGNS}
        self._shares = _Shares()

    def sees(self, piece: TableBatch) -> None:
        """Adds rows of any table; the rows of a broker are consecutive, its own row last."""
        if not self._most:
            return
        rows = piece.rows
        if piece.table == TOPICS:
            backlogs = _positive(rows["topic"], rows["backlog_bytes"])
            self._keep("backlog_bytes", backlogs)
            self._shares.add(TOPICS.name, backlogs)
            consumed = pc.subtract(rows["storage_bytes"], pc.fill_null(rows["backlog_bytes"], 0))
            much = pc.greater_equal(consumed, self._from_consumed_bytes)
            self._keep("consumed_bytes", _positive(rows["topic"], pc.if_else(much, consumed, None)))
            sent_on = pc.if_else(pc.is_valid(rows["replication_json"]), rows["subscriptions"], None)
            self._keep(SENT_ON, _positive(rows["topic"], sent_on))
        elif piece.table == BROKERS:
            self._keep_shares()
        elif piece.table in _SCORES:
            for sign, score in _SCORES[piece.table](rows).items():
                self._keep(sign, _positive(rows["topic"], score, own=sign == COMPACTED))
        if piece.table == METRICS:
            for series in (SIZE_LIMIT, AGE_LIMIT, AGE):
                told = rows.filter(pc.equal(rows["series"], series))
                self._shares.add(series, _positive(told["topic"], told["value"]))

    def found(self) -> Iterator[TableBatch]:
        """Yields rows of `SUSPECTS`."""
        self._keep_shares()
        for sign, tables in self._kept.items():
            if tables:
                worst = _worst(tables, self._most)
                columns = [pa.array([sign] * worst.num_rows), *(each.combine_chunks() for each in worst.columns)]
                yield TableBatch(SUSPECTS, pa.RecordBatch.from_arrays(columns, schema=schema_of(SUSPECTS)))

    def _keep_shares(self) -> None:
        for sign, shares in self._shares.taken().items():
            self._keep(sign, shares)

    def _keep(self, sign: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._kept[sign].append(rows)
            if sum(table.num_rows for table in self._kept[sign]) > _ROWS_AT_ONCE:
                self._kept[sign] = [_worst(self._kept[sign], self._most)]


class _Shares:
    """Usage of the quotas of a broker's topics: usage and limit come in different rows."""

    def __init__(self) -> None:
        self._seen: dict[str, list[pa.Table]] = {}

    def add(self, name: str, rows: pa.Table) -> None:
        """Adds figures by topic, from the table `topics` or from a series."""
        if rows.num_rows:
            self._seen.setdefault(name, []).append(rows)

    def taken(self) -> dict[str, pa.Table]:
        """Returns `topic` and `score` of the topics near a quota, by sign, and discards all figures."""
        seen, self._seen = self._seen, {}
        of = {SIZE_QUOTA: (TOPICS.name, SIZE_LIMIT), "age_quota": (AGE, AGE_LIMIT)}
        return {
            sign: _shares(pa.concat_tables(seen[used]), pa.concat_tables(seen[allowed]))
            for sign, (used, allowed) in of.items()
            if used in seen and allowed in seen
        }


def worst_of(found: pa.Table, most: int) -> list[str]:
    """Full names of the suspects, the worst first.

    Args:
        found: Rows of `SUSPECTS`, of all tasks.
        most: Maximum number of topics.
    """
    by_sign = ((sign, found.filter(pc.field("sign") == sign).select(["topic", "score"])) for sign in SIGNS)
    return in_turn([_worst([rows], most)["topic"].to_pylist() for _, rows in by_sign], most) if most else []


def looked_into(found: pa.Table) -> frozenset[str]:
    """Full names of the suspects whose cursors are needed: see `UNATTENDED` and `SIZE_QUOTA`."""
    sign, score = pc.field("sign"), pc.field("score")
    needed = (sign == UNATTENDED) | ((sign == SIZE_QUOTA) & (score >= NEARLY_FULL))
    return frozenset(found.filter(needed)["topic"].to_pylist())


def held_by_rates(found: pa.Table) -> dict[str, tuple[str, ...]]:
    """By the full name of a suspect, without a partition's number: the rates of its own that may have held it back."""
    rates: defaultdict[str, set[str]] = defaultdict(set)
    for row in found.filter(pc.field("sign").isin(list(OWN_RATES))).to_pylist():
        rates[partitioned_topic(row["topic"])].update(OWN_RATES[row["sign"]])
    return {base: tuple(sorted(names)) for base, names in rates.items()}


def in_turn(lists: Iterable[Sequence[str]], most: int) -> list[str]:
    """Takes the first of each list, then the second of each, and so on, each name once."""
    names = (name for names in zip_longest(*lists) for name in names if name is not None)
    return list(dict.fromkeys(names))[:most]


def _of_subscriptions(rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
    blocked = pc.or_(
        pc.fill_null(rows["blocked_on_unacked"], False), pc.fill_null(pc.greater(rows["consumers_blocked"], 0), False)
    )
    first = pc.multiply(pc.cast(blocked, pa.float64()), _BLOCKED_FIRST)
    many = pc.greater_equal(rows["backlog_entries"], MANY_TO_COMPACT)
    behind = pc.and_(pc.equal(rows["subscription"], COMPACTION), many)
    return {
        "ack_holes": rows["ack_holes"],
        "unacked": pc.add(pc.cast(rows["unacked_messages"], pa.float64(), safe=False), first),
        "backlog": rows["backlog_entries"],
        "redelivery": rows["redeliver_rate"],
        UNATTENDED: pc.if_else(pc.equal(rows["consumers"], 0), rows["backlog_entries"], None),
        COMPACTED: pc.if_else(behind, rows["backlog_entries"], None),
    }


def _of_metrics(rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
    series = {"delayed": [DELAYED_SERIES], PAUSED: [PUBLISHING_LIMITED], HELD_BACK: [*DISPATCHING_LIMITED]}
    return {
        sign: pc.if_else(pc.is_in(rows["series"], pa.array(names)), rows["value"], None)
        for sign, names in series.items()
    }


def _of_clients(rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
    rests = pc.and_(pc.less_equal(rows["message_rate_out"], 0), pc.less_equal(rows["ack_rate"], 0))
    return {HELD: pc.if_else(rests, rows["unacked_messages"], None)}


_SCORES: dict[Table, Callable[[pa.RecordBatch], Mapping[str, pa.Array]]] = {
    SUBSCRIPTIONS: _of_subscriptions,
    CLIENTS: _of_clients,
    METRICS: _of_metrics,
}
"""Scores of a table's rows, by sign."""


def _shares(used: pa.Table, allowed: pa.Table) -> pa.Table:
    """`topic` and `score` of the topics that use a large share of their limit."""
    most = used.group_by("topic").aggregate([("score", "max")])
    least = allowed.group_by("topic").aggregate([("score", "min")])
    both = most.join(least, "topic", join_type="inner")
    shares = pa.table({"topic": both["topic"], "score": pc.divide(both["score_max"], both["score_min"])})
    return shares.filter(pc.field("score") >= NEAR_A_QUOTA)


def _positive(topics: pa.Array, scores: pa.Array, *, own: bool = False) -> pa.Table:
    """`topic` and `score` of the topics that show the sign, without Pulsar's own unless `own`."""
    rows = pa.table({"topic": topics, "score": pc.cast(scores, pa.float64(), safe=False)}).filter(pc.field("score") > 0)
    if not rows.num_rows:
        return rows
    names = rows["topic"]
    if own:
        return rows.filter(pc.starts_with(names, _PERSISTENT))
    somebodys = pc.and_not(pc.starts_with(names, _PERSISTENT), pc.match_substring_regex(names, _PULSARS_OWN))
    return rows.filter(somebodys)


def _worst(tables: Sequence[pa.Table], most: int) -> pa.Table:
    """Topics with the highest scores, each with its highest, the worst first; at most `most`."""
    highest = pa.concat_tables(tables).group_by("topic").aggregate([("score", "max")])
    order = pc.select_k_unstable(highest, most, [("score_max", "descending"), ("topic", "ascending")])
    return highest.take(order).rename_columns({"topic": "topic", "score_max": "score"}).select(["topic", "score"])


INTERNALS_OF = 4
"""Number of worst suspects whose ledgers and cursors are read: these responses are long.

They are also read for the topics of `looked_into`.
"""

_OWN = ("topic_quota_json", "topic_retention_json", "topic_rates_json", "delayed_buckets")

_DRILLED = f"""
with counted as (
    select topic, subscription, try_cast(max(value) as integer) as delayed_buckets
    from buckets where subscription is not null group by topic, subscription),
known as (
    select * exclude ({", ".join(_OWN)}), regexp_replace(topic, '{PARTITION_END}', '') as base from answers)
select {", ".join(DRILLED.names)}
from known left join own_policies using (base) left join counted using (topic, subscription)
order by topic, subscription
"""


def wanted_of(
    topics: Sequence[str],
    namespaces: pa.Table,
    into: Collection[str] = (),
    rates: Mapping[str, tuple[str, ...]] | None = None,
) -> list[DetailRequest]:
    """Requests about suspects, the worst first, each with the bundle whose owner gets it.

    Args:
        topics: Full names.
        namespaces: The table `namespaces`.
        into: Topics whose ledgers and cursors are read as well.
        rates: Result of `held_by_rates`.
    """
    known = frozenset(topics)
    bundle_of = _BundleOf(namespaces, {namespace_of(topic) for topic in topics})
    wanted = [
        DetailRequest(bundle, topic, internals=number * INTERNALS_OF < len(topics) or topic in into)
        for number, topic in enumerate(topics)
        if (bundle := bundle_of(topic))
    ]
    for base in dict.fromkeys(partitioned_topic(topic) for topic in topics):
        # A partitioned topic's own policies are reported by the owner of its first partition.
        bundle = bundle_of(base if base in known else f"{base}-partition-0")
        if bundle:
            wanted.append(DetailRequest(bundle, base, policies=True, rates=(rates or {}).get(base, ())))
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
