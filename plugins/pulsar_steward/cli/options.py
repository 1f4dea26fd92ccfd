"""Options that several commands share, and the snapshot and the policy that they select."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from pyarrow import fs

from pulsar_steward.cli.access import CREDENTIALS, ClusterAccess, options_given
from pulsar_steward.cli.option_groups import option
from pulsar_steward.cli.output import progress, tell
from pulsar_steward.cli.paths import JOB
from pulsar_steward.cli.snapshot import Target, look
from pulsar_steward.collect.kafka.settings import KafkaSettings, kafka_in, properties_in
from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.tables import FINDINGS, VERDICTS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.folder import place_of
from pulsar_steward.snapshots.read import Snapshot, open_snapshot

AdminUrls = Annotated[
    list[str] | None,
    option("URL", "A broker's admin address; may be repeated, tried in turn.", "--admin-url"),
]
PolicyFile = Annotated[Path | None, option("FILE", "Thresholds and limits, YAML.", "--policy")]
ClusterName = Annotated[str | None, option("NAME", "What to call it.  [default: as it calls itself]", "--cluster")]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Source of a snapshot: a cluster to look at, or a snapshot that exists."""

    admin_url: AdminUrls = None
    snapshot: Annotated[str | None, option("URI", "A diagnosed snapshot, in place of looking at a cluster.")] = None
    access: ClusterAccess
    kafka: Annotated[
        str | None, option("HOST:PORT", "Brokers of a Kafka cluster, divided by commas, which is only looked at.")
    ] = None
    kafka_config: Annotated[
        Path | None, option("FILE", "Lines name=value: properties of Kafka's client for TLS and SASL.")
    ] = None
    from_environment: Annotated[bool, typer.Option("--from-environment", hidden=True)] = False
    policy: PolicyFile = None
    cluster: ClusterName = None
    keep: Annotated[Path | None, option("DIR", "Keeps the snapshot here; otherwise it is removed.")] = None
    master: Annotated[str | None, option("URL", "Has a Spark do the looking; needs Java.  [default: this process]")] = (
        None
    )


@contextmanager
def snapshot_of(
    source: Source, policy: Policy, check_brokers: Callable[[Collection[str]], object] | None = None
) -> Iterator[Snapshot]:
    """Snapshot that the options select: an existing one, or a new one that is taken for a ``with`` block.

    Args:
        source: The options.
        policy: Thresholds and limits.
        check_brokers: Called with the brokers that a Pulsar cluster lists, before it is looked at.

    Raises:
        ConfigurationError: If the options select none, or two.
        StewardError: If it cannot be taken or opened.
    """
    ways = (source.admin_url or source.from_environment, source.kafka, source.snapshot)
    if sum(map(bool, ways)) != 1:
        raise ConfigurationError(
            "give either --admin-url, such as http://broker:8080, to look at a cluster (of Kafka: --kafka), or"
            " --snapshot to read one"
        )
    kafka = _kafka_of(source)
    if source.snapshot:
        yield _existing(source, source.snapshot)
        return
    target = Target(
        urls=tuple(source.admin_url or ()),
        access=source.access,
        from_environment=source.from_environment,
        cluster=source.cluster,
        policy=policy,
        master=source.master,
        kafka=kafka,
    )
    with folder_for(source.keep) as folder:
        with progress() as say:
            uri = look(target, folder, say, check_brokers)
        if source.keep:
            tell(f"the snapshot is kept at {uri}", err=True)
        yield open_snapshot(uri)


def _kafka_of(source: Source) -> KafkaSettings | None:
    """Settings of a Kafka cluster; None: the options select another source.

    Raises:
        ConfigurationError: If they are not valid, or an option is about Pulsar.
    """
    if source.from_environment:
        return kafka_in(os.environ)
    if source.kafka is None:
        if source.kafka_config is not None:
            raise ConfigurationError("--kafka-config is about Kafka: name the cluster by --kafka, or leave it out")
        return None
    about_pulsar = options_given(source.access) - {"--allow-unencrypted-token"}
    about_pulsar |= {"--master"} if source.master else set()
    if about_pulsar:
        raise ConfigurationError(
            f"{min(about_pulsar)} is about Pulsar, and --kafka looks at a Kafka cluster: its credentials are given by"
            " --kafka-config"
        )
    return KafkaSettings(
        servers=source.kafka,
        properties=properties_in(source.kafka_config) if source.kafka_config else {},
        allow_unencrypted=source.access.allow_unencrypted_token,
    )


def _existing(source: Source, uri: str) -> Snapshot:
    """Opens an existing snapshot, which the other options have to fit.

    Raises:
        ConfigurationError: If an option is about looking at a cluster, or names another cluster.
        SnapshotError: If it cannot be opened, or was not diagnosed.
    """
    about_looking = {"--keep"} if source.keep else set()
    about_looking |= {"--master"} if source.master else set()
    if strange := sorted(about_looking | (options_given(source.access) - CREDENTIALS)):
        raise ConfigurationError(f"{strange[0]} is about looking at a cluster, and --snapshot reads one: leave it out")
    snapshot = open_snapshot(uri)
    files, path = place_of(uri)
    infos = files.get_file_info([f"{path}/{table.name}" for table in (FINDINGS, VERDICTS)])
    if any(info.type is fs.FileType.NotFound for info in infos):
        raise SnapshotError(
            f"{uri} was collected, but never diagnosed, so nothing is known of the cluster's health: run"
            f" `python spark_apps/{JOB} --snapshot {uri}`, or look at the cluster anew by --admin-url"
        )
    cluster = snapshot.meta().cluster
    if source.cluster not in {None, cluster}:
        raise ConfigurationError(
            f"--cluster {source.cluster!r}: the snapshot {uri} is of the cluster {cluster!r}: leave --cluster out, or"
            " name another snapshot"
        )
    return snapshot


@contextmanager
def folder_for(keep: Path | None) -> Iterator[Path]:
    """Folder of new snapshots: one that is kept, which is made, or one that is removed after the ``with`` block.

    Raises:
        ConfigurationError: If it cannot be made.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="steward-") as made:
            yield Path(made)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--keep {keep}: this folder cannot be made: {error.strerror}") from error
    yield keep
