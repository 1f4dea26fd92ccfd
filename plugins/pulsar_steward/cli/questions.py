"""``steward questions``: what nobody is asked as somebody said no, and how that is taken back."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from pulsar_steward.cli.errors import help_without_command
from pulsar_steward.cli.halt import said_by
from pulsar_steward.cli.ledgers import LedgerUrl, named_ledger, opened_ledger
from pulsar_steward.cli.output import tell
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.silences import SilenceEnd, silences, take_back

app = typer.Typer(rich_markup_mode=None)

Cluster = Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="Of one cluster.  [default: all]")]
AnswerNumber = Annotated[int, typer.Argument(metavar="ANSWER", min=1, help="Its number, as `silent` lists it.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why it may be asked again; kept in the ledger.")]


@app.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    """Batches that nobody is asked about for the time being: rejected, snoozed or never wanted."""
    help_without_command(context)


@app.command()
def silent(context: typer.Context, cluster: Cluster = None, *, ledger: LedgerUrl = None) -> None:
    """Lists what is silent: since when, by whom, until when and why; of a never also the policy entry for good."""
    with opened_ledger(named_ledger(context, ledger)) as engine:
        found = silences(engine, datetime.now(UTC), cluster)
    for each in found:
        tell(each.words)
        for line in each.policy_entry.splitlines():
            tell(f"    {line}")
    if not found:
        tell(f"nothing is silent{f' in cluster {cluster}' if cluster else ''} by this ledger")


@app.command("ask-again")
def ask_again(context: typer.Context, answer: AnswerNumber, *, reason: Reason = "", ledger: LedgerUrl = None) -> None:
    """Takes a no back, so that the next observation may ask again. It permits nothing, and changes no cluster."""
    if not reason.strip():
        raise ConfigurationError("say why by --reason: whoever said no reads it in the ledger")
    end = SilenceEnd(
        answer_id=answer, at=datetime.now(UTC), said_by=said_by("questions ask-again"), reason=reason.strip()
    )
    with opened_ledger(named_ledger(context, ledger)) as engine:
        ended = take_back(engine, end)
    if ended:
        tell(f"answer {answer} silences nothing any more: what the next observation proposes is asked again")
    else:
        tell(f"answer {answer} was taken back before: nothing to end")
