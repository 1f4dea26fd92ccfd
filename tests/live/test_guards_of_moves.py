"""Moves that a real cluster would let through, and Steward does not make: each with what it would have done."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.errors import AdminCallError
from lab.waiting import wait_until
from pulsar_steward.ledger.rows import Outcome
from tests.builders import a_batch, a_step
from tests.live.hands import Hands, move_of, put_on
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from pulsar_steward.model.step import UnloadBundle

pytestmark = [pytest.mark.live]

CONSUMERS = 30
RECONNECTED_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def lab(pulsar: Lab) -> Lab:
    """The shared one, with three brokers."""
    return pulsar


@pytest.fixture
def hands_with(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Hands]]:
    """Puts the lab under Steward's care, with these sections of the policy."""
    with contextlib.ExitStack() as open_ledgers:
        yield lambda policy=None: open_ledgers.enter_context(Hands.on(lab, tmp_path, policy))


def owner_of(here: Ground, move: UnloadBundle) -> str | None:
    """Returns the owner of a move's bundle as the brokers report it, or None."""
    owned = here.lab.owned_bundles().items()
    return next((broker for broker, bundles in owned if f"{move.namespace}/{move.bundle}" in bundles), None)


def connected_since(here: Ground) -> set[str]:
    """When the consumers of a ground's topic connected, as the topic's owner shows it now."""
    consumers = here.admin.statistics(here.topic())["subscriptions"]["s"]["consumers"]
    return {consumer["connectedSince"] for consumer in consumers}


def reconnected(here: Ground, before: set[str]) -> set[str]:
    """When they connected anew, once all of them have."""
    anew: set[str] = set()

    def all_are_back() -> bool:
        anew.clear()
        anew.update(connected_since(here))
        return len(anew) == len(before) and not anew & before

    wait_until(all_are_back, "all consumers have connected anew", RECONNECTED_WITHIN_S, 0.5)
    return anew


def back(move: UnloadBundle) -> UnloadBundle:
    """The opposite move."""
    return msgspec.structs.replace(move, source=move.target, target=move.source)


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_too_many_clients_stop_the_batch")
def test_many_clients_are_not_sent_to_reconnect_at_once(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"apply": {"most_clients_per_step": CONSUMERS - 1}})
    with plot(lab, "many-clients") as here:
        for _ in range(CONSUMERS):
            here.shared(here.topic(), receiver_queue_size=1)
        here.until(here.topic(), lambda shown: len(shown["subscriptions"]["s"]["consumers"]) == CONSUMERS, "all")
        before, move = connected_since(here), move_of(here)

        outcome, reason = hands.refusal_of(move)
        assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, "clients"), reason
        assert f"clients would reconnect, more than {CONSUMERS - 1}" in reason  # Pulsar's own readers count as well
        assert connected_since(here) == before

        put_on(here, move.bundle, move.target)
        assert len(reconnected(here, before)) == CONSUMERS


@pytest.mark.extended("tests/apply/test_past.py::test_a_bundle_that_went_in_a_circle_stops_its_namespace")
def test_a_bundle_rests_and_does_not_go_in_circles(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "in-circles") as here:
        here.shared(here.topic())
        move, first = move_of(here), connected_since(here)
        hands.heal(hands.plan_of(move))
        second = reconnected(here, first)
        outcome, reason = hands.refusal_of(back(move))
        assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, "cooldown"), reason

        restless = hands_with_more(hands, {"tc_skew": {"cooldown_minutes": 0}})
        restless.heal(restless.plan_of(back(move)))
        third = reconnected(here, second)
        outcome, reason = restless.refusal_of(move)
        assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, "circles"), reason
        assert (owner_of(here, move), connected_since(here)) == (move.source, third)


def hands_with_more(hands: Hands, policy: dict[str, Any]) -> Hands:
    """The same ledger under another policy."""
    return Hands(
        lab=hands.lab,
        home=hands.home,
        cluster=hands.cluster,
        policy=type(hands.policy).model_validate(policy),
        engine=hands.engine,
    )


def test_what_somebody_moved_or_split_meanwhile_has_drifted(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "moved-meanwhile") as here:
        here.subscription(here.topic())
        move = move_of(here)
        (third,) = {*lab.active_brokers()} - {move.source, move.target}
        put_on(here, move.bundle, third)

        outcome, reason = hands.refusal_of(move)
        assert (outcome, reason) == (Outcome.DRIFTED, f"owner: {third} owns it, not {move.source}")
        assert owner_of(here, move) == third

        here.admin.split(here.namespace, move.bundle)
        outcome, reason = hands.refusal_of(msgspec.structs.replace(move, source=third))
        assert outcome is Outcome.DRIFTED
        assert f"boundaries: {here.namespace} has no bundle {move.bundle} any more" in reason
        with pytest.raises(AdminCallError, match="412"):
            here.admin.unload(here.namespace, move.bundle, move.target)


