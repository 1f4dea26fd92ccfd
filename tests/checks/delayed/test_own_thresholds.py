"""Tenants and namespaces that have thresholds of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.delayed import delayed_buckets, delayed_holds_ledgers, delayed_index, delayed_past_ttl
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.delayed.conftest import cluster, delayed

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check

CASES: dict[str, tuple[Check, dict[str, int], Severity]] = {
    # thresholds that all three namespaces pass
    "multiplied": (
        delayed_index.DELAYED_INDEX_MULTIPLIED,
        {"warning_extra_index_entries": 40, "critical_extra_index_entries": 45},
        Severity.CRITICAL,
    ),
    "held": (delayed_holds_ledgers.CHECK, {"warning_held_mebibytes": 1}, Severity.WARNING),
    "buckets": (
        delayed_buckets.DELAYED_BUCKET_COUNT,
        {"warning_buckets_unlimited": 5, "critical_buckets_unlimited": 9},
        Severity.CRITICAL,
    ),
    "expiring": (delayed_past_ttl.CHECK, {"critical_delayed_percent_of_backlog": 1}, Severity.CRITICAL),
}


@pytest.mark.parametrize(("check", "thresholds", "severity"), CASES.values(), ids=CASES)
def test_a_namespace_is_judged_by_its_own_thresholds(
    check: Check, thresholds: dict[str, int], severity: Severity
) -> None:
    """A namespace is judged by its own thresholds or by its tenant's, and the others keep the cluster's."""
    names = {"t/own": "a:8080", "acme/any": "b:8080", "t/usual": "c:8080"}
    topics = {f"persistent://{name}/x": broker for name, broker in names.items()}
    cursor = {"subscription": "s", "backlog_entries": 5_000, "entries_since_first_gap": 100_000, "expired_rate": 1.0}
    lab = cluster(
        namespaces=[
            {"namespace": name, "policies_json": json.dumps({"message_ttl_in_seconds": 7200})} for name in names
        ],
        topics=[
            {"topic": topic, "broker": broker, "subscriptions": 2, "storage_bytes": 1 << 30, "backlog_bytes": 1 << 30}
            for topic, broker in topics.items()
        ],
        subscriptions=[{"topic": topic} | cursor for topic in topics],
        metrics=[
            sample
            for topic, broker in topics.items()
            for sample in (
                delayed(topic, 60, source=broker),
                delayed(topic, 50, "other", source=broker),
                delayed(topic, 11, source=broker) | {"series": "pulsar_delayed_message_index_bucket_total"},
            )
        ],
    )
    policy = Policy.model_validate(
        {"namespaces": {"t/own": {check.section: thresholds}}, "tenants": {"acme": {check.section: thresholds}}}
    )

    findings = lab.judged(check, policy).findings

    found = {finding.subject.removeprefix("persistent://").removesuffix("/x"): finding.severity for finding in findings}
    assert {name: each for name, each in found.items() if each is severity} == {"t/own": severity, "acme/any": severity}
