"""Whom suspects are asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.collect.drill import Wanted
from pulsar_steward.model.bundles import position_of
from pulsar_steward.model.tables import BUNDLES, NAMESPACES
from steward_spark.drilling import tasks_of, wanted_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pulsar_steward.model.tables import Table

    FrameOf = Callable[[Table, list[dict[str, Any]]], DataFrame]

pytestmark = pytest.mark.spark


def topic(name: str, namespace: str = "acme/orders") -> str:
    """Its full name."""
    return f"persistent://{namespace}/{name}"


def test_each_owner_is_asked_what_is_its(frame_of: FrameOf) -> None:
    """A partitioned topic's policies are asked of the owner of its first partition; what nobody owns, of nobody."""
    boundaries = ["0x00000000", "0x80000000", "0xffffffff"]
    namespaces = frame_of(NAMESPACES, [{"namespace": "acme/orders", "boundaries": boundaries}])
    lower, upper = "0x00000000_0x80000000", "0x80000000_0xffffffff"
    names = [topic(f"t-partition-{number}") for number in range(4)]
    low = {name for name in names if position_of(name) < 0x80000000}
    assert 0 < len(low) < 4

    wanted = wanted_of([*names, topic("t", "gone/gone")], namespaces)

    assert {each.topic for each in wanted if not each.policies} == set(names)
    assert [each.topic for each in wanted if each.internals] == names[:2]
    (policies,) = (each for each in wanted if each.policies)
    first = lower if names[0] in low else upper
    assert policies == Wanted(f"acme/orders/{first}", topic("t"), policies=True)

    bundles = frame_of(
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
