"""Tenants and namespaces with thresholds of their own: each is judged by them, and silence names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import ack_holes, client_numbers, cursors, subscription_blocked, subscription_stalled
from pulsar_steward.policy.schema import Policy

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
def test_each_is_judged_by_its_own(
    scene: Any, check: Check, like: dict[str, Any], limits: dict[str, int], stricter: bool
) -> None:
    """A tenant's subscriptions are judged by the tenant's own thresholds, and all others by the usual ones."""
    scene.configured().subscription(USUAL, **like).subscription(OWN, **like)
    findings = scene.judged(check, Policy.model_validate({"tenants": {"own": {check.section: limits}}})).findings
    assert [each.subject for each in findings] == [f"{OWN if stricter else USUAL} subscription s"]


@pytest.mark.parametrize(
    "check", [client_numbers.CONSUMER_FANOUT, client_numbers.PRODUCER_FANOUT], ids=["consumers", "producers"]
)
def test_what_is_critical_for_one_tenant_comes_first(scene: Any, check: Check, golden: Golden) -> None:
    """A partition that is critical by its tenant's limits comes first; silence gives each group's maximum."""
    clients = check.check_id.partition("-")[0] + "s"
    scene.topic(USUAL, **{clients: 2500}).topic(OWN, **{clients: 30})
    limits = {f"warning_{clients}": 10, f"critical_{clients}": 20}
    strict = Policy.model_validate({"tenants": {"own": {check.section: limits}}})
    loose = Policy.model_validate(
        {check.section: {f"warning_{clients}": 3000}} | strict.model_dump(include={"tenants"})
    )
    assert [each.subject for each in scene.judged(check, strict).findings] == [OWN, USUAL]
    scene.rows["topics"][1][clients] = 9
    golden(scene.judged(check, loose).quiet)


def test_the_share_of_blocked_consumers_is_a_tenants_own(scene: Any) -> None:
    """A namespace's own share of blocked consumers changes the severity, and all blocked ones are found."""
    scene.subscription(USUAL, consumers_blocked=1).subscription(OWN, consumers_blocked=1)
    check = subscription_blocked.CHECK
    strict = Policy.model_validate({"namespaces": {"own/n": {check.section: {"warning_blocked_percent": 30}}}})
    findings = scene.judged(check, strict).findings
    assert [(each.subject, each.severity.value) for each in findings] == [
        (f"{OWN} subscription s", "warning"),
        (f"{USUAL} subscription s", "info"),
    ]


def test_silence_tells_whose_thresholds_are_their_own(scene: Any, golden: Golden) -> None:
    """The text without findings has one sentence for the usual threshold and one for the tenant's own."""
    scene.configured()
    policy = Policy.model_validate({"tenants": {"own": {"ack_holes": {"warning_percent": 10}}}})
    golden(scene.judged(ack_holes.CHECK, policy).quiet)
