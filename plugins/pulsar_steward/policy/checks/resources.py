"""Thresholds of the checks of resources: garbage collection, memory, metadata, ledgers, threads."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section


class GcPressurePolicy(Section):
    """When garbage collection takes too much of a process."""

    minimum_age_seconds: int = Field(
        60,
        ge=1,
        description="younger processes are not judged: a broker's start alone collects for 0.7 s of its first 12",
    )
    warning_share_percent: int = Field(
        5,
        ge=1,
        le=100,
        description="time stood still for collections, of the process's lifetime; a healthy one: below 1",
    )
    critical_share_percent: int = Field(15, ge=1, le=100, description="the same, when clients time out")
    minimum_full_collections: int = Field(
        10, ge=1, description="fewer full collections are left alone: a start alone makes 2 to 5"
    )
    warning_full_collections_per_hour: int = Field(12, ge=1, description="full collections: one in five minutes")
    warning_full_pause_milliseconds: int = Field(
        2000, ge=1, description="mean length of a full collection; producers time out after 30 s, many callers sooner"
    )
    critical_full_pause_milliseconds: int = Field(
        10_000, ge=1, description="the same; a third of the 30 s after which the metadata session ends"
    )


class DirectMemoryPressurePolicy(Section):
    """When direct memory, in which messages travel, runs out."""

    warning_percent: int = Field(
        85, ge=1, le=100, description="used of the limit; the pool keeps what it took, so 50 to 70 are usual under load"
    )
    critical_percent: int = Field(95, ge=1, le=100, description="the same, when the next chunk may fail")


class MetadataLatencyPolicy(Section):
    """When the metadata store answers slowly, as brokers and bookies see it."""

    minimum_operations: int = Field(20, ge=1, description="operations of a kind since the start; fewer say nothing")
    warning_mean_milliseconds: int = Field(
        100,
        ge=1,
        description="mean of a kind of operation; 2 to 7 on a busy machine, 25 in the first seconds of a broker",
    )
    critical_mean_milliseconds: int = Field(1000, ge=1, description="the same, when every topic load is felt")
    minimum_slow_operations: int = Field(10, ge=1, description="operations over a second; fewer are left alone")
    warning_slow_percent: int = Field(1, ge=1, le=100, description="operations over a second, of all of a kind")


class LedgerSwitchSlowPolicy(Section):
    """When writing waits for new ledgers."""

    UNORDERED = frozenset({"share_percent"})

    minimum_switches_per_minute: int = Field(
        5, ge=1, description="slow switches of a broker in the last statistics period, as a rate; fewer are information"
    )
    warning_share_percent: int = Field(
        20, ge=1, le=100, description="switches over 200 ms; usual are 10 to 100 ms each"
    )
    critical_share_percent: int = Field(20, ge=1, le=100, description="switches over a second")


class BookieThreadBusyPolicy(Section):
    """When a thread of BookKeeper, at a bookie or in a broker, cannot keep up."""

    warning_queued_tasks: int = Field(
        1000, ge=1, description="tasks that wait for one thread; bookies reject from 10,000 on (as configured there)"
    )
    critical_queued_tasks: int = Field(5000, ge=1, description="the same, at half of that")
    minimum_writes_per_second: int = Field(
        10, ge=1, description="writes of a broker to bookies; the latency of fewer is not judged"
    )
    warning_slow_percent: int = Field(
        5, ge=1, le=100, description="writes to bookies over 200 ms; an overloaded test machine shows 1"
    )
    critical_slow_percent: int = Field(25, ge=1, le=100, description="the same, when producers time out")


class IoThreadsStuckPolicy(Section):
    """Which signs, none of them a proof, point to stuck threads of a broker."""

    blocked_threads: int = Field(10, ge=1, description="threads that wait for a lock at one moment; usual: 0 to 2")
    pending_requests: int = Field(
        1000,
        ge=1,
        description="lookups and topic loads under way at one moment; usual: near 0, also with 10,000 clients",
    )
    open_files_percent: int = Field(80, ge=1, le=100, description="open files, sockets among them, of the limit")
    minimum_producers: int = Field(100, ge=1, description="brokers with fewer producers are not judged by reconnects")
    reconnected_percent: int = Field(
        50, ge=1, le=100, description="producers that connected within `collect.recent_minutes`, without a recent start"
    )
    warning_signs: int = Field(2, ge=1, le=4, description="signs at one broker that make a warning; fewer: information")


class ResourcesChecks(Section):
    """A section for each check of the group."""

    gc_pressure: GcPressurePolicy = GcPressurePolicy()
    direct_memory_pressure: DirectMemoryPressurePolicy = DirectMemoryPressurePolicy()
    metadata_latency: MetadataLatencyPolicy = MetadataLatencyPolicy()
    ledger_switch_slow: LedgerSwitchSlowPolicy = LedgerSwitchSlowPolicy()
    bookie_thread_busy: BookieThreadBusyPolicy = BookieThreadBusyPolicy()
    io_threads_stuck: IoThreadsStuckPolicy = IoThreadsStuckPolicy()
