"""Direct memory in use, in relation to its limit, and the size of the cache of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import direct_memory
from pulsar_steward.checks.resources.direct_memory import CONNECTIONS, LIMIT
from pulsar_steward.checks.resources.direct_memory import ENTRY_CACHE_SIZE as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_READ_CACHE, BOOKIE_WRITE_CACHE
from tests.builders import a_policy
from tests.checks.conftest import judge_rows, outcome, samples, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

CASES: dict[str, tuple[float | None, tuple[float, float] | None, Severity | None, bool]] = {
    "half full": (50.0, None, None, False),
    "just below": (84.9, None, None, False),
    "85 %": (85.0, None, Severity.WARNING, False),
    "just below 95 %": (94.9, None, Severity.WARNING, False),
    "95 %": (95.0, None, Severity.CRITICAL, False),
    "metrics win over the load report": (10.0, (960.0, 1000.0), Severity.CRITICAL, False),
    "no limit is no metric": (10.0, (960.0, -1.0), None, False),
    "nothing is known": (None, None, None, True),
}


def memory(source: str, used: float, limit: float, kind: str) -> list[dict[str, Any]]:
    """Used and most direct memory of a process."""
    return samples({direct_memory.USED: used, direct_memory.LIMIT: limit}, source, kind)


@pytest.mark.parametrize(("reported", "measured", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(
    reported: float | None, measured: tuple[float, float] | None, severity: Severity | None, unknown: bool
) -> None:
    """A broker is judged by its metrics, or by its load report when it has no usable metrics."""
    brokers = [{"broker": "a:1", "read": True, "direct_memory_percent": reported}]
    metrics = memory("a:1", *measured, kind="broker") if measured else []
    judgement = judge_rows(direct_memory.DIRECT_MEMORY_PRESSURE, {"brokers": brokers, "metrics": metrics})
    assert outcome(judgement) == (severity, unknown)


def test_what_it_says(golden: Golden) -> None:
    """A bookie is judged by its metrics too, and the fullest process comes first."""
    brokers = [{"broker": "a:1", "read": True, "direct_memory_percent": 90.0}, {"broker": "gone:1", "read": False}]
    metrics = memory("bookie:1", 508 * 2**20, 512 * 2**20, kind="bookie")
    caches = {BOOKIE_WRITE_CACHE: 256.0, BOOKIE_READ_CACHE: 128.0}
    with_caches = [*metrics, *samples(caches, "bookie:1", "bookie")]
    cases: dict[str, Rows] = {"a bookie and a broker": {"brokers": brokers, "metrics": metrics}, "no process": {}}
    cases["a bookie tells its settings"] = {"brokers": brokers, "metrics": with_caches}
    golden(told({rule: judge_rows(direct_memory.DIRECT_MEMORY_PRESSURE, rows) for rule, rows in cases.items()}))


CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
MIB, MB = 1024**2, 1_000_000
USUAL = {
    "managedLedgerCacheSizeMB": "200",
    "managedLedgerCacheEvictionTimeThresholdMillis": "1000",
    "maxMessagePublishBufferSizeInMB": "500",
    "managedLedgerMaxReadsInFlightSizeInMB": "0",
    "numOrderedExecutorThreads": "8",
    "bookkeeperClientNumWorkerThreads": "8",
    "numIOThreads": "16",
}


def broker(
    name: str = "a:1",
    direct_mb: float | None = 1000,
    connections: float = 100,
    settings: dict[str, str | None] | None = None,
    **columns: Any,
) -> Rows:
    """A broker with Pulsar's defaults for 1,000 MiB of direct memory, but for what is given."""
    told = {CONNECTIONS: connections, **({} if direct_mb is None else {LIMIT: direct_mb * MIB})}
    values = USUAL | (settings or {})
    of_broker = {"broker": name, "read": True, "topics": 1000, "throughput_in_bytes": 10.0 * MB}
    return {
        "brokers": [of_broker | {"throughput_out_bytes": 10.0 * MB} | columns],
        "configuration": [{"broker": name, "key": key, "value": value} for key, value in values.items() if value],
        "metrics": [
            {"source": name, "source_kind": "broker", "series": series, "labels_json": "{}", "value": float(value)}
            for series, value in told.items()
        ],
    }


