"""Reasons to leave a cluster alone as a whole: an old snapshot, a full run, a bookie that takes no writes."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.bookie import ADMIN_API, METRICS, is_read_only, set_read_only, url_of
from lab.faults.real.ground import COMMON_SETTINGS
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.policy.schema import Policy
from tests.builders import a_batch, a_step
from tests.live.hands import Hands, move_of, put_on
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/apply/test_past.py::test_a_plan_that_rests_on_an_old_snapshot_has_drifted",
        "tests/apply/test_past.py::test_no_more_changes_than_the_policy_permits",
        "tests/apply/test_past.py::test_a_read_only_bookie_stops_everything",
    ),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """A bookie whose own admin API and metrics answer."""
    bookie = {**ADMIN_API, **METRICS}
    return labs.lab(auth="token", broker_settings=dict(COMMON_SETTINGS), bookie_settings=bookie)


@pytest.fixture
def hands_with(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Hands]]:
    """Puts the lab under Steward's care, with these sections of the policy."""
    with contextlib.ExitStack() as open_ledgers:
        yield lambda policy=None: open_ledgers.enter_context(Hands.on(lab, tmp_path, policy))


def test_a_plan_of_an_old_snapshot_has_drifted(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"guards": {"snapshot_valid_minutes": 60}})
    with plot(lab, "old-snapshot") as here:
        here.subscription(here.topic())
        move = move_of(here)
        fresh = hands.plan_of(move)
        older = msgspec.structs.replace(fresh, taken_at=fresh.taken_at - timedelta(minutes=61), snapshot_id="older")

        outcome, reason = hands.refusal(hands.recorded(older))

        assert (outcome, reason.partition(":")[0]) == (Outcome.DRIFTED, "fresh_snapshot"), reason
        assert f"{move.namespace}/{move.bundle}" in lab.owned_bundles()[move.source]
        put_on(here, move.bundle, move.target)


def test_a_run_makes_no_more_changes_than_permitted(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"guards": {"most_changes_per_run": 1}})
    patient = Hands(hands.lab, hands.home, hands.cluster, policy=Policy(), engine=hands.engine)
    with plot(lab, "run-of-one") as one, plot(lab, "run-of-two") as two:
        changes = [
            ChangeSetting(namespace=each.namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=86_400))
            for each in (one, two)
        ]
        steps = [a_step(change, step_id=f"b1.s0{number}") for number, change in enumerate(changes, start=1)]
        plan = hands.recorded(msgspec.structs.replace(hands.plan_of(changes[0]), batches=(a_batch(*steps),)))
        hands.approve(plan, plan.batches[0])

        outcomes = hands.apply(plan, plan.batches[0])
        assert {row.outcome for row in outcomes} == {Outcome.REFUSED}
        words = "limits: change 2 of its run, of 1 (policy key guards.most_changes_per_run)"
        assert any(words in row.reason for row in outcomes), [row.reason for row in outcomes]
        assert [expiry(here) for here in (one, two)] == [None, None]

        patient.heal(patient.recorded(msgspec.structs.replace(plan, snapshot_id="once-more")))
        assert [expiry(here) for here in (one, two)] == [86_400, 86_400]


def expiry(here: Ground) -> int | None:
    """The time to live of a ground's namespace, as the brokers have it."""
    seconds: int | None = here.admin.policies(here.namespace).get("message_ttl_in_seconds")
    return seconds


def test_nothing_is_moved_while_a_bookie_is_read_only(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    metrics = f"{url_of(lab)}/metrics"
    hands = hands_with({"collect": {"metrics_urls": [f"bookie={metrics}"]}})
    with plot(lab, "read-only-bookie") as here:
        here.subscription(here.topic())
        move = move_of(here)
        with read_only(lab):
            outcome, reason = hands.refusal_of(move)
            assert (outcome, reason) == (Outcome.REFUSED, f"whole_cluster: read-only bookies: {metrics}")
            assert f"{move.namespace}/{move.bundle}" in lab.owned_bundles()[move.source]
        hands.heal(hands.plan_of(move))
        assert f"{move.namespace}/{move.bundle}" in lab.owned_bundles()[move.target]


@contextlib.contextmanager
def read_only(lab: Lab) -> Iterator[None]:
    """Has the bookie take no writes for the length of a block."""
    set_read_only(lab, on=True)
    try:
        assert is_read_only(lab)
        yield
    finally:
        set_read_only(lab, on=False)
    assert not is_read_only(lab)
