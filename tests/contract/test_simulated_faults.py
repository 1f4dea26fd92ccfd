"""Abilities of the simulator alone: trouble on request, and a log of what it was asked."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from lab.simulator import (
    Answer,
    BrokenJson,
    ClusterSpec,
    Delay,
    Drop,
    Fault,
    NamespaceSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
    running_simulator,
)

BUNDLE = "pulsar/system/0xf0000000_0xffffffff"


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """Three brokers, nothing broken yet."""
    with running_simulator() as simulator:
        yield simulator


@pytest.fixture
def client(simulator: Simulator) -> Iterator[httpx.Client]:
    """Speaks to the first broker, which leads."""
    with httpx.Client(base_url=simulator.admin_urls[0], timeout=5, trust_env=False) as client:
        yield client


def owners(simulator: Simulator) -> list[str]:
    return [broker for broker, bundles in simulator.owned_bundles().items() if BUNDLE in bundles]


def test_the_coordinators_begin_spread(simulator: Simulator) -> None:
    """The sixteen coordinators of a new simulator are spread over its three brokers as 6, 6 and 4."""
    assert sorted(simulator.tc_placement().values()) == [4, 6, 6]


@pytest.mark.parametrize("done", [True, False])
def test_a_dropped_connection_hides_whether_the_work_was_done(
    simulator: Simulator, client: httpx.Client, *, done: bool
) -> None:
    simulator.faults.add(Fault(Drop(work_done=done), path="/unload", method="PUT"))
    with pytest.raises(httpx.RemoteProtocolError):
        client.put(f"/admin/v2/namespaces/{BUNDLE}/unload")
    assert (owners(simulator) == []) is done
    assert client.put(f"/admin/v2/namespaces/{BUNDLE}/unload").status_code == 204


def test_a_status_is_answered_as_often_as_asked(simulator: Simulator, client: httpx.Client) -> None:
    """A fault that answers twice with a status meets the first two matching requests and no other request."""
    simulator.faults.add(Fault(Answer(503, "busy"), path="brokers$", times=2))
    assert client.get("/admin/v2/clusters").status_code == 200
    answers = [client.get("/admin/v2/brokers") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].json() == {"reason": "busy"}


def test_broken_json_is_a_200_that_cannot_be_read(simulator: Simulator, client: httpx.Client) -> None:
    simulator.faults.add(Fault(BrokenJson()))
    answer = client.get("/admin/v2/brokers")
    assert answer.status_code == 200
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(answer.content)


def test_a_delay_comes_after_the_work(simulator: Simulator, client: httpx.Client) -> None:
    """A delayed request is carried out, though its caller gives up before the answer comes."""
    fault = simulator.faults.add(Fault(Delay(30), path="/unload", times=None))
    with pytest.raises(httpx.ReadTimeout):
        client.put(f"/admin/v2/namespaces/{BUNDLE}/unload", timeout=0.3)
    assert owners(simulator) == []
    simulator.faults.remove(fault)
    assert client.put(f"/admin/v2/namespaces/{BUNDLE}/unload").status_code == 204


def test_a_fault_keeps_to_its_broker(simulator: Simulator, client: httpx.Client) -> None:
    simulator.faults.add(Fault(Answer(500), broker_id=simulator.active_brokers()[0], times=None))
    statuses = {url: client.get(f"{url}/admin/v2/clusters").status_code for url in simulator.admin_urls}
    assert sorted(statuses.values()) == [200, 200, 500]
    assert statuses[f"http://{simulator.active_brokers()[0]}"] == 500


def test_brokers_are_numbered_as_their_ids_sort() -> None:
    """Whichever ports are free, the brokers' numbers and the order of their ids name the same ones."""
    with running_simulator(ClusterSpec(brokers=9)) as simulator:
        assert simulator.admin_urls == tuple(f"http://{broker}" for broker in simulator.active_brokers())


