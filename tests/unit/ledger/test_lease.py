"""Leases and halts in a ledger: one writer changes a cluster, and a person can stop all."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import Halted, LeaseLost
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import add_name
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, halt_of, say
from pulsar_steward.ledger.rows import Answer, Decision, Lease
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, an_intended_call
from tests.cases import cases, row_by_row
from tests.unit.ledger.test_records import APPROVED, PLAN, RUN
from tests.unit.model.builders import move, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import URL, Engine

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter


LOCAL, OTHER = NamedCluster("local"), NamedCluster("other")
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
EXPIRY = AT + timedelta(seconds=60)
INSTANT = timedelta(microseconds=1)

RACE = """
import sys
from datetime import UTC, datetime, timedelta
from pulsar_steward.errors import LeaseLost
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster

url, name, holder = sys.argv[1:]
cluster = NamedCluster(name, ClusterIdentity(name="local", metadata_id="0"))
engine = open_ledger(url)
write = LedgerWriter(engine)
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
for hour in range(20):
    at = datetime(2026, 1, 1, hour, tzinfo=UTC)
    try:
        won = write.take_lease(cluster, holder, 60, at)
    except LeaseLost:
        continue
    sys.stdout.write(f"{hour} {won.fence}\\n")
engine.dispose()
"""


@pytest.fixture
def intend(write: LedgerWriter) -> Callable[[Lease, datetime], int]:
    write.record_plan(plan(), AT)
    answer = Answer(
        asked_digest=ASKED_DIGEST,
        plan_id=plan().plan_id,
        batch_id="b1",
        run="run 1",
        decision=Decision.APPROVED,
        answered_by="alice",
        answered_at=AT,
        expires_at=AT + timedelta(days=1),
        reason="approved",
    )
    write.record_request(plan(), "b1", "run 1", AT, asked_digest=ASKED_DIGEST, policy=Policy())
    call = an_intended_call(plan(), move(1), answer, write.record_answer(answer))
    return lambda lease, at: write.record_intent(call, lease, at)


def test_a_free_cluster_is_taken(write: LedgerWriter, read: LedgerReader) -> None:
    """The first lease of a cluster has fence 1 and ends after the requested seconds."""
    assert read.lease(LOCAL) is None
    taken = write.take_lease(LOCAL, "one", 60, AT)
    assert taken == read.lease(LOCAL) == Lease(cluster="local", holder="one", fence=1, expires_at=EXPIRY)


@pytest.mark.parametrize("at", [AT, EXPIRY - INSTANT])
def test_a_second_writer_is_refused_until_expiry(at: datetime, write: LedgerWriter, read: LedgerReader) -> None:
    """A second writer is refused until the lease expires, with its holder and end, and the lease stays the same."""
    taken = write.take_lease(LOCAL, "one", 60, AT)
    with pytest.raises(LeaseLost, match=r"^one is changing cluster local until 12:01:00 UTC"):
        write.take_lease(LOCAL, "two", 60, at)
    assert read.lease(LOCAL) == taken


def test_another_cluster_is_free(write: LedgerWriter) -> None:
    write.take_lease(LOCAL, "one", 60, AT)
    assert write.take_lease(OTHER, "two", 60, AT).holder == "two"


def test_clusters_beside_each_other_take_turns(write: LedgerWriter) -> None:
    """A member of a logical cluster waits until fewer others are changed than may be; who has a lease keeps it."""
    beside: dict[str, Any] = {"beside": {OTHER.name, "third"}}
    write.take_lease(OTHER, "two", 60, AT)
    with pytest.raises(LeaseLost, match=r"^other is being changed, in one logical cluster with local: at most 1"):
        write.take_lease(LOCAL, "one", 60, AT, **beside)
    lease = write.take_lease(LOCAL, "one", 60, AT, **beside, at_once=2)
    assert write.prolong_lease(LOCAL, lease, 60, EXPIRY - INSTANT).fence == 1
    assert write.take_lease(OTHER, "two", 60, EXPIRY + INSTANT, beside={"third"}).holder == "two"


@row_by_row(
    "held, beside",
    ("west2", {"west"}),
    ("west", {"west2"}),
    ("West", {"west"}),
    ("west", {"WEST2"}),
)
def test_a_cluster_beside_counts_under_each_of_its_names(
    engine: Engine, write: LedgerWriter, held: str, beside: set[str]
) -> None:
    west = ClusterIdentity(name="pulsar-west", metadata_id="1")
    with appending(engine) as chain:
        for name in ("west", "west2"):
            add_name(chain, NamedCluster(name, west), AT)
    write.take_lease(NamedCluster(held, west), "two", 60, AT)
    with pytest.raises(LeaseLost, match=rf"^{held} is being changed, in one logical cluster with east: at most 1"):
        write.take_lease(EAST, "one", 60, AT, beside=beside)


def test_an_expired_lease_is_taken_over(write: LedgerWriter) -> None:
    """Another writer can take an expired lease, and gets a higher fence."""
    write.take_lease(LOCAL, "one", 60, AT)
    assert write.take_lease(LOCAL, "two", 60, EXPIRY).fence == 2


def test_a_holder_prolongs_its_lease(write: LedgerWriter, read: LedgerReader) -> None:
    """A holder that renews its lease in time keeps the fence."""
    prolonged = write.prolong_lease(LOCAL, write.take_lease(LOCAL, "one", 60, AT), 60, EXPIRY - INSTANT)
    assert (prolonged.fence, prolonged.expires_at) == (1, EXPIRY - INSTANT + timedelta(seconds=60))
    assert read.lease(LOCAL) == prolonged


def test_an_expired_lease_is_not_prolonged(write: LedgerWriter, read: LedgerReader) -> None:
    """A holder that is late keeps nobody away: neither its own cluster nor those beside it."""
    lease = write.take_lease(LOCAL, "one", 60, AT)
    with pytest.raises(LeaseLost, match=r"ran out at 12:01:00 UTC"):
        write.prolong_lease(LOCAL, lease, 60, EXPIRY)
    assert read.lease(LOCAL) == lease


def test_a_lease_is_not_prolonged_beside_another_of_its_cluster(engine: Engine, write: LedgerWriter) -> None:
    """Two names may turn out to lead to one cluster while both have a lease: neither keeps it."""
    east, west, both = (
        NamedCluster(name, ClusterIdentity(name="local", metadata_id=name), frozenset(brokers))
        for name, brokers in (("east", "a"), ("west", "b"), ("north", "ab"))
    )
    leases = {cluster: write.take_lease(cluster, cluster.name, 60, AT) for cluster in (east, west)}
    with appending(engine) as chain:
        add_name(chain, both, AT)
    for cluster, lease in leases.items():
        with pytest.raises(LeaseLost, match=r"is changing cluster (east|west) until"):
            write.prolong_lease(cluster, lease, 60, AT)


def test_a_lease_that_was_given_back_is_free(write: LedgerWriter) -> None:
    """Another writer can take a lease as soon as it was given back, also if its clock is slightly behind."""
    write.end_lease(write.take_lease(LOCAL, "one", 60, AT), AT + INSTANT)
    assert write.take_lease(LOCAL, "two", 60, AT).fence == 2


def test_who_was_fenced_gives_nothing_back(write: LedgerWriter, read: LedgerReader) -> None:
    """Giving back an old lease leaves the present one alone, even with the same holder's name."""
    old = write.take_lease(LOCAL, "one", 60, AT)
    present = write.take_lease(LOCAL, "one", 60, EXPIRY)
    write.end_lease(old, EXPIRY)
    assert read.lease(LOCAL) == present


