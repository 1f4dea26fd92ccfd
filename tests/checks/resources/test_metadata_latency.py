"""Slow metadata stores, by brokers and by ZooKeeper itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import metadata_latency as check
from pulsar_steward.checks.resources import metadata_latency as series
from pulsar_steward.checks.resources import zookeeper_slow as zookeeper_check
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED, ZOOKEEPER_VERSION
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, minutes_ago, outcome, samples, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

BROKERS = [{"broker": "a:1", "read": True}]


def sample(series: str, value: float, **labels: str) -> dict[str, Any]:
    text = json.dumps({"name": "metadata-store"} | labels)
    return {"source": "a:1", "source_kind": "broker", "series": series, "labels_json": text, "value": float(value)}


def timed(
    operation: str, count: int, mean: float, slow: int | None = 0, status: str = "success", stalled: int = 0
) -> list[dict[str, Any]]:
    """One kind of operation; slow ones took over a second, stalled ones of them over 5 s; None: without buckets."""
    labels = {"type": operation, "status": status}
    rows = [sample(series.OPERATIONS, count, **labels), sample(series.MILLISECONDS, count * mean, **labels)]
    if slow is not None:
        rows += [
            sample(series.BUCKETS, count - slow, le="1000.0", **labels),
            sample(series.BUCKETS, count - stalled, le="2000.0", **labels),
            sample(series.BUCKETS, count - stalled, le="5000.0", **labels),
            sample(series.BUCKETS, count, le="+Inf", **labels),
        ]
    return rows


CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
    "a few milliseconds": (timed("get", 166, 5.4), None, False),
    "the first operations of a broker": (timed("get", 33, 11) + timed("put", 19, 250), None, False),
    "just below": (timed("put", 100, 99.9), None, False),
    "100 ms": (timed("put", 100, 100), Severity.WARNING, False),
    "a second": (timed("put", 100, 1000), Severity.CRITICAL, False),
    "one in a hundred over a second": (timed("put", 1000, 20, slow=10), Severity.WARNING, False),
    "less than that": (timed("put", 1001, 20, slow=10), None, False),
    "few of few": (timed("put", 100, 20, slow=9), None, False),
    "without buckets the mean is left": (timed("put", 1000, 20, slow=None), None, False),
    "quick failures of writes are another matter": (
        timed("get", 50, 5) + timed("put", 500, 900, status="fail"),
        None,
        False,
    ),
    "writes that failed after a second are slow": (
        timed("put", 900, 5) + timed("put", 100, 30_000, slow=10, status="fail"),
        Severity.WARNING,
        False,
    ),
    "reads that failed": (timed("get", 990, 5) + timed("get", 10, 5, status="fail"), Severity.WARNING, False),
    "fewer reads that failed": (timed("get", 991, 5) + timed("get", 9, 5, status="fail"), None, False),
    "few of many reads": (timed("get", 991, 5) + timed("get", 10, 5, status="fail"), None, False),
    "nothing but failures": (timed("get", 20, 5, status="fail"), Severity.WARNING, False),
    "too few say nothing": (timed("get", 19, 2), None, True),
    "nothing says nothing": ([], None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(rows: list[dict[str, Any]], severity: Severity | None, unknown: bool) -> None:
    """A broker is judged by each operation's mean time, by operations over a second and by failed reads."""
    assert outcome(judge_rows(check.CHECK, {"brokers": BROKERS, "metrics": rows})) == (severity, unknown)


START = NOW.timestamp() - 30 * 86_400
MONTH = 50_000_000
"""Operations of a broker within a month."""


def counted(
    count: int, mean: float = 5, slow: int = 0, stalled: int = 0, lost: int = 0, started: float = START
) -> Rows:
    """A broker that has run for a month: its reads of so many milliseconds, and besides what slow ones took."""
    reads = timed("get", count, mean, slow, stalled=stalled)
    reads[1]["value"] += lost * 1000
    return {"brokers": BROKERS, "metrics": [*reads, sample(STARTED, started)]}


