"""The index of delayed messages: its memory, its copies, its buckets."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed.delayed_buckets import (
    DELAYED_BUCKET_COUNT,
    SEALED_AT,
    SEGMENT_MESSAGES,
    SEGMENT_SECONDS,
)
from pulsar_steward.checks.delayed.delayed_buckets import DELAYED_BUCKET_FAILING as CHECK
from pulsar_steward.checks.delayed.delayed_index import DELAYED_INDEX_MEMORY, DELAYED_INDEX_MULTIPLIED
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER as BUCKET
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DELAYED_SERIES
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows, severity_of, told
from tests.checks.delayed.conftest import TAKEN_AT, cluster, delayed

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.checks.delayed.conftest import Cluster
    from tests.golden import Golden

IN_MEMORY = "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory"
IN_BUCKETS: dict[str, str | None] = {"delayedDeliveryTrackerFactoryClassName": BUCKET}
TOPIC = "persistent://t/n/x"

MEMORY_CASES: dict[str, tuple[int, float, str | None, Severity | None]] = {
    # messages, bytes as told, tracker; the smaller limit is 2.4e9 bytes
    "below-a-tenth": (9_999_999, 0, IN_MEMORY, None),
    "ten-million-to-read-again": (10_000_000, 0, IN_MEMORY, Severity.WARNING),
    "unknown-may-be-in-memory": (10_000_000, 0, None, Severity.WARNING),
    "buckets-are-not-read-again": (90_000_000, 0, BUCKET, None),
    "a-tenth-as-told": (10, 2.4e8, BUCKET, Severity.WARNING),
    "just-less-as-told": (10, 2.3999e8, IN_MEMORY, None),
    "three-tenths-as-told": (10, 7.2e8, IN_MEMORY, Severity.CRITICAL),
    "three-tenths-by-messages": (30_000_000, 0, IN_MEMORY, Severity.CRITICAL),
}


def placed(broker: str = "a:8080", topic: str = TOPIC) -> list[dict[str, Any]]:
    return [{"topic": topic, "broker": broker, "subscriptions": 1}]


def sample(series: str, value: float, subscription: str | None = None) -> dict[str, Any]:
    """A sample of the topic, told by its broker."""
    labels = {"topic": TOPIC, "subscription": subscription}
    return {"source": "a:8080", "source_kind": "broker", "series": series, "value": float(value)} | labels


def broker_samples(broker: str, topic: str, messages: int, told: float) -> list[dict[str, Any]]:
    """A broker's series of its memory, and of the delayed messages of a topic."""
    base = {"source": broker, "source_kind": "broker"}
    return [
        base | {"series": "jvm_memory_bytes_max", "labels_json": '{"area":"heap"}', "value": 2.4e9},
        base | {"series": "jvm_memory_bytes_max", "labels_json": '{"area":"nonheap"}', "value": 1e8},
        base | {"series": "jvm_memory_direct_bytes_max", "value": 4e9},
        base | {"series": DELAYED_SERIES, "topic": topic, "subscription": "s", "value": float(messages)},
        base | {"series": "pulsar_delayed_message_index_size_bytes", "topic": topic, "value": float(told)},
    ]


def test_indexes_are_judged_by_their_memory() -> None:
    """An index is judged by the broker's own figure or by an estimate from its messages, and the worst comes first."""
    instead: dict[str, list[dict[str, Any]]] = {name: [] for name in ("brokers", "topics", "metrics", "configuration")}
    for name, (messages, of_index, tracker, _) in MEMORY_CASES.items():
        topic, key = f"persistent://t/n/{name}", "delayedDeliveryTrackerFactoryClassName"
        instead["brokers"].append({"broker": name, "read": True})
        instead["topics"].append({"topic": topic, "broker": name, "subscriptions": 1})
        instead["metrics"] += broker_samples(name, topic, messages, of_index)
        instead["configuration"].append({"broker": name, "key": key, "value": tracker})
    judgement = cluster(instead=instead).judged(DELAYED_INDEX_MEMORY)
    expected = {name: severity for name, (*_, severity) in MEMORY_CASES.items() if severity}
    assert {finding.subject: finding.severity for finding in judgement.findings} == expected
    order = [(-finding.severity.rank, -finding.figures["index_bytes"]) for finding in judgement.findings]
    assert order == sorted(order)


