"""Each guard lets a step pass and vetoes one, and says why either way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.guards.bundles import Boundaries, Clients, Cooldown, Owner, rest_ends
from pulsar_steward.guards.every_change import Protected
from pulsar_steward.guards.targets import TargetActive, TargetAllowed
from pulsar_steward.model.bundles import TC_NAMESPACE
from tests.builders import NOW, Seen, a_look, a_move, a_policy, a_split, a_step, broker

if TYPE_CHECKING:
    from pulsar_steward.guards.kinds import Guard
    from pulsar_steward.model.step import Change

MOVE, SPLIT = a_move(), a_split()
TWENTY_MINUTES = a_policy(tc_skew={"cooldown_minutes": 20})
NO_REST = a_policy(tc_skew={"cooldown_minutes": 0})
TWO_CLIENTS = a_policy(apply={"most_clients_per_step": 2})
THREE_CLIENTS = a_policy(apply={"most_clients_per_step": 3})
DRAINING_1 = a_policy(brokers={"draining": (broker(1),)})
DRAINING_0 = a_policy(brokers={"draining": (broker(0),)})


def moved(minutes_ago: float) -> Seen:
    """A bundle that was moved so long ago, under a rest of twenty minutes."""
    return a_look(moved_at=NOW - timedelta(minutes=minutes_ago), policy=TWENTY_MINUTES)


def protecting(*namespaces: str) -> Seen:
    """A cluster in which these namespaces are protected."""
    return a_look(policy=a_policy(apply={"protected_namespaces": namespaces}))


PASSES: list[tuple[Guard, Change, Seen, str]] = [
    (Boundaries(), MOVE, a_look(), "has a bundle 0x00000000_0x10000000"),
    (Owner(), MOVE, a_look(), "broker-00:8080 owns it"),
    (Owner(), SPLIT, a_look(), "broker-00:8080 owns it"),
    (TargetActive(), MOVE, a_look(), "broker-01:8080 is active"),
    (TargetAllowed(), MOVE, a_look(), "broker-01:8080 is not draining"),
    (
        TargetAllowed(),
        MOVE,
        a_look(allowed_brokers=frozenset({broker(1)})),
        "isolation policies leave it to pulsar/system",
    ),
    (TargetAllowed(), MOVE, a_look(policy=DRAINING_0), "broker-01:8080 is not draining"),
    (Cooldown(), MOVE, a_look(), "not moved lately"),
    (Cooldown(), MOVE, moved(minutes_ago=20), "rested until 2026-03-01 12:00:00 UTC"),
    (Cooldown(), MOVE, a_look(moved_at=NOW, policy=NO_REST), "rested until 2026-03-01 12:00:00 UTC"),
    (Clients(), MOVE, a_look(policy=THREE_CLIENTS), "3 clients would reconnect, at most 3"),
    (Protected(), MOVE, protecting("tenant/system"), "pulsar/system is not protected"),
]
VETOES: list[tuple[Guard, Change, Seen, str]] = [
    (Boundaries(), MOVE, a_look(has_bundle=False), "no bundle 0x00000000_0x10000000 any more"),
    (Boundaries(), SPLIT, a_look(has_bundle=False), "no bundle 0x00000000_0x10000000 any more"),
    (Owner(), MOVE, a_look(owner=broker(2)), "broker-02:8080 owns it, not broker-00:8080"),
    (Owner(), SPLIT, a_look(owner=broker(2)), "broker-02:8080 owns it, not broker-00:8080"),
    (Owner(), MOVE, a_look(owner=None), "nobody owns it"),
    (TargetActive(), MOVE, a_look(active=frozenset({broker(0)})), "is not active or did not answer"),
    (TargetActive(), MOVE, a_look(owner=broker(1)), "broker-01:8080 owns it already"),
    (TargetAllowed(), MOVE, a_look(policy=DRAINING_1), "broker-01:8080 is draining (policy key brokers.draining)"),
    (
        TargetAllowed(),
        MOVE,
        a_look(allowed_brokers=frozenset({broker(2)})),
        "an isolation policy keeps pulsar/system from",
    ),
    (Cooldown(), MOVE, moved(minutes_ago=19), "moved at 2026-03-01 11:41:00, rests until 2026-03-01 12:01:00 UTC"),
    (Cooldown(), SPLIT, moved(minutes_ago=0), "rests until 2026-03-01 12:20:00 UTC"),
    (Clients(), MOVE, a_look(policy=TWO_CLIENTS), "3 clients would reconnect, more than 2"),
    (Clients(), SPLIT, a_look(policy=TWO_CLIENTS), "3 clients would reconnect, more than 2"),
    (Protected(), MOVE, protecting("a/b", TC_NAMESPACE), "is protected (policy key apply.protected_namespaces)"),
    (Protected(), SPLIT, protecting(TC_NAMESPACE), "is protected (policy key apply.protected_namespaces)"),
]


def named(value: object) -> str | None:
    """A guard's name for a test's id; pytest numbers the rest."""
    return getattr(value, "name", None)


@pytest.mark.parametrize(("guard", "change", "seen", "reason"), PASSES, ids=named)
def test_passes(guard: Guard, change: Change, seen: Seen, reason: str) -> None:
    """A guard that has nothing against a step says what it looked at."""
    result = guard.check(a_step(change), *seen)
    assert (result.guard, result.passed) == (guard.name, True)
    assert reason in result.reason


@pytest.mark.parametrize(("guard", "change", "seen", "reason"), VETOES, ids=named)
def test_vetoes(guard: Guard, change: Change, seen: Seen, reason: str) -> None:
    result = guard.check(a_step(change), *seen)
    assert (result.guard, result.passed) == (guard.name, False)
    assert reason in result.reason


def test_rest_is_the_policys() -> None:
    assert rest_ends(NOW, TWENTY_MINUTES) == NOW + timedelta(minutes=20)