OLD = {"slow": 600_000, "stalled": 9000, "lost": 9_000_000}
HISTORIES: dict[str, tuple[tuple[Rows, ...], Severity | None]] = {
    "a stall of a minute": (
        (counted(MONTH + 100_000, slow=40, stalled=40, lost=800), counted(MONTH)),
        Severity.WARNING,
    ),
    "a stall of a second for many": ((counted(MONTH + 100_000, slow=60, lost=70), counted(MONTH)), Severity.INFO),
    "a stall of a second for some": ((counted(MONTH + 100_000, slow=40, lost=50), counted(MONTH)), None),
    "a single one that hung": ((counted(MONTH + 1000, slow=1, stalled=1, lost=9), counted(MONTH)), Severity.INFO),
    "stalls of a second again and again": (
        (counted(MONTH + 200_000, slow=120, lost=140), counted(MONTH + 100_000, slow=60, lost=70), counted(MONTH)),
        Severity.WARNING,
    ),
    "stalls of long ago": ((counted(MONTH + 3000, **OLD), counted(MONTH + 2000, **OLD)), None),
    "slow only now": ((counted(MONTH + 1000, lost=150), counted(MONTH)), Severity.WARNING),
    "slow, and restarted since": ((counted(1000, 200, started=START + 1), counted(MONTH)), Severity.WARNING),
    "well, and restarted since": ((counted(1000, started=START + 1), counted(MONTH, 500)), None),
    "slow in its first minutes": ((counted(38, 104, started=NOW.timestamp() - 200),), Severity.INFO),
    "slow beyond these": ((counted(38, 104, started=NOW.timestamp() - 601),), Severity.WARNING),
    "standing in its first minutes": ((counted(38, 1004, started=NOW.timestamp() - 200),), Severity.CRITICAL),
    "young, and slow since the snapshot before": (
        (counted(138, 204, started=NOW.timestamp() - 500), counted(38, 104, started=NOW.timestamp() - 500)),
        Severity.WARNING,
    ),
    "counters began anew without a restart": ((counted(1000, 200), counted(MONTH)), Severity.WARNING),
    "next to nothing to do since": ((counted(MONTH + 5, lost=4), counted(MONTH)), None),
}


