"""Details of a batch for the page of its plan: why, what is lost, when it runs, and what an approval means."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Aspect
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.guards.window_times import windows_for
from pulsar_steward.model.loss import Loss, entries_in_words, size_in_words
from pulsar_steward.model.plan import BROKER_DRAIN, TakenBack, is_about_several
from pulsar_steward.model.units import MINUTE, counted, seconds_in_words
from pulsar_steward.policy.never_asked import namespace_to_leave_alone
from pulsar_steward.report import approval_group as group
from pulsar_steward.report.what_changed import what_changed
from pulsar_steward.report.when import when
from pulsar_steward.report.worth import worth_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.changes.kind import ApprovalWarning
    from pulsar_steward.ledger.past import MoveTimes
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.approval import Terms
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.what_changed import Former


class DetailSection(NamedTuple):
    """A heading with its lines, unescaped."""

    title: str
    lines: tuple[str, ...]


def details(
    plan: Plan,
    batch: Batch,
    policy: Policy | None,
    *,
    former: Former | None = None,
    now: datetime | None = None,
    moved: MoveTimes | None = None,
) -> tuple[DetailSection, ...]:
    """All that a decision card leaves out, except for findings, placement, steps and calls, which a page has as tables.

    Args:
        plan: The plan.
        batch: Its batch.
        policy: The policy with the terms of an approval; None: not known, and the sections about them are left out.
        former: The question that this one replaces; None: it replaces none.
        now: Current time, for the expected begin and end; None: nobody is to answer any more, and they are left out.
        moved: Durations of earlier moves in the cluster; None: not known.
    """
    back, risk = batch.is_rollback, risk_of(plan, batch)
    terms = policy.approval.terms(batch.answered_as, risk.level) if policy else None
    changes = what_changed(batch, former) if former else ()
    sections: list[tuple[str, Iterable[str]]] = [
        ("What is not taken back", plan.notes if back else ()),
        ("What changed since it was asked before", group.first_of(changes, group.MAX_ROWS, "more difference")),
        *group.warnings(batch.steps, _warned_of),
        ("Messages in flight", _in_flight(batch.steps)),
        (f"Risk: {risk.level}", (f"{reason.level}: {reason.words}" for reason in risk.reasons)),
        ("What comes back" if back else "What it is worth", worth_in_words(batch)),
        ("What follows", _what_follows(batch, policy) if back and policy else ()),
        ("New values", group.values(batch.steps) if group.is_large(batch) else ()),
        ("Why", group.examples(batch) if back else ()),
        ("How the values come about", () if back else group.examples(batch, Aspect.SETTING)),
        ("What rejecting means", group.averted(batch.steps, _averted_lines)),
        ("What was looked at", _guards(batch.steps)),
    ]
    if policy and terms and now:
        sections += [
            ("When", when(batch, policy, terms, now, moved)),
            ("What approving means", _terms(plan, batch, policy, terms)),
        ]
    told = (DetailSection(title, tuple(lines)) for title, lines in sections)
    return tuple(each for each in told if each.lines)


def _warned_of(step: Step, warning: ApprovalWarning) -> Iterator[str]:
    """What is warned of, in the words of the guard that checks the immediate loss if it has no others."""
    said = "; ".join(result.reason for result in step.guards if result.guard == warning.guard)
    yield f"{step.step_id}: {warning.subject}: {warning.words or said or warning.otherwise}"
    yield from _lost_by_topic(step.loss if isinstance(step.loss, Loss) else None)


def _lost_by_topic(loss: Loss | None) -> Iterator[str]:
    """The topics with the largest losses, and the number of further ones."""
    if loss is None:
        return
    for each in loss.topics:
        yield f"{each.topic}: {each.words}"
    if loss.more:
        yield f"and {counted(loss.more, 'topic')} more, each with less"


def _averted_lines(step: Step) -> Iterator[str]:
    if isinstance(step.averts, Loss):
        yield f"{step.step_id}: {averted(step.averts)}"
        yield from _lost_by_topic(step.averts)


def averted(loss: Loss) -> str:
    """Messages that brokers may delete unread if a step is not done, as part of a sentence."""
    return (
        f"what gets older than the time to live is deleted unread, of {entries_in_words(loss.messages)} waiting"
        f" in {counted(len(loss.topics) + loss.more, 'topic')} now, a batch of messages counted as"
        f" one ({size_in_words(loss.bytes)} at most)"
    )


def _guards(steps: Sequence[Step]) -> Iterator[str]:
    """Names of the guards if all steps pass them; otherwise every veto by itself."""
    results = [(step, each) for step in steps for each in step.guards]
    if vetoes := [f"{step.step_id}: {each.guard}: {each.reason}" for step, each in results if not each.passed]:
        yield from group.first_of(vetoes, group.MAX_ROWS, "more objection")
    elif guards := ", ".join(dict.fromkeys(each.guard for _, each in results)):
        yield f"Guards passed for every step: {guards}. They look again right before each call."


def _terms(plan: Plan, batch: Batch, policy: Policy, terms: Terms) -> Iterator[str]:
    opening = ""
    if windows_for(batch, policy):
        opening = ", or of the opening of the window that it waits for"
        if terms.most_minutes is not None:
            opening += f", and no later than {counted(terms.most_minutes // 60, 'hour')} after your answer"
    yield (
        "Only the steps that stay ticked are carried out, in this order, within"
        f" {counted(terms.valid_minutes, 'minute')} of your answer{opening}."
    )
    yield f"Only in Pulsar cluster {plan.pulsar_cluster}, and under no looser policy than the present one."
    yield "If the cluster has moved on by then, nothing is forced: the batch stops, and says why."
    if is_about_several(batch):
        yield "Where a guard objects in one namespace before the first change, nothing is changed in any of them."
        yield "Namespaces that you leave out stay as they are, whatever is ticked."
    if terms.people > 1:
        yield "Two different people have to approve this batch; the second sees what the first left ticked."
    if not terms.requester_may_approve:
        yield "Who started this run by hand may not approve it."
    if not batch.is_rollback:
        yield (
            "Snooze asks again when its days are over, or before that where it got worse, whatever is ticked here;"
            " nothing is changed until then."
        )
    if namespace := namespace_to_leave_alone(batch):
        yield (
            f"Never for this namespace changes nothing: nobody is asked about {batch.kind} of {namespace} until"
            " somebody takes that back, and it says which entry of the policy would leave it out for good."
        )
    yield f"No answer within {_minutes(policy.approval.response_timeout_minutes)} is a rejection."
    if batch.is_rollback:
        yield "A newer way back of the same batch takes this one's place; answering this one then changes nothing."
    else:
        yield "An observation that no longer proposes exactly this ends the question; an answer then changes nothing."


def _in_flight(steps: Sequence[Step]) -> Iterator[str]:
    """Messages that are redelivered or lost when clients reconnect."""
    moving = [(step.step_id, step.moving_messages) for step in steps]
    if again := sum(each.again for _, each in moving):
        yield (
            f"At most {counted(again, 'acknowledged message is', 'acknowledged messages are')} delivered again: a batch"
            " that is acknowledged in part comes again whole. What consumers hold and did not acknowledge comes again"
            f" in any case. Steps: {group.few_ids([step_id for step_id, each in moving if each.again])}."
        )
    if topics := sum(each.volatile_topics for _, each in moving):
        of_topics = counted(topics, "topic that is not persistent loses", "topics that are not persistent lose")
        lost = counted(sum(each.lost for _, each in moving), "message")
        yield (
            f"{of_topics} what is published until clients are back: at most about {lost}, by the rates of the"
            " snapshot. Nothing stores these messages. Steps:"
            f" {group.few_ids([step_id for step_id, each in moving if each.volatile_topics])}."
        )


def _what_follows(batch: Batch, policy: Policy) -> Iterator[str]:
    """What guards leave alone for a while after a rollback; moves of a drain count as no circle."""
    disturbed = [kind_of(step.change).disturbs for step in batch.steps]
    namespaces = sorted({bundle.namespace for bundle in disturbed if bundle is not None and bundle.moves})
    drained = isinstance(batch.takes_back, TakenBack) and batch.takes_back.kind == BROKER_DRAIN
    if namespaces and not drained and (minutes := policy.guards.circle_minutes):
        named = ", ".join(group.first_of(namespaces, group.MAX_EXAMPLES, "more namespace"))
        yield (
            "Its bundles will have been moved away and back: nothing is moved or split in"
            f" {named} for {_minutes(minutes)} (policy key guards.circle_minutes)."
        )
    if namespaces and (minutes := policy.tc_skew.cooldown_minutes):
        yield f"Each of these bundles rests for {_minutes(minutes)} (policy key tc_skew.cooldown_minutes)."
    minutes = policy.approval.ask_again_minutes
    yield f"What is taken back is not proposed again for {_minutes(minutes)} (policy key approval.ask_again_minutes)."


def _minutes(minutes: int) -> str:
    return seconds_in_words(minutes * MINUTE)
