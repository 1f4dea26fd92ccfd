"""Topics that two brokers tell of, as they moved while brokers were asked: each counts once, however shards are cut."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import CheckContext, LookBack, Query
from pulsar_steward.diagnose.queries import QuerySet
from pulsar_steward.diagnose.running import QueryFailed, about_of, ask
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.builders import NOW
from tests.cases import cases
from tests.unit.diagnose.conftest import ABOUT, Rows, sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


LOW, LOWEST, HIGH = "0x00000000_0x80000000", "0x00000000_0x40000000", "0x80000000_0xffffffff"
NAMESPACE = "acme/orders"
TOPIC, OTHER = f"persistent://{NAMESPACE}/moves", f"persistent://{NAMESPACE}/stays"
SERIES = "pulsar_subscription_delayed"

COUNTED = Query("""
    select 'topics' as what, topic, broker as told_by, producers as figure from topics
    union all select 'subscriptions', topic, broker, backlog_entries from subscriptions
    union all select 'clients', topic, consumer, unacked_messages from clients
    union all select 'metrics', topic, source, value::bigint from metrics where value > 0
""")
TELLERS = Query("select distinct source from metrics where series = 'pulsar_subscription_delayed'")


class Asked:
    """Asks for all rows."""

    shards: Mapping[str, Query] = {"counted": COUNTED, "tellers": TELLERS}
    earlier: Mapping[str, LookBack] = {"before": LookBack(lambda _: 60, COUNTED.sql)}
    cluster: Mapping[str, Query] = {}


def told_by(broker: str, bundle: str = LOW, topic: str = TOPIC, producers: int = 0) -> Rows:
    """A broker's statistics of a topic; figures say who told them."""
    mine = {"topic": topic, "namespace": NAMESPACE}
    clients = 1 if broker == "a:1" else 0
    return {
        "topics": [mine | {"bundle": bundle, "broker": broker, "subscriptions": 1, "producers": producers}],
        "subscriptions": [mine | {"subscription": "s", "consumers": clients, "backlog_entries": ord(broker[0])}],
        "clients": [mine | {"subscription": "s", "consumer": "one", "address": "h:1", "unacked_messages": 1}],
        "metrics": [
            {"source": broker, "source_kind": "broker", "series": SERIES, "topic": topic, "subscription": "s"}
            | {"value": float(ord(broker[0]))}
        ],
    }


def bundle(name: str, owner: str | None, topics: int | None = 1) -> dict[str, Any]:
    """A row of the table `bundles`."""
    return {"namespace": NAMESPACE, "bundle": name, "owner": owner, "owner_known": owner is not None, "topics": topics}


def together(parts: Sequence[Rows]) -> list[Rows]:
    """One shard of all rows."""
    return [{name: [row for part in parts for row in part[name]] for name in parts[0]}]


def apart(parts: Sequence[Rows]) -> list[Rows]:
    """A shard for each."""
    return list(parts)


def rows_of(shards: Sequence[Rows], bundles: list[dict[str, Any]]) -> tuple[list[tuple[Any, ...]], list[str]]:
    """All rows that count, now as in an earlier snapshot, in order, and who tells the series."""
    small = {"snapshot": [ABOUT], "bundles": bundles}
    earlier = sources_of(small | {"snapshot": [ABOUT | {"taken_at": NOW - timedelta(minutes=9)}]}, shards)
    snapshot = replace(sources_of(small, shards), earlier=[earlier])
    policy = Policy()
    context = CheckContext(about=about_of(snapshot), policy=policy, limits=policy.backlog_growing)
    queried = ask(snapshot, [QuerySet("it", Asked(), context)], (), on_this_thread)["it"]
    assert not isinstance(queried, QueryFailed), queried
    tellers = sorted({row["source"] for row in queried["tellers"].rows})
    counted, before = (sorted(tuple(row.values())[:4] for row in queried[name].rows) for name in ("counted", "before"))
    assert before == counted
    return counted, tellers


