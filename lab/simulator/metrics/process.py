"""The series of a server's process: the JVM's and the operating system's, as measured on an idle broker of the lab."""

from collections.abc import Iterator, Mapping

from lab.simulator.load import ProcessSpec
from lab.simulator.metrics.text import counted, family, gauge, sample

MB = 1024 * 1024
WAITING_THREADS = 35
TIMED_WAITING_THREADS = 27
RUNNABLE_THREADS = 10
IDLE_PROCESSORS = 0.05
NO_LIMIT = -1.0
OLD_SHARE = 2 / 3
"""The old generation's part of a heap, as the serial collector divides it."""

LOG_LINES = {"trace": 0, "info": 20_000, "warn": 300, "error": 4, "fatal": 0}


def lines(labels: Mapping[str, str], load: ProcessSpec, started_s: float) -> Iterator[str]:
    """Yields the process's series.

    Args:
        labels: Of every series: a broker's are labelled with its cluster's name.
        load: How busy the process is.
        started_s: When it started, seconds since 1970.
    """
    yield from _memory(labels, load)
    yield from _collections(labels, load)
    yield from _threads(labels, load)
    yield family("process_cpu_seconds", "counter")
    idle = load.uptime_s * IDLE_PROCESSORS
    yield sample("process_cpu_seconds_total", labels, idle if load.cpu_seconds is None else load.cpu_seconds)
    yield from gauge("process_start_time_seconds", labels, started_s)
    yield from gauge("process_open_fds", labels, load.open_files)
    yield from gauge("process_max_fds", labels, load.most_files)
    if load.debug_lines is not None:
        yield from _log_lines(labels, load.debug_lines)


def _memory(labels: Mapping[str, str], load: ProcessSpec) -> Iterator[str]:
    areas = {"heap": (load.heap_mb * MB, load.heap_limit_mb * MB), "nonheap": (90 * MB, NO_LIMIT)}
    for index, end in enumerate(("used", "max")):
        yield family(f"jvm_memory_bytes_{end}", "gauge")
        for area, values in areas.items():
            yield sample(f"jvm_memory_bytes_{end}", {**labels, "area": area}, values[index])
    for end, old in (("used", load.left_mb), ("max", load.heap_limit_mb * OLD_SHARE)):
        series = f"jvm_memory_pool_collection_{end}_bytes"
        yield family(series, "gauge")
        for pool, megabytes in {"Eden Space": 0.0, "Survivor Space": 0.0, "Tenured Gen": old}.items():
            yield sample(series, {**labels, "pool": pool}, megabytes * MB)
    yield from gauge("jvm_memory_direct_bytes_used", labels, load.direct_mb * MB)
    yield from gauge("jvm_memory_direct_bytes_max", labels, load.direct_limit_mb * MB)


def _collections(labels: Mapping[str, str], load: ProcessSpec) -> Iterator[str]:
    yield family("jvm_gc_collection_seconds", "summary")
    often, full = ({**labels, "gc": name} for name in load.collectors)
    yield from counted("jvm_gc_collection_seconds", often, load.gc_count, load.gc_seconds)
    yield from counted("jvm_gc_collection_seconds", full, load.full_gc_count, load.full_gc_seconds)


def _threads(labels: Mapping[str, str], load: ProcessSpec) -> Iterator[str]:
    states = {
        "NEW": 0,
        "TERMINATED": 0,
        "RUNNABLE": RUNNABLE_THREADS,
        "BLOCKED": load.blocked_threads,
        "WAITING": WAITING_THREADS,
        "TIMED_WAITING": TIMED_WAITING_THREADS,
        "UNKNOWN": 0,
    }
    java = {"runtime": "OpenJDK Runtime Environment", "vendor": "Debian", "version": "17.0.21+9-Debian-1"}
    yield from gauge("jvm_info", {**labels, **java}, 1.0)
    yield from gauge("jvm_threads_deadlocked", labels, load.deadlocked_threads)
    yield family("jvm_threads_state", "gauge")
    for state, threads in states.items():
        yield sample("jvm_threads_state", {**labels, "state": state}, threads)


def _log_lines(labels: Mapping[str, str], debug: int) -> Iterator[str]:
    """Log lines by level, as the Prometheus appender of Pulsar's own log configuration counts them."""
    yield family("log4j2_appender_total", "counter")
    for level, count in {"debug": debug, **LOG_LINES}.items():
        yield sample("log4j2_appender_total", {**labels, "level": level}, count)
