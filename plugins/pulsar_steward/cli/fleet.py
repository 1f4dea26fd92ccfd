"""Check-ups of several clusters side by side: each in a process of its own, with a time limit.

A cluster that hangs, or ends its process, does not touch the others. Addresses and credentials reach the processes by
their environment alone.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import deque
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from pulsar_steward.cli.access import ClusterAccess
from pulsar_steward.cli.airflow_process import airflow_is_set_up, ask_airflow
from pulsar_steward.cli.errors import in_one_line
from pulsar_steward.cli.known_names import CLUSTER
from pulsar_steward.cli.snapshot import Target, hidden, settings_of, started
from pulsar_steward.collect.kafka.settings import KafkaSettings, properties_in
from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError, StewardError
from pulsar_steward.model.cluster import NamedCluster, admin_connection, named_clusters
from pulsar_steward.model.system import System
from pulsar_steward.model.units import counted, seconds_in_words
from pulsar_steward.planners.clusters.replication import ReplicationEnd, replication_end
from pulsar_steward.policy.fleet import WHERE, ConnectedCluster, FleetMember, load_fleet
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.settings import VARIABLES, AdminSettings, way_in
from pulsar_steward.report.checkup.document import Checkup
from pulsar_steward.report.checkup.fleet import FleetCluster
from pulsar_steward.snapshots.latest import SnapshotShelf

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pulsar_steward.cli.output import Say
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

CONNECTIONS = "connections"
"""Name of the fleet that scheduled runs observe: the clusters in `STEWARD_CLUSTER`, by their connections in Airflow."""

COMMAND = ("-m", "pulsar_steward.cli", "checkup", "--from-environment")
"""Python's arguments for the check-up of one cluster."""

POLL_SECONDS = 0.1


class FleetTarget(NamedTuple):
    """A cluster of the fleet.

    Attributes:
        name: Its name.
        region: Where it runs, if that is said.
        variables: `AdminSettings.in_environment`, or `KafkaSettings.in_environment`; None: it cannot be looked at.
        trouble: Why not.
        place: Where its keys are, for messages.
    """

    name: str
    region: str | None
    variables: Mapping[str, str] | None
    trouble: str = ""
    place: str = ""


def members_of(fleet: str, policy: Policy) -> list[FleetTarget]:
    """The clusters of a file, or of Airflow's connections.

    Raises:
        PolicyError: If the file does not hold up.
        ConfigurationError: If no cluster is named, or Airflow's connections cannot be read here.
    """
    if fleet != CONNECTIONS:
        path = Path(fleet)
        return [_of_file(each, path, policy) for each in load_fleet(path, _unusable).clusters]
    if not os.environ.get(CLUSTER):
        raise ConfigurationError(
            f"{CLUSTER} is not set: name the clusters in it, divided by commas, or a file by --fleet"
        )
    names = named_clusters(os.environ[CLUSTER])
    told = ask_airflow("connections", names, list[ConnectedCluster]) if airflow_is_set_up() else None
    if told is None:
        raise ConfigurationError(
            "Airflow's connections cannot be read here: run this where Airflow runs, with its AIRFLOW_HOME, database"
            " and AIRFLOW__CORE__FERNET_KEY, or name a file by --fleet"
        )
    # A token among the settings of this process is of another cluster.
    other = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    return [
        FleetTarget(
            each.cluster,
            each.region,
            {**other, **each.variables} if each.variables else None,
            each.trouble,
            f"the connection {admin_connection(each.cluster)}",
        )
        for each in told
    ]


def _unusable(cluster: FleetMember) -> Iterator[tuple[str, str]]:
    """Keys of a cluster that no look could use, with the reason; no file is read."""
    ways = [key for key in WHERE[:3] if getattr(cluster, key)]
    if len(ways) > 1:
        yield ways[1], f"{' and '.join(ways)} are several kinds of credentials: give one of them"
    if cluster.client_key and not cluster.client_cert:
        yield "client_key", "is given without client_cert: give both"
    if cluster.front_door and cluster.address_map:
        yield "front_door", "says that no single broker can be reached, and address_map how they are: leave one out"
    checks: dict[str, Callable[[], object]] = {
        "admin_url": lambda: AdminSettings(cluster.admin_url or ("http://localhost",)),
        "kafka": lambda: cluster.kafka is None or KafkaSettings(servers=cluster.kafka),
        "address_map": lambda: address_map(cluster.address_map),
        "proxy": lambda: AdminSettings(("http://localhost",), proxy=cluster.proxy),
    }
    for key, check in checks.items():
        try:
            check()
        except ConfigurationError as error:
            yield key, str(error)


