"""Whom suspects are asked of, and how their answers are put together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pulsar_steward.collect.arrow import OWN_POLICIES
from pulsar_steward.collect.drill import DetailRequest
from pulsar_steward.collect.suspects import drilled_of, tasks_of, wanted_of
from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.measures import DELAYED_BUCKETS
from pulsar_steward.model.tables import BUNDLES, DRILLED, METRICS, NAMESPACES, Table
from pulsar_steward.snapshots.database import schema_of


def topic(name: str, namespace: str = "acme/orders") -> str:
    """Returns the full name of a topic."""
    return f"persistent://{namespace}/{name}"


def table(of: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(rows, schema=schema_of(of))


def test_each_owner_is_asked_what_is_its() -> None:
    """Suspects are asked of their bundle's owner, and a topic's policies of the owner of its first partition.

    Topics of unknown namespaces and of bundles without an owner are not asked for.
    """
    boundaries = ["0x00000000", "0x80000000", "0xffffffff"]
    namespaces = table(NAMESPACES, [{"namespace": "acme/orders", "boundaries": boundaries}])
    lower, upper = "0x00000000_0x80000000", "0x80000000_0xffffffff"
    names = [topic(f"t-partition-{number}") for number in range(4)]
    low = {name for name in names if position_of(name) < 0x80000000}
    assert 0 < len(low) < 4

    wanted = wanted_of([*names, topic("t", "gone/gone")], namespaces)

    assert {each.topic for each in wanted if not each.policies} == set(names)
    assert [each.topic for each in wanted if each.internals] == names[:2]
    (policies,) = (each for each in wanted if each.policies)
    first = lower if names[0] in low else upper
    assert policies == DetailRequest(f"acme/orders/{first}", topic("t"), policies=True)
    asked = wanted_of([*names], namespaces, rates={topic("t"): ("publishRate",)})
    assert [each.rates for each in asked if each.policies] == [("publishRate",)]

    bundles = table(
        BUNDLES,
        [
            {"namespace": "acme/orders", "bundle": lower, "owner": "a:1"},
            {"namespace": "acme/orders", "bundle": upper, "owner": None},
            {"namespace": "acme/other", "bundle": lower, "owner": "b:1"},
        ],
    )
    (task,) = tasks_of(wanted, bundles, "local")
    assert (task.broker, task.pulsar_cluster) == ("a:1", "local")
    assert {each.topic for each in task.wanted if not each.policies} == low


def test_a_topic_stands_beside_its_policies_and_its_buckets() -> None:
    """A topic's row has the policies of its whole partitioned topic and the highest reported number of buckets."""
    one, other = topic("t-partition-0"), topic("u")
    answers = table(
        DRILLED,
        [
            {"topic": other, "namespace": "acme/orders", "subscription": None, "ledgers": 3},
            {"topic": one, "namespace": "acme/orders", "subscription": "s", "delayed_messages": 2},
        ],
    )
    policies = table(
        OWN_POLICIES,
        [
            {
                "base": topic("t"),
                "topic_quota_json": "{}",
                "topic_retention_json": '{"a":1}',
                "topic_rates_json": '{"b":2}',
            }
        ],
    )
    sample = {"source": "a:1", "series": DELAYED_BUCKETS, "topic": one, "subscription": "s"}
    buckets = table(
        METRICS,
        [
            sample | {"value": 3.0},
            sample | {"value": 4.0},
            sample | {"subscription": None, "value": 9.0},
            sample | {"topic": other, "value": float("inf")},
        ],
    )

    made = drilled_of(answers, policies, buckets)

    assert made.schema == schema_of(DRILLED)
    first, second = made.to_pylist()
    assert (first["topic"], first["topic_quota_json"], first["topic_retention_json"]) == (one, "{}", '{"a":1}')
    assert first["topic_rates_json"] == '{"b":2}'
    assert (first["delayed_buckets"], first["delayed_messages"]) == (4, 2)
    assert (second["topic"], second["ledgers"], second["topic_quota_json"], second["delayed_buckets"]) == (
        other,
        3,
        None,
        None,
    )
