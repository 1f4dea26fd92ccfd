"""``steward move-namespace``: how far people are with moving a namespace to another cluster. Only looks."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from pulsar_steward.cli.errors import in_one_line
from pulsar_steward.cli.fleet import CONNECTIONS, FleetTarget, members_of
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.options import PolicyFile
from pulsar_steward.cli.output import print_lines, progress, tell_exactly, width
from pulsar_steward.cli.paths import snapshots_uri
from pulsar_steward.collect.kafka.settings import KAFKA_VARIABLE
from pulsar_steward.collect.namespace import MAX_ASKED, look_at, partitions_of, serves
from pulsar_steward.errors import AdminError, ConfigurationError
from pulsar_steward.facts.namespace_look import NamespaceLook
from pulsar_steward.model.units import MINUTE
from pulsar_steward.planners.clusters.from_snapshots import MemberFacts, member_facts
from pulsar_steward.planners.clusters.moving import Empty, empty_looks, stages_of
from pulsar_steward.policy.layers import is_namespace
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.report.moving import move_lines
from pulsar_steward.snapshots.latest import SnapshotShelf

MAX_LOOKS = 500
"""Snapshots of the source that are read for how long it has been empty."""

Namespace = Annotated[str, typer.Argument(metavar="TENANT/NAMESPACE")]
To = Annotated[str, option("CLUSTER", "The cluster that it goes to, by its name in the fleet.", "--to")]
From = Annotated[
    str | None, option("CLUSTER", "The one that it leaves.  [default: the other that serves it]", "--from")
]
FleetFile = Annotated[str, option("FILE", "The fleet's file, or Airflow's `connections`.", "--fleet")]
Quiet = Annotated[
    int, typer.Option("--empty-minutes", metavar="N", min=0, help="How long the source has to have had no client.")
]
Shelf = Annotated[str | None, option("DIR", "A folder of snapshots.  [default: in STEWARD_HOME]", "--snapshots")]
AsJson = Annotated[bool, typer.Option("--json", help="Prints the same for programs.")]


def move_namespace(
    namespace: Namespace,
    *,
    to: To,
    from_: From = None,
    fleet: FleetFile = CONNECTIONS,
    empty_minutes: Quiet = 60,
    snapshots: Shelf = None,
    policy: PolicyFile = None,
    json: AsJson = False,
) -> None:
    """Looks at each stage of moving a namespace, and changes nothing. Exit code: 0 ready, 1 not, 2 could not look."""
    if not is_namespace(namespace):
        raise ConfigurationError(f"{namespace!r} is no namespace: give it as tenant/namespace")
    thresholds = load_policy(policy)
    members = {
        each.name: each for each in members_of(fleet, thresholds) if KAFKA_VARIABLE not in (each.variables or {})
    }
    with progress() as say:
        target = _settings("--to", to, members, thresholds)
        name = from_ or _source(namespace, to, members, thresholds)
        source = _settings("--from", name, members, thresholds)
        if name == to:
            raise ConfigurationError(f"--to {to}: it is at {name} already: name another cluster")
        say(f"looking at {namespace} at {name} and {to}")
        with ThreadPoolExecutor(max_workers=2) as pool:
            here, there = pool.map(look_at, (source, target), (name, to), (namespace, namespace))
        if here.policies is None:
            told, unasked = _asked(namespace, [each for each in members if each != name], members, thresholds)
            words = _unclear(namespace, {name: None, **told}, unasked)
            lacking = f"{name} has no namespace {namespace}; " if unasked or any(told.values()) else ""
            raise ConfigurationError(f"{lacking}{words}")
        here, there = _with_partitions(here, there, source, target)
    shelf = SnapshotShelf(snapshots_uri(snapshots))
    now = datetime.now(UTC)
    looks = empty_looks(shelf.diagnosed(name, MAX_LOOKS), namespace) if empty_minutes and not here.clients else ()
    facts = _facts(shelf, (name, to), thresholds)
    move = stages_of(namespace, here, there, Empty(wanted_seconds=MINUTE * empty_minutes, now=now, looks=looks), facts)
    if json:
        tell_exactly(msgspec.json.format(msgspec.json.encode(move), indent=2))
    else:
        print_lines(move_lines(move, width()))
    raise typer.Exit(0 if move.is_ready else 1)


def _settings(given_by: str, name: str, members: dict[str, FleetTarget], policy: Policy) -> AdminSettings:
    """How a cluster of the fleet is reached.

    Raises:
        ConfigurationError: If the fleet has no such cluster, or it cannot be reached as the fleet says.
    """
    if name not in members:
        raise ConfigurationError(f"{given_by} {name}: of Pulsar clusters the fleet has {', '.join(sorted(members))}")
    member = members[name]
    if member.variables is None:
        raise ConfigurationError(f"{given_by} {name}: {member.trouble}")
    return AdminSettings.from_environment(member.variables, policy.for_cluster(name).admin)


def _source(namespace: str, to: str, members: dict[str, FleetTarget], policy: Policy) -> str:
    """The only other cluster of the fleet, or the only one that serves the namespace.

    Raises:
        AdminError: If no other has it, and the one that it goes to does not answer.
        ConfigurationError: If none does, several do, or one could not be asked.
    """
    others = [name for name in members if name != to]
    if len(others) == 1:
        return others[0]
    told, unasked = _asked(namespace, others, members, policy)
    serving = [name for name, each in told.items() if each]
    if len(serving) == 1 and not unasked:
        return serving[0]
    if not serving and not unasked:
        told[to] = serves(_settings("--to", to, members, policy), namespace)
        if told[to]:
            raise ConfigurationError(f"of the fleet, {to} alone serves {namespace}: there is nothing to move")
    raise ConfigurationError(_unclear(namespace, told, unasked))


def _asked(
    namespace: str, names: Sequence[str], members: dict[str, FleetTarget], policy: Policy
) -> tuple[dict[str, bool | None], dict[str, str]]:
    """Whether each cluster serves the namespace (None: it has none), and why some could not be asked."""
    told: dict[str, bool | None] = {}
    unasked: dict[str, str] = {}
    for name in names:
        try:
            told[name] = serves(_settings("--from", name, members, policy), namespace)
        except (AdminError, ConfigurationError) as error:
            unasked[name] = in_one_line(error)
    return told, unasked


def _unclear(namespace: str, told: dict[str, bool | None], unasked: dict[str, str]) -> str:
    """Why the cluster that a namespace leaves cannot be told, and what helps."""
    if unasked:
        words = f"{', '.join(unasked)} could not be asked whether it serves the namespace: name the source by --from"
        return f"{words} ({'; '.join(unasked.values())})"
    if all(each is None for each in told.values()):
        return f"no cluster of the fleet has {namespace}: check the name"
    serving = [name for name, each in told.items() if each]
    if not serving:
        return f"no cluster of the fleet serves {namespace}: its policies name others"
    verb = "serves" if len(serving) == 1 else "serve"
    return f"{', '.join(serving)} {verb} {namespace}: name the one that it leaves by --from"


def _with_partitions(
    here: NamespaceLook, there: NamespaceLook, source: AdminSettings, target: AdminSettings
) -> tuple[NamespaceLook, NamespaceLook]:
    """The looks, with numbers of partitions asked for where lists of partitions differ: some may not be made yet."""
    differ = [topic for topic, count in here.topics.items() if there.topics.get(topic, count) != count][:MAX_ASKED]
    if not differ:
        return here, there
    return (
        here.with_partitions(partitions_of(source, differ)),
        there.with_partitions(partitions_of(target, differ)),
    )


def _facts(shelf: SnapshotShelf, names: Sequence[str], policy: Policy) -> tuple[MemberFacts, MemberFacts] | None:
    """Both clusters by their newest snapshots; None: one of them has none."""
    found = [(name, snapshot) for name in names for snapshot in shelf.diagnosed(name)]
    if len(found) != len(names):
        return None
    source, target = (member_facts(snapshot, policy.for_cluster(name)) for name, snapshot in found)
    return source, target