def severities(judgement: Judgement) -> list[Severity]:
    """Of all findings."""
    return [each.severity for each in judgement.findings]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        pytest.param({}, [], id="the defaults"),
        pytest.param({"managedLedgerMaxReadsInFlightSizeInMB": "150"}, [], id="the defaults of later versions"),
        pytest.param({"managedLedgerCacheSizeMB": "449"}, [], id="nearly all"),
        pytest.param({"managedLedgerCacheSizeMB": "450"}, [WARNING], id="95 percent"),
        pytest.param({"managedLedgerCacheSizeMB": "999"}, [WARNING], id="more than there is"),
        pytest.param({"managedLedgerCacheSizeMB": "1000"}, [CRITICAL], id="half as much again"),
        pytest.param({"maxMessagePublishBufferSizeInMB": "-1"}, [], id="no limit for publishing"),
        pytest.param({"maxMessagePublishBufferSizeInMB": None}, [], id="a limit that is not told"),
    ],
)
def test_what_may_be_taken_is_held_against_what_there_is(
    settings: dict[str, str | None], found: list[Severity]
) -> None:
    """The sizes of cache, publish buffer and reads are judged together by the direct memory."""
    judgement = judge_rows(CHECK, broker(settings=settings))
    assert (severities(judgement), judgement.cannot_tell) == (found, None)


def test_what_it_says_of_entry_cache(golden: Golden) -> None:
    """2 MiB are 210 ms of 10 MB/s; a promise of 70 % is a warning from 60 % on, and critical where that is 70 %."""

    def own(critical: int) -> Policy:
        return a_policy(entry_cache_size={"warning_promised_percent": 60, "critical_promised_percent": critical})

    cases: dict[str, tuple[Any, ...]] = {
        "each setting with what it may take": (broker(settings={"managedLedgerCacheSizeMB": "600"}),),
        "a small cache, in milliseconds": (broker(settings={"managedLedgerCacheSizeMB": "2"}),),
        "no cache": (broker(settings={"managedLedgerCacheSizeMB": "0"}),),
        "no limit of direct memory was read": (broker(direct_mb=None),),
        "no size of the cache was read": (broker(settings={"managedLedgerCacheSizeMB": None}),),
        "no broker was read": ({},),
        "all is well": (broker(),),
        "below the policy's critical share": (broker(), own(80)),
        "at the policy's critical share": (broker(), own(70)),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


@pytest.mark.parametrize(
    ("cache", "columns", "found"),
    [
        pytest.param("200", {"throughput_in_bytes": 209.7 * MB}, [], id="all that it keeps"),
        pytest.param("200", {"throughput_in_bytes": 210.0 * MB}, [INFO], id="a little less"),
        pytest.param("200", {"throughput_in_bytes": 838.0 * MB}, [INFO], id="a quarter of a second"),
        pytest.param("200", {"throughput_in_bytes": 839.0 * MB}, [WARNING], id="less"),
        pytest.param("1", {"throughput_in_bytes": 0.9 * MB}, [], id="hardly any load"),
        pytest.param("1", {"throughput_in_bytes": None}, [], id="a load that is not told"),
        pytest.param("0", {}, [WARNING], id="no cache"),
        pytest.param("0", {"throughput_out_bytes": 0.9 * MB}, [], id="no cache, and hardly anybody reads"),
    ],
)
def test_a_cache_is_held_against_the_throughput(cache: str, columns: dict[str, Any], found: list[Severity]) -> None:
    """The severity depends on how many milliseconds of published data the entry cache can hold."""
    assert severities(judge_rows(CHECK, broker(settings={"managedLedgerCacheSizeMB": cache}, **columns))) == found


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"topics": 79_999}, None),
        (
            {"topics": 80_000, "settings": {"bookkeeperClientNumWorkerThreads": "9"}},
            "8 threads serve 80,000 topics (num",
        ),
        (
            {"topics": 10_000, "settings": {"bookkeeperClientNumWorkerThreads": "1"}},
            "1 thread serves 10,000 topics (book",
        ),
        ({"connections": 79_999}, None),
        ({"connections": 80_000}, "16 threads serve 80,000 connections (numIOThreads), 5,000 each"),
        ({"connections": 80_000, "processors": 32.0}, "It has 32 processors, so more threads may help."),
        ({"connections": 80_000, "processors": 4.0}, "It has 4 processors, so more threads alone hardly help."),
        ({"connections": 80_000, "settings": {"numIOThreads": "many"}}, None),
    ],
)
def test_threads_are_information(more: dict[str, Any], words: str | None) -> None:
    found = judge_rows(CHECK, broker(**more)).findings
    assert [each.severity for each in found] == ([INFO] if words else [])
    assert all(words in each.evidence for each in found if words)
