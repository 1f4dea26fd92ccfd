"""Placement that a plan predicts, beside today's, of the steps that are still to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.pages.placement import Share, predicted_placement
from tests.builders import NOW, a_move, broker
from tests.unit.pages.scenes import observed, sources_of
from tests.unit.pages.test_pages import words

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import UnloadBundle
    from pulsar_steward.pages.placement import PredictedPlacement
    from tests.golden import Golden
    from tests.unit.pages.conftest import Client

BUNDLES = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xffffffff")


def today(folder: Path, *moves: UnloadBundle) -> PredictedPlacement | None:
    """The prediction for a cluster with three bundles on the first of three brokers, and one on the third."""
    rows: list[dict[str, Any]] = [
        {"namespace": TC_NAMESPACE, "bundle": each, "owner": broker(0), "owner_known": True, "topics": 10 + place}
        | {"throughput_in_bytes": 1e6, "throughput_out_bytes": None}
        for place, each in enumerate(BUNDLES)
    ]
    rows.append({"namespace": "a/b", "bundle": BUNDLES[0], "owner": broker(2), "owner_known": True, "topics": 1})
    coordinators = [{"coordinator": each, "bundle": BUNDLES[each % 2], "broker": broker(0)} for each in range(5)]
    observed(folder / "snapshots", "east", NOW, bundles=rows, transaction_coordinators=coordinators)
    sources = sources_of(folder)
    snapshot = sources.newest("east")
    assert snapshot is not None
    return predicted_placement(sources, snapshot, moves)


def test_what_moves_is_taken_from_one_and_given_to_the_other(tmp_path: Path) -> None:
    """The prediction moves a bundle's topics, throughput and coordinators to the target, also to an empty broker."""
    found = today(tmp_path, a_move(bundle=BUNDLES[0], target=broker(1)), a_move(bundle=BUNDLES[1], target=broker(2)))
    assert found is not None
    assert [(each.broker, each.today, each.predicted) for each in found.brokers] == [
        (
            broker(0),
            Share(coordinators=5, bundles=3, topics=33, bytes_per_second=3e6),
            Share(coordinators=0, bundles=1, topics=12, bytes_per_second=1e6),
        ),
        (broker(1), Share(), Share(coordinators=3, bundles=1, topics=10, bytes_per_second=1e6)),
        (broker(2), Share(bundles=1, topics=1), Share(coordinators=2, bundles=2, topics=12, bytes_per_second=1e6)),
    ]
    assert (found.moves, found.not_seen, found.unchanged) == (2, 0, 0)


def test_what_is_there_already_or_not_seen_is_not_counted_twice(tmp_path: Path) -> None:
    """A move to the present owner changes nothing, and a bundle without an owner is counted as not seen."""
    found = today(
        tmp_path, a_move(bundle=BUNDLES[0], target=broker(0)), a_move(bundle="0x11111111_0x22222222", target=broker(1))
    )
    assert found is not None
    assert (found.brokers, found.moves, found.not_seen, found.unchanged) == ((), 2, 1, 2)


def test_without_moves_there_is_nothing_to_predict(tmp_path: Path) -> None:
    """A plan without moves has no predicted placement."""
    assert today(tmp_path) is None


def test_the_plan_page_shows_what_is_still_to_come(client: Client, plans: dict[str, Plan], golden: Golden) -> None:
    """The plan page predicts the placement after the steps still to come, and none for a plan that is done."""
    read = words(client, f"/plans/{plans['east'].plan_id}")
    golden(read[read.index("Placement today") : read.index(" changing Even out")])
    assert "Placement today" not in words(client, f"/plans/{plans['west'].plan_id}")
