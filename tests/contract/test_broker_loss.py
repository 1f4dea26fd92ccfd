"""A broker killed outright: what the others say about it while its session lasts, and afterwards."""

import httpx
import pytest

from lab.waiting import wait_until
from tests.contract.api import SYSTEM, Api

NAMESPACES = "/admin/v2/namespaces"
COORDINATOR = f"{SYSTEM}/transaction_coordinator_assign-partition-12"
GONE_WITHIN_S = 90


def test_a_killed_broker_is_believed_in_until_its_session_ends(api: Api) -> None:
    alive, dead = api.followers()
    api.target.pile_up_tcs(api.ids[dead])
    api.target.kill_broker(api.ids[dead])
    try:
        while_its_session_lasts(api, alive, dead)
        wait_until(lambda: api.ids[dead] not in listed(api, alive), "its session has ended", GONE_WITHIN_S)
        after_its_session(api, alive, dead)
    finally:
        api.target.start_broker(api.ids[dead])
    assert api.ids[dead] in listed(api, alive)
    assert api.target.tc_placement()[api.ids[dead]] == 0
    owned = api.target.owned_bundles()[api.ids[dead]]
    assert owned
    assert all(api.ids[dead] in bundle for bundle in owned), "its heartbeats only"


def while_its_session_lasts(api: Api, alive: int, dead: int) -> None:
    """A dead broker, of which nothing but its silence tells."""
    positions, unload = paths(api)
    with pytest.raises(httpx.TransportError):
        api.call("GET", "/admin/v2/brokers", dead)
    assert api.ids[dead] in listed(api, alive)
    assert api.look_up(COORDINATOR, alive) == dead
    for method, path in (("GET", positions), ("PUT", unload)):
        answer = api.call(method, path, alive)
        assert answer.status_code == 307
        assert answer.headers["Location"].startswith(f"http://{api.ids[dead]}/")
    unowned = f"{NAMESPACES}/public/default/0x00000000_0x10000000/unload"
    assert api.final("PUT", unowned, params=api.to(dead)).status_code == 204
    assert sum(api.target.tc_placement().values()) == 0


def after_its_session(api: Api, alive: int, dead: int) -> None:
    """Asserts that a dead broker's bundles are unowned until they are asked for, and that it is no destination."""
    positions, unload = paths(api)
    wait_until(lambda: api.call("GET", positions, alive).status_code == 412, "nobody owns them", GONE_WITHIN_S)
    assert api.call("PUT", unload, alive).status_code == 204, "nobody owns it, so nothing happens"
    assert api.final("PUT", unload, alive, params=api.to(dead)).status_code == 409
    api.get("/admin/v3/transactions/coordinators", alive)
    placed = api.target.tc_placement()
    assert (sum(placed.values()), placed.get(api.ids[dead])) == (16, None)


def listed(api: Api, at: int) -> list[str]:
    return [str(broker) for broker in api.get("/admin/v2/brokers", at)]


def paths(api: Api) -> list[str]:
    """Of the bundle of one coordinator: where to ask for positions, and where to unload it."""
    bundle = api.bundle_of(COORDINATOR)
    return [f"{NAMESPACES}/{SYSTEM}/{bundle}/{action}" for action in ("topicHashPositions", "unload")]
