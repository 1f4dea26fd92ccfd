"""``steward whatif``: how full the members of a logical cluster are, and what a change of it would do."""

import json as plain_json
import math
import re
from typing import Annotated

import msgspec
import typer

from pulsar_steward.cli.errors import COULD_NOT_LOOK
from pulsar_steward.cli.known_names import nearest
from pulsar_steward.cli.option_groups import option, with_option_groups
from pulsar_steward.cli.options import PolicyFile
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.cli.paths import snapshots_uri
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.system import System
from pulsar_steward.planners.clusters.differences import differences
from pulsar_steward.planners.clusters.from_snapshots import member_facts
from pulsar_steward.planners.clusters.losing import loss_of
from pulsar_steward.planners.clusters.model import uses_of
from pulsar_steward.planners.clusters.place import place
from pulsar_steward.planners.clusters.whatif import AddedMember, WhatIf, supposed
from pulsar_steward.policy.files import policy_file, policy_files
from pulsar_steward.policy.layers import is_namespace
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.logical_clusters import LogicalClusterPolicy
from pulsar_steward.report.checkup.text import fitting
from pulsar_steward.report.whatif import WhatIfReport, document, lines
from pulsar_steward.snapshots.latest import SnapshotShelf
from pulsar_steward.snapshots.read import Snapshot

MOST_COLUMNS = 80

EXIT_CODES = {True: 0, False: 1, None: COULD_NOT_LOOK}
"""By whether all fits; None: that is not known."""

_NUMBER = re.compile(r"(?P<name>[^=@]+)=(?P<number>[0-9][0-9,]*)(@(?P<region>.+))?")


class MemberOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Members of the logical cluster, and where their snapshots are."""

    snapshots: Annotated[
        list[str] | None, option("DIR", "A folder of snapshots; repeatable.  [default: in STEWARD_HOME]", "--snapshots")
    ] = None
    cluster: Annotated[
        list[str] | None, option("NAME", "Only this cluster; repeatable.  [default: all there]", "--cluster")
    ] = None
    logical: Annotated[str | None, option("NAME", "The logical cluster of this name in the policy.")] = None
    sharing_with: Annotated[
        str | None, option("CLUSTER", "Only clusters that share its configuration store, and itself.")
    ] = None
    policy: PolicyFile = None


class SupposedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Supposed changes."""

    add_cluster: Annotated[
        list[str] | None, option("NAME=TOPICS[@REGION]", "An empty member with room for so many topics; repeatable.")
    ] = None
    remove_cluster: Annotated[list[str] | None, option("CLUSTER", "A member leaves; repeatable.")] = None
    remove_brokers: Annotated[list[str] | None, option("CLUSTER=N", "A member has N brokers fewer; repeatable.")] = None
    add_namespace: Annotated[
        list[str] | None, option("TENANT/NAME=TOPICS", "A new namespace that needs a place; repeatable.")
    ] = None
    traffic: Annotated[float, typer.Option(min=0, metavar="FACTOR", help="Bytes in and out, times this.")] = 1.0
    lose: Annotated[str | None, option("CLUSTER", "This member is lost now: tells what the others would miss.")] = None


AsJson = Annotated[bool, typer.Option("--json", help="Prints the same for programs.")]


@with_option_groups
def whatif(*, members: MemberOptions, changes: SupposedOptions, json: AsJson = False) -> None:
    """Says how full the members of a logical cluster are, and what a change would do. Changes nothing.

    Exit code: 0 all fits, 1 a member stays over a ceiling, cannot leave, or a namespace has no place, 2 not known.
    """
    _alone(changes)
    declared = _declared(members) if members.logical else None
    change = _whatif(changes)
    found, unseen, missing = _newest(members, declared)
    policies = {name: load_policy(members.policy or policy_file(name)).for_cluster(name) for name in found}
    facts = {name: member_facts(snapshot, policies[name]) for name, snapshot in found.items()}
    regions, together = (declared.regions, declared.together) if declared else ({}, ())
    differing = differences([(facts[name], snapshot) for name, snapshot in found.items()])
    cluster = supposed(list(facts.values()), change, regions, together, differing.clashes)
    report = WhatIfReport(
        facts=tuple(facts.values()),
        now=uses_of(supposed(list(facts.values()), WhatIf()), {}),
        placement=place(cluster),
        differences=differing,
        unknown=(*missing, *(each for it in facts.values() for each in it.unknown if not changes.lose)),
        unseen=unseen,
        taken_at=max(each.meta.taken_at for each in facts.values()),
        leaving=change.leaving,
        primary=declared.primary if declared else None,
        loss=loss_of(changes.lose, found) if changes.lose else None,
    )
    if json:
        tell_exactly(plain_json.dumps(document(report), indent=2).encode())
    else:
        print_lines(lines(report, min(fitting(width()), MOST_COLUMNS)))
    raise typer.Exit(0 if changes.lose else EXIT_CODES[report.fits])


