"""``steward ledger``: whether the record is what was written, a copy of it for elsewhere, its dry runs, its tables."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine

from pulsar_steward.cli.errors import help_without_command
from pulsar_steward.cli.ledgers import LedgerUrl, PlanId, ledger_to_read, named_ledger, opened_ledger
from pulsar_steward.cli.output import STANDARD_OUTPUT, tell
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.chain import Head
from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.noted_heads import ledger_name, noted_in_file
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.verify import exported, verify_ledger
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.outside_text import shown_json
from pulsar_steward.policy.place import steward_home

app = typer.Typer(rich_markup_mode=None)

TAMPERED = 1

Noted = Annotated[
    str | None,
    typer.Option(metavar="SEQUENCE:HASH", help="A head that was noted earlier; the chain must still hold it."),
]
Output = Annotated[str, typer.Option(metavar="FILE", help="A file that is not there yet; `-`: standard output.")]

_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


@app.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    """The record of what was proposed, answered and done: whether it is what was written."""
    help_without_command(context)


@app.command()
def verify(context: typer.Context, *, ledger: LedgerUrl = None, noted: Noted = None) -> None:
    """Compares every row with the chain, and that with noted ends. Exit code: 0 as written, 1 not, 2 could not look."""
    given = _head(noted)
    with opened_ledger(named_ledger(context, ledger)) as engine:
        kept = noted_in_file(steward_home(), ledger_name(engine.url))
        expected = [head for head in (given, kept) if head is not None]
        verdict = verify_ledger(engine, noted=expected)
    compared = f"{counted(verdict.rows, 'row')} compared"
    if verdict.tampered:
        tell(f"TAMPERED WITH: {compared}, {counted(len(verdict.tampered), 'place')} not as written")
        for each in verdict.tampered:
            tell(f"- {each.words}")
        raise typer.Exit(TAMPERED)
    held = "".join(
        f", link {sequence} is the one that was noted" for sequence in sorted({h.sequence for h in expected})
    )
    tell(f"as written: {compared}{held}")
    tell(f"head: {verdict.head}")


@app.command()
def export(context: typer.Context, *, ledger: LedgerUrl = None, output: Output = STANDARD_OUTPUT) -> None:
    """Writes every row in the order in which it was added, with its link, as lines of JSON. Compares nothing."""
    url = named_ledger(context, ledger)
    if output == STANDARD_OUTPUT:
        with opened_ledger(url) as engine:
            for line in exported(engine):
                typer.echo(shown_json(line))
        return
    rows = 0
    with opened_ledger(url) as engine, _written_whole(Path(output)) as target:
        for rows, line in enumerate(exported(engine), start=1):  # noqa: B007 - the last number is told
            target.write(shown_json(line) + b"\n")
    tell(f"written: {output}, {counted(rows, 'row')}", err=True)


@app.command("dry-runs")
def dry_runs(context: typer.Context, plan_id: PlanId, *, ledger: LedgerUrl = None) -> None:
    """Prints what each dry run of a plan would have called, the oldest first, as it said it then."""
    with ledger_to_read(named_ledger(context, ledger)) as reader:
        reader.plan_row(plan_id)
        found = reader.dry_runs(plan_id)
    if not found:
        tell(f"the ledger holds no dry run of {plan_id}")
    for each in found:
        tell(f"dry run at {time_in_words(each.at, seconds=True)} by {each.run}")
        for line in each.text.splitlines():
            tell(line)


@app.command()
def upgrade(context: typer.Context, *, ledger: LedgerUrl = None) -> None:
    """Makes the ledger's tables, or brings those of an earlier Steward up to date; there is no way back."""
    with opened_ledger(named_ledger(context, ledger), make=True) as engine:
        tell(f"the ledger's tables have version {_version(engine)}, which is this Steward's")


def _head(noted: str | None) -> Head | None:
    if noted is None:
        return None
    read = _HEAD.fullmatch(noted.strip().lower())
    if read is None:
        raise ConfigurationError(f"--noted {noted!r}: expected SEQUENCE:HASH, as `steward ledger verify` prints it")
    return Head(int(read[1]), read[2])


def _version(engine: Engine) -> str | None:
    with transaction(engine) as connection:
        return MigrationContext.configure(connection, opts={"version_table": VERSIONS}).get_current_revision()


@contextmanager
def _written_whole(file: Path) -> Iterator[IO[bytes]]:
    """Opens a new file that gets its name only once it is completely on disk; only its owner may read it."""
    try:
        if file.exists():  # an earlier export may be the only evidence of what the ledger once was
            raise ConfigurationError(f"--output {file} is there already: an export is never written over, name another")
        with tempfile.NamedTemporaryFile(dir=file.absolute().parent, prefix=".steward-", delete=False) as made:
            unfinished = Path(made.name)
            try:
                yield made
                made.flush()
                os.fsync(made.fileno())
                unfinished.rename(file)
            finally:
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--output {file} cannot be written: {error.strerror}") from error
