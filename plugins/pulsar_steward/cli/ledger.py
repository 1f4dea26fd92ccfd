"""``steward ledger``: whether the record is what was written, a copy of it for elsewhere, its dry runs, its tables."""

import re
from pathlib import Path
from typing import Annotated

import typer
from alembic.runtime.migration import MigrationContext

from pulsar_steward.cli.errors import command_group
from pulsar_steward.cli.ledgers import LedgerUrl, PlanId, ledger_to_read, opened_ledger, verified
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.output import STANDARD_OUTPUT, tell, tell_done, written_whole
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.chain import Head
from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.noted_heads import ledger_names, noted_in_file
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.verify import exported, verify_ledger
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.outside_text import shown_json
from pulsar_steward.policy.place import steward_home

app = command_group("The record of what was proposed, answered and done: whether it is what was written.")

TAMPERED = 1

_OWNERS = 0o600

Noted = Annotated[
    str | None,
    option("SEQUENCE:HASH", "A head that was noted earlier; the chain must still hold it."),
]
Output = Annotated[str, option("FILE", "A file that is not there yet; `-`: standard output.")]

_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


@app.command()
def verify(*, ledger: LedgerUrl = None, noted: Noted = None) -> None:
    """Compares every row with the chain, and that with noted ends. Exit code: 0 as written, 1 not, 2 could not look."""
    given = None
    if noted is not None:
        if (read := _HEAD.fullmatch(noted.strip().lower())) is None:
            raise ConfigurationError(f"--noted {noted!r}: expected SEQUENCE:HASH, as `steward ledger verify` prints it")
        given = Head(int(read[1]), read[2])
    with opened_ledger(ledger) as engine:
        kept = noted_in_file(steward_home(), ledger_names(engine.url))
        expected = [*([given] if given else []), *kept]
        verdict = verify_ledger(engine, noted=expected)
    if verdict.tampered:
        tell(verified(verdict))
        for each in verdict.tampered:
            tell(f"- {each.words}")
        raise typer.Exit(TAMPERED)
    held = "".join(
        f", link {sequence} is the one that was noted" for sequence in sorted({h.sequence for h in expected})
    )
    tell(f"{verified(verdict)}{held}")
    tell(f"head: {verdict.head}")


@app.command()
def export(*, ledger: LedgerUrl = None, output: Output = STANDARD_OUTPUT) -> None:
    """Writes every row in the order in which it was added, with its link, as lines of JSON. Compares nothing."""
    if output == STANDARD_OUTPUT:
        with opened_ledger(ledger) as engine:
            for line in exported(engine):
                typer.echo(shown_json(line))
        return
    rows = 0
    # An earlier export may be the only evidence of what the ledger once was.
    whole = written_whole(Path(output), named=f"--output {output}", mode=_OWNERS, only_new=True)
    with opened_ledger(ledger) as engine, whole as target:
        for rows, line in enumerate(exported(engine), start=1):  # noqa: B007 - the last number is told
            target.write(shown_json(line) + b"\n")
    tell(f"written: {output}, {counted(rows, 'row')}", err=True)


@app.command("dry-runs")
def dry_runs(plan_id: PlanId, *, ledger: LedgerUrl = None) -> None:
    """Prints what each dry run of a plan would have called, the oldest first, as it said it then."""
    with ledger_to_read(ledger) as reader:
        reader.plan_row(plan_id)
        found = reader.dry_runs(plan_id)
    if not found:
        tell(f"the ledger holds no dry run of {plan_id}")
    for each in found:
        tell(f"dry run at {time_in_words(each.at, seconds=True)} by {each.run}")
        for line in each.text.splitlines():
            tell(line)


@app.command()
def upgrade(*, ledger: LedgerUrl = None) -> None:
    """Makes the ledger's tables, or brings those of an earlier release up to date; there is no way back."""
    with opened_ledger(ledger, make=True) as engine:
        with transaction(engine) as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSIONS})
            version = context.get_current_revision()
        tell_done(f"the ledger's tables have version {version}, which is this Steward's")
