"""Report of a run, as Markdown: for the log, the run's report and the person on call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.units import time_in_words
from pulsar_steward.outside_text import shown
from pulsar_steward.report.markdown import table, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.ledger.batch_record import BatchRun


def story(batches: Iterable[BatchRun]) -> str:
    """Report of a run."""
    return "\n\n".join(map(_one, batches)) or "There was nothing to do."


def troubles(told: BatchRun) -> tuple[str, ...]:
    """Problems of a batch that an operator has to look at; a rejection or an ended question is none."""
    return tuple(map(shown, _troubles(told)))


def _troubles(told: BatchRun) -> Iterator[str]:
    where = f"{told.record.cluster} {told.record.batch_id}"
    if told.ended_waiting:
        return
    if told.answer is None:
        yield f"{where}: no answer was recorded; nothing was changed"
        return
    if told.answer.decision is Decision.MALFORMED:
        yield f"{where}: malformed answer ({told.answer.reason}); nothing was changed: clear `approve` to ask again"
    # Steps whose outcome differs from the approval, also if the approval was withdrawn meanwhile.
    approved = told.answer.step_ids if told.answer.decision is Decision.APPROVED else ()
    known = {outcome.step_id for outcome in told.outcomes}
    yield from (f"{where}: {step}: approved, and no outcome is recorded" for step in approved if step not in known)
    for outcome in told.outcomes:
        if outcome.outcome is not Outcome.DONE:
            yield f"{where}: {outcome.step_id} {outcome.outcome}: {outcome.reason}"
    if told.answer.decision is not Decision.APPROVED:
        return
    if told.proof is None or not told.proof.proved:
        yield f"{where}: verification failed: {told.proof.reason if told.proof else 'it was not verified'}"


def _one(told: BatchRun) -> str:
    parts = [f"## {text(told.record.cluster)}: {text(told.record.title)}", text(_decision(told))]
    if told.outcomes:
        rows = [(row.step_id, row.outcome, row.reason) for row in told.outcomes]
        parts.append(table(("step", "outcome", "what the brokers show"), rows))
    if told.proof:
        parts.append(f"{'Proved' if told.proof.proved else 'Verification failed'}: {text(told.proof.reason)}")
        placement = told.proof.shown.get("placement", {})
        columns = sorted({name for counts in placement.values() for name in counts})
        brokers = [
            (broker, *(counts.get(name, "") for name in columns)) for broker, counts in sorted(placement.items())
        ]
        parts.append(table(("broker", *columns), brokers) if brokers else "")
    parts += _onwards(told)
    return "\n\n".join(part for part in parts if part)


def _onwards(told: BatchRun) -> Iterator[str]:
    """Ways forward and back for a batch that stopped early or changed something."""
    outcomes = {row.outcome for row in told.outcomes}
    done = [row.step_id for row in told.outcomes if row.outcome is Outcome.DONE]
    if outcomes - {Outcome.DONE} and told.answer and told.answer.decision is Decision.APPROVED:
        yield (
            "**To go on**: nothing more is done under this approval. Run `pulsar_observe`: what still has to be done is"
            " proposed anew, from how the cluster is now."
        )
    if Outcome.UNKNOWN in outcomes:
        yield "**Look first**: a call may still take effect, or have taken it. The steps above say what to read."
    if done and told.record.kind != ROLLBACK:
        yield (
            f"**To go back**: run `pulsar_rollback` with `plan_id` {text(told.record.plan_id)} and `batch_id`"
            f" {text(told.record.batch_id)}; it undoes {text(', '.join(done))}, as far as each can be undone, after an"
            " approval."
        )


def _decision(told: BatchRun) -> str:
    answer = told.answer
    if answer is None and told.record.over:
        return f"Nobody has to answer any more: {told.record.over}. Nothing was changed."
    if answer is None:
        return "No answer was recorded: nothing was changed."
    who = f" by {answer.answered_by}" if answer.answered_by else ""
    comment = f' "{answer.comment}"' if answer.comment else ""
    at = time_in_words(answer.answered_at, seconds=True)
    waited = f" It waited, and nothing was changed: {told.record.over}." if told.ended_waiting else ""
    return f"{answer.decision.capitalize()}{who} at {at}: {answer.reason}.{comment}{waited}"
