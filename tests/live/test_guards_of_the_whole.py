"""A reason to leave a cluster alone as a whole: a bookie that takes no writes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from lab.bookie import ADMIN_API, METRICS, is_read_only, set_read_only, url_of
from lab.faults.real.ground import COMMON_SETTINGS
from pulsar_steward.ledger.rows import Outcome
from tests.live.hands import Hands, move_of
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/apply/test_past.py::test_a_read_only_bookie_stops_everything"),
]


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """A bookie whose own admin API and metrics answer."""
    bookie = {**ADMIN_API, **METRICS}
    return labs.lab(auth="token", broker_settings=dict(COMMON_SETTINGS), bookie_settings=bookie)


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
