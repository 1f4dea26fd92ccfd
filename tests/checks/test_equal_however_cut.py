"""Whatever a snapshot holds and however it is cut into shards, all checks say the same of it, and none breaks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pulsar_steward.checks.registry import CHECKS, VIEWS
from pulsar_steward.collect.broker import KEPT
from pulsar_steward.collect.metrics import SERIES
from pulsar_steward.diagnose.runner import SnapshotSources, run_checks
from pulsar_steward.model.tables import SHARDED, SMALL
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.checks.conftest import Rows, arrow_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from pulsar_steward.checks.check import Judgement

TAKEN_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BROKERS = ("a:8080", "b:8080", "c:8080")
ENDPOINTS = (("bookie-1:8000", "bookie"),)
NAMESPACES = ("acme/orders", "acme/carts", "bank/ledger", "pulsar/system", "pulsar/a:8080")
BUNDLES = ("0x00000000_0x80000000", "0x80000000_0xffffffff")
HALF = "0x00000000_0x40000000"
POLICIES = (
    Policy(),
    Policy.model_validate(
        {
            "backlog_quota_missing": {"warning_backlog_bytes": 1},
            "backlog_growing": {"warning_bytes_per_second": 1, "minimum_snapshots": 3},
            "bundle_topic_skew": {"warning_topics_per_bundle": 1},
            "connection_churn": {"minimum_clients": 1},
            "delayed_holds_ledgers": {"warning_held_mebibytes_of_partitions": 1},
            "delayed_index_multiplied": {"warning_extra_index_entries_of_partitions": 1},
            "consumer_fanout": {"warning_consumers": 1},
            "subscription_stalled": {"minimum_due_messages": 1},
            "tenants": {"acme": {"consumer_fanout": {"warning_consumers": 7}}},
            "namespaces": {
                "acme/carts": {
                    "backlog_quota_missing": {"warning_backlog_bytes": 10**6},
                    "ack_holes": {"warning_percent": 1},
                }
            },
        }
    ),
)
"""As it is, and one that finds more, with limits for a tenant and a namespace."""

# As far as `pulsar_steward.pulsar.statistics` lets them: figures, limits and rates that are further out are no answer.
NUMBERS = st.sampled_from((None, 0, 1, 2, 99, 100, 5_000, 10**6, 2**31, 2**40, 2**53, -1, -(2**53)))
LIMITS = st.sampled_from((None, -1, 0, 1, 100, 3600, 2**40, 2**63 - 1, -(2**63)))
COUNTS = st.sampled_from((None, 0, 1, 3, 500, 20_000, 2**31 - 1))
RATES = st.sampled_from((None, 0.0, 0.1, 0.2, 0.3, 1.0, 1e3, 1e9, 1e18, -0.1, -1e18))
PERCENTS = st.sampled_from((None, 0.0, 0.1, 50.0, 84.9, 95.0, 100.0, 250.0))
SAMPLES = st.one_of(
    st.sampled_from(
        (0.0, 0.1, 0.2, 0.3, 1.0, 100.0, 1e6, 1e18, 1e19, 1e300, -1.0, float("inf"), float("-inf"), float("nan"))
    ),
    st.sampled_from((TAKEN_AT.timestamp() - 60, TAKEN_AT.timestamp() - 86_400.5, TAKEN_AT.timestamp() + 5)),
)
FLAGS = st.sampled_from((None, True, False))
SETTINGS = st.sampled_from(
    ("true", "false", "0", "1", "-1", "10", "5242880", "10000", "0.5", str(2**63 - 1), "1e400", "", " 7 ", "nonsense",
     None, "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory", "producer_exception")
)  # fmt: skip
WHOLE = st.sampled_from((-1, 0, 1, 60, 10**9, 2**63 - 1, -(2**63)))
QUOTAS = st.fixed_dictionaries(
    {},
    optional={
        kind: st.fixed_dictionaries(
            {"policy": st.sampled_from(("producer_request_hold", "consumer_backlog_eviction"))},
            optional={"limitSize": WHOLE, "limitTime": WHOLE, "limit": WHOLE},
        )
        for kind in ("destination_storage", "message_age")
    },
)
RETENTION = st.fixed_dictionaries({}, optional={"retentionTimeInMinutes": WHOLE, "retentionSizeInMB": WHOLE})
BROKEN = st.sampled_from((None, "", "{", "[]", "null", "{}", '{"backlog_quota_map": 3}', '{"retention_policies": "x"}'))
DOCUMENTS = st.one_of(
    BROKEN,
    st.fixed_dictionaries(
        {},
        optional={
            "backlog_quota_map": QUOTAS,
            "retention_policies": RETENTION,
            "message_ttl_in_seconds": WHOLE,
            "offload_threshold": WHOLE,
            "delayed_delivery_policies": st.fixed_dictionaries({}, optional={"maxDeliveryDelayInMillis": WHOLE}),
        },
    ).map(json.dumps),
)
OF_TOPICS = (
    "pulsar_delayed_message_index_bucket_total",
    "pulsar_delayed_message_index_size_bytes",
    "pulsar_storage_backlog_age_seconds",
    "pulsar_storage_backlog_quota_limit",
    "pulsar_storage_backlog_quota_limit_time",
    "pulsar_subscription_delayed",
)
LABELS = st.sampled_from(
    ({}, {"quantile": "200.0_1000.0"}, {"quantile": "0.5_1.0", "namespace": "acme/orders"},
     {"namespace": "bank/ledger"}, {"gc": "G1 Young Generation"}, {"gc": "G1 Old Generation"}, {"state": "BLOCKED"},
     {"area": "heap"},
     {"le": "+Inf"}, {"le": "100.0", "type": "put"}, {"name": "m", "quantile": "x"})
)  # fmt: skip


def a_row(**columns: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    """A row of these columns; whatever is null is left out, as a table makes it null again."""
    return st.fixed_dictionaries(columns).map(
        lambda row: {name: value for name, value in row.items() if value is not None}
    )


OF_BROKER = a_row(
    read=st.sampled_from((True, True, True, False)), leader=FLAGS, bundles=st.sampled_from((None, 0, 1, 400)),
    topics=NUMBERS, producers=NUMBERS, consumers=NUMBERS, cpu_percent=PERCENTS, memory_percent=PERCENTS,
    direct_memory_percent=PERCENTS, message_rate_in=RATES, message_rate_out=RATES, throughput_in_bytes=RATES,
    throughput_out_bytes=RATES, metrics_read=FLAGS,
    clock_skew_milliseconds=st.sampled_from((None, 0, -5_000, 90_000, 2**53)),
)  # fmt: skip
OF_BUNDLE = a_row(
    owner=st.sampled_from((None, *BROKERS)), owner_known=FLAGS, topics=NUMBERS, producers=NUMBERS, consumers=NUMBERS,
    message_rate_in=RATES, message_rate_out=RATES, throughput_in_bytes=RATES, throughput_out_bytes=RATES,
    backlog_bytes=NUMBERS,
)  # fmt: skip
OF_TOPIC = a_row(
    broker=st.sampled_from(BROKERS), producers=NUMBERS, consumers=NUMBERS, subscriptions=COUNTS, message_rate_in=RATES,
    throughput_in_bytes=RATES, throughput_out_bytes=RATES, pending_add_entries=NUMBERS,
    producers_connected_recently=NUMBERS, storage_bytes=NUMBERS, backlog_bytes=NUMBERS,
)  # fmt: skip
OF_SUBSCRIPTION = a_row(
    type=st.sampled_from((None, "Shared", "Exclusive", "Key_Shared")), consumers=NUMBERS, backlog_entries=NUMBERS,
    messages_per_entry=st.sampled_from((None, 1, 100, 5_000)), consumers_stuck=COUNTS,
    unacked_messages=NUMBERS, blocked_on_unacked=FLAGS, ack_holes=NUMBERS, entries_since_first_gap=NUMBERS,
    consumers_blocked=NUMBERS, consumers_without_permits=NUMBERS, consumers_connected_recently=NUMBERS,
    message_rate_out=RATES, ack_rate=RATES, redeliver_rate=RATES, expired_rate=RATES,
)  # fmt: skip
OF_CLIENT = a_row(
    consumer=st.sampled_from((None, "", "one", "two")), address=st.sampled_from(("10.0.0.1:1", "10.0.0.2:2")),
    connected_since=st.sampled_from((None, "", "2026-03-01T11:59:00Z", "2026-03-01T11:00:00.123+01:00", "yesterday")),
    unacked_messages=NUMBERS, available_permits=NUMBERS,
    blocked=FLAGS, message_rate_out=RATES, ack_rate=RATES,
)  # fmt: skip
OF_DRILLED = a_row(
    delayed_messages=NUMBERS, delayed_index_bytes=NUMBERS, delayed_buckets=COUNTS,
    ack_state_bytes=NUMBERS, oldest_backlog_age_seconds=NUMBERS, quota_limit_bytes=LIMITS,
    quota_limit_seconds=LIMITS, slowest_subscription=st.sampled_from((None, "s0")),
    last_consumed_milliseconds=st.sampled_from((None, 0, 1_700_000_000_000, 2**53)),
    last_acked_milliseconds=st.sampled_from((None, 0, 1_700_000_000_000, 2**53)),
    topic_quota_json=st.one_of(BROKEN, QUOTAS.map(json.dumps)),
    topic_retention_json=st.one_of(BROKEN, RETENTION.map(json.dumps)), ledgers=COUNTS,
    topic_rates_json=st.sampled_from((None, "{}", "{", '{"publishRate":{"publishThrottlingRateInMsg":1}}')),
    cursor_properties_json=st.sampled_from((None, "[]", '["#pulsar.internal.delayed.bucket_1_2"]', "{")),
    cursor_json=st.sampled_from((None, '{"created":"x","position":"1:2","written":"3:4"}', "{")),
)  # fmt: skip


@st.composite
def snapshots(draw: DrawFn, taken_at: datetime = TAKEN_AT) -> Rows:
    """A small one, in which anything may be missing."""
    some_brokers = draw(st.lists(st.sampled_from(BROKERS), unique=True))
    brokers = [{"broker": name} | draw(OF_BROKER) for name in some_brokers]
    names = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
    about: dict[str, Any] = {
        "cluster": "east",
        "taken_at": taken_at,
        "pulsar_version": "4.0.7",
        "load_manager": draw(st.sampled_from(("ModularLoadManagerImpl", "ExtensibleLoadManagerImpl"))),
        "unread_brokers": [row["broker"] for row in brokers if not row["read"]],
        "unread_namespaces": draw(st.sampled_from(([], ["acme/carts"]))),
        "coordinators": draw(st.sampled_from((0, 4))),
    }
    rows: Rows = {
        "snapshot": [about],
        "brokers": brokers,
        "namespaces": [{"namespace": name, "policies_json": draw(DOCUMENTS), "bundles": 2} for name in names],
        "bundles": [
            {"namespace": name, "bundle": bundle} | draw(OF_BUNDLE)
            for name in draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
            for bundle in BUNDLES
        ],
        "transaction_coordinators": [
            {
                "coordinator": number,
                "broker": draw(st.sampled_from((None, *BROKERS))),
                "broker_known": draw(st.booleans()),
            }
            for number in range(about["coordinators"])
        ],
        "configuration": [
            {"broker": name, "key": key, "value": draw(SETTINGS)}
            for name in some_brokers
            for key in draw(st.lists(st.sampled_from(sorted(KEPT)), unique=True, max_size=25))
        ],
        **{name: [] for name in ("topics", "subscriptions", "clients", "drilled", "metrics")},
    }
    _add_topics(draw, rows)
    _add_metrics(draw, rows)
    return rows


def _add_topics(draw: DrawFn, rows: Rows) -> None:
    """Topics with their subscriptions and clients; some of them were asked for their own statistics.

    A topic may be told by two brokers, each in its own words, as its bundle moved while they were asked.
    """
    for number in range(draw(st.integers(0, 6))):
        namespace = draw(st.sampled_from((None, *NAMESPACES)))
        name = draw(st.sampled_from(("t", "__change_events", "ü x")))
        topic = {
            "topic": f"persistent://{namespace or 'acme/orders'}/{name}-partition-{number}",
            "namespace": namespace,
        }
        first = topic | draw(OF_TOPIC)
        _add_topic(draw, rows, first)
        if namespace and draw(st.booleans()):
            second = topic | draw(OF_TOPIC)
            others = [broker for broker in BROKERS if broker != first["broker"]]
            second["broker"] = draw(st.sampled_from(others))
            _add_move(rows, first, second, was_split=draw(st.booleans()))
            _add_topic(draw, rows, second, drilled=False)


def _add_topic(draw: DrawFn, rows: Rows, topic: dict[str, Any], *, drilled: bool = True) -> None:
    rows["topics"].append(topic)
    named = {"topic": topic["topic"], "namespace": topic["namespace"], "told_by": topic["broker"]}
    for subscription in range(draw(st.integers(0, 3))):
        names = ("s0", "s1", "reader-0a1b2c3d4e", "__compaction")
        mine = named | {"subscription": names[draw(st.integers(0, 3))] + str(subscription) * (subscription > 0)}
        rows["subscriptions"].append(mine | draw(OF_SUBSCRIPTION))
        rows["clients"] += [mine | draw(OF_CLIENT) for _ in range(draw(st.integers(0, 2)))]
        if drilled and draw(st.booleans()):
            rows["drilled"].append({**mine, "namespace": topic["namespace"] or "acme/orders"} | draw(OF_DRILLED))


def _add_move(rows: Rows, first: dict[str, Any], second: dict[str, Any], *, was_split: bool) -> None:
    """Bundles as collecting leaves them where two brokers named one, or one named a half of the other's."""
    parent = BUNDLES[0]
    first["bundle"], second["bundle"] = parent, HALF if was_split else parent
    of_parent, of_half = (first["broker"], second["broker"]) if was_split else (None, None)
    told = {"namespace": first["namespace"], "topics": 1}
    others = [row for row in rows["bundles"] if (row["namespace"], row["bundle"]) != (told["namespace"], parent)]
    rows["bundles"] = [*others, told | {"bundle": parent, "owner": of_parent, "owner_known": was_split}]
    if was_split:
        rows["bundles"].append(told | {"bundle": HALF, "owner": of_half, "owner_known": True})


