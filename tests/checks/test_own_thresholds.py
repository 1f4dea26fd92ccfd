"""Tenants and namespaces with thresholds of their own: each is judged by them, and silence names them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import ack_holes, client_numbers, cursors, subscription_blocked, subscription_stalled
from pulsar_steward.checks.delayed import delayed_buckets, delayed_holds_ledgers, delayed_index, delayed_past_ttl
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene
from tests.checks.conftest import told
from tests.checks.delayed.conftest import cluster, delayed

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.golden import Golden

USUAL, OWN = "persistent://t/n/usual", "persistent://own/n/own"
STILL = {"message_rate_out": 0.0, "ack_rate": 0.0}
SPAN = {"entries_since_first_gap": 10_000_000}

# What two topics are like, the thresholds of one of their tenants, and whether they make it trouble.
CASES: dict[str, tuple[Check, dict[str, Any], dict[str, int], bool]] = {
    "stalled": (subscription_stalled.CHECK, STILL | {"backlog_entries": 500}, {"minimum_due_messages": 500}, True),
    "ack holes": (ack_holes.CHECK, {"ack_holes": 1000}, {"warning_percent": 10}, True),
    "not persistable": (cursors.CURSOR_NOT_PERSISTABLE, SPAN, {"warning_percent": 30}, True),
    "stalled is usual": (subscription_stalled.CHECK, STILL, {"minimum_due_messages": 90_000}, False),
    "ack holes are usual": (ack_holes.CHECK, {"ack_holes": 6000}, {"warning_percent": 80}, False),
}


@pytest.mark.parametrize(("check", "like", "limits", "stricter"), CASES.values(), ids=CASES)
def test_each_is_judged_by_its_own(check: Check, like: dict[str, Any], limits: dict[str, int], stricter: bool) -> None:
    """A tenant's subscriptions are judged by the tenant's own thresholds, and all others by the usual ones."""
    scene = Scene().configured().subscription(USUAL, **like).subscription(OWN, **like)
    findings = scene.judged(check, Policy.model_validate({"tenants": {"own": {check.section: limits}}})).findings
    assert [each.subject for each in findings] == [f"{OWN if stricter else USUAL} subscription s"]


@pytest.mark.parametrize(
    "check", [client_numbers.CONSUMER_FANOUT, client_numbers.PRODUCER_FANOUT], ids=["consumers", "producers"]
)
def test_what_is_critical_for_one_tenant_comes_first(check: Check, golden: Golden) -> None:
    """A partition that is critical by its tenant's limits comes first; silence gives each group's maximum."""
    clients = check.check_id.partition("-")[0] + "s"
    scene = Scene().topic(USUAL, **{clients: 2500}).topic(OWN, **{clients: 30})
    limits = {f"warning_{clients}": 10, f"critical_{clients}": 20}
    strict = Policy.model_validate({"tenants": {"own": {check.section: limits}}})
    loose = Policy.model_validate(
        {check.section: {f"warning_{clients}": 3000}} | strict.model_dump(include={"tenants"})
    )
    assert [each.subject for each in scene.judged(check, strict).findings] == [OWN, USUAL]
    scene.rows["topics"][1][clients] = 9
    golden(scene.judged(check, loose).quiet)


def test_what_is_said_of_own_thresholds(golden: Golden) -> None:
    """Each is judged by its own share of blocked consumers, and silence tells whose thresholds are their own."""
    blocked = Scene().subscription(USUAL, consumers_blocked=1).subscription(OWN, consumers_blocked=1)
    section = subscription_blocked.CHECK.section
    strict = Policy.model_validate({"namespaces": {"own/n": {section: {"warning_blocked_percent": 30}}}})
    tenants = Policy.model_validate({"tenants": {"own": {"ack_holes": {"warning_percent": 10}}}})
    cases = {
        "a stricter share of blocked consumers": blocked.judged(subscription_blocked.CHECK, strict),
        "a tenant's own threshold, and nothing found": Scene().configured().judged(ack_holes.CHECK, tenants),
    }
    golden(told(cases))


DELAYED_CASES: dict[str, tuple[Check, dict[str, int], Severity]] = {
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


@pytest.mark.parametrize(("check", "thresholds", "severity"), DELAYED_CASES.values(), ids=DELAYED_CASES)
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
