"""Asked once: what a no can and cannot be made to do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.apply.gate import ask_for_permit
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import (
    APPROVE,
    LOSS,
    NEVER,
    QUESTION,
    REJECT,
    SNOOZE,
    SNOOZE_DAYS,
    STEPS,
    UNTIL_WORSE,
)
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.never_asked import never_asked_entry
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


def a_setting(namespace: str = "shop/orders") -> Plan:
    """A plan that sets a time to live."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    return a_plan(a_batch(a_step(change), kind="retention"))


def answered(*options: str, plan: Plan | None = None, **form: Any) -> Answer:
    """Answer recorded where everything is ticked that permits something."""
    asked = ApprovalQuestion(plan=plan or a_setting(), batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    event = {
        "chosen_options": list(options),
        "params_input": {
            QUESTION: ASKED_DIGEST,
            STEPS: ["b1.s01"],
            LOSS: True,
            SNOOZE_DAYS: 7,
            UNTIL_WORSE: True,
            **form,
        },
        "responded_at": NOW,
        "responded_by_user": {"id": "7", "name": "alice"},
    }
    return interpret(event, asked, ApprovalPolicy(), NOW)


@pytest.mark.parametrize(
    "days",
    [91, 10_000, 10**12, 10**5000, 0, -7, 1e9, 7.5, float("nan"), float("inf"), "7", "NaN", True, [7], {"days": 7}],
    ids=lambda days: str(type(days).__name__),
)
def test_nobody_silences_for_longer_than_the_form_lets_them(days: object) -> None:
    """A snooze is malformed and silences nothing when its number of days is out of range or no whole number."""
    answer = answered(SNOOZE, snooze_days=days)
    assert (answer.decision, answer.silent_until, answer.policy_entry) == (Decision.MALFORMED, None, None)
    assert len(answer.reason) < 400


@pytest.mark.parametrize(
    "options",
    [
        (APPROVE, SNOOZE),
        (SNOOZE, APPROVE),
        (APPROVE, NEVER),
        (NEVER, APPROVE),
        (APPROVE, REJECT, SNOOZE, NEVER),
        (SNOOZE, NEVER),
        (SNOOZE, SNOOZE),
        (f"{SNOOZE} ",),
        (NEVER.casefold(),),
    ],
)
def test_a_yes_and_a_no_at_once_are_neither(options: tuple[str, ...]) -> None:
    """An answer with contradictory, repeated or misspelled options is malformed and silences nothing."""
    answer = answered(*options)
    assert (answer.decision, answer.step_ids, answer.silent_until) == (Decision.MALFORMED, (), None)


@pytest.mark.parametrize(("option", "decision"), [(SNOOZE, Decision.SNOOZED), (NEVER, Decision.NEVER)])
def test_a_no_with_every_tick_permits_nothing(option: str, decision: Decision) -> None:
    """A snooze or a never permits no step, although every step is ticked in the form."""
    answer = answered(option)
    assert answer.decision is decision
    assert (answer.step_ids, answer.digest, answer.expires_at) == ((), None, None)


@pytest.mark.parametrize(("voice", "person"), [(1, "operator"), (2, "another")])
@pytest.mark.parametrize("decision", [Decision.SNOOZED, Decision.NEVER])
def test_a_snooze_after_an_approval_takes_it_away(site: Worksite, decision: Decision, voice: int, person: str) -> None:
    """A batch is refused when a snooze or a never of either person follows the approval."""
    plan = site.approved(site.move(0))
    until = site.clock() + timedelta(days=7)
    if voice == 2:
        site.ask(plan, voice=2)
    no = site.approval(plan, decision=decision, voice=voice, silent_until=until, answered_by=person, reason="not yet")
    site.writes.record_answer(no)
    with pytest.raises(Refused, match=f"{decision}: not yet"):
        ask_for_permit(site.ledger, plan.plan_id, "b1", RUN, site.clock(), site.policy)
    assert_refused(site, plan, f"{decision}: not yet")


@pytest.mark.parametrize(
    "namespace", ["a:/b:", "-/-", "=/=", "a/b:", "1:2/3:4", "0x1/1e5", "yes/no", "-:/-", "---/...", "x" * 200 + "/y"]
)
def test_a_namespace_that_hides_yaml_is_one_key(namespace: str) -> None:
    """The proposed policy entry holds the namespace as one key, although its name looks like YAML."""
    answer = answered(NEVER, plan=a_setting(namespace))
    assert answer.decision is Decision.NEVER
    entry = yaml.safe_load(answer.policy_entry or "")
    assert entry == {"namespaces": {namespace: {"approval": {"never_ask": ["retention"]}}}}
    policy = parse_policy(entry, name="p")
    assert policy.for_namespace(namespace).approval.never_ask == ("retention",)
    assert policy.for_namespace("shop/orders").approval.never_ask == ()


@pytest.mark.parametrize(
    "namespace",
    ["a/b: {approval: {valid_minutes: 9999}}", "a/b\napproval:", "a/b #", "*", "a", "a/b/c", "a/b\u202e", "ä/\u3164"],
)
def test_a_name_that_no_policy_can_hold_proposes_none(namespace: str) -> None:
    """A never is not offered, is malformed and proposes no entry for a namespace whose name no policy can hold."""
    plan = a_setting(namespace)
    assert NEVER not in ApprovalQuestion(plan=plan, batch_id="b1", run=RUN).options
    answer = answered(NEVER, plan=plan)
    assert (answer.decision, answer.policy_entry) == (Decision.MALFORMED, None)


@given(st.text(max_size=300))
def test_whatever_a_name_holds_an_entry_is_one_entry(namespace: str) -> None:
    """The policy entry for any namespace name is printable ASCII that YAML reads as an entry for this name alone."""
    entry = never_asked_entry(namespace, ["retention"])
    assert yaml.safe_load(entry) == {"namespaces": {namespace: {"approval": {"never_ask": ["retention"]}}}}
    assert all(line.isascii() and line.isprintable() for line in entry.splitlines())
