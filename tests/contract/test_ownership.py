"""Owners of bundles: calls that load a bundle, effects of unloads and splits, and the loss of a broker."""

import itertools
from collections import Counter

import httpx
import pytest

from lab.waiting import wait_until
from tests.contract.api import SYSTEM, Api

NAMESPACES = "/admin/v2/namespaces"
TOPIC = "/admin/v2/persistent/{namespace}/topic"
PARTITION = f"{TOPIC}-partition-0"
UNLOADED_WITHIN_S = 40


ANSWERED = {200, 204, 412}
"""By a broker that knows the path: with what it asks for, with nothing that is set, or that nobody owns the bundle."""


@pytest.mark.parametrize(
    ("path", "loads"),
    [
        (f"{NAMESPACES}/{{namespace}}", False),
        (f"{NAMESPACES}/{{namespace}}/bundles", False),
        (f"{NAMESPACES}/{{namespace}}/retention", False),
        (f"{NAMESPACES}/{{namespace}}/backlogQuotaMap", False),
        (f"{NAMESPACES}/{{namespace}}/{{bundle}}/topicHashPositions", False),
        ("/admin/v2/persistent/{namespace}", False),
        ("/admin/v2/persistent/{namespace}/partitioned", False),
        (f"{TOPIC}/partitions", False),
        ("/lookup/v2/topic/persistent/{namespace}/topic-partition-0/bundle", False),
        ("/lookup/v2/topic/persistent/{namespace}/topic-partition-0", True),
        (f"{PARTITION}/stats", True),
        (f"{PARTITION}/internal-info", False),
        (f"{PARTITION}/internalStats", True),
        (f"{TOPIC}/partitioned-stats", True),
    ],
)
def test_which_reading_calls_load_a_bundle(api: Api, namespace: str, path: str, *, loads: bool) -> None:
    topic = api.new_partitioned(namespace, 1)
    bundle = api.bundle_of(f"{topic}-partition-0")
    assert api.final("GET", path.format(namespace=namespace, bundle=bundle)).status_code in ANSWERED
    assert (api.owner(f"{namespace}/{bundle}") is not None) is loads


def test_asking_a_topic_for_its_policy_loads_its_bundle(api: Api, namespace: str) -> None:
    topic = api.new_partitioned(namespace, 1)
    assert api.final("GET", f"{TOPIC.format(namespace=namespace)}/retention").content == b""
    assert api.owner(f"{namespace}/{api.bundle_of(f'{topic}-partition-0')}") is not None


def test_an_unowned_bundle_has_no_positions_to_tell(api: Api, namespace: str) -> None:
    """Asked for hash positions of a bundle that nobody owns, every broker says 412."""
    reason = f"Failed to find ownership for ServiceUnit:{namespace}/0x00000000_0x40000000"
    for at in range(len(api.ids)):
        answer = api.call("GET", f"{NAMESPACES}/{namespace}/0x00000000_0x40000000/topicHashPositions", at)
        assert (answer.status_code, answer.json()) == (412, {"reason": reason})


def test_a_first_lookup_goes_by_the_leader_to_the_owner_to_be(api: Api, namespace: str) -> None:
    """A follower redirects the first lookup to the leader; afterwards every broker answers by itself."""
    path = f"/lookup/v2/topic/persistent/{namespace}/topic"
    first, *_, last = api.hops("GET", path, at=api.followers()[0])
    assert first.status_code == 307
    assert first.headers["Location"] == f"http://{api.ids[api.leader()]}{path}?authoritative=false"
    assert set(last.json()) == {"brokerUrl", "httpUrl", "nativeUrl", "brokerUrlSsl"}
    assert [api.call("GET", path, at).json() for at in range(3)] == [last.json()] * 3


def test_the_bundle_of_a_topic_is_a_bare_range_even_where_there_is_no_namespace(api: Api, namespace: str) -> None:
    assert api.bundle_of(f"{namespace}/topic") in api.bundles(namespace)
    assert api.bundle_of("public/nothing/topic") == "0x00000000_0xffffffff"


def test_an_unload_goes_by_the_leader_which_keeps_the_destination(api: Api, namespace: str) -> None:
    asked, owner = api.followers()
    bundle = api.move(namespace, f"{namespace}/topic", to=owner)
    path = f"{NAMESPACES}/{namespace}/{bundle}/unload"
    to_leader, to_owner, done = api.hops("PUT", f"{path}?destinationBroker={api.ids[asked]}", at=asked)
    encoded = api.ids[asked].replace(":", "%3A")
    assert to_leader.headers["Location"] == (
        f"http://{api.ids[api.leader()]}{path}?destinationBroker={encoded}&authoritative=false"
    )
    assert to_owner.headers["Location"] == f"http://{api.ids[owner]}{path}?authoritative=true"
    assert [answer.status_code for answer in (to_leader, to_owner, done)] == [307, 307, 204]
    assert api.owner(f"{namespace}/{bundle}") is None, "nobody owns it until somebody looks it up"
    assert api.look_up(f"{namespace}/topic") == asked


