"""Pages about failovers, forecasts and placements."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pulsar_steward.ledger.rows import Intent, StepOutcome
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import Step, Touched, UnloadBundle
from pulsar_steward.pages.placement import LISTED_FAILOVERS, PredictedPlacement, Share, predicted_placement
from pulsar_steward.pages.plan_data import remaining
from pulsar_steward.policy.recorded import Pace, RecordedPolicy
from tests.builders import NOW, a_move, a_plan, a_step, an_outcome, broker
from tests.cases import row_by_row
from tests.ledgers import ledger_at
from tests.unit.pages.conftest import Client, pages_of
from tests.unit.pages.scenes import failover, observed, sources_of
from tests.unit.pages.test_pages import words
from tests.unit.report_checkup.snapshots import a_verdict

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from tests.golden import Golden


def part_of(client: Client) -> str:
    """The part about restarts of the cluster's page, in words."""
    read = words(client, "/clusters/east")
    begin = read.index("Restarts how long")
    return read[begin : read.index(" with topics; as wide as", begin)]


def shown(folder: Path, **tables: Any) -> Client:
    """The pages of one snapshot with these tables, and of an empty ledger."""
    ledger_at(f"sqlite:///{folder / 'ledger.db'}").dispose()
    observed(folder / "snapshots", "east", NOW, **tables)
    return pages_of(folder)


def test_what_the_cluster_page_says(client: Client, golden: Golden) -> None:
    golden(part_of(client))


def test_the_api_tells_all(client: Client) -> None:
    """The API lists all failover times in the page's order, with each part as a field of its own."""
    told = client.get("/api/clusters/east/failovers").json()
    assert [each["broker"] for each in told["brokers"]] == [broker(place) for place in range(6)]
    assert told["brokers"][0] == failover(broker(0), 4000, others=5, delayed=6_400_000)
    assert told["unknown"] == ""
    assert client.get("/api/clusters/nowhere/failovers").status_code == 404


def test_what_the_check_cannot_tell_is_said(tmp_path: Path, golden: Golden) -> None:
    """The page shows the known figures, a broker without others to take over, and what the check could not tell."""
    client = shown(
        tmp_path,
        failovers=[failover(broker(0), 120, others=0)],
        verdicts=[a_verdict("failover-time", "unknown", "Nobody told of delayed messages.")],
    )
    golden(part_of(client))
    assert client.get("/api/clusters/east/failovers").json()["unknown"] == "Nobody told of delayed messages."


def test_of_very_many_brokers_those_that_take_longest_are_listed(tmp_path: Path) -> None:
    client = shown(tmp_path, failovers=[failover(broker(n), n, others=1) for n in range(LISTED_FAILOVERS + 2)])
    assert part_of(client).count(":8080") == LISTED_FAILOVERS
    assert "2 brokers take less." in part_of(client)
    assert len(client.get("/api/clusters/east/failovers").json()["brokers"]) == LISTED_FAILOVERS + 2


FAST = Pace(changes=1000, clients=1_000_000)
BEGAN = NOW - timedelta(seconds=100)


def steps(count: int, clients: int = 0) -> list[Step]:
    """Steps that each touch so many clients."""
    touched = Touched(producers=clients, consumers=0, topics=0, coordinators=0)
    return [a_step(a_move(), step_id=f"b1.s{place:02d}", touched=touched) for place in range(count)]


def an_intent(step_id: str, at: datetime, answer_id: int = 1) -> Intent:
    """A call about to be made."""
    return Intent(
        intent_id=1, answer_id=answer_id, step_id=step_id, attempt=1, at=at, change=a_move(), before={"owner": "b"}
    )


def ended(step_id: str, at: datetime) -> StepOutcome:
    """A step that was done then."""
    return an_outcome(a_plan(), step_id, at=at)


def forecast(left: list[Step], seconds: list[int], pace: Pace = FAST) -> tuple[float, bool]:
    """Seconds left, and whether at least, 100 s after the first call, with outcomes so many seconds after it."""
    names = [f"b1.s{place:02d}" for place in range(len(seconds))]
    last = {name: ended(name, BEGAN + timedelta(seconds=at)) for name, at in zip(names, seconds, strict=True)}
    found = remaining(left, [an_intent("b1.s00", BEGAN)], last, pace, NOW)
    assert found.steps == len(left)
    return (found.ends_at - NOW).total_seconds(), found.at_least


def test_steps_take_as_long_as_those_before() -> None:
    """After two steps in 80 seconds, the three that are left take 120 seconds, of which 20 have gone by."""
    assert forecast(steps(3), [40, 80]) == (100, False)


def test_a_step_that_takes_longer_is_not_ended_in_the_past() -> None:
    """A step that is overdue is forecast to end now, and not in the past."""
    assert forecast(steps(1), [1, 2]) == (0, False)


@row_by_row(
    "left, pace, seconds",
    (steps(9), Pace(changes=3, clients=1_000), 120),
    (steps(4, clients=500), Pace(changes=1_000, clients=1_000), 60),
    (steps(2), Pace(changes=3, clients=1_000), 0),
)
def test_never_faster_than_the_pace(left: list[Step], pace: Pace, seconds: float) -> None:
    """The forecast is never faster than the pace of the policy, and is a lower bound before any step has ended."""
    assert forecast(left, [0], pace) == (seconds, False)
    assert forecast(left, [], pace) == (seconds, True)


def test_an_earlier_approval_does_not_count() -> None:
    """The forecast ignores steps of an earlier approval and the time between the two approvals."""
    night = timedelta(hours=8)
    calls = [an_intent("b1.s00", BEGAN - night, 1), an_intent("b1.s01", BEGAN, 2)]
    last = {"b1.s00": ended("b1.s00", BEGAN - night), "b1.s01": ended("b1.s01", BEGAN + timedelta(seconds=60))}
    assert remaining(steps(1), calls, last, FAST, NOW).ends_at == BEGAN + timedelta(seconds=120)


def test_the_pace_is_that_of_the_recorded_policy() -> None:
    assert Pace.of(RecordedPolicy(sections={"apply": {"bundle_moves_per_minute": 2}})) == Pace(changes=2)
    assert Pace.of(RecordedPolicy()) == Pace()


def test_the_plan_page_says_it(client: Client, plans: dict[str, Plan]) -> None:
    """The plan page shows the forecast of a batch while it runs, and not when it is over."""
    read = words(client, f"/plans/{plans['east'].plan_id}")
    assert "2 done, 1 under way, 1 to come; later than expected: look at the step that is under way" in read
    batches = client.get(f"/api/plans/{plans['east'].plan_id}").json()["batches"]
    assert [each["remaining"] is not None for each in batches] == [True, False]
    done = client.get(f"/api/plans/{plans['west'].plan_id}").json()["batches"]
    assert [each["remaining"] for each in done] == [None]


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
    assert today(tmp_path) is None


def test_the_plan_page_shows_what_is_still_to_come(client: Client, plans: dict[str, Plan], golden: Golden) -> None:
    """The plan page predicts the placement after the steps still to come, and none for a plan that is done."""
    read = words(client, f"/plans/{plans['east'].plan_id}")
    golden(read[read.index("Placement and load today") : read.index(" What became of it")])
    assert "Placement and load today" not in words(client, f"/plans/{plans['west'].plan_id}")
