"""A step's call has to have been tried on every version that brokers run; until when an approval waits for a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import PolicyError
from pulsar_steward.facts.protocol import versions_in
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import objection_to
from pulsar_steward.guards.every_change import VersionTried
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.window_times import closing, good_until, next_opening, windows_for
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import Change, ChangeSetting
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from pulsar_steward.policy.guards import MaintenanceWindow
from pulsar_steward.policy.load import load_policy
from tests.builders import (
    PULSAR,
    a_batch,
    a_finding,
    a_look,
    a_move,
    a_policy,
    a_split,
    a_step,
    broker,
    hashed_tc_bundles,
    planning_facts_with,
)
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from pathlib import Path


EXPIRE = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
VOUCHED = a_policy(guards={"versions_tried_here": ["4.3"]})
NOT_KNOWN = Unknown("which version of Pulsar broker-00:8080 runs is not known")


@row_by_row(
    "change, look, reason",
    (a_move(), a_look(), "move transaction coordinators to a broker: tried on Pulsar 4.0.7"),
    (a_move(namespace="shop/orders"), a_look(), "move a bundle to a broker: tried on Pulsar 4.0.7"),
    (a_split(), a_look(versions=("4.0.7", "4.2.5")), "tried on Pulsar 4.0.7 and Pulsar 4.2.4, of the same line as"),
    (EXPIRE, a_look(versions=("2.10.4",)), "time to live of a namespace: tried on Pulsar 2.10.4"),
    (a_move(), a_look(VOUCHED, versions=("4.3.2",)), "tried on Pulsar 4.3.2, as the policy says (policy key guards"),
)
def test_what_was_tried_passes(change: Change, look: Any, reason: str) -> None:
    result = VersionTried().check(a_step(change), *look)
    assert result.passed
    assert reason in result.reason


@row_by_row(
    "change, look, reason",
    (a_move(), a_look(versions=("2.10.4",)), "Pulsar 2.10.4 has no `destinationBroker`"),
    (a_move(), a_look(versions=("2.10.4", "3.0.7")), "Pulsar 2.10.4 has no `destinationBroker`"),
    (a_split(), a_look(versions=("2.10.4",)), "Pulsar 2.10.4 has no `topicHashPositions`"),
    (a_move(), a_look(versions=("4.2.4", "5.1.0")), "Pulsar 5.1.0 was never tried: it is newer than 5.0.1"),
    (EXPIRE, a_look(versions=("3.1.0", "9.0.0")), "Pulsar 3.1.0 was never tried"),
    (EXPIRE, a_look(versions=("3.1.0", "9.0.0")), "Pulsar 9.0.0 was never tried: it is newer"),
    (EXPIRE, a_look(VOUCHED, versions=("4.3.0", "4.4.0")), "Pulsar 4.4.0 was never tried"),
    (EXPIRE, a_look(versions=NOT_KNOWN), NOT_KNOWN.reason),
)
def test_the_least_able_broker_counts(change: Change, look: Any, reason: str) -> None:
    found = objection_to(a_step(change), *look)
    assert found is not None
    assert found[0] is Objection.REFUSED
    assert "version_tried: " in found[1]
    assert reason in found[1]


@row_by_row(
    "told, versions",
    ({"b": "4.2.4", "a": "4.0.7", "c": "4.2.4"}, ("4.0.7", "4.2.4")),
    ({"b": "4.2.4", "a": None}, Unknown("which version of Pulsar a runs is not known")),
    ({"b": "4.2.4", "a": ""}, Unknown("which version of Pulsar a runs is not known")),
    ({"b": "<html>\n", "a": "4.0.7"}, Unknown("which version of Pulsar b runs is not known")),
    ({}, Unknown("which version of Pulsar brokers run is not known")),
)
def test_a_broker_that_does_not_tell(told: dict[str, str | None], versions: object) -> None:
    assert versions_in(told) == versions


@row_by_row(
    "versions, reason",
    (("2.10.4", "2.10.4", "2.10.4"), "has no `destinationBroker`"),
    ((PULSAR, PULSAR, "2.10.4"), "has no `destinationBroker`"),
    ((PULSAR, PULSAR, "5.4.0"), "was never tried: it is newer than 5.0.1, the newest that was ("),
    ((PULSAR, PULSAR, None), f"which version of Pulsar {broker(2)} runs is not known"),
)
def test_a_step_is_refused_before_it_is_proposed(versions: tuple[str | None, ...], reason: str) -> None:
    told = versions_in({broker(number): version for number, version in enumerate(versions)})
    planning = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16), findings=(a_finding(),), versions=told)
    proposal = PLANNER.proposal(planning)
    assert not proposal.batches
    assert any("version_tried" in note and reason in note for note in proposal.notes), proposal.notes


@pytest.mark.parametrize(("text", "named"), [('"4.3"', True), ('"4.0.7-acme"', True), ("4.3", False), ('"4 3"', False)])
def test_versions_in_a_policy(tmp_path: Path, text: str, named: bool) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"guards: {{versions_tried_here: [{text}]}}\n", encoding="utf-8")
    if named:
        assert load_policy(file).guards.versions_tried_here == (text.strip('"'),)
    else:
        with pytest.raises(PolicyError, match="versions_tried_here"):
            load_policy(file)


NIGHT = MaintenanceWindow(opens="0 22 * * *", minutes=120)
WEEKEND = MaintenanceWindow(opens="0 6 * * 6", minutes=600, time_zone="Europe/Berlin")
SUNDAY_NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = 24 * 60


def hours(number: float) -> datetime:
    """Returns the time this many hours after Sunday noon."""
    return SUNDAY_NOON + timedelta(hours=number)


@row_by_row(
    "windows, at, opens",
    ((), 0, None),
    ((NIGHT,), 0, 10),
    ((NIGHT,), 9.999, 10),
    ((NIGHT,), 10, None),
    ((NIGHT,), 11.999, None),
    ((NIGHT,), 12, 34),
    ((WEEKEND,), 0, 5 * 24 + 17),
    ((NIGHT, WEEKEND), 0, 10),
)
def test_the_next_opening(windows: tuple[MaintenanceWindow, ...], at: float, opens: float | None) -> None:
    assert next_opening(windows, hours(at)) == (None if opens is None else hours(opens))
    assert (closing(windows, hours(at)) is None) is (not windows or opens is not None)


@row_by_row(
    "windows, wait_minutes, until",
    ((), DAY, 1),
    ((MaintenanceWindow(opens="0 12 * * *", minutes=5),), DAY, 1),
    ((NIGHT,), DAY, 11),
    ((NIGHT,), 600, 11),
    ((NIGHT,), 599, 1),
    ((NIGHT,), 0, 1),
    ((WEEKEND,), DAY, 1),
    ((WEEKEND,), 7 * DAY, 5 * 24 + 18),
)
def test_an_approval_counts_from_the_opening_that_it_waits_for(
    windows: tuple[MaintenanceWindow, ...], wait_minutes: int, until: float
) -> None:
    assert good_until(SUNDAY_NOON, 60, wait_minutes, windows, None) == hours(until)


@pytest.mark.parametrize(
    ("windows", "most", "until"), [((NIGHT,), 10.5, 10.5), ((NIGHT,), 12, 11), ((), 0.5, 0.5), ((), 2, 1)]
)
def test_no_window_lengthens_what_the_risk_bounds(
    windows: tuple[MaintenanceWindow, ...], most: float, until: float
) -> None:
    """An approval counts from the answer no longer than its risk lets it, whatever window it waits for."""
    assert good_until(SUNDAY_NOON, 60, DAY, windows, int(most * 60)) == hours(until)


def test_a_way_back_waits_for_no_window() -> None:
    policy = a_policy(guards={"windows": [NIGHT.model_dump()]})
    assert windows_for(a_batch(), policy) == (NIGHT,)
    assert windows_for(a_batch(kind=ROLLBACK), policy) == ()


@cases(
    "window, at, closes",
    ("back", {"opens": "0 22 * * *", "minutes": 480}, "2026-10-25T00:00", "2026-10-25T04:00"),
    (
        "back, in the hour that comes twice",
        {"opens": "30 2 * * *", "minutes": 60},
        "2026-10-25T01:00",
        "2026-10-25T01:30",
    ),
    ("forward", {"opens": "0 22 * * *", "minutes": 480}, "2026-03-29T00:00", "2026-03-29T05:00"),
)
def test_a_window_lasts_its_minutes_in_the_nights_when_clocks_change(
    window: dict[str, Any], at: str, closes: str
) -> None:
    zoned = MaintenanceWindow(**window, time_zone="Europe/Berlin")
    now, end = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (at, closes))
    assert closing((zoned,), now) == end