def _alone(changes: SupposedOptions) -> None:
    """Refuses other changes beside `--lose`, which tells of the members as they are.

    Raises:
        ConfigurationError: If one is given.
    """
    others = msgspec.structs.replace(changes, lose=None)
    given = [
        f"--{each.name.replace('_', '-')}"
        for each in msgspec.structs.fields(others)
        if getattr(others, each.name) not in (each.default, None, [])
    ]
    if changes.lose and given:
        raise ConfigurationError(f"--lose tells of the members as they are: leave out {', '.join(given)}")


def _declared(members: MemberOptions) -> LogicalClusterPolicy:
    """The logical cluster that the policy file, or the policies in STEWARD_HOME, declare by the name.

    Raises:
        ConfigurationError: If none is declared by this name, or two differ.
    """
    whose = f"--logical {members.logical!r}"
    files = [members.policy] if members.policy else policy_files()
    named = [load_policy(file).logical_clusters.named for file in files]
    found = [each[members.logical] for each in named if members.logical in each]
    if not found:
        known = {name for each in named for name in each}
        hint = nearest(str(members.logical), known) if known else "none is declared in `logical_clusters.named`"
        raise ConfigurationError(f"{whose}: no policy declares such a logical cluster; {hint}")
    if any(each != found[0] for each in found):
        raise ConfigurationError(f"{whose}: policies declare it differently: name one by --policy")
    return found[0]


def _newest(
    members: MemberOptions, declared: LogicalClusterPolicy | None
) -> tuple[dict[str, Snapshot], tuple[str, ...], list[str]]:
    """The newest diagnosed snapshot of each member, members without one, and sentences on those left out.

    Raises:
        ConfigurationError: If no member has one.
    """
    shelves = [SnapshotShelf(uri) for uri in members.snapshots or [snapshots_uri()]]
    wanted = members.cluster or (declared.members if declared else None)
    names = wanted or sorted({name for shelf in shelves for name in shelf.clusters()})
    found = {
        name: max(snapshots, key=lambda each: each.meta().taken_at)
        for name in names
        if (snapshots := [each for shelf in shelves for each in shelf.diagnosed(name)])
    }
    places = ", ".join(shelf.uri for shelf in shelves)
    unseen = tuple(name for name in names if name not in found)
    missing = [f"{name}: there is no diagnosed snapshot of it." for name in unseen]
    kafka = [name for name, each in found.items() if each.meta().system is System.KAFKA]
    if not wanted and len(kafka) < len(found):  # one kind of cluster at a time
        found = {name: each for name, each in found.items() if name not in kafka}
        missing += [f"{name}: it is a Kafka cluster; name such clusters by --cluster." for name in kafka]
    if not found:
        raise ConfigurationError(f"{places}: there is no diagnosed snapshot of {', '.join(names) or 'any cluster'}")
    return (_sharing(found, members.sharing_with) if members.sharing_with else found), unseen, missing


def _sharing(found: dict[str, Snapshot], cluster: str) -> dict[str, Snapshot]:
    """The snapshots of clusters that share a cluster's configuration store, and its own.

    Raises:
        ConfigurationError: If it has none, or its snapshot does not tell the store.
    """
    if cluster not in found:
        raise ConfigurationError(f"--sharing-with {cluster!r}: there is no such snapshot; {nearest(cluster, found)}")
    store = found[cluster].meta().configuration_store_id
    if store is None:
        raise ConfigurationError(f"--sharing-with {cluster}: its snapshot does not tell the store; take a new one")
    return {name: each for name, each in found.items() if each.meta().configuration_store_id == store}


def _whatif(changes: SupposedOptions) -> WhatIf:
    """Supposed changes.

    Raises:
        ConfigurationError: If one is not understood.
    """
    if not math.isfinite(changes.traffic):
        raise ConfigurationError(f"--traffic {changes.traffic}: give a factor, such as 1.5")
    brokers = _numbers("--remove-brokers", changes.remove_brokers)
    added = _numbers("--add-cluster", changes.add_cluster, region=True)
    namespaces = _numbers("--add-namespace", changes.add_namespace)
    for name in added:
        require_cluster_name(name)
    for name in namespaces:
        if not is_namespace(name):
            raise ConfigurationError(f"--add-namespace {name!r}: give it as tenant/namespace=TOPICS")
    return WhatIf(
        added=tuple(AddedMember(name=name, topics=topics, region=region) for name, (topics, region) in added.items()),
        leaving=frozenset(changes.remove_cluster or ()),
        removed_brokers={name: number for name, (number, _) in brokers.items()},
        namespaces={name: topics for name, (topics, _) in namespaces.items()},
        traffic=changes.traffic,
    )


def _numbers(name: str, given: list[str] | None, *, region: bool = False) -> dict[str, tuple[int, str | None]]:
    """Values of an option ``NAME=NUMBER``, with ``@REGION`` behind it where one may be.

    Raises:
        ConfigurationError: If one has another form, or a name is there twice.
    """
    found: dict[str, tuple[int, str | None]] = {}
    for each in given or ():
        match = _NUMBER.fullmatch(each)
        if match is None or (match["region"] and not region):
            raise ConfigurationError(f"{name} {each!r}: give it as NAME=NUMBER{'[@REGION]' if region else ''}")
        if match["name"] in found:
            raise ConfigurationError(f"{name}: {match['name']} is given twice")
        found[match["name"]] = int(match["number"].replace(",", "")), match["region"]
    return found
