"""Operations on buckets of delayed messages that fail."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed.delayed_buckets import DELAYED_BUCKET_FAILING as CHECK
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows, severity_of
from tests.checks.delayed.conftest import TAKEN_AT, cluster, delayed

if TYPE_CHECKING:
    from tests.golden import Golden

IN_BUCKETS: dict[str, str | None] = {"delayedDeliveryTrackerFactoryClassName": BUCKET_TRACKER}
TOPIC = "persistent://t/n/x"
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
    judgement = cluster(settings=IN_BUCKETS, namespaces=KNOWN, metrics=metrics).judged(CHECK)
    assert severity_of(judgement) is severity
    assert judgement.cannot_tell is None


def test_failures_of_earlier_snapshots_count() -> None:
    """Failures in earlier snapshots of the window are added, and older ones are not."""
    once = cluster(settings=IN_BUCKETS, namespaces=KNOWN, metrics=operations("create", failed=1))
    (about,) = once.rows["snapshot"]

    def found(minutes: int) -> list[int]:
        before = once.rows | {"snapshot": [about | {"taken_at": TAKEN_AT - timedelta(minutes=minutes)}]}
        return [each.figures["failed_create"] for each in judge_rows(CHECK, once.rows, None, [before]).findings]

    assert (found(60), found(61)) == ([2], [])


def test_what_it_means_is_said(golden: Golden) -> None:
    """The finding counts delayed messages without a bucket, and its evidence says how long reading them again takes."""
    buckets = delayed(TOPIC, 1) | {"series": "pulsar_delayed_message_index_bucket_total"}
    other = "persistent://t/n/sealed"
    lab = cluster(
        settings=IN_BUCKETS,
        namespaces=KNOWN,
        topics=[{"topic": topic, "broker": "a:8080", "subscriptions": 1} for topic in (TOPIC, other)],
        metrics=[
            *operations("create", failed=12),
            *operations("delete", failed=3, succeed=1, topic=other),
            delayed(TOPIC, 600_000),
            buckets,
            delayed(other, 50_000),
            buckets | {"topic": other, "value": 2.0},
        ],
    )
    (finding,) = lab.judged(CHECK).findings
    golden(finding.evidence)
    assert finding.figures == {"failed_create": 12, "failed_delete": 3, "failed": 15, "unsealed_messages": 600_000}


def test_a_namespace_has_its_own_thresholds() -> None:
    """A namespace's own thresholds apply to it alone; other namespaces keep the cluster's."""
    own = {"namespaces": {"t/n": {"delayed_bucket_failing": {"minimum_failed_operations": 9}}}}
    metrics = operations("create", failed=5) + operations("create", failed=5, topic="persistent://t/other/x")
    findings = (
        cluster(settings=IN_BUCKETS, namespaces=KNOWN, metrics=metrics)
        .judged(CHECK, Policy.model_validate(own))
        .findings
    )
    assert [finding.subject for finding in findings] == ["t/other"]


def test_silence_is_not_health() -> None:
    """The check cannot tell if brokers report no delayed messages, and it is quiet if none uses buckets."""
    silent = [{"source": each, "source_kind": "broker", "series": "jvm_x"} for each in ("a:8080", "b:8080", "c:8080")]
    blind = cluster(settings=IN_BUCKETS, instead={"metrics": silent}).judged(CHECK)
    assert "Brokers do not tell pulsar_subscription_delayed" in (blind.cannot_tell or "")
    assert cluster(instead={"metrics": silent}).judged(CHECK).quiet == "No broker uses the bucket tracker."