TOMORROW = datetime.now(UTC) + timedelta(hours=12)
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a closed window": (
        "window",
        {"guards": {"windows": [{"opens": f"{TOMORROW.minute} {TOMORROW.hour} * * *", "minutes": 1}]}},
    ),
    "a draining target": ("target_allowed", {}),
    "a protected namespace": ("protected", {"apply": {"protected_namespaces": ["public/left-alone-protected"]}}),
}


@pytest.mark.extended(
    "tests/apply/test_past.py::test_outside_its_windows_a_cluster_is_left_alone", "tests/unit/guards/test_guards.py"
)
@pytest.mark.parametrize(("guard", "policy"), POLICIES.values(), ids=POLICIES)
def test_what_the_operator_said_counts(
    lab: Lab, hands_with: Callable[..., Hands], guard: str, policy: dict[str, Any]
) -> None:
    with plot(lab, f"left-alone-{guard.replace('_', '-')}") as here:
        here.subscription(here.topic())
        move = move_of(here)
        hands = hands_with({"brokers": {"draining": [move.target]}} if guard == "target_allowed" else policy)

        outcome, reason = hands.refusal_of(move)

        assert (outcome, reason.partition(":")[0]) == (Outcome.REFUSED, guard), reason
        assert owner_of(here, move) == move.source


@pytest.mark.extended("tests/apply/test_proved_first.py::test_an_unproved_batch_stops_the_next_one")
def test_one_batch_after_the_other(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"apply": {"proof_wait_seconds": 0}, "guards": {"most_changes_per_hour": 1}})
    with plot(lab, "first") as first, plot(lab, "second") as second:
        for here in (first, second):
            here.subscription(here.topic())
        before = hands.plan_of(move_of(second))
        plan = hands.plan_of(move_of(first))
        hands.approve(plan, plan.batches[0])
        (outcome,) = hands.apply(plan, plan.batches[0])
        assert outcome.outcome is Outcome.DONE

        refused, reason = hands.refusal(before)
        assert (refused, reason.partition(":")[0]) == (Outcome.REFUSED, "proved_first"), reason
        assert hands.verify(plan, plan.batches[0]).proved
        refused, reason = hands.refusal_of(move_of(second))
        assert (refused, reason.partition(":")[0]) == (Outcome.REFUSED, "limits"), reason


FROZEN = """
import os, sys, time, pulsar
client = pulsar.Client(
    sys.argv[1],
    authentication=pulsar.AuthenticationToken(os.environ["LAB_TOKEN"]),
    logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
)
producers = [client.create_producer(sys.argv[2]) for _ in range(3)]
print("ready", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def frozen_producers(here: Ground, topic: str) -> Iterator[None]:
    """Three producers of a process that is stopped: connected, and not to come back where they are sent away."""
    command = [sys.executable, "-c", FROZEN, here.lab.service_url, topic]
    environment = os.environ | {"LAB_TOKEN": here.lab.token or ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as client:  # noqa: S603 - fixed arguments
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            here.until(topic, lambda shown: shown["producerCount"] == 3, "three producers are shown")
            client.send_signal(signal.SIGSTOP)
            yield
        finally:
            client.kill()


@pytest.mark.extended("tests/apply/test_health.py::test_a_batch_stops_itself_where_clients_do_not_come_back")
def test_a_batch_stops_itself_where_clients_do_not_come_back(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"health": {"return_seconds": 5}})
    with plot(lab, "frozen") as here, plot(lab, "untouched") as other:
        other.subscription(other.topic())
        with frozen_producers(here, here.topic()):
            first, second = move_of(here), move_of(other)
            steps = [a_step(change, step_id=f"b1.s0{number}") for number, change in enumerate((first, second), start=1)]
            plan = msgspec.structs.replace(hands.plan_of(first), batches=(a_batch(*steps),), snapshot_id="two-moves")
            batch = hands.recorded(plan).batches[0]
            hands.approve(plan, batch)

            outcomes = hands.apply(plan, batch)

            said = [row.reason for row in outcomes]
            assert [row.outcome for row in outcomes] == [Outcome.DONE, Outcome.REFUSED], said
            assert "3 of 3 producers are not back" in said[0]
            assert said[1].startswith("the batch stopped itself: b1.s01: ")
            assert owner_of(here, first) == first.target
            assert owner_of(other, second) == second.source
            proof = hands.verify(plan, batch)
            assert (proof.proved, "b1.s01 was done, and did harm" in proof.reason) == (False, True)