def test_what_it_says_of_memory(golden: Golden) -> None:
    """The size is estimated, and the in-memory tracker reads the backlog again; less than a byte is no limit."""
    zeros = [delayed("", 0, source=broker) | {"topic": None} for broker in ("a:8080", "b:8080", "c:8080")]
    odd = {"source": "a:8080", "source_kind": "broker", "series": "jvm_memory_direct_bytes_max", "value": 0.5}
    forty = delayed(TOPIC, 40_000_000, source="b:8080")
    cases = {
        "forty million messages": cluster(topics=placed("b:8080"), metrics=[forty]),
        "no limit of memory": cluster(topics=placed(), instead={"metrics": [*zeros, delayed(TOPIC, 100)]}),
        "half a byte": cluster(topics=placed(), instead={"metrics": [*zeros, odd, delayed(TOPIC, 20_000_000)]}),
    }
    golden(told({rule: each.judged(DELAYED_INDEX_MEMORY) for rule, each in cases.items()}))


MULTIPLIED_CASES: dict[str, tuple[list[int], Severity | None]] = {
    "one subscription multiplies nothing": ([90_000_000], None),
    "a small copy is fine": ([90_000_000, 999_999], None),
    "a million copied entries are found": ([90_000_000, 1_000_000], Severity.WARNING),
    "many copies add up": ([500_000, 500_000, 500_000], Severity.WARNING),
    "twenty million are critical": ([20_000_000, 20_000_000], Severity.CRITICAL),
}


def test_copies_of_an_index_are_judged(golden: Golden) -> None:
    """Index entries beyond those of the fullest subscription are judged as copies, for each topic by itself."""
    metrics = [
        delayed(f"persistent://t/n/{name.replace(' ', '-')}", messages, f"s{number}")
        for name, (counts, _) in MULTIPLIED_CASES.items()
        for number, messages in enumerate(counts)
    ]
    findings = cluster(metrics=metrics).judged(DELAYED_INDEX_MULTIPLIED).findings
    found = {finding.subject.rpartition("/")[2].replace("-", " "): finding.severity for finding in findings}
    assert found == {name: severity for name, (_, severity) in MULTIPLIED_CASES.items() if severity}
    golden(findings[0].evidence)


def test_a_topic_that_two_brokers_tell_of_is_not_multiplied() -> None:
    """The index of a topic that two brokers report while it moves is not counted as a copy."""
    both = ("a:8080", "b:8080")
    lab = cluster(
        topics=[row for broker in both for row in placed(broker)],
        metrics=[delayed(TOPIC, 5_000_000, source=broker) for broker in both],
    )
    assert lab.judged(DELAYED_INDEX_MULTIPLIED).findings == ()


@pytest.mark.parametrize("check", [DELAYED_INDEX_MEMORY, DELAYED_INDEX_MULTIPLIED, DELAYED_BUCKET_COUNT])
def test_silence_of_brokers_is_not_health(check: Check) -> None:
    """A broker with subscriptions that tells nothing of delayed messages allows no verdict; a healthy cluster does."""
    silent = [{"source": each, "source_kind": "broker", "series": "jvm_x"} for each in ("a:8080", "b:8080", "c:8080")]
    healthy = cluster(settings=IN_BUCKETS).judged(check)
    blind = cluster(settings=IN_BUCKETS, instead={"metrics": silent}).judged(check)
    assert (healthy.findings, healthy.cannot_tell) == ((), None)
    assert blind.cannot_tell is not None
    assert "Brokers do not tell pulsar_subscription_delayed" in blind.cannot_tell
    assert blind.cannot_tell.endswith(": a:8080.")


