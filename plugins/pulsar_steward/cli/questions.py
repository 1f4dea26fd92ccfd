"""``steward questions``: what nobody is asked as somebody said no, and how that is taken back."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from pulsar_steward.cli.errors import command_group
from pulsar_steward.cli.halt import said_by
from pulsar_steward.cli.ledgers import LedgerUrl, opened_ledger
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.output import tell, tell_done
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.silences import SilenceEnd, silences, take_back
from pulsar_steward.model.cluster import NamedCluster

app = command_group("Batches that nobody is asked about for the time being: rejected, snoozed or never wanted.")

_HIGHEST = 2**31 - 1
"""Highest number that a row can have in every kind of database."""

Cluster = Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="Of one cluster.  [default: all]")]
AnswerNumber = Annotated[
    int, typer.Argument(metavar="ANSWER", min=1, max=_HIGHEST, help="Its number, as `silent` lists it.")
]
Reason = Annotated[str, option("TEXT", "Why it may be asked again; kept in the ledger.")]


@app.command()
def silent(cluster: Cluster = None, *, ledger: LedgerUrl = None) -> None:
    """Lists what is silent, of a cluster under all its names: by whom, until when, why; of a never the policy entry."""
    with opened_ledger(ledger) as engine:
        found = silences(engine, datetime.now(UTC), NamedCluster(cluster) if cluster else None)
    for each in found:
        tell(each.words)
        for line in each.policy_entry.splitlines():
            tell(f"    {line}")
    if not found:
        tell(f"nothing is silent{f' in cluster {cluster}' if cluster else ''} by this ledger")


@app.command("ask-again")
def ask_again(answer: AnswerNumber, *, reason: Reason = "", ledger: LedgerUrl = None) -> None:
    """Takes a no back, so that the next observation may ask again. It permits nothing, and changes no cluster."""
    if not reason.strip():
        raise ConfigurationError("say why by --reason: whoever said no reads it in the ledger")
    end = SilenceEnd(
        answer_id=answer, at=datetime.now(UTC), said_by=said_by("questions ask-again"), reason=reason.strip()
    )
    with opened_ledger(ledger) as engine:
        ended = take_back(engine, end)
    done = (
        f"answer {answer} silences nothing any more: what the next observation proposes is asked again"
        if ended
        else f"answer {answer} was taken back before: nothing to end"
    )
    tell_done(done)
