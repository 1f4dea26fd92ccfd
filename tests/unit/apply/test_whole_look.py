"""Facts of the whole cluster are asked for anew in time, and no more often than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pulsar_steward.apply.kept import AGES
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.errors import Unreachable
from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.pulsar.metrics import Sample
from tests.builders import IDENTITY, a_policy, broker

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.errors import AdminError
    from pulsar_steward.model.cluster import ClusterIdentity

ALL = [broker(number) for number in range(4)]


class Cluster:
    """Stands in for the reader, and counts."""

    def __init__(self) -> None:
        self.now = 0.0
        self.listed = list(ALL)
        self.silent: set[str] = set()
        self.name = IDENTITY
        self.asked: list[str] = []

    def brokers(self) -> tuple[str, ...]:
        """Returns the listed brokers."""
        self.asked.append("list")
        return tuple(self.listed)

    def identity(self) -> ClusterIdentity:
        """Returns the identity of the cluster."""
        self.asked.append("identity")
        return self.name

    def owned_by_each(self, brokers: Collection[str]) -> dict[str, tuple[str, ...] | AdminError]:
        """No bundles, or that they are not there."""
        self.asked += brokers
        gone = {name: Unreachable("GET", "/ownedNamespaces", name, "gone") for name in brokers if name in self.silent}
        return {name: gone.get(name, ()) for name in brokers}

    def called(self) -> None:
        """Nothing is kept that a call makes stale."""

    def bookies(self) -> frozenset[str]:
        """Returns five bookies on four hosts."""
        return frozenset({"a:3181", "b:3181", "c:3181", "d:3181", "d:3182"})

    def bookies_of(self, namespace: str) -> tuple[tuple[str, ...], frozenset[str]] | None:
        """Returns the group of one namespace, with a bookie that was removed from the cluster."""
        return (("gold",), frozenset({"a:3181", "b:3181", "d:3181", "gone:3181"})) if namespace == "t/gold" else None

    def bookie_samples(self, url: str, series: str) -> list[Sample]:
        """Returns what a bookie says of itself: the one on host b takes no writes."""
        return [Sample(series=series, labels={}, value=0.0 if url.startswith("http://b:") else 1.0)]

    def asked_since(self) -> list[str]:
        """Requests since this was called last, in order of name."""
        asked, self.asked = sorted(self.asked), []
        return asked


@pytest.fixture
def cluster() -> Cluster:
    """Four brokers that answer."""
    return Cluster()


@pytest.fixture
def whole(cluster: Cluster) -> WholeLook:
    """A look at them, after its first question."""
    whole = WholeLook(cast("LiveReader", cluster), a_policy(), lambda: cluster.now)
    look(whole)
    assert cluster.asked_since() == [*ALL, "identity", "list"]
    return whole


@pytest.mark.parametrize(
    ("namespace", "found"),
    [
        ("t/any", Bookies(listed=5, writable=3, read_only=1)),
        ("t/gold", Bookies(groups=("gold",), listed=3, writable=1, read_only=1)),
    ],
)
def test_bookies_are_those_that_a_namespace_may_use(cluster: Cluster, namespace: str, found: Bookies) -> None:
    """Of a group, its listed bookies count, and metrics of hosts all of whose bookies are in it."""
    urls = [f"bookie=http://{host}:8000/metrics" for host in "abcd"]
    whole = WholeLook(cast("LiveReader", cluster), a_policy(collect={"metrics_urls": urls}), lambda: cluster.now)
    assert whole.bookies(namespace) == found


def look(whole: WholeLook) -> tuple[tuple[str, ...], bool]:
    """Questions of the guards of a move to broker 1."""
    whole.begin()
    whole.identity()
    return whole.silent_brokers(), whole.is_active(broker(1))


def test_a_look_an_instant_later_is_the_same_look(whole: WholeLook, cluster: Cluster) -> None:
    """A second look within an instant sends no requests if no call was made in between."""
    cluster.now = AGES["listed"].next_step
    look(whole)
    assert cluster.asked_since() == []


@pytest.mark.parametrize("called", [True, False], ids=["a call", "a while"])
def test_before_another_change_who_answers_is_asked_anew(whole: WholeLook, cluster: Cluster, *, called: bool) -> None:
    if called:
        whole.called()
    else:
        cluster.now = AGES["listed"].next_step + 1
    look(whole)
    assert cluster.asked_since() == [broker(1), "identity", "list"]


def test_after_a_minute_all_are_asked_again(whole: WholeLook, cluster: Cluster) -> None:
    cluster.silent = {broker(3)}
    for cluster.now in (20.0, 40.0, AGES["whole"].seconds):
        assert look(whole) == ((), True)
    cluster.asked_since()
    cluster.now = AGES["whole"].seconds + AGES["listed"].next_step + 1
    assert look(whole) == ((broker(3),), True)
    assert cluster.asked_since() == sorted([*ALL, "identity", "list"])


@pytest.mark.parametrize("change", ["one less", "one more", "another cluster"])
def test_where_others_are_listed_or_another_cluster_answers_all_are_asked_again(
    whole: WholeLook, cluster: Cluster, change: str
) -> None:
    match change:
        case "one less":
            cluster.listed.pop()
        case "one more":
            cluster.listed.append(broker(4))
        case _:
            cluster.name = type(IDENTITY)(name="other", metadata_id=None)
    whole.called()
    look(whole)
    assert cluster.asked_since() == sorted([*cluster.listed, "identity", "list"])


def test_a_target_that_stopped_answering_is_silent(whole: WholeLook, cluster: Cluster) -> None:
    cluster.silent = {broker(1)}
    whole.called()
    assert look(whole) == ((), False)
    assert whole.silent_brokers() == (broker(1),)
    assert whole.active() == [broker(0), broker(2), broker(3)]
    with pytest.raises(Unreachable, match="gone"):
        whole.owned_by(broker(1))


def test_a_broker_that_is_not_listed_does_not_answer(whole: WholeLook, cluster: Cluster) -> None:
    assert not whole.is_active(broker(9))
    assert cluster.asked_since() == []