BUCKET_CASES: dict[str | None, dict[int, Severity | None]] = {
    # delayedDeliveryMaxNumBuckets: sealed buckets; one that was not read, or that no broker can have, is taken for none
    "50": {44: None, 45: Severity.WARNING, 74: Severity.WARNING, 75: Severity.CRITICAL},
    "-1": {999: None, 1_000: Severity.WARNING, 4_999: Severity.WARNING, 5_000: Severity.CRITICAL},
    None: {999: None, 1_000: Severity.WARNING},
    str(2**63 - 1): {999: None, 1_000: Severity.WARNING},
}


@pytest.mark.parametrize("limit", BUCKET_CASES)
def test_buckets_are_judged(limit: str | None) -> None:
    """Buckets are judged by their number, without the one that is being filled, which the series counts as well."""
    cases = BUCKET_CASES[limit]
    series = "pulsar_delayed_message_index_bucket_total"
    lab = cluster(
        settings={**IN_BUCKETS, "delayedDeliveryMaxNumBuckets": limit},
        metrics=[sample(series, sealed + 1, "s") | {"topic": f"{TOPIC}{sealed}"} for sealed in cases],
    )
    found = [(finding.figures["buckets"], finding.severity) for finding in lab.judged(DELAYED_BUCKET_COUNT).findings]
    assert found == sorted(((sealed, severity) for sealed, severity in cases.items() if severity), reverse=True)


def test_what_it_says_of_buckets(golden: Golden) -> None:
    """Buckets smaller than by default are named as the reason; without a number of buckets there is no verdict."""
    fifty: dict[str, str | None] = {**IN_BUCKETS, "delayedDeliveryMaxNumBuckets": "50"}
    sixty = sample("pulsar_delayed_message_index_bucket_total", 60, "s") | {"topic": TOPIC}
    in_properties = str([f"#pulsar.internal.delayed.bucket_{n}_{n}" for n in range(48)])

    def sized(sealed_at: str | None, messages: str | None, seconds: str | None) -> Cluster:
        sizes = {SEALED_AT: sealed_at, SEGMENT_MESSAGES: messages, SEGMENT_SECONDS: seconds}
        return cluster(settings={**fifty, **sizes}, metrics=[sixty])

    def drilled(**row: Any) -> Cluster:
        rows = [{"topic": TOPIC, "subscription": "s", "delayed_messages": 9} | row]
        return cluster(settings=fifty, topics=placed(), drilled=rows)

    cases = {
        "as by default": sized("50000", "5000", "300"),
        "small buckets": sized("500", "5000", "300"),
        "short segments": sized("50000", "5000", "1"),
        "sizes are not told": sized(None, None, None),
        "counted by the topic's statistics": drilled(delayed_buckets=49),
        "counted by the cursor's properties": drilled(cursor_properties_json=in_properties),
        "in memory, and not counted": cluster(metrics=[delayed(TOPIC, 9)]),
        "in buckets, and not counted": cluster(settings=IN_BUCKETS, metrics=[delayed(TOPIC, 9)]),
        "nobody tells where": cluster(
            settings={"delayedDeliveryTrackerFactoryClassName": None}, metrics=[delayed(TOPIC, 9)]
        ),
    }
    golden(told({rule: each.judged(DELAYED_BUCKET_COUNT) for rule, each in cases.items()}))


FAILING_IN_BUCKETS: dict[str, str | None] = {"delayedDeliveryTrackerFactoryClassName": BUCKET_TRACKER}
KNOWN: list[dict[str, Any]] = [{"namespace": "t/n"}, {"namespace": "t/other"}, {"namespace": "pulsar/system"}]


def operations(kind: str, *, failed: int, succeed: int = 0, topic: str = TOPIC) -> list[dict[str, Any]]:
    """Samples of a subscription's operations, as its broker tells them, and once more of the topic as a whole."""
    counts = {"failed": failed, "succeed": succeed, "all": failed + succeed}
    base = {"source": "a:8080", "source_kind": "broker", "series": "pulsar_delayed_message_index_bucket_op_count"}
    return [
        base
        | {"topic": topic, "subscription": subscription, "value": float(value)}
        | {"labels_json": json.dumps({"state": state, "topic": topic, "type": kind})}
        for state, value in counts.items()
        for subscription in ("s", None)
        if value
    ]


