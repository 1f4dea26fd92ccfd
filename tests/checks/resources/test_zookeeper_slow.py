"""ZooKeeper servers by their own metrics: slow requests, a slow disk under the transaction log, requests that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import zookeeper_slow as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, minutes_ago, outcome, samples, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

START = NOW.timestamp() - 30 * 86_400
WARNING, CRITICAL, INFO = Severity.WARNING, Severity.CRITICAL, Severity.INFO


def server(
    source: str = "z1:8000",
    *,
    reads: tuple[float, float] = (0, 0),
    updates: tuple[float, float] = (0, 0),
    fsyncs: tuple[float, float] = (0, 0),
    waiting: int = 0,
    started: float | None = START,
    kind: str = "zookeeper",
) -> list[dict[str, Any]]:
    """Samples of a server: counts and means in milliseconds since its start, and the requests that wait."""
    values: dict[str, float | None] = {
        check.READS: reads[0],
        check.READING: reads[0] * reads[1],
        check.UPDATES: updates[0],
        check.UPDATING: updates[0] * updates[1],
        check.FSYNCS: fsyncs[0],
        check.SYNCING: fsyncs[0] * fsyncs[1],
        check.OUTSTANDING: waiting,
        check.NODES: 20_000,
        STARTED: started,
    }
    return samples(values, source, kind)


def rows(*servers: list[dict[str, Any]]) -> Rows:
    return {"brokers": [{"broker": "a:1", "read": True}], "metrics": [row for each in servers for row in each]}


QUICK = server(reads=(40_000, 0.4), updates=(20_000, 5), fsyncs=(15_000, 4))

OXIA = {"snapshot": [{"cluster": "lab", "taken_at": NOW, "metadata_store": "oxia"}]}


def test_another_store_is_no_zookeeper() -> None:
    """Without its metrics nobody is told to name ZooKeeper's servers, as there are none."""
    assert judge_rows(check.CHECK, rows() | OXIA).cannot_tell == (
        "The metadata store is oxia, not ZooKeeper: its servers are not judged."
    )


CASES: dict[str, tuple[Rows, Severity | None, bool]] = {
    "quick": (rows(QUICK), None, False),
    "reads just below": (rows(server(reads=(20, 99.9))), None, False),
    "reads of 100 ms": (rows(server(reads=(20, 100))), WARNING, False),
    "writes of 100 ms": (rows(server(reads=(900, 1), updates=(20, 100))), WARNING, False),
    "writes of a second": (rows(server(updates=(20, 1000))), CRITICAL, False),
    "fewer are no mean": (rows(server(updates=(19, 1000))), None, True),
    "a log of just below 50 ms": (rows(server(fsyncs=(20, 49.9))), None, False),
    "a log of 50 ms": (rows(server(fsyncs=(20, 50))), WARNING, False),
    "a log of half a second": (rows(server(fsyncs=(20, 500))), CRITICAL, False),
    "requests that wait in one snapshot": (rows(server(reads=(900, 1), waiting=4000)), INFO, False),
    "fewer that wait": (rows(server(reads=(900, 1), waiting=99)), None, False),
    "one server of two has done nothing": (rows(QUICK, server("z2:8000")), None, True),
    "a broker is no server": (rows(server(updates=(900, 1000), kind="broker")), None, True),
    "nobody told": (rows(), None, True),
}


@pytest.mark.parametrize(("snapshot", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_server_is_judged(snapshot: Rows, severity: Severity | None, unknown: bool) -> None:
    """Without an earlier snapshot a server is judged by its means since its start and by the requests that wait."""
    assert outcome(judge_rows(check.CHECK, snapshot)) == (severity, unknown)


def since(count: int, mean: float) -> tuple[float, float]:
    """A count and its mean since the start: a million quick ones a month ago, and since the snapshot before these."""
    total = 1_000_000 + count
    return total, (1_000_000 + count * mean) / total


def month(waiting: int = 0) -> list[dict[str, Any]]:
    """A server after a month of quick requests."""
    return server(updates=(1_000_000, 1), fsyncs=(1_000_000, 1), waiting=waiting)


def later(
    updates: tuple[int, float] = (500, 4), fsyncs: tuple[int, float] = (400, 4), waiting: int = 0
) -> list[dict[str, Any]]:
    """The same server some minutes later: what came since, with its mean."""
    return server(updates=since(*updates), fsyncs=since(*fsyncs), waiting=waiting)


OLD_HOURS = (2_000_000, 500), (2_000_500, 499.9)
HISTORIES: dict[str, tuple[Rows, tuple[Rows, ...], Severity | None]] = {
    "slow now, quick for a month": (rows(later(updates=(500, 400))), (rows(month()),), WARNING),
    "a slow log now": (rows(later(fsyncs=(400, 600))), (rows(month()),), CRITICAL),
    "quick now": (rows(later()), (rows(month()),), None),
    "slow long ago": (rows(server(updates=OLD_HOURS[1])), (rows(server(updates=OLD_HOURS[0])),), None),
    "restarted since, and quick": (rows(server(updates=(500, 4), started=START + 60)), (rows(month()),), None),
    "requests wait again": (rows(later(waiting=120)), (rows(month(waiting=150)),), WARNING),
    "many wait again": (rows(later(waiting=300)), (rows(month(waiting=301)),), CRITICAL),
    "they waited before and do not now": (rows(later()), (rows(month(waiting=301)),), None),
    "they wait now, and waited two snapshots ago": (
        rows(later(waiting=300)),
        (rows(month()), rows(month(waiting=301))),
        INFO,
    ),
}


@pytest.mark.parametrize(("now", "before", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_happened_since_the_snapshot_before_counts(
    now: Rows, before: tuple[Rows, ...], severity: Severity | None
) -> None:
    """Means are taken since the previous snapshot, and waiting requests become a warning if both show them."""
    earlier = [minutes_ago(15 * (number + 1), each) for number, each in enumerate(before)]
    assert severity_of(judge_rows(check.CHECK, now, earlier=earlier)) is severity


def test_what_it_says(golden: Golden) -> None:
    """Each slow server's means and counts by kind of request since the snapshot before, the worst first."""
    now = rows(
        server(reads=(900, 2), updates=since(1, 4)),
        server("z2:8000", reads=(2000, 3), updates=since(500, 310), fsyncs=since(400, 250), waiting=1),
        server("z3:8000", updates=(500, 1200)),
    )
    earlier = [minutes_ago(15, rows(server("z2:8000", updates=(1_000_000, 1), fsyncs=(1_000_000, 1), waiting=2)))]
    urls = ("zookeeper=http://z1:8000/metrics", "zookeeper=http://z2:8000/metrics", "bookie=http://k1:8000/metrics")
    named = a_policy(collect={"metrics_urls": urls})
    cases: dict[str, tuple[Any, ...]] = {
        "two slow ones": (now, None, earlier),
        "one that the policy names was not read": (rows(QUICK), named),
        "all that it names were": (rows(QUICK, server("z2:8000", reads=(900, 1))), named),
        "the one that was read is slow": (rows(server(reads=(20, 100))), named),
        "a quick one, and one that has done nothing": (rows(QUICK, server("z2:8000")),),
        "one that has done nothing": (rows(server()),),
        "nothing was read": (rows(),),
    }
    golden(told({rule: judge_rows(check.CHECK, *case) for rule, case in cases.items()}))
