"""Series of managed ledgers by namespace: latencies of publishing, writes and switches, and writes of cursors."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lab.simulator.load import LatencySpec, LoadSpec
from lab.simulator.metrics.text import family, gauge, sample

BOUNDS_MS = (
    "0.0_0.5",
    "0.5_1.0",
    "1.0_5.0",
    "5.0_10.0",
    "10.0_20.0",
    "20.0_50.0",
    "50.0_100.0",
    "100.0_200.0",
    "200.0_1000.0",
)
USUAL_WRITE, USUAL_SWITCH, SLOW = "1.0_5.0", "20.0_50.0", "200.0_1000.0"


def lines(cluster: str, load: LoadSpec, rates_in: Mapping[str, float]) -> Iterator[str]:
    """Yields ledgers' series; ``rates_in`` are messages a second by namespace, heartbeats included."""
    spaces = {name: {"cluster": cluster, "namespace": _shown(name)} for name in rates_in}
    # What is given for the whole broker is shared out among the namespaces of users.
    users = [name for name in rates_in if not name.startswith("pulsar/")] or list(rates_in)
    writes = {name: _part(name, load.writes, users, rates_in[name]) for name in rates_in}
    published = load.writes if load.publishes is None else load.publishes
    publishes = {name: _part(name, published, users, rates_in[name]) for name in rates_in}
    switches = {name: _part(name, load.ledger_switches, users, 0.0) for name in rates_in}
    for name, usual, parts in (
        ("AddEntryLatencyBuckets", USUAL_WRITE, publishes),
        ("LedgerAddEntryLatencyBuckets", USUAL_WRITE, writes),
        ("LedgerSwitchLatencyBuckets", USUAL_SWITCH, switches),
    ):
        yield from _buckets(f"pulsar_ml_{name}", usual, {space: (spaces[space], part) for space, part in parts.items()})
    yield family("pulsar_ml_MarkDeleteRate", "gauge")
    for name, labels in spaces.items():
        rate = load.cursor_writes / len(users) if name in users else 0.0
        yield sample("pulsar_ml_MarkDeleteRate", labels, rate, ", ")


def client_threads(cluster: str, load: LoadSpec) -> Iterator[str]:
    """The queues of the BookKeeper client's threads; their names are in those of the series."""
    for number, queued in enumerate(load.client_queues):
        thread = f"BookKeeperClientWorker_OrderedExecutor_{number}_0"
        series = f"pulsar_managedLedger_client_thread_{thread}_thread_executor_queue"
        yield from gauge(series, {"cluster": cluster}, queued)


def _shown(namespace: str) -> str:
    """A namespace of the old form, as a heartbeat's, stands as it is."""
    return namespace if namespace.count("/") > 1 else f"{namespace}/persistent"


def _part(namespace: str, whole: LatencySpec | None, users: list[str], by_default: float) -> LatencySpec:
    if whole is None:
        return LatencySpec(by_default)
    share = whole.per_second / len(users) if namespace in users else 0.0
    return replace(whole, per_second=share)


def _buckets(series: str, usual: str, spaces: Mapping[str, tuple[dict[str, str], LatencySpec]]) -> Iterator[str]:
    yield family(series, "gauge")
    for labels, part in spaces.values():
        for bounds in BOUNDS_MS:
            yield sample(series, {**labels, "quantile": bounds}, _rate(part, bounds, _bucket(part, usual)), ", ")
    yield family(f"{series}_OVERFLOW", "gauge")
    for labels, part in spaces.values():
        yield sample(f"{series}_OVERFLOW", labels, part.per_second * part.stalled_percent / 100, ", ")


def _bucket(part: LatencySpec, usual: str) -> str:
    """The bounds that most events are between."""
    if part.usual_ms is None:
        return usual
    return next(bounds for bounds in BOUNDS_MS if part.usual_ms < float(bounds.partition("_")[2]))


def _rate(part: LatencySpec, bounds: str, usual: str) -> float:
    if bounds == usual:
        return part.per_second * (100 - part.slow_percent - part.stalled_percent) / 100
    return part.per_second * part.slow_percent / 100 if bounds == SLOW else 0.0
