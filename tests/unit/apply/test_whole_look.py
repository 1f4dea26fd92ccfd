"""Looks at a whole cluster before calls, for how long what was seen is kept, and the lease of a run."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from pulsar_steward.apply.kept import AGES, KeptFacts
from pulsar_steward.apply.lease import held_lease
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.errors import AdminError, LeaseLost, Unreachable
from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import ApplyPolicy
from pulsar_steward.pulsar.metrics import Sample
from tests.builders import IDENTITY, NAMED, a_policy, broker
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.ledger.rows import Lease
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
        self.settings: dict[str, str] = {}
        self.own_settings: dict[str, str] = {}

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

    def bookie_groups(self, namespace: str) -> tuple[str, ...]:
        """Returns the group of one namespace."""
        return ("gold",) if namespace == "t/gold" else ()

    def bookies_in(self, groups: Collection[str]) -> frozenset[str]:
        """Returns the bookies of groups, with one that was removed from the cluster."""
        racks = {"gold": {"a:3181", "b:3181", "d:3181", "gone:3181"}, "silver": {"c:3181"}}
        return frozenset[str]().union(*(racks[each] for each in groups))

    def configurations(self, brokers: Collection[str]) -> tuple[dict[str, str], ...]:
        """Returns what the brokers have in common, and what the last one has of its own."""
        return (*[self.settings for _ in brokers][1:], self.settings | self.own_settings)

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
        ("t/gold", Bookies(groups="of t/gold's affinity group (gold)", listed=3, writable=1, read_only=1)),
    ],
)
def test_bookies_are_those_that_a_namespace_may_use(cluster: Cluster, namespace: str, found: Bookies) -> None:
    """Of a group, its listed bookies count, and metrics of hosts all of whose bookies are in it."""
    urls = [f"bookie=http://{host}:8000/metrics" for host in "abcd"]
    whole = WholeLook(cast("LiveReader", cluster), a_policy(collect={"metrics_urls": urls}), lambda: cluster.now)
    assert whole.bookies(namespace) == found


GROUPS, SECOND = "bookkeeperClientIsolationGroups", "bookkeeperClientSecondaryIsolationGroups"
OF_SILVER = Bookies(groups="of the brokers' isolation groups (silver)", listed=1)
OF_BOTH = Bookies(groups="of the brokers' isolation groups (gold, silver)", listed=4)
DIFFER = Unknown(
    "which bookies may have ledgers of t/any is not known: it has no affinity group, and the brokers'"
    " bookkeeperClientIsolationGroups differ"
)
STRICT = Unknown(
    "which bookies may have ledgers of t/any is not known: it has no affinity group, and brokers keep to these strictly"
    " (strictBookieAffinityEnabled)"
)


@row_by_row(
    "settings, own, found",
    ({GROUPS: "", SECOND: "silver"}, {}, Bookies(listed=5)),
    ({GROUPS: "silver", SECOND: ""}, {}, OF_SILVER),
    ({GROUPS: "gold", SECOND: "silver"}, {}, OF_BOTH),
    ({GROUPS: "silver"}, {GROUPS: ""}, DIFFER),
    ({GROUPS: "gold"}, {SECOND: "silver"}, DIFFER),
    ({}, {"strictBookieAffinityEnabled": "true"}, STRICT),
)
def test_ledgers_without_a_group_of_their_own_keep_to_the_brokers_groups(
    cluster: Cluster, settings: dict[str, str], own: dict[str, str], found: Bookies | Unknown
) -> None:
    """A namespace without an affinity group has the brokers' groups, if all brokers have the same."""
    cluster.settings, cluster.own_settings = settings, own
    whole = WholeLook(cast("LiveReader", cluster), a_policy(), lambda: cluster.now)
    assert whole.bookies("t/any") == found
    assert whole.bookies("t/gold") == Bookies(groups="of t/gold's affinity group (gold)", listed=3)


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


@cases("called", ("a call", True), ("a while", False))
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


