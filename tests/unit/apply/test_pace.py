"""The pause before one more change, by the limits of moves and of reconnecting clients per minute."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.apply.pace import WINDOW, pause_before
from pulsar_steward.policy.schema import ApplyPolicy
from tests.builders import NOW

THREE_MOVES_TEN_CLIENTS = ApplyPolicy(bundle_moves_per_minute=3, reconnecting_clients_per_minute=10)


@pytest.mark.parametrize(
    ("made", "clients", "pause"),
    [
        pytest.param([], 1, 0, id="the first"),
        pytest.param([(50, 1), (40, 1)], 1, 0, id="within both limits"),
        pytest.param([(50, 0), (40, 0), (10, 0)], 0, 10, id="a fourth move waits for the first to be a minute ago"),
        pytest.param([(60, 9), (59, 1)], 9, 0, id="a minute ago is no longer counted"),
        pytest.param([(50, 9)], 1, 0, id="up to the limit of clients"),
        pytest.param([(50, 9)], 2, 10, id="over the limit of clients"),
        pytest.param([(50, 4), (30, 5)], 6, 30, id="waits until enough clients are a minute ago"),
        pytest.param([(50, 4), (30, 5)], 5, 10, id="and no longer than that"),
        pytest.param([(50, 1), (20, 1)], 99, 40, id="one above the limit waits for an empty minute"),
        pytest.param([], 99, 0, id="and goes then"),
        pytest.param([(90, 50), (70, 50)], 10, 0, id="what is long ago does not count"),
    ],
)
def test_the_pause_keeps_both_limits(made: list[tuple[int, int]], clients: int, pause: float) -> None:
    changes = [(NOW - timedelta(seconds=ago), touched) for ago, touched in made]
    assert pause_before(changes, clients, THREE_MOVES_TEN_CLIENTS, NOW) == pause


@given(made=st.lists(st.tuples(st.floats(0, 120), st.integers(0, 12)), max_size=8), clients=st.integers(0, 12))
def test_after_the_pause_the_limits_hold(made: list[tuple[float, int]], clients: int) -> None:
    policy = THREE_MOVES_TEN_CLIENTS
    changes = [(NOW - timedelta(seconds=ago), touched) for ago, touched in sorted(made, reverse=True)]
    then = NOW + timedelta(seconds=pause_before(changes, clients, policy, NOW))
    assert then >= NOW
    recent = [touched for at, touched in changes if at > then - WINDOW]
    assert len(recent) < policy.bundle_moves_per_minute
    assert not recent or sum(recent) + clients <= policy.reconnecting_clients_per_minute
