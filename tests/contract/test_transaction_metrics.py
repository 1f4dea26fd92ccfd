"""Series of transaction coordinators that clients use: real brokers and the simulator tell the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import httpx
import pytest

from lab.faults.real.ground import COMMON_SETTINGS, ground
from lab.simulator import ClusterSpec, CoordinatorSpec, running_simulator
from lab.waiting import wait_until
from pulsar_steward.checks.clients.transactions_open import OPEN, OPENED, TIMED_OUT
from pulsar_steward.pulsar.metrics import Exposition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.pool import LabPool

LEFT_OPEN, ENOUGH = 5, 20
TOLD_WITHIN_S = 60.0
SERIES = (OPEN, *OPENED, *TIMED_OUT)


def totals(urls: Sequence[str]) -> tuple[Counter[str], Counter[str], set[frozenset[str]]]:
    """Sums of the series over all brokers, how many brokers tell of each coordinator, and the sets of labels."""
    sums: Counter[str] = Counter()
    brokers_of: Counter[str] = Counter()
    labels: set[frozenset[str]] = set()
    for url in urls:
        body = httpx.get(f"{url}/metrics/", trust_env=False).content
        for sample in Exposition(iter([body]), len(body) + 1).samples(dict.fromkeys(SERIES)):
            sums[sample.series] += int(sample.value)
            labels.add(frozenset(sample.labels))
            brokers_of[sample.labels["coordinator_id"]] += sample.series == OPEN
    return sums, brokers_of, labels


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_real_brokers_tell_of_coordinators_in_use(labs: LabPool) -> None:
    lab = labs.lab(broker_settings=dict(COMMON_SETTINGS))
    urls = [broker.admin_url for broker in lab.brokers]
    assert totals(urls)[0] == {}, "no client has used transactions yet"
    with ground(lab, "transactions", language="java") as here:
        here.transact(here.topic(), rate=10, left_open=LEFT_OPEN)
        wait_until(lambda: totals(urls)[0][OPENED[0]] >= ENOUGH, "transactions are opened", TOLD_WITHIN_S)
    # The client has gone: what it opened is committed, as the brokers answer one after the other.
    wait_until(lambda: totals(urls)[0][OPEN] <= LEFT_OPEN + 1, "but what was left open is committed", TOLD_WITHIN_S)
    sums, brokers_of, labels = totals(urls)
    labs.discard(lab)
    assert labels == {frozenset({"cluster", "coordinator_id"})}
    assert brokers_of == {str(number): 1 for number in range(16)}
    assert LEFT_OPEN <= sums[OPEN] <= LEFT_OPEN + 1, "one more was opened as the client went"
    assert set(sums) == {OPEN, OPENED[0], TIMED_OUT[0]}


def test_simulated_ones_tell_the_same() -> None:
    """Simulated brokers report each coordinator that is described as in use once, with the described counts."""
    used = {number: CoordinatorSpec(opened=100, still_open=2, timed_out=1) for number in range(15)}
    with running_simulator(ClusterSpec(transactions=used)) as simulator:
        sums, brokers_of, labels = totals(simulator.admin_urls)
    assert labels == {frozenset({"cluster", "coordinator_id"})}
    assert brokers_of == {str(number): 1 for number in used}
    assert sums == {OPEN: 30, OPENED[0]: 1500, TIMED_OUT[0]: 15}
