"""``steward halt`` and ``steward resume``: the stop switch, which keeps Steward from changing a cluster."""

import getpass
import os
import socket
from datetime import UTC, datetime
from typing import Annotated

import typer
from sqlalchemy import Engine

from pulsar_steward.cli.ledgers import LedgerUrl, named_ledger, opened_ledger
from pulsar_steward.cli.output import tell
from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, halts_in_force, say
from pulsar_steward.ledger.read import LedgerReader

Cluster = Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="As plans and Airflow's connections name it.")]
Every = Annotated[bool, typer.Option("--all", help="Every cluster, in place of one.")]
HaltReason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; whoever is stopped by it reads this.")]
ResumeReason = Annotated[str, typer.Option(metavar="TEXT", help="Why it may go on.")]

_LONGEST_NAME = 200
"""Characters of the user's name that the ledger stores."""


def halt(
    context: typer.Context,
    cluster: Cluster = None,
    *,
    every: Every = False,
    reason: HaltReason = None,
    ledger: LedgerUrl = None,
) -> None:
    """Stops all changes of a cluster until it is resumed. Without a cluster: lists what is halted."""
    url, name = named_ledger(context, ledger), _named(cluster, every=every)
    if name is None and reason is not None:
        raise ConfigurationError("which cluster? Name it before --reason, or give --all for every one")
    if name is not None and not (reason or "").strip():
        raise ConfigurationError("say why by --reason: whoever is stopped by a halt reads it")
    with opened_ledger(url) as engine:
        if name is None:
            _list(engine)
        else:
            _halt(engine, name, str(reason))


def resume(
    context: typer.Context,
    cluster: Cluster = None,
    *,
    every: Every = False,
    reason: ResumeReason = "",
    ledger: LedgerUrl = None,
) -> None:
    """Ends the halt of a cluster; --all ends the halt of every cluster, not those of single ones."""
    url, name = named_ledger(context, ledger), _named(cluster, every=every)
    if name is None:
        raise ConfigurationError("which cluster? Name it, or give --all; `steward halt` lists what is halted")
    with opened_ledger(url) as engine:
        halted = any(each.cluster == name for each in halts_in_force(engine))
        if halted:
            say(engine, _word(name, reason, halted=False))
        rest = [each for each in halts_in_force(engine) if EVERY_CLUSTER in {name, each.cluster}]
    which = "every cluster" if name == EVERY_CLUSTER else f"cluster {name}"
    tell(f"the halt of {which} is over" if halted else f"there is no halt of {which}: nothing to end")
    for each in rest:
        tell(f"still halted: {each.words}; `{_way_on(each.cluster)}` ends it")


def _named(cluster: str | None, *, every: bool) -> str | None:
    if every and cluster is not None:
        raise ConfigurationError(f"give either the cluster {cluster} or --all")
    if cluster is not None and not cluster.strip():
        raise ConfigurationError("the cluster's name is empty: name one, or give --all")
    return EVERY_CLUSTER if every else cluster and cluster.strip()


def _list(engine: Engine) -> None:
    halts = halts_in_force(engine)
    for each in halts:
        tell(each.words)
    if not halts:
        tell("nothing is halted by this ledger")


def _halt(engine: Engine, name: str, reason: str) -> None:
    word = _word(name, reason, halted=True)
    try:
        say(engine, word)
    except LedgerError as error:
        raise LedgerError(f"this halt was not kept: {error}") from error
    tell(word.words)
    tell(f"A batch that is running stops before its next call; what was called stays. `{_way_on(name)}` ends it.")
    if name != EVERY_CLUSTER and not LedgerReader(engine).plans(name, limit=1):
        tell(f"Is {name} its name? This ledger holds no plan of such a cluster.", err=True)


def _word(name: str, reason: str, *, halted: bool) -> Halt:
    """Halt or resumption by the user who runs this."""
    by = said_by("halt" if halted else "resume")
    return Halt(cluster=name, at=datetime.now(UTC), halted=halted, said_by=by, reason=reason.strip())


def said_by(command: str) -> str:
    """The user who runs a command, as a phrase for the ledger."""
    return f"{_user()} at {socket.gethostname()} (steward {command})"[:_LONGEST_NAME]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container the user's number may have no name; which error depends on Python
        return f"user {os.getuid()}"


def _way_on(name: str) -> str:
    return f"steward resume {'--all' if name == EVERY_CLUSTER else name}"