def test_every_request_is_written_down(simulator: Simulator, client: httpx.Client) -> None:
    client.get("/admin/v2/brokers", headers={"Authorization": "Bearer x"})
    client.post("/admin/v2/namespaces/public/default/messageTTL?a=b", json=60)
    read, write = simulator.requests.all()
    assert (read.path, read.had_authorization) == ("/admin/v2/brokers", True)
    assert (write.query, write.body, write.had_authorization) == ("a=b", b"60", False)
    assert simulator.requests.writes() == (write,)


def test_a_paused_broker_accepts_and_does_not_answer(simulator: Simulator, client: httpx.Client) -> None:
    broker_id = simulator.admin_urls[0].removeprefix("http://")
    simulator.pause_broker(broker_id)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/admin/v2/brokers", timeout=0.3)
    simulator.resume_broker(broker_id)
    assert client.get("/admin/v2/brokers").status_code == 200


def test_an_added_broker_is_listed_and_gets_nothing(simulator: Simulator, client: httpx.Client) -> None:
    broker = simulator.add_broker()
    assert broker.broker_id in client.get(f"{broker.admin_url}/admin/v2/brokers").json()
    assert simulator.tc_placement()[broker.broker_id] == 0
    assert simulator.owned_bundles()[broker.broker_id] == (
        f"pulsar/{broker.broker_id}/0x00000000_0xffffffff",
        f"pulsar/local/{broker.broker_id}/0x00000000_0xffffffff",
    )


def test_a_session_can_be_ended_at_once(simulator: Simulator, client: httpx.Client) -> None:
    first, second, _ = (url.removeprefix("http://") for url in simulator.admin_urls)
    simulator.kill_broker(first)
    at = simulator.admin_urls[1]
    assert client.get(f"{at}/admin/v2/brokers/leaderBroker").json()["brokerId"] == first
    simulator.expire_session(first)
    assert client.get(f"{at}/admin/v2/brokers/leaderBroker").json()["brokerId"] == second
    assert first not in simulator.active_brokers()


def test_a_described_topic_shows_its_figures_everywhere() -> None:
    idle = SubscriptionSpec("s", consumers=2, backlog=50, unacked=7, ack_holes=3, delayed=5)
    topic = TopicSpec("t", partitions=2, producers=1, subscriptions=(idle,), message_bytes=10)
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec("a/b", topics=(topic,)),))
    name = "persistent://a/b/t-partition-1"
    with (
        running_simulator(spec) as simulator,
        httpx.Client(base_url=simulator.admin_urls[0], trust_env=False) as client,
    ):
        bundle = client.get("/lookup/v2/topic/persistent/a/b/t-partition-1/bundle").text
        sampled = client.get("/admin/v2/broker-stats/topics").json()["a/b"][bundle]["persistent"][name]
        asked = client.get("/admin/v2/persistent/a/b/t-partition-1/stats").json()
        metrics = client.get("/metrics/").text
    assert sampled["backlogSize"] == asked["backlogSize"] == 500
    assert [each["unackedMessages"] for each in sampled["subscriptions"]["s"]["consumers"]] == [4, 3]
    assert sampled["subscriptions"]["s"]["totalNonContiguousDeletedMessagesRange"] == 3
    assert asked["nonContiguousDeletedMessagesRanges"] == 3
    assert asked["subscriptions"]["s"]["msgBacklogNoDelayed"] == 45
    assert (
        f'pulsar_subscription_delayed{{cluster="local",namespace="a/b",topic="{name}",subscription="s"}} 5\n' in metrics
    )


def test_the_command_prints_its_addresses_and_ends_when_told() -> None:
    command = [sys.executable, "-m", "lab.simulator", "--brokers", "2", "--token", "made-up"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            told = msgspec.json.decode(process.stdout.readline())
            headers = {"Authorization": "Bearer made-up"}
            listed = httpx.get(f"{told['admin_urls'][1]}/admin/v2/brokers", headers=headers, trust_env=False).json()
            assert sorted(f"http://{broker}" for broker in listed) == sorted(told["admin_urls"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 0
            assert process.stdout.read() == b""
        finally:
            process.kill()