@pytest.mark.parametrize(("snapshots", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_happened_since_the_snapshot_before_counts(snapshots: tuple[Rows, ...], severity: Severity | None) -> None:
    """Operations are judged since the previous snapshot, so that old counts neither hide a stall nor repeat one."""
    now, *before = snapshots
    earlier = [minutes_ago(15 * (number + 1), rows) for number, rows in enumerate(before)]
    judgement = judge_rows(check.CHECK, now, earlier=earlier)
    assert severity_of(judgement) is severity
    assert judgement.cannot_tell is None


LARGE: Rows = {
    "configuration": [{"broker": "a:1", "key": check.HOLES_IN_STORE, "value": "300000"}],
    "topics": [
        {"topic": f"persistent://t/n/{name}", "broker": "a:1", "storage_bytes": 1} for name in ("many", "few", "acked")
    ],
    "drilled": [
        {"topic": "persistent://t/n/many", "subscription": "s", "ledgers": 61_000},
        {"topic": "persistent://t/n/few", "subscription": "s", "ledgers": 30_000},
    ],
    "subscriptions": [
        {"topic": "persistent://t/n/acked", "subscription": "s", "ack_holes": 240_000},
        {"topic": "persistent://t/n/few", "subscription": "in-a-ledger", "ack_holes": 400_000},
    ],
}
"""Of a topic's ledgers and a cursor's holes, those of which the node is over a mebibyte."""


def test_what_it_says(golden: Golden) -> None:
    """The store is told from the broker; 10 slow ones and 30 of 5 s lose 160 s at least."""
    waits = [sample(series.WAITED, 900), sample(series.WAITS, 10)]
    slow = {"brokers": BROKERS, "metrics": timed("get", 100, 110) + timed("put", 2000, 140, slow=30) + waits}
    versions = [
        {"source": f"{host}:9990", "source_kind": "zookeeper", "series": ZOOKEEPER_VERSION, "value": 1.0}
        | {"labels_json": json.dumps({"version": version})}
        for host, version in (("z1", "3.4.14"), ("z2", "3.10.0"), ("z3", "3.6.2"), ("z4", "3.6.3"))
    ]
    stalled, old = counted(MONTH + 100_000, slow=40, stalled=30, lost=800), counted(MONTH, **OLD)
    cases: dict[str, tuple[Any, ...]] = {
        "the slowest kind, and what waits in the broker": (slow,),
        "time lost since the snapshot before": (stalled, None, [minutes_ago(15, counted(MONTH))]),
        "the snapshot before is too near": (old, None, [minutes_ago(1, old)]),
        "large nodes": (slow | LARGE,),
        "old servers": (slow | {"metrics": [*slow["metrics"], *versions]},),
        "it is too long ago": (old, None, [minutes_ago(130, old)]),
    }
    golden(told({rule: judge_rows(check.CHECK, *case) for rule, case in cases.items()}))


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
        zookeeper_check.READS: reads[0],
        zookeeper_check.READING: reads[0] * reads[1],
        zookeeper_check.UPDATES: updates[0],
        zookeeper_check.UPDATING: updates[0] * updates[1],
        zookeeper_check.FSYNCS: fsyncs[0],
        zookeeper_check.SYNCING: fsyncs[0] * fsyncs[1],
        zookeeper_check.OUTSTANDING: waiting,
        zookeeper_check.NODES: 20_000,
        STARTED: started,
    }
    return samples(values, source, kind)


def rows(*servers: list[dict[str, Any]]) -> Rows:
    return {"brokers": [{"broker": "a:1", "read": True}], "metrics": [row for each in servers for row in each]}


QUICK = server(reads=(40_000, 0.4), updates=(20_000, 5), fsyncs=(15_000, 4))

OXIA = {"snapshot": [{"cluster": "lab", "taken_at": NOW, "metadata_store": "oxia"}]}


def test_another_store_is_no_zookeeper() -> None:
    """Without its metrics nobody is told to name ZooKeeper's servers, as there are none."""
    assert judge_rows(zookeeper_check.CHECK, rows() | OXIA).cannot_tell == (
        "The metadata store is oxia, not ZooKeeper: its servers are not judged."
    )


ZOOKEEPER_CASES: dict[str, tuple[Rows, Severity | None, bool]] = {
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


@pytest.mark.parametrize(("snapshot", "severity", "unknown"), ZOOKEEPER_CASES.values(), ids=ZOOKEEPER_CASES)
def test_a_server_is_judged(snapshot: Rows, severity: Severity | None, unknown: bool) -> None:
    """Without an earlier snapshot a server is judged by its means since its start and by the requests that wait."""
    assert outcome(judge_rows(zookeeper_check.CHECK, snapshot)) == (severity, unknown)


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
ZOOKEEPER_HISTORIES: dict[str, tuple[Rows, tuple[Rows, ...], Severity | None]] = {
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


@pytest.mark.parametrize(("now", "before", "severity"), ZOOKEEPER_HISTORIES.values(), ids=ZOOKEEPER_HISTORIES)
def test_what_happened_since_the_snapshot_before_counts_of_zookeeper(
    now: Rows, before: tuple[Rows, ...], severity: Severity | None
) -> None:
    """Means are taken since the previous snapshot, and waiting requests become a warning if both show them."""
    earlier = [minutes_ago(15 * (number + 1), each) for number, each in enumerate(before)]
    assert severity_of(judge_rows(zookeeper_check.CHECK, now, earlier=earlier)) is severity


def test_what_it_says_of_zookeeper(golden: Golden) -> None:
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
    golden(told({rule: judge_rows(zookeeper_check.CHECK, *case) for rule, case in cases.items()}))