def test_an_unload_without_destination_goes_straight_to_the_owner(api: Api, namespace: str) -> None:
    asked, owner = api.followers()
    bundle = api.move(namespace, f"{namespace}/topic", to=owner)
    path = f"{NAMESPACES}/{namespace}/{bundle}/unload"
    to_owner, done = api.hops("PUT", path, at=asked)
    assert to_owner.headers["Location"] == f"http://{api.ids[owner]}{path}?authoritative=false"
    assert (done.status_code, api.owner(f"{namespace}/{bundle}")) == (204, None)


@pytest.mark.parametrize("destinations", list(itertools.permutations(range(3), 2)))
def test_the_last_destination_named_wins(api: Api, namespace: str, destinations: tuple[int, int]) -> None:
    bundle = api.bundle_of(f"{namespace}/topic")
    for index in destinations:
        answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", params=api.to(index))
        assert (answer.status_code, api.owner(f"{namespace}/{bundle}")) == (204, None)
    assert api.look_up(f"{namespace}/topic") == destinations[1]


def test_a_destination_goes_to_whichever_bundle_of_its_range_is_loaded_first(api: Api, namespace: str) -> None:
    bundle, other = api.bundle_of(f"{namespace}/topic"), api.new_namespace()
    topic = next(name for number in itertools.count() if api.bundle_of(name := f"{other}/topic-{number}") == bundle)
    taken = []
    for index in range(len(api.ids)):
        api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", params=api.to(index)).raise_for_status()
        taken.append(api.look_up(topic) == index)
        # A broker that reads topic policies may have the named bundle loaded at once; then that one takes it.
        assert taken[-1] or api.owner(f"{namespace}/{bundle}") == index
        api.final("PUT", f"{NAMESPACES}/{other}/{bundle}/unload").raise_for_status()
    assert any(taken)


def test_the_present_owner_may_be_the_destination(api: Api, namespace: str) -> None:
    bundle = api.move(namespace, f"{namespace}/topic", to=1)
    answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/unload", params=api.to(1))
    assert (answer.status_code, api.owner(f"{namespace}/{bundle}")) == (204, None)
    assert api.look_up(f"{namespace}/topic") == 1


ALGORITHMS = "range_equally_divide, topic_count_equally_divide, specified_positions_divide, flow_or_qps_equally_divide"
NARROW, LATE = "0x00000000_0x50000000", "0x00000001_0x40000000"


@pytest.mark.parametrize("action", ["unload", "split"])
@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        (NARROW, "Invalid upper boundary for bundle {0}/{1}. Expected upper boundary of {0}/0x00000000_0x40000000"),
        (LATE, "Cannot find bundle {0}/{1} in the bundles list"),
    ],
)
def test_bounds_that_have_changed_are_refused(api: Api, namespace: str, action: str, bundle: str, reason: str) -> None:
    answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/{action}")
    assert (answer.status_code, answer.json()["reason"]) == (412, reason.format(namespace, bundle))


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("public/nothing/0x00000000_0x40000000/unload", 404, "Namespace not found"),
        ("public/nothing/0x00000000_0x40000000/split", 404, "Namespace not found"),
        ("public/default/rubbish/unload", 500, "Invalid bundle range"),
        ("public/default/rubbish/split", 412, "Invalid bundle range: rubbish"),
        (
            "public/default/0x00000000_0x10000000/unload?destinationBroker=127.0.0.1:1",
            409,
            "Not allowed unload namespace bundle to inactive destination broker",
        ),
        (
            "public/default/0x00000000_0x10000000/split?splitAlgorithmName=guess",
            412,
            f"Unsupported namespace bundle split algorithm, supported algorithms are [{ALGORITHMS}]",
        ),
        (
            "public/default/0x00000000_0x10000000/split?splitAlgorithmName=specified_positions_divide",
            412,
            "With specified_positions_divide split algorithm, splitBoundaries must not be empty",
        ),
    ],
)
def test_writes_that_make_no_sense_are_refused(api: Api, path: str, status: int, reason: str) -> None:
    answer = api.final("PUT", f"{NAMESPACES}/{path}")
    assert answer.status_code == status
    assert reason in answer.json()["reason"]


@pytest.mark.parametrize("unload", ["true", "false"])
def test_the_halves_stay_with_the_owner_unless_unloaded(api: Api, namespace: str, unload: str) -> None:
    bundle = api.move(namespace, f"{namespace}/topic", to=2)
    before = api.bundles(namespace)
    answer = api.final("PUT", f"{NAMESPACES}/{namespace}/{bundle}/split?unload={unload}")
    halves = [each for each in api.agreed_bundles(namespace) if each not in before]
    assert (answer.status_code, len(halves)) == (204, 2)
    expected = None if unload == "true" else 2
    # The halves are unloaded in the background, after the answer.
    wait_until(
        lambda: [api.owner(f"{namespace}/{half}") for half in halves] == [expected, expected],
        f"the halves belong to {expected}",
        UNLOADED_WITHIN_S,
    )


