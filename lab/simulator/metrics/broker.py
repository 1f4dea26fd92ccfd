"""The series of a broker as a whole: connections, what waits, publishing, the metadata store."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.simulator.load import LoadSpec
from lab.simulator.metrics.text import counted, family, gauge, sample

OWN_CONNECTIONS = 5
METADATA_BOUNDS_MS = (1.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
SECOND_MS = 1000.0
PUBLISH_MS = 3.0
NAN = float("nan")
QUANTILES = ("0.0", "0.5", "0.95", "0.99", "0.999", "0.9999", "1.0")


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a broker's topics and clients."""

    topics: int
    producers: int
    consumers: int
    rate_in: float
    rate_out: float
    bytes_in: float
    bytes_out: float


def lines(cluster: str, host: str, load: LoadSpec, totals: Totals, *, extensible: bool) -> Iterator[str]:
    """Yields the broker's own series."""
    labels = {"cluster": cluster}
    yield from _connections({**labels, "broker": host}, load, totals)
    yield family("pulsar_broker_lookup_failures", "counter")
    yield sample("pulsar_broker_lookup_failures_total", labels, load.lookups_failed)
    yield from gauge("pulsar_broker_lookup_pending_requests", labels, load.pending_lookups)
    yield from gauge("pulsar_broker_throttled_connections", labels, load.connections_throttled)
    yield from gauge("pulsar_broker_topic_load_pending_requests", labels, load.pending_topic_loads)
    yield from gauge("pulsar_broker_topics_count", labels, totals.topics)
    yield from gauge("pulsar_broker_rate_in", labels, totals.rate_in)
    yield from gauge("pulsar_broker_rate_out", labels, totals.rate_out)
    yield from gauge("pulsar_broker_throughput_in", labels, totals.bytes_in)
    yield from gauge("pulsar_broker_throughput_out", labels, totals.bytes_out)
    yield from _usage({**labels, "broker": host, "metric": "loadBalancing"}, load, extensible=extensible)
    yield from _publishing(labels, totals.rate_in * load.uptime_s)
    yield from _metadata(labels, load)


def _connections(labels: dict[str, str], load: LoadSpec, totals: Totals) -> Iterator[str]:
    """Handshakes that succeeded are told besides sockets; these have a space between labels."""
    clients = totals.producers + totals.consumers
    active = OWN_CONNECTIONS + clients if load.connections is None else load.connections
    figures = {
        "pulsar_active_connections": active,
        "pulsar_connection_create_fail_count": load.connections_failed,
        "pulsar_connection_create_success_count": active + load.connections_replaced,
    }
    for series, value in figures.items():
        yield family(series, "gauge")
        yield sample(series, {**labels, "metric": "broker_connection"}, value, ", ")


def _usage(labels: dict[str, str], load: LoadSpec, *, extensible: bool) -> Iterator[str]:
    """Yields what the load manager knows of the broker's resources, in percent; ``extensible``: the worst too."""
    cpu = 100 * load.cpu_percent / load.cpu_limit_percent
    figures = {
        "pulsar_lb_cpu_usage": cpu,
        "pulsar_lb_memory_usage": 100 * load.heap_mb / load.heap_limit_mb,
        "pulsar_lb_directMemory_usage": 100 * load.direct_mb / load.direct_limit_mb,
        "pulsar_lb_bandwidth_in_usage": load.network_percent,
        "pulsar_lb_bandwidth_out_usage": load.network_percent,
    }
    for series, value in figures.items():
        yield family(series, "gauge")
        yield sample(series, labels, value, ", ")
    if extensible:
        worst = max(cpu, load.network_percent) / 100
        averages = {"max_ema": worst if load.usage_ratio is None else load.usage_ratio, "max": worst}
        yield family("pulsar_lb_resource_usage", "gauge")
        for feature, value in averages.items():
            yield sample("pulsar_lb_resource_usage", {**labels, "feature": feature}, value, ", ")


def _publishing(labels: dict[str, str], messages: float) -> Iterator[str]:
    """Yields publish latencies; where nothing was timed in the last minute, quantiles are NaN."""
    name = "pulsar_broker_publish_latency"
    yield family(name, "summary")
    for quantile in QUANTILES:
        yield sample(name, {**labels, "quantile": quantile}, PUBLISH_MS if messages else NAN)
    yield from counted(name, labels, messages, messages * PUBLISH_MS)


def _metadata(labels: dict[str, str], load: LoadSpec) -> Iterator[str]:
    store = {**labels, "name": "metadata-store"}
    yield family("pulsar_metadata_store_ops_latency_ms", "histogram")
    for operation, share in (("get", 1.0), ("put", 0.5), ("del", 0.1)):
        named = {**store, "type": operation, "status": "success"}
        slow = load.metadata_slow_reads if operation == "get" else 0
        yield from _operations(named, int(load.metadata_reads * share), slow, load.metadata_read_ms)
        yield from _operations({**named, "status": "fail"}, 0, 0, 0.0)
    operations = int(load.metadata_reads * 1.6)
    waits = "pulsar_batch_metadata_store_queue_wait_time_ms"
    yield family(waits, "histogram")
    yield from counted(waits, store, operations, operations * load.metadata_wait_ms)


def _operations(labels: dict[str, str], count: int, slow: int, mean_ms: float) -> Iterator[str]:
    """A histogram in which all took the mean, but for those over a second, which took longer than any bound."""
    series = "pulsar_metadata_store_ops_latency_ms"
    quick_within = min(mean_ms, SECOND_MS) if slow else mean_ms
    for bound in METADATA_BOUNDS_MS:
        quick = count - slow if bound >= quick_within else 0
        yield sample(f"{series}_bucket", {**labels, "le": str(bound)}, quick)
    yield sample(f"{series}_bucket", {**labels, "le": "+Inf"}, count)
    yield from counted(series, labels, count, count * mean_ms)
