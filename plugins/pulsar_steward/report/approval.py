"""Text of an approval request: which bundles move where and why, the cost, and how to undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.guard.window_times import windows_for
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.parts import is_about_several
from pulsar_steward.model.units import bytes_in_words, counted, time_in_words
from pulsar_steward.outside_text import shown
from pulsar_steward.policy.never_asked import namespace_to_leave_alone
from pulsar_steward.report import approval_group as group
from pulsar_steward.report.markdown import bullets, codes, table, text
from pulsar_steward.report.what_changed import what_changed
from pulsar_steward.report.when import when
from pulsar_steward.report.worth import worth_in_brief, worth_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.changes.kind import ApprovalWarning
    from pulsar_steward.ledger.moves import MoveTimes
    from pulsar_steward.ledger.rows import RecordedAnswer
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.what_changed import Former


def subject(plan: Plan, batch: Batch, *, second: bool = False) -> str:
    """One-line title for Airflow's list of open requests, with the batch's worth and risk."""
    about = "; ".join(filter(None, (worth_in_brief(batch), f"{risk_of(plan, batch).level} risk")))
    return shown(f"{plan.cluster}: {batch.title}{' (second approval)' if second else ''} ({about})")


def body(
    plan: Plan,
    batch: Batch,
    policy: Policy,
    *,
    first: RecordedAnswer | None = None,
    former: Former | None = None,
    now: datetime | None = None,
    page: str = "",
    moved: MoveTimes | None = None,
) -> str:
    """Body of an approval request, in Markdown.

    Args:
        plan: The plan.
        batch: Its batch.
        policy: The policy with the terms of an approval.
        first: The approval that a second person is asked to confirm; None: the first one is asked.
        former: The question whose place it takes; None: it takes no other's.
        now: Current time, to say when the batch would begin and end; None: that is left out.
        page: Address of the batch on the page of its plan; empty: not known.
        moved: How long earlier moves in the cluster took; None: none are known.
    """
    large = group.is_large(batch)
    parts = [
        _confirming(batch, first) if first else "",
        *_rollback_note(plan, batch),
        _lead(batch),
        *_former(batch, former),
        *(group.warnings(batch.steps, _warning_lines) if large else _warnings(batch.steps)),
        *_risk(plan, batch),
        *_worth(batch),
        "### Why",
        group.reasons(batch.findings, _source) if large and not batch.is_rollback else _reasons(batch),
        *_placement(batch),
        f"### The {counted(len(batch.steps), 'step')}",
        *(_by_sums(batch, page) if large else [_steps(batch.steps)]),
        *_sums(batch),
        *(group.averted(batch.steps, _averted_lines) if large else _if_rejected(batch.steps)),
        "### What was looked at",
        _guards(batch.steps),
        *_when(plan, batch, policy, now, moved),
        "### What approving means",
        bullets(_terms(plan, batch, policy)),
        "### The exact calls",
        group.calls(batch.steps) if large else codes(str(kind_of(step.change).call()) for step in batch.steps),
        f"{text(f'Plan {plan.plan_id}, batch {batch.batch_id}, SHA-256 {plan.digest}.')}",
    ]
    return "\n\n".join(part for part in parts if part)


def labels(batch: Batch) -> dict[str, str]:
    """Labels of the steps' checkboxes, by step id."""
    return {step.step_id: shown(f"{step.step_id}: {kind_of(step.change).describe()}") for step in batch.steps}


def _lead(batch: Batch) -> str:
    clients = sum(step.touched.clients for step in batch.steps)
    coordinators = sum(step.touched.coordinators for step in batch.steps)
    pauses = f"; {counted(coordinators, 'transaction coordinator')} pause for a moment" if coordinators else ""
    final = [step.step_id for step in batch.steps if step.undo is None]
    gone = any(kind_of(step.change).loses_messages for step in batch.steps)
    back = f"**{text(group.few_ids(final))} cannot be undone.**" if final else "Every step can be undone."
    if gone:
        back += " **What brokers have deleted by then does not come back.**"
    moved = f"{counted(clients, 'client')} will reconnect" if _moves(batch) else "No client has to reconnect"
    return f"{moved}{pauses}. {back}"