def split(api: Api, namespace: str, bundle: str, algorithm: str, at: int = 0, **options: object) -> list[str]:
    """Splits and returns the bundles afterwards.

    The halves are unloaded in the background; as long as that lasts, a real broker answers 500 for one of them.
    """
    path = f"{NAMESPACES}/{namespace}/{bundle}/split?unload=true&splitAlgorithmName={algorithm}"

    def accepted() -> bool:
        answer = api.final("PUT", path, at, **options)
        assert answer.status_code == 204 or "is being unloaded" in answer.text
        return bool(answer.status_code == 204)

    wait_until(accepted, f"{bundle} can be split", 10)
    return api.agreed_bundles(namespace)


def test_splitting_by_range_cuts_in_the_middle(api: Api, namespace: str) -> None:
    after = split(api, namespace, "0x40000000_0x80000000", "range_equally_divide")
    assert after[1:3] == ["0x40000000_0x60000000", "0x60000000_0x80000000"]


def test_splitting_by_topics_leaves_half_of_them_on_each_side(api: Api) -> None:
    namespace = api.new_namespace(bundles=1)
    topic = api.new_partitioned(namespace, 20)
    halves = split(api, namespace, "0x00000000_0xffffffff", "topic_count_equally_divide")
    held = Counter(api.bundle_of(f"{topic}-partition-{index}") for index in range(20))
    assert [held[half] for half in halves] == [10, 10]


def test_splitting_at_given_positions_cuts_there(api: Api, namespace: str) -> None:
    algorithm = "specified_positions_divide"
    api.new_partitioned(namespace, 32)
    after = split(api, namespace, "0x00000000_0x40000000", algorithm, json=[0x10000000, 0x20000000])
    assert after[:3] == ["0x00000000_0x10000000", "0x10000000_0x20000000", "0x20000000_0x40000000"]
    assert split(api, namespace, after[0], algorithm, json=[0xF0000000]) == after


@pytest.mark.parametrize("partitions", [0, 1])
@pytest.mark.parametrize(
    ("algorithm", "positions"),
    [("topic_count_equally_divide", None), ("specified_positions_divide", range(1, 1 << 32, 999_999_999))],
)
def test_splitting_hardly_anything_by_topics_succeeds_and_does_nothing(
    api: Api, namespace: str, partitions: int, algorithm: str, positions: range | None
) -> None:
    if partitions:
        api.new_partitioned(namespace, partitions)
    bundle = api.bundle_of(f"{namespace}/topic-partition-0")
    assert split(api, namespace, bundle, algorithm, json=positions and list(positions)) == api.bundles(namespace)
    assert api.owner(f"{namespace}/{bundle}") is not None


def test_asking_where_the_coordinators_are_loads_them_all(api: Api) -> None:
    """A request for the coordinators loads all sixteen of them, which are in eight bundles."""
    topics = [f"{SYSTEM}/transaction_coordinator_assign-partition-{index}" for index in range(16)]
    held = Counter(api.bundle_of(topic) for topic in topics)
    assert sorted(held.values()) == [1, 1, 2, 2, 2, 2, 3, 3]
    for bundle in held:
        api.final("PUT", f"{NAMESPACES}/{SYSTEM}/{bundle}/unload")
    assert sum(api.target.tc_placement().values()) == 0
    assert [each["id"] for each in api.get_once_ready("/admin/v3/transactions/coordinators", at=1)] == list(range(16))
    assert sum(api.target.tc_placement().values()) == 16


def test_coordinators_move_with_their_bundles(api: Api) -> None:
    piled = api.ids.index(api.target.pile_up_tcs())
    topic = f"{SYSTEM}/transaction_coordinator_assign-partition-12"
    other = (piled + 1) % 3
    path = f"{NAMESPACES}/{SYSTEM}/{api.bundle_of(topic)}/unload"
    assert api.final("PUT", path, params=api.to(other)).status_code == 204
    assert api.look_up(topic) == other
    assert api.target.tc_placement() == {**dict.fromkeys(api.ids, 0), api.ids[piled]: 15, api.ids[other]: 1}


def test_a_system_bundle_tells_its_coordinators_and_can_be_split(api: Api) -> None:
    topics = {f"{SYSTEM}/transaction_coordinator_assign-partition-{index}" for index in (1, 5, 9)}
    bundle, owner = api.bundle_of(min(topics)), api.look_up(min(topics))
    told = api.call("GET", f"{NAMESPACES}/{SYSTEM}/{bundle}/topicHashPositions", owner).json()
    assert set(told["topicHashPositions"]) == {f"persistent://{topic}" for topic in topics}
    split(api, SYSTEM, bundle, "topic_count_equally_divide")
    assert sorted(Counter(map(api.bundle_of, topics)).values()) == [1, 2]


def test_coordinator_stats_fail_where_no_client_ever_came(api: Api) -> None:
    assert api.call("GET", "/admin/v3/transactions/coordinatorStats").status_code == 500
    answer = api.final("GET", "/admin/v3/transactions/coordinatorStats?coordinatorId=0")
    assert answer.status_code == httpx.codes.NOT_FOUND


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
    unowned = f"{NAMESPACES}/public/default/{api.bundles('public/default')[0]}/unload"
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