class Clock:
    """A clock that stands still until a test moves it, and counts what is read."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0
        self.kept = KeptFacts(lambda: self.now)

    def read(self, age: str, fact: str = "fact") -> int:
        """Returns which read a fact is from."""
        return self.kept.keep(age, fact, self._read)

    def _read(self) -> int:
        self.reads += 1
        self.now += 1  # a read takes a second
        return self.reads


@pytest.mark.parametrize("age", AGES)
def test_a_fact_is_read_again_once_it_is_too_old(age: str) -> None:
    clock = Clock()
    assert clock.read(age) == 1
    clock.now = AGES[age].seconds
    assert clock.read(age) == 1
    clock.now += 0.1
    assert clock.read(age) == 2


@pytest.mark.parametrize("age", AGES)
def test_a_call_makes_all_stale_but_what_outlives_it(age: str) -> None:
    clock = Clock()
    clock.read(age)
    clock.kept.called()
    assert clock.read(age) == (1 if AGES[age].outlives_calls else 2)


def test_facts_of_one_age_are_dropped_together_when_a_step_begins() -> None:
    """One that is too old for another step takes the younger ones along."""
    clock = Clock()
    clock.read("listed", "old")
    clock.now = AGES["listed"].next_step
    clock.read("listed", "young")
    clock.kept.begin()
    assert clock.read("listed", "young") == 3


def test_a_single_fact_can_be_dropped() -> None:
    """Other facts of the same age stay."""
    clock = Clock()
    clock.read("clients", "a")
    clock.read("clients", "b")
    clock.kept.drop("clients", "a", "not read")
    assert (clock.read("clients", "b"), clock.read("clients", "a")) == (2, 3)


SHORT = ApplyPolicy.model_construct(lease_seconds=3, lease_wait_seconds=10)
IMPATIENT = ApplyPolicy.model_construct(lease_seconds=1, lease_wait_seconds=0)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty ledger."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield engine
    engine.dispose()


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)


def recorded(engine: Engine) -> Lease:
    """The lease on the cluster as the ledger has it."""
    lease = LedgerReader(engine).lease(NAMED)
    assert lease is not None
    return lease


def wait_until(condition: Callable[[], bool]) -> None:
    """Returns once it holds, or fails after a good while."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass within 10 s"
        time.sleep(0.02)


def test_a_held_lease_is_prolonged(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        first = lease.current
        wait_until(lambda: recorded(engine).expires_at > first.expires_at + timedelta(seconds=0.5))
        assert lease.current.fence == first.fence == recorded(engine).fence


def test_a_lease_ends_with_its_block(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now):
        pass
    assert recorded(engine).expires_at <= now()
    with held_lease(LedgerWriter(engine), NAMED, "another run", IMPATIENT, now) as lease:
        assert lease.current.holder.startswith("another run#")


@cases("second", ("another", "another run"), ("the same run again", "a run"))
def test_a_second_writer_gives_up(engine: Engine, second: str) -> None:
    with (
        held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now),
        pytest.raises(LeaseLost, match=r"a run#\w+ is changing cluster east .* waited 0 s"),
        held_lease(LedgerWriter(engine), NAMED, second, IMPATIENT, now),
    ):
        pytest.fail("two writers at once")


def test_a_second_writer_waits_and_goes_on(engine: Engine) -> None:
    entered = threading.Event()
    fences: list[int] = []

    def second() -> None:
        with held_lease(LedgerWriter(engine), NAMED, "another run", SHORT, now) as lease:
            fences.append(lease.current.fence)
            entered.set()

    waiting = threading.Thread(target=second)
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        first = lease.current.fence
        waiting.start()
        assert not entered.wait(0.3)
    waiting.join(10)
    assert fences == [first + 1]


def test_a_crashed_writers_lease_runs_out(engine: Engine) -> None:
    LedgerWriter(engine).take_lease(NAMED, "a crashed run", 1, now())
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        assert lease.current.holder.startswith("a run#")


def test_a_lease_that_ran_out_is_not_taken_up_again(engine: Engine) -> None:
    """A writer that did not prolong its lease in time has lost it, and no row of its own shuts others out."""
    later = timedelta()
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, lambda: now() + later) as lease:
        later = timedelta(minutes=1)
        wait_until(lambda: _lost(lambda: lease.current))
        with pytest.raises(LeaseLost, match="the lease on cluster east ran out"):
            _ = lease.current
    assert recorded(engine).fence == 1
    assert recorded(engine).expires_at < now() + later


def test_a_lease_that_another_took_is_lost(engine: Engine) -> None:
    with held_lease(LedgerWriter(engine), NAMED, "a run", SHORT, now) as lease:
        LedgerWriter(engine).take_lease(NAMED, "another run", 60, now() + timedelta(minutes=1))
        wait_until(lambda: _lost(lambda: lease.current))
        with pytest.raises(LeaseLost, match="another run is changing cluster east"):
            _ = lease.current
    assert recorded(engine).holder == "another run"
    assert recorded(engine).expires_at > now()


def _lost(current: Callable[[], Lease]) -> bool:
    try:
        current()
    except LeaseLost:
        return True
    return False
