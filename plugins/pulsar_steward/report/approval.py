"""Text of an approval request: the changes with their reasons, the cost, and the way to undo them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Aspect
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.guards.window_times import windows_for
from pulsar_steward.model.content import is_about_several
from pulsar_steward.model.loss import Loss, entries_in_words, size_in_words
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words
from pulsar_steward.outside_text import shown
from pulsar_steward.policy.never_asked import namespace_to_leave_alone
from pulsar_steward.report import approval_group as group
from pulsar_steward.report.following import in_flight, what_follows
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
        first: The approval that a second person should confirm; None: this is the first question.
        former: The question that this one replaces; None: it replaces none.
        now: Current time, for the expected begin and end of the batch; None: these are left out.
        page: Address of the batch on the page of its plan; empty: not known.
        moved: Durations of earlier moves in the cluster; None: not known.
    """
    large = group.is_large(batch)
    parts = [
        _confirming(batch, first) if first else "",
        *_rollback_note(plan, batch),
        _lead(batch),
        *_former(batch, former),
        *(group.warnings(batch.steps, _warning_lines) if large else _warnings(batch.steps)),
        *in_flight(batch.steps),
        *_risk(plan, batch),
        *_worth(batch),
        *what_follows(batch, policy),
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
    moves = any(kind_of(step.change).disturbs is not None for step in batch.steps)
    moved = f"{counted(clients, 'client')} will reconnect" if moves else "No client has to reconnect"
    return f"{moved}{pauses}. {back}"


def _former(batch: Batch, former: Former | None) -> Iterator[str]:
    """Section on the question that this one replaces."""
    if former is not None:
        yield "### What changed since it was asked before"
        yield bullets(group.first_of(what_changed(batch, former), group.MAX_ROWS, "more difference"))


def _rollback_note(plan: Plan, batch: Batch) -> Iterator[str]:
    """Section of a rollback: the changes that it undoes, their approval (person and time), and changes that remain."""
    if not batch.is_rollback:
        return
    yield f"**{text(batch.title)}.**"
    if plan.notes:
        yield "### What is not taken back"
        yield bullets(plan.notes)


def _when(plan: Plan, batch: Batch, policy: Policy, now: datetime | None, moved: MoveTimes | None) -> Iterator[str]:
    """Section on the expected begin and end."""
    if now is not None:
        terms = policy.approval.terms(batch.answered_as, risk_of(plan, batch).level)
        yield "### When"
        yield bullets(when(batch, policy, terms, now, moved))


def _risk(plan: Plan, batch: Batch) -> Iterator[str]:
    """Section on the risk, with all reasons and its level."""
    risk = risk_of(plan, batch)
    yield f"### Risk: {risk.level}"
    yield bullets(f"{reason.level}: {reason.words}" for reason in risk.reasons)


def _worth(batch: Batch) -> Iterator[str]:
    """Section on the problems that it solves, or on the problems that return with a rollback."""
    if sentences := tuple(worth_in_words(batch)):
        yield "### What comes back" if batch.is_rollback else "### What it is worth"
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
    """Lines on one of many steps with a warning."""
    what, *topics = _warned_of(step, warning)
    yield f"{step.step_id}: {what}"
    yield from topics


def _guard_words(step: Step, warning: ApprovalWarning) -> str:
    """Reasons given by the guard that checks the immediate loss."""
    said = [result.reason for result in step.guards if result.guard == warning.guard]
    return "; ".join(said) or warning.otherwise


def _lost_by_topic(loss: Loss | None) -> Iterator[str]:
    """The topics with the largest losses, and the number of further ones."""
    if loss is None:
        return
    for each in loss.topics:
        yield f"{each.topic}: {each.words}"
    if loss.more:
        yield f"and {counted(loss.more, 'topic')} more, each with less"


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
    """Computations of the values of proposed settings, with the numbers."""
    sums = [f"{step.step_id}: {step.why}." for step in batch.steps if Aspect.SETTING in kind_of(step.change).aspects]
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
        f"what gets older than the time to live is deleted unread, of {entries_in_words(loss.messages)} waiting"
        f" in {counted(len(loss.topics) + loss.more, 'topic')} now, a batch of messages counted as"
        f" one ({size_in_words(loss.bytes)} at most)"
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
    terms = approval.terms(batch.answered_as, risk_of(plan, batch).level)
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
    yield f"No answer within {seconds_in_words(approval.response_timeout_minutes * 60)} is a rejection."
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
