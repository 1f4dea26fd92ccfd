"""Delayed messages that a time to live may delete before they are due."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.delayed import delayed_past_ttl
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import as_text, judge_rows
from tests.checks.delayed.conftest import TAKEN_AT, cluster, delayed

if TYPE_CHECKING:
    from tests.checks.delayed.conftest import Cluster
    from tests.golden import Golden

HOUR = 3600

CASES: dict[str, tuple[dict[str, Any], Severity | None]] = {
    "no-ttl": ({"ttl": 0}, None),
    "default-ttl-is-off": ({"ttl": None}, None),
    "unbounded": ({}, Severity.INFO),
    "bounded-below": ({"longest": HOUR * 1000}, None),
    "bounded-at-the-ttl": ({"longest": 2 * HOUR * 1000}, None),
    "bounded-above": ({"longest": 3 * HOUR * 1000}, Severity.WARNING),
    "young": ({"age": 2 * HOUR * 0.79}, Severity.INFO),
    "old": ({"age": 2 * HOUR * 0.8}, Severity.WARNING),
    "expiring-delayed": ({"expired": 2.0, "backlog": 1111}, Severity.CRITICAL),
    "expiring-others-too": ({"expired": 2.0, "backlog": 1112}, Severity.WARNING),
    "nothing-delayed": ({"delayed": 0, "expired": 2.0}, None),
    "expiring-is-told-even-when-bounded": ({"longest": 1000, "expired": 1.0, "backlog": 1000}, Severity.CRITICAL),
}


def policies(ttl: int | None, longest: int | None) -> str:
    """A namespace's policies as brokers give them."""
    delays = None if longest is None else {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": longest}
    return json.dumps({"message_ttl_in_seconds": ttl, "delayed_delivery_policies": delays})


def test_every_namespace_is_judged() -> None:
    """Findings follow from the time to live, the longest delay, expiry and the backlog's age, with the worst first."""
    namespaces, topics, subscriptions, metrics, drilled = [], [], [], [], []
    for name, (given, _) in CASES.items():
        topic = f"persistent://t/{name}/x-partition-0"
        case = {"ttl": 2 * HOUR, "longest": None, "delayed": 1000, "expired": 0.0, "backlog": 5000, "age": 60} | given
        namespaces.append({"namespace": f"t/{name}", "policies_json": policies(case["ttl"], case["longest"])})
        topics.append({"topic": topic, "broker": "a:8080", "subscriptions": 1})
        metrics.append(delayed(topic, case["delayed"]))
        drilled.append({"topic": topic, "subscription": "s", "oldest_backlog_age_seconds": int(case["age"])})
        flow = {"backlog_entries": case["backlog"], "expired_rate": case["expired"]}
        subscriptions.append({"topic": topic, "subscription": "s"} | flow)
    lab = cluster(namespaces=namespaces, topics=topics, subscriptions=subscriptions, metrics=metrics, drilled=drilled)
    findings = lab.judged(delayed_past_ttl.CHECK).findings
    expected = {f"t/{name}": severity for name, (_, severity) in CASES.items() if severity}
    assert {finding.subject: finding.severity for finding in findings} == expected
    order = [(-finding.severity.rank, finding.subject) for finding in findings]
    assert order == sorted(order)


def test_the_evidence_says_what_expires(golden: Golden) -> None:
    """The evidence names the worst subscription with its expiry rate, and the brokers' default time to live applies."""
    topic, other = "persistent://t/n/x", "persistent://t/n/y"
    lab = cluster(
        settings={"ttlDurationDefaultInSeconds": "7200"},
        namespaces=[{"namespace": "t/n", "policies_json": policies(None, None)}],
        topics=[{"topic": each, "broker": broker} for each, broker in ((topic, "a:8080"), (other, "b:8080"))],
        metrics=[delayed(topic, 900), delayed(other, 5000, source="b:8080")],
        subscriptions=[{"topic": topic, "subscription": "s", "backlog_entries": 1000, "expired_rate": 1.5}],
    )
    (finding,) = lab.judged(delayed_past_ttl.CHECK).findings
    golden(finding.evidence)
    golden(as_text(finding.figures))


BEFORE: dict[str, tuple[dict[str, Any], Severity | None]] = {
    # minutes ago, what expired then, delayed then and now, the times to live then and now
    "delayed messages expired lately": ({}, Severity.CRITICAL),
    "others did too": ({"backlog": 5000}, Severity.WARNING),
    "it was longer ago": ({"minutes": 61}, None),
    "none expired": ({"expired": 0.0}, None),
    "none was delayed then": ({"delayed_then": 0}, None),
    "none is delayed now": ({"delayed": 0}, None),
    "the time to live was raised since": ({"ttl_then": HOUR}, None),
    "it was lowered since": ({"ttl_then": 3 * HOUR}, Severity.CRITICAL),
    "it was removed since": ({"ttl": 0}, None),
}


@pytest.mark.parametrize(("given", "severity"), BEFORE.values(), ids=BEFORE)
def test_what_expired_in_earlier_snapshots_counts(given: dict[str, Any], severity: Severity | None) -> None:
    """Delayed messages that expired in an earlier snapshot of the window count, although none expire now."""
    topic, bounded = "persistent://t/n/x", 2 * HOUR * 1000
    usual = {"minutes": 10, "expired": 2.0, "backlog": 1000, "delayed": 1000, "ttl": 2 * HOUR}
    case = usual | {"delayed_then": 1000, "ttl_then": 2 * HOUR} | given

    def at(ttl: int, expired: float, waiting: int) -> Cluster:
        flow = {"backlog_entries": case["backlog"], "expired_rate": expired}
        return cluster(
            namespaces=[{"namespace": "t/n", "policies_json": policies(ttl, bounded)}],
            topics=[{"topic": topic, "broker": "a:8080", "subscriptions": 1}],
            subscriptions=[{"topic": topic, "subscription": "s"} | flow],
            metrics=[delayed(topic, waiting)],
        )

    now, before = at(case["ttl"], 0.0, case["delayed"]), at(case["ttl_then"], case["expired"], case["delayed_then"])
    (about,) = before.rows["snapshot"]
    then = about | {"taken_at": TAKEN_AT - timedelta(minutes=case["minutes"])}
    judgement = judge_rows(delayed_past_ttl.CHECK, now.rows, None, [before.rows | {"snapshot": [then]}])
    assert [finding.severity for finding in judgement.findings] == ([] if severity is None else [severity])
    assert all("at 23:50 UTC" in finding.evidence for finding in judgement.findings)
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"instead": {"metrics": []}}, "Prometheus series were not read"),
        ({"settings": {"ttlDurationDefaultInSeconds": None}}, "The time to live of 1 "),
        ({"instead": {"namespaces": []}}, "The time to live of 1 "),
    ],
    ids=["no metrics", "no default", "no policies"],
)
def test_what_was_not_read_is_said(changed: dict[str, Any], words: str) -> None:
    """The check cannot tell if the delayed messages or the time to live were not read."""
    rows = {
        "namespaces": [{"namespace": "t/n", "policies_json": policies(None, None)}],
        "metrics": [delayed("persistent://t/n/x", 5)],
    }
    judgement = cluster(**rows | changed).judged(delayed_past_ttl.CHECK)
    assert not judgement.findings
    assert words in (judgement.cannot_tell or "")


def test_a_cluster_without_delayed_messages_is_quiet() -> None:
    """A time to live is not found if there are no delayed messages."""
    lab = cluster(namespaces=[{"namespace": "t/n", "policies_json": policies(60, None)}])
    judgement = lab.judged(delayed_past_ttl.CHECK)
    assert (judgement.findings, judgement.cannot_tell) == ((), None)