def _add_metrics(draw: DrawFn, rows: Rows) -> None:
    """Samples of processes, and some of topics, told by whoever tells of these."""
    sources = [*((name, "broker") for name in BROKERS), *ENDPOINTS]
    for source, kind in draw(st.lists(st.sampled_from(sources), unique=True)):
        for series in draw(st.lists(st.sampled_from(sorted(SERIES[kind])), unique=True, max_size=20)):  # type: ignore[index]  # of two kinds of source
            for labels in draw(st.lists(LABELS, unique_by=str, min_size=1, max_size=3)):
                text = json.dumps(labels, sort_keys=True)
                sample = {"source": source, "source_kind": kind, "series": series, "labels_json": text}
                rows["metrics"].append(sample | {"value": draw(SAMPLES)})
        for each in (row for row in rows["subscriptions"] if row["told_by"] == source):
            for series in draw(st.lists(st.sampled_from(OF_TOPICS), unique=True, max_size=2)):
                sample = {"source": source, "source_kind": kind, "series": series, "labels_json": "{}"}
                told = {"topic": each["topic"], "subscription": each["subscription"], "value": draw(SAMPLES)}
                rows["metrics"].append(sample | told)


@st.composite
def histories(draw: DrawFn) -> list[Rows]:
    """A snapshot, and up to three earlier ones of other topics or of the same with other backlogs, the newest first."""
    newest = draw(snapshots())
    found = [newest]
    for number in range(draw(st.sampled_from((0, 0, 0, 2, 3)))):
        at = TAKEN_AT - timedelta(minutes=10 * (number + 1))
        if draw(st.booleans()):
            found.append(draw(snapshots(at)))
            continue
        smaller = [row | {"backlog_bytes": (row.get("backlog_bytes") or 0) // (number + 2)} for row in newest["topics"]]
        found.append(newest | {"snapshot": [newest["snapshot"][0] | {"taken_at": at}], "topics": smaller})
    return found


def sources_of(rows: Rows, shard_of: Callable[[str], int], earlier: Sequence[Rows] = ()) -> SnapshotSources:
    """A snapshot in shards, by whoever told the rows."""
    teller = {"topics": "broker", "metrics": "source"}
    parts: dict[int, Rows] = {}
    for table in SHARDED:
        for row in rows[table.name]:
            whose = row[teller.get(table.name, "told_by")]
            parts.setdefault(shard_of(whose), {}).setdefault(table.name, []).append(row)
    shards = [
        {table.name: arrow_of(table, parts[number].get(table.name, [])) for table in SHARDED}
        for number in sorted(parts)
    ]
    small = {table.name: arrow_of(table, rows.get(table.name, [])) for table in SMALL}
    return SnapshotSources(small, shards, [sources_of(each, shard_of) for each in earlier])


def judged(history: Sequence[Rows], shard_of: Callable[[str], int], policy: Policy) -> Mapping[str, Judgement]:
    newest, *earlier = history
    snapshot = sources_of(newest, shard_of, earlier)
    return {each.check.check_id: each.judgement for each in run_checks(snapshot, policy, CHECKS, VIEWS, on_this_thread)}


def same_however_cut(history: list[Rows], grouping: Sequence[int], policy: Policy) -> None:
    """Judges it whole, and in shards of these numbers for each broker and bookie; the whole must not differ."""
    names = [*BROKERS, *(name for name, _ in ENDPOINTS)]
    whole = judged(history, lambda _: 0, policy)
    assert {check: each.cannot_tell for check, each in whole.items() if each.broke} == {}
    assert judged(history, lambda whose: grouping[names.index(whose)], policy) == whole


CASE = given(
    history=histories(), grouping=st.lists(st.integers(0, 2), min_size=4, max_size=4), policy=st.sampled_from(POLICIES)
)
TRIED = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@settings(TRIED, max_examples=2)
@CASE
def test_all_checks_say_the_same_however_a_snapshot_is_cut(
    history: list[Rows], grouping: list[int], policy: Policy
) -> None:
    """All checks give the same judgement of a snapshot however it is cut into shards.

    Two examples, as each runs some 250 queries up to four times; the extended test tries others, and shards of one
    broker each, as each check's own tests do.
    """
    same_however_cut(history, grouping, policy)


@pytest.mark.extended("tests/checks/test_equal_however_cut.py::test_all_checks_say_the_same_however_a_snapshot_is_cut")
@settings(TRIED, max_examples=24)
@CASE
def test_the_same_of_many_more_snapshots(history: list[Rows], grouping: list[int], policy: Policy) -> None:
    """All checks give the same judgement of further snapshots however these are cut into shards."""
    same_however_cut(history, grouping, policy)
    same_however_cut(history, range(len(BROKERS) + len(ENDPOINTS)), policy)