def _former(batch: Batch, former: Former | None) -> Iterator[str]:
    """Section of a question that takes another one's place."""
    if former is not None:
        yield "### What changed since it was asked before"
        yield bullets(group.first_of(what_changed(batch, former), group.MAX_ROWS, "more difference"))


def _rollback_note(plan: Plan, batch: Batch) -> Iterator[str]:
    """Section of a rollback: what is rolled back, who had approved it and when, and what is not rolled back."""
    if not batch.is_rollback:
        return
    yield f"**{text(batch.title)}.**"
    if plan.notes:
        yield "### What is not taken back"
        yield bullets(plan.notes)


def _when(plan: Plan, batch: Batch, policy: Policy, now: datetime | None, moved: MoveTimes | None) -> Iterator[str]:
    """Section of when it would begin and end."""
    if now is not None:
        valid = policy.approval.terms(batch.kind, risk_of(plan, batch).level).valid_minutes
        yield "### When"
        yield bullets(when(batch, policy, valid, now, plan.learned_rate, moved))


def _risk(plan: Plan, batch: Batch) -> Iterator[str]:
    """Section of the risk, with every reason and its level."""
    risk = risk_of(plan, batch)
    yield f"### Risk: {risk.level}"
    yield bullets(f"{reason.level}: {reason.words}" for reason in risk.reasons)


def _worth(batch: Batch) -> Iterator[str]:
    """Section of what it mends."""
    if sentences := tuple(worth_in_words(batch)):
        yield "### What it is worth"
        yield bullets(sentences)


def _warnings(steps: Sequence[Step]) -> Iterator[str]:
    """Warnings, as headings of the highest level, for changes that stop producers or delete messages."""
    for step in steps:
        loss = step.loss if isinstance(step.loss, Loss) else None
        warning = kind_of(step.change).warning(loss)
        if warning is None:
            continue
        yield f"# {text(step.step_id)} {warning.headline}"
        yield bullets(_warned_of(step, warning))


def _warned_of(step: Step, warning: ApprovalWarning) -> Iterator[str]:
    yield f"{warning.subject}: {warning.words or _guard_words(step, warning)}"
    yield from _lost_by_topic(step.loss if isinstance(step.loss, Loss) else None)


def _warning_lines(step: Step, warning: ApprovalWarning) -> Iterator[str]:
    """Lines on one of many steps that are warned of."""
    what, *topics = _warned_of(step, warning)
    yield f"{step.step_id}: {what}"
    yield from topics


def _guard_words(step: Step, warning: ApprovalWarning) -> str:
    """Reasons of the guard that looks at what is lost at once."""
    said = [result.reason for result in step.guards if result.guard == warning.guard]
    return "; ".join(said) or warning.otherwise


def _lost_by_topic(loss: Loss | None) -> Iterator[str]:
    """The topics with the largest losses, and the number of further ones."""
    if loss is None:
        return
    for each in loss.topics:
        messages = "" if each.messages is None else f"{counted(each.messages, 'message')}, "
        yield f"{each.topic}: {messages}{bytes_in_words(each.bytes)}"
    if loss.more:
        yield f"and {counted(loss.more, 'topic')} more, each with less"


def _moves(batch: Batch) -> bool:
    return any(kind_of(step.change).disturbs is not None for step in batch.steps)


def _reasons(batch: Batch) -> str:
    if batch.is_rollback:
        whys = [f"{step.step_id}: {step.why}." for step in batch.steps]
        return group.examples(whys, "step") if group.is_large(batch) else bullets(whys)
    return bullets(
        f"{finding.severity.upper()}: {finding.evidence} {_since(finding)}{_source(finding)}"
        for finding in batch.findings
    )


def _since(finding: Finding) -> str:
    """Age of a finding; empty if only one snapshot has it."""
    if finding.first_seen is None or finding.snapshots_in_a_row < 2:  # noqa: PLR2004 - once is no row
        return ""
    return f"Since {time_in_words(finding.first_seen)}, {counted(finding.snapshots_in_a_row, 'snapshot')} in a row. "


def _source(finding: Finding) -> str:
    info = BY_ID.get(finding.check_id)
    return f"({finding.check_id}; {info.source})" if info else f"({finding.check_id})"


