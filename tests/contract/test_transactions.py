"""The number of transaction coordinators: raised by any broker, and never lowered.

The last file of these by its name, as all others begin with as many coordinators as a fresh cluster has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import httpx
import pytest

from lab.faults.real.ground import COMMON_SETTINGS, ground
from lab.simulator import ClusterSpec, CoordinatorSpec, running_simulator
from lab.waiting import wait_until
from pulsar_steward.checks.clients.transactions_open import OPEN, OPENED, TIMED_OUT
from pulsar_steward.model.bundles import TC_TOPIC
from pulsar_steward.pulsar.calls import raise_coordinators
from pulsar_steward.pulsar.metrics import Exposition
from tests.contract.api import AGREED_WITHIN_S, SYSTEM, Api

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.pool import LabPool
    from pulsar_steward.pulsar.reader import Reader

PATH = "/admin/v3/transactions/transactionCoordinator/replicas"
PARTITIONS = f"/admin/v2/persistent/{SYSTEM}/transaction_coordinator_assign/partitions"
REFUSED = "Number of transaction coordinators should be more than the current number of transaction coordinator"


def number(api: Api, at: int = 0) -> int:
    told: int = api.get(PARTITIONS, at)["partitions"]
    return told


@pytest.mark.parametrize("fewer", [0, 1, 16])
def test_a_number_that_is_not_higher_is_refused(api: Api, fewer: int) -> None:
    now = number(api)
    for at in range(len(api.ids)):
        answer = api.call("POST", PATH, at, json=now - fewer)
        assert (answer.status_code, answer.json()) == (httpx.codes.NOT_ACCEPTABLE, {"reason": REFUSED})
    assert number(api) == now


def test_their_number_is_raised(api: Api) -> None:
    """Leader and follower raise the number with 204; all brokers report it, and no system bundle is loaded or moved."""
    now, before = number(api), _system_bundles(api)
    for more, at in ((1, api.leader()), (3, api.followers()[0])):
        answer = api.call("POST", PATH, at, json=now + more)
        assert (answer.status_code, answer.content) == (httpx.codes.NO_CONTENT, b"")
        _all_tell(api, now + more)
        assert api.call("POST", PATH, at, json=now + more).status_code == httpx.codes.NOT_ACCEPTABLE
    assert _system_bundles(api) == before


def test_what_steward_sends_as_a_number_is_what_it_reads(api: Api, reader: Reader) -> None:
    after = reader.partitions(TC_TOPIC) + 1
    call = raise_coordinators(after)
    assert api.call(call.method, call.path, json=call.body).status_code == httpx.codes.NO_CONTENT
    wait_until(lambda: reader.partitions(TC_TOPIC) == after, "the new number is read", AGREED_WITHIN_S)


def _all_tell(api: Api, wanted: int) -> None:
    """Waits until every broker tells that number: each learns of it from the metadata store."""
    wait_until(
        lambda: {number(api, at) for at in range(len(api.ids))} == {wanted},
        f"all brokers tell {wanted} coordinators",
        AGREED_WITHIN_S,
    )


def _system_bundles(api: Api) -> dict[str, list[str]]:
    owned = api.target.owned_bundles().items()
    return {broker: [name for name in names if name.startswith(f"{SYSTEM}/0x")] for broker, names in owned}


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
