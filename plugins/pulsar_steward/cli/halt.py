"""``steward halt`` and ``steward resume``: the stop switch, which keeps Steward from changing a cluster."""

import getpass
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from sqlalchemy import Engine

from pulsar_steward.cli.known_names import is_connected, known_names, nearest
from pulsar_steward.cli.ledgers import LedgerUrl, opened_ledger
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.output import tell, tell_done
from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, halts_in_force, say
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import place_of
from pulsar_steward.ledger.tables import LONGEST_CLUSTER
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown

Cluster = Annotated[str | None, typer.Argument(metavar="[CLUSTER]", help="As plans and Airflow's connections name it.")]
Every = Annotated[bool, typer.Option("--all", help="Every cluster, in place of one.")]
Force = Annotated[bool, typer.Option("--force", help="Halts a name of which no cluster is known, too.")]
HaltReason = Annotated[str | None, option("TEXT", "Why; whoever is stopped by it reads this.")]
ResumeReason = Annotated[str, option("TEXT", "Why it may go on.")]

_LONGEST_NAME = 200
"""Characters of the user's name that the ledger stores."""


def halt(
    cluster: Cluster = None,
    *,
    every: Every = False,
    reason: HaltReason = None,
    force: Force = False,
    ledger: LedgerUrl = None,
) -> None:
    """Stops all changes of a cluster until it is resumed. Without a cluster: lists what is halted."""
    name = _named(cluster, every=every)
    if name is None and (reason is not None or force):
        raise ConfigurationError("which cluster? Name it before --reason and --force, or give --all for every one")
    if name is not None and len(name) > LONGEST_CLUSTER:
        raise ConfigurationError(
            f"the cluster's name has {counted(len(name), 'character')}, and {LONGEST_CLUSTER} is the most: nothing was"
            " halted"
        )
    if name is not None and not (reason or "").strip():
        raise ConfigurationError("say why by --reason: whoever is stopped by a halt reads it")
    with opened_ledger(ledger) as engine:
        if name is None:
            _list(engine)
            return
        _require_known(engine, name, force=force)
        word = _word(name, str(reason), halted=True)
        try:
            say(engine, word)
        except LedgerError as error:
            raise LedgerError(f"this halt was not kept: {error}") from error
        tell_done(word.words, _what_a_halt_does(engine, name))
        if name != EVERY_CLUSTER and name not in LedgerReader(engine).known(NamedCluster(name)).placed:
            words = "No plan in this ledger says which cluster that is: until one does, every cluster is halted."
            tell(f"Is {name} its name? {words}", err=True)


def resume(
    cluster: Cluster = None, *, every: Every = False, reason: ResumeReason = "", ledger: LedgerUrl = None
) -> None:
    """Ends the halt of a cluster; --all ends the halt of every cluster, not those of single ones."""
    name = _named(cluster, every=every)
    if name is None:
        raise ConfigurationError("which cluster? Name it, or give --all; `steward halt` lists what is halted")
    which = "every cluster" if name == EVERY_CLUSTER else f"cluster {name}"
    with opened_ledger(ledger) as engine:
        before = {each.cluster for each in halts_in_force(engine)}
        if name in before:
            say(engine, _word(name, reason, halted=False))
            done = f"the halt of {which} is over"
        else:
            known = {*known_names(engine), *before} - {EVERY_CLUSTER}
            if known and name not in {EVERY_CLUSTER, *known}:  # it may be misspelt, and the meant one halted
                raise ConfigurationError(
                    f"no cluster {name!r} is known, or halted, and nothing was resumed; {nearest(name, known)}"
                )
            done = f"there is no halt of {which}: nothing to end"
        tell_done(done, _still_halted(engine, name))


def _named(cluster: str | None, *, every: bool) -> str | None:
    if every and cluster is not None:
        raise ConfigurationError(f"give either the cluster {cluster} or --all")
    if cluster is not None and not cluster.strip():
        raise ConfigurationError("the cluster's name is empty: name one, or give --all")
    return EVERY_CLUSTER if every else cluster and cluster.strip()


def _require_known(engine: Engine, name: str, *, force: bool) -> None:
    """Refuses a name that no cluster has, as such a halt would stop nothing, and look as if it did."""
    if name == EVERY_CLUSTER:
        return
    known = known_names(engine)
    if name in known:
        return
    if force:
        tell(f"No cluster {name} is known here.", err=True)
    elif not known:
        tell(f"No cluster is known here yet, so that nobody can tell whether {name} is one's name.", err=True)
    elif not is_connected(name, known):
        raise ConfigurationError(
            f"no cluster {name!r} is known, and nothing was halted; {nearest(name, known)}. --force takes the name all"
            " the same, --all halts every cluster"
        )


def _list(engine: Engine) -> None:
    halts = halts_in_force(engine)
    known = known_names(engine) if halts else frozenset()
    for each in halts:
        unknown = known and each.cluster not in {EVERY_CLUSTER, *known}
        tell(each.words + (" (no cluster of this name is known)" if unknown else ""))
    if not halts:
        tell("nothing is halted by this ledger")


def _what_a_halt_does(engine: Engine, name: str) -> Iterator[str]:
    yield f"A batch that is running stops before its next call; what was called stays. `{_way_on(name)}` ends it."
    yield f"It is kept in the ledger {place_of(engine)}."
    if name != EVERY_CLUSTER:
        for other in sorted(LedgerReader(engine).known(NamedCluster(name)).names - {name}):
            yield f"{other} is another name of the same Pulsar cluster: it is halted as well."


def _still_halted(engine: Engine, name: str) -> Iterator[str]:
    """Halts that go on after the one of this name was ended."""
    known = LedgerReader(engine).known(NamedCluster(name))
    for each in halts_in_force(engine):
        if name == EVERY_CLUSTER or each.stops(known):
            yield f"still halted: {each.words}; `{_way_on(each.cluster)}` ends it"


def _word(name: str, reason: str, *, halted: bool) -> Halt:
    """Halt or resumption by the user who runs this."""
    by = said_by("halt" if halted else "resume")
    return Halt(cluster=name, at=datetime.now(UTC), halted=halted, said_by=by, reason=reason.strip())


def said_by(command: str) -> str:
    """The user who runs a command, as a phrase for the ledger."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # in a container the user's number may have no name; which error depends on Python
        user = f"user {os.getuid()}"
    return shown(f"{user} at {socket.gethostname()} (steward {command})")[:_LONGEST_NAME]


def _way_on(name: str) -> str:
    return f"steward resume {'--all' if name == EVERY_CLUSTER else name}"