def _of_file(cluster: FleetMember, path: Path, policy: Policy) -> FleetTarget:
    """A cluster of a file, with its settings; one that cannot be used is told like one that does not answer."""
    try:
        if cluster.kafka is not None:
            variables = _kafka_of(cluster, cluster.kafka).in_environment(os.environ)
        else:
            variables = _pulsar_of(cluster, path, policy).in_environment(os.environ)
    except StewardError as error:
        place = f"{cluster.name} in {path}"
        return FleetTarget(cluster.name, cluster.region, None, _by_keys(in_one_line(error), place), place)
    return FleetTarget(cluster.name, cluster.region, variables, place=f"{cluster.name} in {path}")


def _kafka_of(cluster: FleetMember, servers: str) -> KafkaSettings:
    return KafkaSettings(
        servers=servers,
        properties=properties_in(cluster.kafka_config) if cluster.kafka_config else {},
        allow_unencrypted=cluster.allow_unencrypted_token,
    )


def _pulsar_of(cluster: FleetMember, path: Path, policy: Policy) -> AdminSettings:
    given = {name: getattr(cluster, name) for name in ClusterAccess.__struct_fields__ if hasattr(cluster, name)}
    mapped = [f"{advertised}={url}" for advertised, url in cluster.address_map.items()]
    access = ClusterAccess(**(given | {"address_map": mapped, "token_variable": False}))
    target = Target(urls=cluster.admin_url, access=access, cluster=cluster.name, policy=policy)
    key = next((key for key in WHERE if getattr(cluster, key)), WHERE[0])
    return replace(settings_of(target), origin=f"`{key}` of {cluster.name} in {path}")


def _by_keys(words: str, place: str) -> str:
    """Remedies that name an option name the key in its place, and once where that is."""
    names = sorted((name for name in FleetMember.model_fields if name != "name"), key=len, reverse=True)
    options = "|".join(re.escape(name.replace("_", "-")) for name in names)
    keys = re.sub(rf"--({options})\b", lambda match: f"`{match[1].replace('-', '_')}`", words)
    return re.sub(r"`\w+`(?! of )", lambda match: f"{match[0]} of {place}", keys, count=1) if keys != words else keys


class _Running(NamedTuple):
    """A check-up that runs; `ending` ends its process, if that still runs, and closes its files."""

    member: FleetTarget
    process: subprocess.Popen[str]
    out: IO[str]
    err: IO[str]
    ends_at: float
    ending: ExitStack


def side_by_side(
    members: Sequence[FleetTarget], arguments: Sequence[str], at_once: int, seconds: int, say: Say
) -> list[FleetCluster]:
    """Looks at all clusters; one that cannot be looked at has the reason in place of a check-up.

    Args:
        members: The clusters.
        arguments: Further arguments of each check-up; they must not contain a secret, as others can read them.
        at_once: Number of clusters that are looked at at the same time.
        seconds: Time limit of each.
        say: Called with progress messages.
    """
    ended = [FleetCluster.of(each.name, each.region, each.trouble) for each in members if each.variables is None]
    waiting, running = deque(each for each in members if each.variables is not None), list[_Running]()
    say(f"looking at {counted(len(members), 'cluster')}, {at_once:,} at a time")
    for number, early in enumerate(ended, 1):
        say(_progress(early, number, len(members)))
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_begun(waiting.popleft(), arguments, seconds))
            sleep(POLL_SECONDS)
            now = monotonic()
            for each in [each for each in running if each.process.poll() is not None or now >= each.ends_at]:
                result = _result(each, seconds)
                running.remove(each)
                ended.append(FleetCluster.of(each.member.name, each.member.region, result))
                say(_progress(ended[-1], len(ended), len(members)))
    finally:
        for each in running:
            each.ending.close()
    return ended