@pytest.mark.parametrize(
    ("metrics", "severity"),
    [
        ([], None),
        (operations("create", failed=0, succeed=9), None),
        (operations("create", failed=1), None),
        (operations("create", failed=2, succeed=19), None),
        (operations("create", failed=2, succeed=18), Severity.WARNING),
        (operations("create", failed=8, succeed=1), Severity.WARNING),
        (operations("create", failed=9, succeed=1), Severity.CRITICAL),
        (operations("delete", failed=9), Severity.WARNING),
        (operations("load", failed=1) + operations("merge", failed=1), None),
        (operations("merge", failed=2) + operations("create", failed=0, succeed=99), Severity.WARNING),
        (operations("load", failed=2, topic="persistent://pulsar/system/x"), None),
    ],
    ids=[
        "none",
        "all is well",
        "once",
        "few of many",
        "a tenth",
        "most",
        "next to all",
        "deletes",
        "once of each kind",
        "one kind of two",
        "not a user's",
    ],
)
def test_shares_of_failed_operations_are_judged(metrics: list[dict[str, Any]], severity: Severity | None) -> None:
    """Each kind of operation is judged by itself, and a topic's sum is not added to its subscriptions' counts."""
    judgement = cluster(settings=FAILING_IN_BUCKETS, namespaces=KNOWN, metrics=metrics).judged(CHECK)
    assert severity_of(judgement) is severity
    assert judgement.cannot_tell is None


def test_failures_of_earlier_snapshots_count() -> None:
    """Failures in earlier snapshots of the window are added, and older ones are not."""
    once = cluster(settings=FAILING_IN_BUCKETS, namespaces=KNOWN, metrics=operations("create", failed=1))
    (about,) = once.rows["snapshot"]

    def found(minutes: int) -> list[int]:
        before = once.rows | {"snapshot": [about | {"taken_at": TAKEN_AT - timedelta(minutes=minutes)}]}
        return [each.figures["failed_create"] for each in judge_rows(CHECK, once.rows, None, [before]).findings]

    assert (found(60), found(61)) == ([2], [])


def test_what_it_says(golden: Golden) -> None:
    """Delayed messages without a bucket, and how long reading them again takes; silence is not health."""
    other = "persistent://t/n/sealed"
    buckets = delayed(TOPIC, 1) | {"series": "pulsar_delayed_message_index_bucket_total"}
    unsealed = [delayed(TOPIC, 600_000), buckets, delayed(other, 50_000), buckets | {"topic": other, "value": 2.0}]
    failing = operations("create", failed=12) + operations("delete", failed=3, succeed=1, topic=other)
    topics = [{"topic": topic, "broker": "a:8080", "subscriptions": 1} for topic in (TOPIC, other)]
    two = operations("create", failed=5) + operations("create", failed=5, topic="persistent://t/other/x")
    silent = [{"source": each, "source_kind": "broker", "series": "jvm_x"} for each in ("a:8080", "b:8080", "c:8080")]
    section = {"delayed_bucket_failing": {"minimum_failed_operations": 9}}
    own = Policy.model_validate({"namespaces": {"t/n": section}})
    lab: dict[str, Any] = {"settings": FAILING_IN_BUCKETS, "namespaces": KNOWN}
    cases = {
        "messages of one topic are in no bucket": cluster(**lab, topics=topics, metrics=[*failing, *unsealed]).judged(
            CHECK
        ),
        "below the threshold of one of two namespaces": cluster(**lab, metrics=two).judged(CHECK, own),
        "brokers tell nothing of delayed messages": cluster(**lab, instead={"metrics": silent}).judged(CHECK),
        "nor do they, and none uses buckets": cluster(instead={"metrics": silent}).judged(CHECK),
    }
    golden(told(cases))
