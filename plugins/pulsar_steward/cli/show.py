"""``steward show``: prints a recorded plan, its answers, and the outcomes."""

import difflib
import re
from collections.abc import Iterator

from rich.text import Text

from pulsar_steward.cli.ledgers import LedgerUrl, PlanId, ledger_to_read
from pulsar_steward.cli.output import print_lines, width
from pulsar_steward.errors import NotInLedger
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.model.plan import Plan
from pulsar_steward.report.checkup.history_text import Story, header_lines, story_lines
from pulsar_steward.report.checkup.text import batch_lines, bullets, fitting, heading

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
    yield from header_lines(plan, reader.plan_row(plan.plan_id), columns)
    records = reader.batches(plan)
    for batch in plan.batches:
        yield from batch_lines(plan, batch, columns)
        story = Story(
            record=records[batch.batch_id],
            intents=reader.intents(plan.plan_id, batch.batch_id),
            taken_at=plan.taken_at,
            seen_at=reader.questions.seen_at(plan, batch.batch_id),
        )
        yield from story_lines(story, columns)
    if plan.notes:
        yield from heading("Why it was no more than this")
        yield from bullets(plan.notes, columns)
