"""The series of a broker as a whole: connections, lookups, topic loads, the metadata store, the cache."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.simulator.load import LoadSpec
from lab.simulator.metrics.text import counted, family, gauge, sample, total

OWN_CONNECTIONS = 5
METADATA_BOUNDS_MS = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
SECOND_MS = 1000.0
LOOKUP_MS = 10.0
TOPIC_LOAD_MS = 50.0
PUBLISH_MS = 3.0
NAN = float("nan")
QUANTILES = {
    "pulsar_broker_lookup": ("0.5", "0.99", "0.999", "1.0"),
    "pulsar_topic_load_times": ("0.5", "0.75", "0.95", "0.99", "0.999", "0.9999"),
    "pulsar_broker_publish_latency": ("0.0", "0.5", "0.95", "0.99", "0.999", "0.9999", "1.0"),
}


@dataclass(frozen=True, slots=True)
class Totals:
    """What a broker has loaded."""

    topics: int
    producers: int
    consumers: int
    rate_in: float


def lines(cluster: str, host: str, version: str, load: LoadSpec, totals: Totals) -> Iterator[str]:
    """All of them."""
    labels = {"cluster": cluster}
    counts = {"topics": totals.topics, "producers": totals.producers, "consumers": totals.consumers}
    for name, count in counts.items():
        yield from gauge(f"pulsar_broker_{name}_count", labels, count)
    yield from gauge("pulsar_version_info", {**labels, "version": version, "commit": "0" * 40}, 1.0)
    yield from _connections({**labels, "broker": host}, load, totals)
    yield from _lookups(labels, load, totals)
    yield from _topic_loads(labels, host, load, totals)
    yield from _summary("pulsar_broker_publish_latency", labels, totals.rate_in * load.uptime_s, PUBLISH_MS)
    yield from _metadata(labels, load)
    yield from _quotas_and_cache(labels, totals)


def _connections(labels: dict[str, str], load: LoadSpec, totals: Totals) -> Iterator[str]:
    """Handshakes that succeeded are told besides sockets; these have a space between labels."""
    clients = totals.producers + totals.consumers
    active = OWN_CONNECTIONS + clients if load.connections is None else load.connections
    opened = active + load.connections_replaced
    figures = {
        "pulsar_active_connections": active,
        "pulsar_connection_closed_total_count": load.connections_replaced + load.connections_failed,
        "pulsar_connection_create_fail_count": load.connections_failed,
        "pulsar_connection_create_success_count": opened,
        "pulsar_connection_created_total_count": opened + load.connections_failed,
    }
    for series, value in figures.items():
        yield family(series, "gauge")
        yield sample(series, {**labels, "metric": "broker_connection"}, value, ", ")
    yield from gauge("pulsar_broker_throttled_connections", {"cluster": labels["cluster"]}, 0.0)


def _lookups(labels: dict[str, str], load: LoadSpec, totals: Totals) -> Iterator[str]:
    clients = totals.producers + totals.consumers
    yield from _summary("pulsar_broker_lookup", labels, clients, LOOKUP_MS)
    yield from total("pulsar_broker_lookup_answers", labels, clients)
    yield from total("pulsar_broker_lookup_redirects", labels, 0.0)
    yield from total("pulsar_broker_lookup_failures", labels, 0.0)
    yield from gauge("pulsar_broker_lookup_pending_requests", labels, load.pending_lookups)
    for state, threads in (("active", 3.0), ("idle", 5.0), ("max", 8.0)):
        yield from gauge(f"pulsar_web_executor_{state}_threads", labels, threads)


def _topic_loads(labels: dict[str, str], host: str, load: LoadSpec, totals: Totals) -> Iterator[str]:
    yield from gauge("pulsar_broker_topic_load_pending_requests", labels, load.pending_topic_loads)
    yield from _summary("pulsar_topic_load_times", labels, totals.topics, TOPIC_LOAD_MS)
    yield from total("topic_load_failed", labels, 0.0)
    named = {**labels, "broker": host, "metric": "pulsar_topic_load_times"}
    yield family("pulsar_topic_load_failed_count", "gauge")
    yield sample("pulsar_topic_load_failed_count", named, 0.0, ", ")


def _summary(name: str, labels: dict[str, str], count: float, mean_ms: float) -> Iterator[str]:
    """As long as nothing is timed in the last minute, the quantiles are no numbers."""
    yield family(name, "summary")
    for quantile in QUANTILES[name]:
        yield sample(name, {**labels, "quantile": quantile}, mean_ms if count else NAN)
    yield from counted(name, labels, count, count * mean_ms)


def _metadata(labels: dict[str, str], load: LoadSpec) -> Iterator[str]:
    store = {**labels, "name": "metadata-store"}
    yield family("pulsar_metadata_store_ops_latency_ms", "histogram")
    for operation, share in (("get", 1.0), ("put", 0.5), ("del", 0.1)):
        named = {**store, "type": operation, "status": "success"}
        slow = load.metadata_slow_reads if operation == "get" else 0
        yield from _operations(named, int(load.metadata_reads * share), slow, load.metadata_read_ms)
        yield from _operations({**named, "status": "fail"}, 0, 0, 0.0)
    operations = int(load.metadata_reads * 1.6)
    yield from total("pulsar_metadata_store_put_bytes", store, load.metadata_reads * 60.0)
    for name, mean in (("queue_wait_time_ms", load.metadata_wait_ms), ("batch_execute_time_ms", 1.5)):
        yield family(f"pulsar_batch_metadata_store_{name}", "histogram")
        yield from counted(f"pulsar_batch_metadata_store_{name}", store, operations, operations * mean)
    yield family("pulsar_batch_metadata_store_batch_size", "histogram")
    yield from counted("pulsar_batch_metadata_store_batch_size", store, operations, operations)
    yield from gauge("pulsar_batch_metadata_store_executor_queue_size", store, 1.0)


def _operations(labels: dict[str, str], count: int, slow: int, mean_ms: float) -> Iterator[str]:
    """A histogram in which all took the mean, but for those over a second, which took longer than any bound."""
    series = "pulsar_metadata_store_ops_latency_ms"
    quick_within = min(mean_ms, SECOND_MS) if slow else mean_ms
    for bound in METADATA_BOUNDS_MS:
        quick = count - slow if bound >= quick_within else 0
        yield sample(f"{series}_bucket", {**labels, "le": str(bound)}, quick)
    yield sample(f"{series}_bucket", {**labels, "le": "+Inf"}, count)
    yield from counted(series, labels, count, count * mean_ms)


def _quotas_and_cache(labels: dict[str, str], totals: Totals) -> Iterator[str]:
    yield family("pulsar_broker_storage_backlog_quota_exceeded_evictions_total", "gauge")
    for kind in ("size", "time"):
        series = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"
        yield sample(series, {**labels, "quota_type": kind}, 0)
    yield family("pulsar_storage_backlog_quota_check_duration_seconds", "histogram")
    yield from counted("pulsar_storage_backlog_quota_check_duration_seconds", labels, 10.0, 0.0)
    yield from gauge("pulsar_ml_count", labels, totals.topics)
    for name in ("cache_evictions", "cache_hits_rate", "cache_misses_rate", "cache_used_size"):
        yield from gauge(f"pulsar_ml_{name}", labels, 0.0)
    for name in ("reads_inflight_bytes", "reads_available_inflight_bytes"):
        yield from gauge(f"pulsar_ml_{name}", labels, -1.0)
