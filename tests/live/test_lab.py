"""The lab on real processes: one cluster with token authentication, observed, skewed, broken and repaired.

The tests build on each other's cluster, not on each other's order: each leaves every broker that it found running.
"""

import socket
from pathlib import Path

import httpx
import pytest

from lab import ports, process
from lab.cluster import Lab, running_lab
from lab.errors import BrokerStateError, PortTakenError
from lab.model import Broker, LabState
from lab.pool import LabPool
from lab.testing import need_lab
from lab.waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.extended("tests/lab", "tests/live/test_healing.py")]

BACK_WITHIN_S = 120


def health(url: str, token: str | None, timeout_s: float = 10) -> httpx.Response:
    """A broker's health check, as whoever holds that token is answered."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.get(f"{url}/admin/v2/brokers/health", headers=headers, timeout=timeout_s, trust_env=False)


def running(lab: Lab) -> list[Broker]:
    return [broker for broker in lab.brokers if broker.process is not None]


def listeners(state: LabState) -> list[tuple[str, int]]:
    """Every address that a part of the lab listens on."""
    web = [(broker.host, broker.web_port) for broker in state.brokers]
    service = [(broker.host, broker.service_port) for broker in state.brokers]
    return [*web, *service, *((node.host, node.port) for node in (*state.bookies, state.zookeeper))]


def test_a_killed_broker_is_gone_but_listed_until_its_session_ends(lab: Lab) -> None:
    victim = lab.kill_broker("broker-3")
    try:
        assert lab.condition(victim.broker_id) == "gone"
        assert not ports.answers(victim.host, victim.web_port)
        assert victim.broker_id in lab.active_brokers()
        assert victim.broker_id not in lab.owned_bundles()
        with pytest.raises(BrokerStateError, match=f"{victim.name} .* is gone"):
            lab.kill_broker(victim.broker_id)
        taken = pytest.raises(PortTakenError, match=f"port {victim.service_port} .*{victim.name}")
        with socket.create_server((victim.host, victim.service_port)), taken:
            lab.start_broker(victim.broker_id)
    finally:
        lab.start_broker(victim.broker_id)
    assert lab.condition(victim.broker_id) == "running"
    assert victim.broker_id in lab.active_brokers()


def test_a_paused_broker_accepts_connections_and_answers_nothing(lab: Lab) -> None:
    paused = lab.pause_broker("broker-3")
    try:
        assert ports.answers(paused.host, paused.web_port)
        with pytest.raises(httpx.ReadTimeout):
            health(paused.admin_url, lab.token, timeout_s=0.5)
        assert paused.broker_id not in lab.owned_bundles()
    finally:
        lab.resume_broker("broker-3")
    wait_until(lambda: paused.broker_id in lab.owned_bundles(), f"{paused.name} answers again", BACK_WITHIN_S)


def test_a_lab_of_the_pool_is_whole_again_when_it_is_handed_out(labs: LabPool, lab: Lab) -> None:
    began = {broker.broker_id for broker in running(lab)}
    lab.kill_broker("broker-2")
    lab.pause_broker("broker-3")
    lab.add_broker()
    spec = lab.state.spec
    again = labs.lab(auth=spec.auth, broker_settings=spec.broker_settings)
    assert again is lab
    assert {broker.broker_id for broker in running(lab)} == began
    wait_until(lambda: set(lab.owned_bundles()) == began, "all of them answer", BACK_WITHIN_S)


def test_a_lab_that_makes_room_for_another_leaves_no_process_and_no_data(tmp_path: Path) -> None:
    """A lab that the pool has stopped has no process, no open port, and no files but configuration and logs."""
    need_lab()
    with LabPool(tmp_path, most=1) as pool:
        lab = pool.lab(brokers=1)
        state = lab.state
        assert all(process.condition(part.process) == "running" for part in state.parts)
        other = pool.lab(brokers=1, auth="token")
        assert all(process.condition(part.process) == "running" for part in other.state.parts)
        assert_nothing_is_left_of(lab, state)
        state = other.state
    assert_nothing_is_left_of(other, state)


def test_a_cluster_in_the_middle_of_an_upgrade(tmp_path: Path) -> None:
    """Brokers of two versions serve one cluster, and one of them runs the other version once it is started again."""
    need_lab("5.0.1")
    with running_lab("mixed", home=tmp_path, broker_versions={2: "5.0.1"}) as lab:
        assert versions_of(lab) == ["4.0.7", "5.0.1", "4.0.7"]
        assert len(lab.active_brokers()) == 3
        lab.stop_broker("broker-1")
        lab.start_broker("broker-1", "5.0.1")
        assert versions_of(lab) == ["5.0.1", "5.0.1", "4.0.7"]
        lab.stop_broker("broker-1")
        lab.start_broker("broker-1")
        assert versions_of(lab) == ["5.0.1", "5.0.1", "4.0.7"]


def versions_of(lab: Lab) -> list[str]:
    """What each broker says that it is."""
    path = "/admin/v2/brokers/version"
    return [httpx.get(f"{url}{path}", timeout=10, trust_env=False).text for url in lab.admin_urls]


def assert_nothing_is_left_of(lab: Lab, state: LabState) -> None:
    """Asserts that the lab's processes, ports and data are gone."""
    assert all(process.condition(part.process) == "gone" for part in state.parts)
    assert not any(ports.answers(*address) for address in listeners(state))
    assert {path.name for path in lab.home.iterdir()} == {"conf", "log"}


def test_a_broker_answers_only_to_a_token(lab: Lab) -> None:
    assert lab.token_file is not None
    assert lab.token_file.stat().st_mode & 0o077 == 0
    assert health(lab.admin_urls[0], lab.token).status_code == 200
    assert health(lab.admin_urls[0], None).status_code == 401


def test_a_broker_that_joins_serves_and_can_leave(lab: Lab) -> None:
    """A fourth broker takes coordinators; once stopped it leaves the list at once, and they can be placed elsewhere."""
    joined = lab.add_broker()
    assert joined.broker_id in lab.active_brokers()
    assert lab.pile_up_tcs(joined.broker_id) == joined.broker_id
    lab.stop_broker(joined.broker_id)
    assert joined.broker_id not in lab.active_brokers()
    assert joined.broker_id not in lab.tc_placement()
    home = lab.pile_up_tcs("broker-1")
    assert lab.tc_placement()[home] == 16
