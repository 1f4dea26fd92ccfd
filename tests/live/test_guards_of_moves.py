"""Moves that a real cluster would let through, and Steward does not make: each with what it would have done."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.errors import AdminCallError
from lab.waiting import wait_until
from pulsar_steward.ledger.rows import Outcome
from tests.builders import a_batch, a_step
from tests.live.hands import Hands, move_of, put_on
from tests.live.moves import owner_of
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground

pytestmark = [pytest.mark.live]

CONSUMERS = 30
RECONNECTED_WITHIN_S = 60.0


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


@pytest.mark.extended("tests/apply/test_guards_before_calls.py::test_too_many_clients_stop_the_batch")
def test_many_clients_are_not_sent_to_reconnect_at_once(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with({"apply": {"most_clients_per_step": CONSUMERS - 1}})
    with plot(lab, "many-clients") as here:
        for _ in range(CONSUMERS):
            here.shared(here.topic(), receiver_queue_size=1)
        here.until(here.topic(), lambda shown: len(shown["subscriptions"]["s"]["consumers"]) == CONSUMERS, "all")
        before, move = connected_since(here), move_of(here)
        reason = hands.refused_by("clients", move)
        assert f"clients would reconnect, more than {CONSUMERS - 1}" in reason  # Pulsar's own readers count as well
        assert connected_since(here) == before
        put_on(here, move.bundle, move.target)
        assert len(reconnected(here, before)) == CONSUMERS


def test_what_somebody_moved_or_split_meanwhile_has_drifted(lab: Lab, hands_with: Callable[..., Hands]) -> None:
    hands = hands_with()
    with plot(lab, "moved-meanwhile") as here:
        here.subscription(here.topic())
        move = move_of(here)
        (third,) = {*lab.active_brokers()} - {move.source, move.target}
        put_on(here, move.bundle, third)
        outcome, reason = hands.refusal_of(move)
        assert (outcome, reason) == (Outcome.DRIFTED, f"owner: {third} owns it, not {move.source}")
        assert owner_of(here.lab, move) == third
        here.admin.split(here.namespace, move.bundle)
        outcome, reason = hands.refusal_of(msgspec.structs.replace(move, source=third))
        assert outcome is Outcome.DRIFTED
        assert f"boundaries: {here.namespace} has no bundle {move.bundle} any more" in reason
        with pytest.raises(AdminCallError, match="412"):
            here.admin.unload(here.namespace, move.bundle, move.target)


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
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as client:
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
            assert owner_of(here.lab, first) == first.target
            assert owner_of(other.lab, second) == second.source
            proof = hands.verify(plan, batch)
            assert (proof.proved, "b1.s01 was done, and stopped the batch" in proof.reason) == (False, True)