def test_a_call_is_announced_under_the_lease(
    intend: Callable[[Lease, datetime], int], write: LedgerWriter, read: LedgerReader
) -> None:
    """Intents are recorded while the lease holds, also with the copy of it from before it was renewed."""
    lease = write.take_lease(LOCAL, "one", 60, AT)
    intend(lease, EXPIRY - INSTANT)
    write.prolong_lease(LOCAL, lease, 60, EXPIRY - INSTANT)
    intend(lease, EXPIRY)
    assert [each.at for each in read.intents(plan().plan_id, "b1")] == [EXPIRY - INSTANT, EXPIRY]


@row_by_row(
    "case, words",
    ("never taken", "another writer holds cluster local by now"),
    ("another name", "another writer holds cluster local by now"),
    ("newer fence", "another writer holds cluster local by now"),
    ("taken over", "another writer holds cluster local by now"),
    ("given back", "the lease on cluster local ran out at 12:00:00 UTC"),
    ("ran out", "the lease on cluster local ran out at 12:01:00 UTC"),
)
def test_without_the_lease_no_call_is_announced(
    case: str, words: str, intend: Callable[[Lease, datetime], int], write: LedgerWriter, read: LedgerReader
) -> None:
    """No intent is recorded for a writer that does not hold the lease at that moment, and the error says why."""
    lease, at = Lease(cluster="local", holder="one", fence=1, expires_at=EXPIRY), AT
    if case != "never taken":
        write.take_lease(LOCAL, "one" if case != "another name" else "two", 60, AT)
    if case in {"given back", "newer fence"}:
        write.end_lease(lease, at)
    if case == "newer fence":
        assert write.take_lease(LOCAL, "one", 60, at).fence == 2
    if case in {"ran out", "taken over"}:
        at = EXPIRY
    if case == "taken over":
        write.take_lease(LOCAL, "two", 60, at)
    with pytest.raises(LeaseLost, match=words):
        intend(lease, at)
    assert read.intents(plan().plan_id, "b1") == ()


