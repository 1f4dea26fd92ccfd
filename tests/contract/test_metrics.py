"""The Prometheus series that Steward reads: the simulator tells what real brokers tell, under the same labels."""

import time
from collections import defaultdict
from typing import NamedTuple

import pytest

from pulsar_steward.apply.health import LATENCY
from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.collect.metrics import LATER_NAMES, SERIES
from pulsar_steward.facts.isolation import LOAD_SERIES
from pulsar_steward.model.measures import DISPATCHING_LIMITED, LOADED_TOPICS, TOPIC_THROUGHPUT
from pulsar_steward.pulsar.metrics import Exposition
from tests.contract.api import Api

STATS_WITHIN_S = 60
SWITCHES = "pulsar_ml_LedgerSwitchLatencyBuckets"
OPEN = "pulsar_txn_tb_active_total"
READ = {*SERIES["broker"], *LOAD_SERIES, LATENCY} - {LINES}
"""What snapshots keep, and what is only looked at around a change; log lines are those of `test_log_lines`."""

CLUSTER, TOPIC = frozenset({"cluster"}), frozenset({"cluster", "namespace", "topic"})
SUBSCRIPTION, NAMESPACE = TOPIC | {"subscription"}, frozenset({"cluster", "namespace"})
BATCHES, OPERATIONS = CLUSTER | {"name"}, CLUSTER | {"name", "type", "status"}
CONNECTIONS = LOAD = CLUSTER | {"broker", "metric"}

ABSENT = {
    *LATER_NAMES,
    "pulsar_lb_resource_usage",  # of ExtensibleLoadManagerImpl
    *(name for name in READ if name.startswith("pulsar_txn_") and name != OPEN),  # told once a client uses transactions
    "pulsar_delayed_message_index_bucket_op_count",  # told once a message is delayed; the API of these tests sends none
    "pulsar_delayed_message_index_bucket_total",  # the same
}
"""What is read, and neither told by idle real brokers nor by the simulator."""

LABELS = {
    **dict.fromkeys(READ, CLUSTER),
    **{name: CLUSTER | {"gc"} for name in READ if name.startswith("jvm_gc_")},
    **dict.fromkeys(("jvm_memory_bytes_max", "jvm_memory_bytes_used"), CLUSTER | {"area"}),
    **{name: CLUSTER | {"pool"} for name in READ if name.startswith("jvm_memory_pool_")},
    "jvm_info": CLUSTER | {"runtime", "vendor", "version"},
    "jvm_threads_state": CLUSTER | {"state"},
    **{name: BATCHES for name in READ if name.startswith("pulsar_batch_metadata_store_")},
    **{name: OPERATIONS for name in READ if name.startswith("pulsar_metadata_store_ops_")},
    "pulsar_metadata_store_ops_latency_ms_bucket": OPERATIONS | {"le"},
    LATENCY: CLUSTER | {"quantile"},
    "pulsar_active_connections": CONNECTIONS,
    **{name: CONNECTIONS for name in READ if name.startswith("pulsar_connection_")},
    **{name: LOAD for name in READ if name.startswith("pulsar_lb_")},
    **{name: NAMESPACE for name in READ if name.startswith("pulsar_ml_")},
    **{name: NAMESPACE | {"quantile"} for name in READ if name.endswith("LatencyBuckets")},
    LOADED_TOPICS: NAMESPACE,
    **dict.fromkeys(TOPIC_THROUGHPUT, TOPIC),
    "pulsar_delayed_message_index_size_bytes": TOPIC,
    "pulsar_publish_rate_limit_times": TOPIC,
    **{name: TOPIC for name in READ if name.startswith("pulsar_storage_")},
    OPEN: TOPIC,
    **{name: SUBSCRIPTION for name in READ if name.startswith("pulsar_subscription_")},
    **dict.fromkeys(DISPATCHING_LIMITED, SUBSCRIPTION | {"reason"}),
}


class ReadSample(NamedTuple):
    """One sample of a series that is read."""

    series: str
    labels: dict[str, str]


def told(api: Api, at: int) -> list[ReadSample]:
    """The samples that a broker tells, resting ones too."""
    body = api.call("GET", "/metrics/", at).content
    exposition = Exposition(iter([body]), len(body) + 1)
    return [ReadSample(each.series, each.labels) for each in exposition.samples(dict.fromkeys(READ))]


@pytest.fixture(scope="module")
def samples(api: Api) -> list[ReadSample]:
    """Of a broker with a topic and an idle subscription, once its statistics hold them."""
    namespace = api.new_namespace()
    topic = api.new_partitioned(namespace, 1)
    api.final("PUT", f"/admin/v2/persistent/{topic}/subscription/idle")
    owner = api.look_up(f"{topic}-partition-0")
    deadline = time.monotonic() + STATS_WITHIN_S
    while True:
        seen = told(api, owner)
        if any(sample.labels.get("subscription") == "idle" for sample in seen) and _ledgers(seen, namespace):
            return seen
        assert time.monotonic() < deadline, "the topic never came into the broker's series"
        time.sleep(0.2)


def _ledgers(seen: list[ReadSample], namespace: str) -> bool:
    """Ledgers have statistics of their own, by namespace, which come later than those of topics."""
    return any(sample.series == SWITCHES and sample.labels["namespace"] == f"{namespace}/persistent" for sample in seen)


def test_every_series_that_is_read_is_told_but_for_known_ones(samples: list[ReadSample]) -> None:
    """A broker reports every series that is read except those that are listed as absent."""
    assert {sample.series for sample in samples} == READ - ABSENT


def test_every_sample_has_the_labels_of_its_series(samples: list[ReadSample]) -> None:
    found: dict[str, set[frozenset[str]]] = defaultdict(set)
    for sample in samples:
        found[sample.series].add(frozenset(sample.labels))
    assert found == {name: {LABELS[name]} for name in found}


@pytest.mark.parametrize(
    ("series", "label", "values"),
    [
        ("jvm_gc_collection_seconds_sum", "gc", {"Copy", "MarkSweepCompact"}),
        ("jvm_memory_bytes_max", "area", {"heap", "nonheap"}),
        ("jvm_memory_bytes_used", "area", {"heap", "nonheap"}),
        ("jvm_memory_pool_collection_max_bytes", "pool", {"Eden Space", "Survivor Space", "Tenured Gen"}),
        ("jvm_memory_pool_collection_used_bytes", "pool", {"Eden Space", "Survivor Space", "Tenured Gen"}),
        (
            "jvm_threads_state",
            "state",
            {"NEW", "TERMINATED", "RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "UNKNOWN"},
        ),
        ("pulsar_metadata_store_ops_latency_ms_count", "type", {"get", "put", "del"}),
        ("pulsar_metadata_store_ops_latency_ms_count", "status", {"success", "fail"}),
        (
            "pulsar_metadata_store_ops_latency_ms_bucket",
            "le",
            {f"{bound}.0" for bound in (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)} | {"+Inf"},
        ),
        (
            SWITCHES,
            "quantile",
            {
                *("0.0_0.5", "0.5_1.0", "1.0_5.0", "5.0_10.0", "10.0_20.0", "20.0_50.0"),
                *("50.0_100.0", "100.0_200.0", "200.0_1000.0"),
            },
        ),
    ],
)
def test_labels_that_checks_look_into_have_these_values(
    samples: list[ReadSample], series: str, label: str, values: set[str]
) -> None:
    assert {sample.labels[label] for sample in samples if sample.series == series} == values


def test_answers_are_dated(api: Api) -> None:
    assert len(api.call("GET", "/admin/v2/brokers/version").headers.get_list("Date")) == 1
