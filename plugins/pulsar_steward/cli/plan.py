"""``steward plan``: the proposals for a cluster, and why there are no more; ``steward show``: a recorded plan."""

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from pulsar_steward.cli.ledgers import LEDGER, LedgerUrl, PlanId, is_ledger_known, ledger_to_read
from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.options import Source, snapshot_of
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.batch_record import BatchRecord
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Intent, RecordedAnswer, interrupted
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.plan import Plan
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.planners.from_snapshot import Moves, moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.load import load_policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.terminal import why_no_more
from pulsar_steward.report.checkup.text import batch_lines, bullets, fitting, heading, plan_lines, wrapped

AsJson = Annotated[bool, typer.Option("--json", help="Prints the plan as JSON, in the form that digests are made of.")]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also says why each clear check leads to no remedy.")]


@with_option_groups
def plan(*, source: Source, ledger: LedgerUrl = None, json: AsJson = False, verbose: Verbose = False) -> None:
    """Says what would be proposed, and why it is no more. Records nothing and asks nobody."""
    written = load_policy(source.policy)
    with snapshot_of(source, written) as seen:
        limits = written.for_cluster(seen.meta().cluster)
        moves = Moves()
        if is_ledger_known(ledger):  # bundles in their cooldown are left alone
            with ledger_to_read(ledger) as reader:
                meta = seen.meta()
                moves = moves_before(reader, NamedCluster(meta.cluster, meta.identity), meta.taken_at, limits)
        made = make_plan(planning_facts_of(seen, limits, moves))
        checkup = checkup_of(seen, made, limits)
    if json:
        tell_exactly(made.encoded())
        return
    reasons = list(checkup.planning.reasons if verbose else why_no_more(checkup, verbose=False))
    if not made.batches and not verbose:
        clear, unknown = (checkup.with_outlook(each) for each in (Outlook.CLEAR, Outlook.UNKNOWN))
        reasons.append(
            f"Of {len(checkup.checks)} checks, {len(clear)} are clear and {len(unknown)} could not judge;"
            " --verbose says why, each with its thresholds."
        )
    if not is_ledger_known(ledger):
        reasons.append(
            f"Moves of the last minutes are not known, as no ledger was named (--ledger or {LEDGER}), and none is in"
            " STEWARD_HOME."
        )
    print_lines(plan_lines(made, reasons, width()))


_CLUSTER = re.compile(r"(.+)-\d{8}T\d{6}Z-[0-9a-f]+")


def show(plan_id: PlanId, *, ledger: LedgerUrl = None) -> None:
    """Shows a recorded plan: its steps, the answers, the outcomes and what the brokers showed."""
    with ledger_to_read(ledger) as reader:
        try:
            found = reader.plan(plan_id)
        except NotInLedger as error:
            named = _CLUSTER.fullmatch(plan_id)
            known = [row.plan_id for row in reader.plans(named[1] if named else plan_id)]  # of the same cluster
            near = difflib.get_close_matches(plan_id, known, n=3) or known[:3]
            meant = f"did you mean {' or '.join(near)}?" if near else "is it another ledger's?"
            raise NotInLedger(f"{error}; {meant}") from error
        print_lines(list(_lines(reader, found, fitting(width()))))


def _lines(reader: LedgerReader, plan: Plan, columns: int) -> Iterator[Text]:
    row = reader.plan_row(plan.plan_id)
    yield from wrapped(f"Plan {plan.plan_id}", columns, style="heading")
    yield from wrapped(
        f"cluster {plan.cluster}, snapshot {plan.snapshot_id}, recorded {_at(row.created_at)}; SHA-256 {plan.digest},"
        " as recorded",
        columns,
    )
    if row.superseded_by:
        when = f" {_at(row.superseded_at)}" if row.superseded_at else ""
        yield from wrapped(f"Superseded{when} by {row.superseded_by}", columns, style="warning")
    records = reader.batches(plan)
    for batch in plan.batches:
        yield from batch_lines(plan, batch, columns)
        yield from heading("What became of it")
        intents, seen_at = reader.intents(plan.plan_id, batch.batch_id), reader.questions.seen_at(plan, batch.batch_id)
        yield from bullets(_story(plan, records[batch.batch_id], intents, seen_at), columns)
    if plan.notes:
        yield from heading("Why nothing else was proposed")
        yield from bullets(plan.notes, columns)


def _story(plan: Plan, record: BatchRecord, intents: Sequence[Intent], seen_at: datetime) -> Iterator[str]:
    """The history of one batch: question, answers, outcomes, and proofs."""
    under_way = interrupted(intents, record.outcomes)
    if record.requests:
        yield f"asked {_at(record.requests[-1].at)}"
    if seen_at != plan.taken_at:
        yield f"proposed the same again, at last by the snapshot of {_at(seen_at)}"
    if record.end is not None:
        yield f"the question ended {_at(record.end.at)}: {record.end.words}"
    if not record.answers:
        asked = record.requests or record.end is not None
        yield f"{'no answer is recorded' if asked else 'nobody was asked yet'}: nothing was changed"
    for answer in record.answers:
        yield from _answer_lines(answer)
    for outcome in record.outcomes:
        yield f"{outcome.step_id} {outcome.outcome} {_at(outcome.at)}: {outcome.reason}"
    for intent in under_way:
        yield f"{intent.step_id} under way since {_at(intent.at)}, or cut short then"
    if under_way:
        ended, approved = len(record.outcomes), counted(len(record.answers[-1].step_ids), "approved step")
        yield f"{ended} of {approved} {'has' if ended == 1 else 'have'} come to an end"
    for proof in record.proofs:
        yield f"{'proved' if proof.proved else 'verification failed'} {_at(proof.at)}: {proof.reason}"


def _answer_lines(answer: RecordedAnswer) -> Iterator[str]:
    """An answer, the end of the time for which it silences its question, and the way to take it back."""
    who = f" by {answer.answered_by}" if answer.answered_by else ""
    steps = f" of {', '.join(answer.step_ids)}" if answer.step_ids else ""
    until = f", valid until {_at(answer.expires_at)}" if answer.expires_at else ""
    comment = f' "{answer.comment}"' if answer.comment else ""
    yield f"{answer.decision}{steps}{who} {_at(answer.answered_at)}{until}: {answer.reason}{comment}"
    end = f"steward questions ask-again {answer.answer_id} ends that"
    if answer.silent_until is not None:
        worse = ", or until it gets worse" if answer.until_worse else ""
        yield f"silent until {_at(answer.silent_until)}{worse}; {end}"
    if answer.policy_entry:
        yield f"silent until {end}; the policy entry for good:"
        yield from answer.policy_entry.splitlines()


def _at(moment: datetime) -> str:
    return time_in_words(moment, seconds=True)