@cases("names", ("one name", ("east", "east")), ("two names", ("east", "west")))
def test_of_concurrent_writers_one_wins_each_time(url: URL, names: tuple[str, str]) -> None:
    place = url.render_as_string(hide_password=False)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, place, name, f"run {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, name in enumerate(names)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        said = [racer.communicate("go\n", timeout=180) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert [racer.returncode for racer in racers] == [0, 0], said
    won = sorted(tuple(map(int, line.split())) for out, _ in said for line in out.splitlines())
    assert [hour for hour, _ in won] == list(range(20))
    if names[0] == names[1]:  # each name has fences of its own
        assert [fence for _, fence in won] == list(range(1, 21))


A = NamedCluster("a")


def halt(cluster: str, *, halted: bool = True) -> Halt:
    """A halt, or its end, by Bob."""
    return Halt(cluster=cluster, at=AT, halted=halted, said_by="bob", reason="brokers are being upgraded")


def test_every_cluster_is_halted_at_once(engine: Engine) -> None:
    say(engine, halt(EVERY_CLUSTER))
    say(engine, halt("a", halted=False))
    assert halt_of(engine, A) == halt(EVERY_CLUSTER)


def test_no_call_can_be_intended_while_halted(engine: Engine, write: LedgerWriter, read: LedgerReader) -> None:
    write.record_plan(PLAN, AT)
    write.record_request(PLAN, "b1", RUN, AT, asked_digest=ASKED_DIGEST, policy=Policy())
    answer_id = write.record_answer(APPROVED)
    lease = write.take_lease(PLAN.named_cluster, RUN, 600, AT)
    step = PLAN.batch("b1").step("b1.s01")
    intended = an_intended_call(PLAN, step, APPROVED, answer_id)
    say(engine, halt(PLAN.cluster))
    with pytest.raises(Halted, match=r"by bob at 2026-01-01 12:00:00 UTC: brokers are"):
        write.record_intent(intended, lease, AT)
    assert read.intents(PLAN.plan_id, "b1") == ()
    say(engine, halt(PLAN.cluster, halted=False))
    assert write.record_intent(intended, lease, AT)


EAST, WEST, NORTH = (
    NamedCluster(name, ClusterIdentity(name="local", metadata_id=store))
    for name, store in (("east", "0"), ("west", "0"), ("north", "1"))
)


@row_by_row(
    "halted, stopped",
    ("east", {"east", "west"}),
    ("west", {"east", "west"}),
    ("north", {"north"}),
    ("nrth", {"east", "west", "north"}),
)
def test_a_halt_stops_its_cluster_under_every_name(engine: Engine, halted: str, stopped: set[str]) -> None:
    with appending(engine) as chain:
        for cluster in (EAST, WEST, NORTH):
            add_name(chain, cluster, AT)
    say(engine, halt(halted))
    assert {each.name for each in (EAST, WEST, NORTH) if halt_of(engine, each)} == stopped
    assert halt_of(engine, NamedCluster(halted)) == halt(halted)
