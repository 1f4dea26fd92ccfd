"""The number of transaction coordinators: raised by any broker, and never lowered.

The last file of these by its name, as all others begin with as many coordinators as a fresh cluster has.
"""

import httpx
import pytest

from lab.waiting import wait_until
from pulsar_steward.model.bundles import TC_TOPIC
from pulsar_steward.pulsar.calls import raise_coordinators
from pulsar_steward.pulsar.reader import Reader
from tests.contract.api import AGREED_WITHIN_S, SYSTEM, Api

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