def _progress(cluster: FleetCluster, number: int, every: int) -> str:
    return f"{cluster.cluster}: {cluster.health} ({number:,} of {every:,} looked at)"


def each_once(folder: Path, clusters: Sequence[FleetCluster], members: Sequence[FleetTarget]) -> list[FleetCluster]:
    """The clusters without further names of one (`FleetCluster.also`); those that may be one stay (`alike`).

    Names and addresses alone prove nothing: clusters of one Helm chart, and standalone ones, have the same.

    Args:
        folder: The folder of this look's snapshots.
        clusters: The clusters that were looked at.
        members: How each is reached.
    """
    ways = {each.name: way_in(each.variables or {}) for each in members}
    kept: dict[str, tuple[FleetCluster, NamedCluster | None]] = {}
    for each, snapshot in zip(clusters, _snapshots_of(folder, clusters), strict=True):
        own = None
        if snapshot is not None:
            brokers = frozenset(row.broker for row in snapshot.brokers())
            own = NamedCluster(each.cluster, snapshot.meta().identity, brokers)
        alike = [(it, other) for it, other in kept.values() if own and other and _is_alike(own, other)]
        same = [(it, other) for it, other in alike if own and _is_one(own, other) and _agree(each, it, ways)]
        for first, other in (same or alike)[:1]:
            names = {"also": (*first.also, each.cluster)} if same else {"alike": (*first.alike, each.cluster)}
            kept[first.cluster] = (msgspec.structs.replace(first, **names), other)
        if not same:
            kept[each.cluster] = (each, own)
    return [each for each, _ in kept.values()]


def _is_alike(one: NamedCluster, other: NamedCluster) -> bool:
    return one.is_same(other) and not one.brokers.isdisjoint(other.brokers)


def _is_one(one: NamedCluster, other: NamedCluster) -> bool:
    known = one.identity is not None and one.identity.metadata_id is not None
    return known and one.identity == other.identity and one.brokers == other.brokers


def _agree(one: FleetCluster, other: FleetCluster, ways: Mapping[str, object]) -> bool:
    """True if both looks saw all, in the same way, and found the same: neither says what the other does not."""
    return ways[one.cluster] == ways[other.cluster] and one.found is not None and one.found == other.found


def ends_in(folder: Path, clusters: Sequence[FleetCluster]) -> list[ReplicationEnd]:
    """The Pulsar clusters that were looked at, as ends of replication, by the snapshots that this look left."""
    found = (each for each in _snapshots_of(folder, clusters) if each is not None)
    return [replication_end(each) for each in found if each.meta().system is System.PULSAR]


def _snapshots_of(folder: Path, clusters: Sequence[FleetCluster]) -> list[Snapshot | None]:
    """The snapshot that this look left of each cluster; None: there is none."""
    shelf = SnapshotShelf(str(folder))
    return [shelf.named(each.cluster, each.checkup.about.snapshot_id) if each.checkup else None for each in clusters]


def _begun(member: FleetTarget, arguments: Sequence[str], seconds: int) -> _Running:
    command = [sys.executable, *COMMAND, "--cluster", member.name, "--json", "-", *arguments]
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")) for _ in "oe")
        process = stack.enter_context(started(command, member.variables or {}, out.fileno(), err.fileno()))
        return _Running(member, process, out, err, monotonic() + seconds, stack.pop_all())


def _result(run: _Running, seconds: int) -> Checkup | str:
    """Check-up of a process that ended, or is ended here as its time is over; or the reason why there is none."""
    with run.ending:
        code = run.process.poll()
        run.err.seek(0)
        last = next((line for line in reversed(run.err.read().split("\n")) if line), "it said nothing")
        last = hidden(last, run.member.variables or {})
        if code is None:
            bound = seconds_in_words(seconds)
            return f"no end within {bound}: {last}; look at it alone, or give each more time by --seconds"
        run.out.seek(0)
        try:
            return decode(run.out.read(), Checkup)
        except msgspec.DecodeError:
            words = last.removeprefix("error: ")
            return _by_keys(words, run.member.place) if words != last else f"its check-up ended with {code}: {last}"
