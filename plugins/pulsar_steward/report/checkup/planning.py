"""Summary of the proposals, with the reasons why there are no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.units import bytes_in_words, counted
from pulsar_steward.planners.settings.targets import OF_FULL_TOPICS
from pulsar_steward.report.checkup.document import CheckReport, Planning, ProposedBatch, by_reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy

NOTHING_LOOKED_AT = "No check said anything of this snapshot: diagnose it again."

_OWN_QUOTAS = (
    "a size quota of its own is proposed only for a topic that itself retains more than its namespace, and a larger"
    " one of the namespace only where topics under it are near it; for any other the advice says what a person can do."
)

_THRESHOLDS = ("minimum_", "warning_", "critical_")
"""Prefixes of threshold names in a policy; its other keys are about remedies."""


def planning_of(plan: Plan, checks: Sequence[CheckReport], policy: Policy) -> Planning:
    """Summary of a plan, and why it has no more: notes of planners and guards, then the reasons by check."""
    reasons = [*plan.notes, *_not_remedied(plan, checks, policy)]
    if ids := [check.check_id for check in checks if _is_trouble(check) and check.remedied_by is None]:
        reasons.append(f"Steward has no remedy of its own for {', '.join(ids)}: the advice says what a person can do.")
    if not plan.batches:
        unknown = by_reason(check for check in checks if check.outlook is Outlook.UNKNOWN)
        reasons += (f"Not judged: {', '.join(ids)}. {reason}" for reason, ids in unknown.items())
        # Where there is nothing else: finding nothing differs from not looking.
        clear = [check.check_id for check in checks if check.outlook is Outlook.CLEAR]
        if clear and not any(map(_is_trouble, checks)):
            reasons.append(f"Clear, with nothing to change: {', '.join(clear)}.")
    return Planning(
        batches=tuple(
            ProposedBatch(
                batch_id=batch.batch_id,
                kind=batch.kind,
                title=batch.title,
                check_ids=tuple(dict.fromkeys(finding.check_id for finding in batch.findings)),
                steps=len(batch.steps),
                clients=sum(step.touched.clients for step in batch.steps),
                undoable=all(step.undo is not None for step in batch.steps),
            )
            for batch in plan.batches
        ),
        reasons=tuple(reasons) if reasons or plan.batches else (NOTHING_LOOKED_AT,),
    )


def _not_remedied(plan: Plan, checks: Sequence[CheckReport], policy: Policy) -> Iterator[str]:
    """A reason for each check that a planner could remedy but no batch resolves."""
    for check in checks:
        if check.remedied_by is None or _is_answered(check, plan):
            continue
        if _is_trouble(check):
            yield from _found_but_unplanned(check, policy, explained=bool(plan.notes))
        elif plan.batches or check.outlook is Outlook.UNKNOWN:
            continue  # with a plan, clear checks need no line; unknown ones are listed with the others
        elif check.severity is Severity.INFO:
            yield (
                f"{check.check_id} is information only, and a remedy is proposed from a warning on"
                f"{_thresholds(check, policy)}: {check.reason}"
            )
        else:
            yield f"{check.check_id} is below its thresholds{_thresholds(check, policy)}: {check.reason}"


def _is_answered(check: CheckReport, plan: Plan) -> bool:
    """True if a batch resolves a check; topics near a quota must all be in a batch, as planners skip most."""
    findings = (finding for batch in plan.batches for finding in batch.findings)
    answered = {finding.subject for finding in findings if finding.check_id == check.check_id}
    if check.check_id not in OF_FULL_TOPICS:
        return bool(answered)
    troubled = {finding.subject for finding in check.findings if finding.severity.rank >= Severity.WARNING.rank}
    return bool(answered) and troubled <= answered and not check.not_listed


def _found_but_unplanned(check: CheckReport, policy: Policy, *, explained: bool) -> Iterator[str]:
    """Reason for a finding without a plan, unless the planners' notes explain it."""
    needed, of_topics = policy.plan.standing_snapshots, check.check_id in OF_FULL_TOPICS
    stood = max(finding.snapshots_in_a_row for finding in check.findings)
    if explained and not of_topics:
        return
    if stood < needed:
        yield (
            f"{check.check_id} has stood for {stood} of the {counted(needed, 'snapshot')} in a row of"
            " plan.standing_snapshots."
        )
    elif of_topics:
        yield f"{check.check_id}: {_OWN_QUOTAS}"
    else:
        yield f"{check.remedied_by} found no step that would improve on {check.check_id} within the policy's limits."


def _thresholds(check: CheckReport, policy: Policy) -> str:
    """Thresholds in force, in parentheses; empty if the check has none."""
    section = getattr(policy, check.check_id.replace("-", "_"), None)
    values = section.model_dump() if section is not None else {}
    named = [
        f"{name} {bytes_in_words(value) if name.endswith('_bytes') else value}"
        for name, value in values.items()
        if name.startswith(_THRESHOLDS)
    ]
    return f" ({', '.join(named)})" if named else ""


def _is_trouble(check: CheckReport) -> bool:
    return check.severity is not None and check.severity.rank >= Severity.WARNING.rank