CUTS = pytest.mark.parametrize("cut", [together, apart], ids=["one shard", "two shards"])


@CUTS
@cases(
    "bundles",
    ("two name it", [bundle(LOW, None, 1), bundle(HIGH, "a:1")]),
    ("one was split", [bundle(LOW, "a:1"), bundle(LOWEST, "b:1"), bundle(HIGH, "a:1")]),
)
def test_a_topic_that_two_brokers_tell_counts_once(
    cut: Callable[[Sequence[Rows]], list[Rows]], bundles: list[dict[str, Any]]
) -> None:
    split = len(bundles) > 2
    parts = [told_by("a:1"), told_by("b:1", LOWEST if split else LOW), told_by("a:1", HIGH, OTHER, producers=3)]
    # One broker's rows are in one shard.
    shards = cut([together([parts[0], parts[2]])[0], parts[1]])

    counted, tellers = rows_of(shards, bundles)

    assert counted == [
        ("clients", TOPIC, "one", 1),
        ("clients", OTHER, "one", 1),
        ("metrics", TOPIC, "a:1", ord("a")),
        ("metrics", OTHER, "a:1", ord("a")),
        ("subscriptions", TOPIC, "a:1", ord("a")),
        ("subscriptions", OTHER, "a:1", ord("a")),
        ("topics", TOPIC, "a:1", 0),
        ("topics", OTHER, "a:1", 3),
    ]
    assert tellers == ["a:1", "b:1"]


@CUTS
def test_a_topic_of_which_only_one_tells_is_not_lost(cut: Callable[[Sequence[Rows]], list[Rows]]) -> None:
    """A topic counts with the statistics of its former owner when the new owner has only samples of it."""
    silent = told_by("b:1") | {"topics": [], "subscriptions": [], "clients": []}

    counted, _ = rows_of(cut([told_by("a:1"), silent]), [bundle(LOW, None, 1)])

    assert [row[:3] for row in counted] == [
        ("clients", TOPIC, "one"),
        ("metrics", TOPIC, "a:1"),
        ("subscriptions", TOPIC, "a:1"),
        ("topics", TOPIC, "a:1"),
    ]


@CUTS
@cases(
    "bundles",
    ("both have owners", [bundle(LOW, "a:1"), bundle(HIGH, "b:1")]),
    (
        "one was split, and nobody tells of the half",
        [bundle(LOW, "a:1"), bundle(HIGH, "b:1"), bundle(LOWEST, None, None)],
    ),
    ("both moved", [bundle(LOW, None, 1), bundle(HIGH, None, 1)]),
)
def test_topics_of_two_bundles_are_two(
    cut: Callable[[Sequence[Rows]], list[Rows]], bundles: list[dict[str, Any]]
) -> None:
    """Topics of two bundles both count, regardless of who owns the bundles."""
    counted, _ = rows_of(cut([told_by("a:1"), told_by("b:1", HIGH, OTHER, producers=1)]), bundles)

    assert [row[1:3] for row in counted if row[0] == "topics"] == [(TOPIC, "a:1"), (OTHER, "b:1")]
    assert len(counted) == 8


def test_no_shard_is_asked_twice_where_nothing_moved() -> None:
    asked: list[int] = []

    def map_over(function: Any, things: Any, what: str = "shards") -> list[Any]:
        asked.append(len(things))
        return [function(thing) for thing in things]

    for owner, expected in (("a:1", [1]), (None, [1, 1])):
        snapshot = sources_of({"snapshot": [ABOUT], "bundles": [bundle(LOW, owner)]}, [told_by("a:1")])
        policy = Policy()
        context = CheckContext(about=about_of(snapshot), policy=policy, limits=policy.backlog_growing)
        asked.clear()
        ask(snapshot, [QuerySet("it", Asked(), context)], (), map_over)
        assert asked == expected