def _placement(batch: Batch) -> Iterator[str]:
    if not batch.before:
        return
    after = {place.broker: place.count for place in batch.after}
    rows = [(place.broker, place.count, after.get(place.broker, 0)) for place in batch.before]
    yield f"### {text(batch.unit.capitalize())} by broker"
    yield table(("broker", "now", "after all steps"), rows, numbers=frozenset({1, 2}))


def _steps(steps: Sequence[Step]) -> str:
    rows = [
        (
            step.step_id,
            kind_of(step.change).describe() + (f" (after {', '.join(step.after)})" if step.after else ""),
            step.effect,
            f"{step.touched.producers:,} / {step.touched.consumers:,}",
            step.touched.coordinators,
            step.undo_note,
        )
        for step in steps
    ]
    header = ("step", "change", "effect", "producers / consumers", "TCs", "way back")
    return table(header, rows, numbers=frozenset({3, 4}))


def _by_sums(batch: Batch, page: str) -> Iterator[str]:
    yield from group.steps_by_value(batch.steps)
    yield from group.steps_by_namespace(batch.steps, page)


def _sums(batch: Batch) -> Iterator[str]:
    """Reasons for the values of proposed settings, with the numbers."""
    sums = [f"{step.step_id}: {step.why}." for step in batch.steps if kind_of(step.change).sets_value]
    if sums and not batch.is_rollback:
        yield "### How the values come about"
        yield group.examples(sums, "step") if group.is_large(batch) else bullets(sums)


def _if_rejected(steps: Sequence[Step]) -> Iterator[str]:
    """Messages that brokers may delete unread if nothing is changed, by topic."""
    for step in steps:
        if isinstance(step.averts, Loss):
            yield "### What rejecting means"
            yield bullets(_averted_lines(step))


def _averted_lines(step: Step) -> Iterator[str]:
    if isinstance(step.averts, Loss):
        yield f"{step.step_id}: {averted(step.averts)}"
        yield from _lost_by_topic(step.averts)


def averted(loss: Loss) -> str:
    """Messages that brokers may delete unread if a step is not done, as part of a sentence."""
    return (
        f"what gets older than the time to live is deleted unread, of {counted(loss.messages or 0, 'message')} waiting"
        f" in {counted(len(loss.topics) + loss.more, 'topic')} now, as brokers count them"
        f" ({bytes_in_words(loss.bytes)} at most)"
    )


def _guards(steps: Sequence[Step]) -> str:
    """Names of the guards if all steps pass them; otherwise every veto by itself."""
    guards = list(dict.fromkeys(result.guard for step in steps for result in step.guards))
    vetoes = [
        f"{step.step_id}: {result.guard}: {result.reason}"
        for step in steps
        for result in step.guards
        if not result.passed
    ]
    passed = f"Guards passed for every step: {', '.join(guards)}. They look again right before each call."
    return bullets(group.first_of(vetoes, group.MAX_ROWS, "more objection") if vetoes else [passed])


def _terms(plan: Plan, batch: Batch, policy: Policy) -> Iterator[str]:
    approval = policy.approval
    terms = approval.terms(batch.kind, risk_of(plan, batch).level)
    opening = ", or of the opening of the window that it waits for" if windows_for(batch, policy) else ""
    yield (
        "Only the steps that stay ticked are carried out, in this order, within"
        f" {counted(terms.valid_minutes, 'minute')} of your answer{opening}."
    )
    if plan.planned_for is not None:
        yield f"Only in Pulsar cluster {plan.planned_for}, and under no looser policy than the present one."
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
    hours, minutes = divmod(approval.response_timeout_minutes, 60)
    yield f"No answer within {hours} h {minutes} min is a rejection."
    if batch.is_rollback:
        yield "A newer way back of the same batch takes this one's place; answering this one then changes nothing."
    else:
        yield "An observation that no longer proposes exactly this ends the question; an answer then changes nothing."


def _confirming(batch: Batch, first: RecordedAnswer) -> str:
    extent = f"{len(first.step_ids)} of {counted(len(batch.steps), 'step')}"
    comment = f' "{first.comment}"' if first.comment else ""
    at = time_in_words(first.answered_at)
    approved = f"{first.answered_by} approved {extent} at {at}: {group.few_ids(first.step_ids)}.{comment}"
    return f"**{text(f'{approved} A second person has to.')}**"
