"""Observation of a cluster for the command line: checks access, takes a snapshot and diagnoses it.

This runs here, on threads, or on a Spark whose master is given.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import msgspec
from pydantic import SecretStr

from pulsar_steward.cli.access import ClusterAccess
from pulsar_steward.cli.errors import JobFailed, job_failure
from pulsar_steward.cli.paths import JOB, need_java, spark_apps
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.kafka.collecting import KafkaOrder, collect_kafka
from pulsar_steward.collect.kafka.reader import KafkaReader
from pulsar_steward.collect.kafka.settings import KafkaSettings, secrets_of_kafka
from pulsar_steward.collect.pending import PendingBrokers
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.job_log import AS_RECORDS, job_record
from pulsar_steward.model.units import counted
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings, secrets_in
from pulsar_steward.runtime.installed_spark import require_own_files
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.cli.output import Say

SHARDS = 4
"""Shards that brokers are divided into, if there are as many; each is diagnosed by a thread of its own."""

MAX_CONCURRENT_BROKERS = 4
"""Brokers of each shard read at the same time; as many documents are in memory."""

PATIENCE_SECONDS = 2
"""Seconds between progress messages about a slow broker."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster to observe, and how.

    Attributes:
        urls: Addresses of its admin API.
        access: How it is reached, and with which credentials.
        from_environment: True: both are in the environment, by `AdminSettings.in_environment`.
        cluster: Name for the cluster; None: its own name.
        policy: Thresholds and limits, with overrides for single clusters.
        master: Spark's master; None: this process does the work.
        kafka: Settings of a Kafka cluster, which is looked at in place of a Pulsar cluster.
    """

    urls: tuple[str, ...]
    access: ClusterAccess = ClusterAccess()
    from_environment: bool = False
    cluster: str | None = None
    policy: Policy
    master: str | None = None
    kafka: KafkaSettings | None = None


def look(
    target: Target, folder: Path, say: Say, check_brokers: Callable[[Collection[str]], object] | None = None
) -> str:
    """Takes a snapshot in this folder of snapshots, and diagnoses it; returns its URI.

    Args:
        target: The cluster.
        folder: The folder.
        say: Called with progress messages.
        check_brokers: Called with the brokers that a Pulsar cluster lists, before the first of them is read.

    Raises:
        AdminError: If the cluster cannot be reached, or denies access.
        ConfigurationError: If a requirement is missing here.
        NobodyAnswered: If not one broker could be read.
        JobFailed: If Spark did not end successfully.
    """
    if target.kafka is not None:
        return _look_at_kafka(target, target.kafka, folder, say)
    settings = settings_of(target)
    if target.master is not None:
        need_java()
        require_own_files()
        spark_apps()
    say(f"asking {settings.bases[0]} who is there")
    cluster = _named(target, settings)
    if check_brokers is not None:
        with Reader(settings) as reader:
            check_brokers(reader.brokers())
    policy = target.policy.for_cluster(cluster)
    settings = replace(settings, limits=policy.admin)  # those of this cluster, whose name was not known before
    say(f"collecting from the brokers of {cluster}")
    if target.master is not None:
        arguments = ["--cluster", cluster, "--out", str(folder.resolve()), "--taken-at", _this_second().isoformat()]
        submitted = {"PYSPARK_SUBMIT_ARGS": f"--master {shlex.quote(target.master)} pyspark-shell"}
        environment = settings.in_environment({**os.environ, **submitted})
        return run_job(spark_apps() / JOB, [*arguments, "--policy-json", policy.model_dump_json()], environment, say)
    place, taken_at = _claimed(folder.resolve(), cluster)
    order = CollectParameters(cluster=cluster, taken_at=taken_at, policy=policy.collect)
    waiting, on_threads = PendingBrokers(), OnThreads(SHARDS)
    try:
        with _log_told(say), _waiting_told(waiting, settings.limits.total_timeout_seconds, say):
            reading = WrittenByTasks(settings, place, on_threads, TaskDivision(SHARDS, MAX_CONCURRENT_BROKERS), waiting)
            collect(settings, order, place, reading, on_threads)
        _diagnosed(place, policy, say)
    except OSError as error:
        raise _not_written(place, error) from error
    return place.uri


def _look_at_kafka(target: Target, settings: KafkaSettings, folder: Path, say: Say) -> str:
    """Takes and diagnoses a snapshot of a Kafka cluster; see `look`."""
    policy = target.policy.for_cluster(target.cluster) if target.cluster else target.policy
    say(f"asking {settings.servers} who is there")
    reader = KafkaReader(settings, policy.kafka)
    metadata = reader.metadata()
    cluster = require_cluster_name(target.cluster or metadata.cluster_id, named_by="--cluster")
    policy = target.policy.for_cluster(cluster)
    say(f"collecting from the brokers of {cluster}")
    place, taken_at = _claimed(folder.resolve(), cluster)
    try:
        with _log_told(say):
            collect_kafka(reader, KafkaOrder(cluster, taken_at, settings.servers, policy.kafka, metadata), place)
        _diagnosed(place, policy, say)
    except OSError as error:
        raise _not_written(place, error) from error
    return place.uri


def _diagnosed(place: SnapshotFolder, policy: Policy, say: Say) -> None:
    say("looking for trouble")
    diagnose(place, policy, OnThreads(os.cpu_count() or 1))


def _not_written(place: SnapshotFolder, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{place.uri}: no snapshot can be written there: {error.strerror or error}")


def _claimed(folder: Path, cluster: str) -> tuple[SnapshotFolder, datetime]:
    """The folder and time of a new snapshot, which is no other look's; one of this very second is waited out.

    Raises:
        ConfigurationError: If the folder cannot be made.
    """
    while True:
        taken_at = _this_second()
        place = SnapshotFolder(LocalFiles(), snapshot_uri(str(folder), cluster, taken_at))
        try:
            Path(place.uri).mkdir(parents=True)
        except FileExistsError:
            time.sleep(0.2)
        except OSError as error:
            raise _not_written(place, error) from error
        else:
            return place, taken_at


def _this_second() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@contextmanager
def _waiting_told(waiting: PendingBrokers, at_most_seconds: int, say: Say) -> Iterator[None]:
    """Reports, while the block runs, the broker that has been slow to respond for longest."""
    ended = Event()

    def watch() -> None:
        while not ended.wait(PATIENCE_SECONDS):
            slow = waiting.slowest()
            if slow is not None and slow[1] >= PATIENCE_SECONDS:
                broker, seconds = slow
                say(
                    f"waiting for {broker} for {seconds:.0f} s, an answer may take {at_most_seconds} s;"
                    f" {counted(waiting.done, 'broker')} read so far"
                )

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextmanager
def _log_told(say: Say) -> Iterator[None]:
    """Reports what collecting logs while the block runs; else Python would write warnings, with names from brokers."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    log, handler = logging.getLogger("pulsar_steward.collect"), Handler(logging.INFO)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def settings_of(target: Target) -> AdminSettings:
    """Admin API settings of the cluster.

    Raises:
        ConfigurationError: If an address or the token is not valid.
    """
    policy = target.policy.for_cluster(target.cluster) if target.cluster else target.policy
    if target.from_environment:
        return AdminSettings.from_environment(os.environ, policy.admin)
    access = target.access
    token, login = access.token(), access.login()
    return AdminSettings(
        urls=target.urls,
        token=SecretStr(token) if token is not None else None,
        limits=policy.admin,
        ca_file=_absolute(access.ca_file),
        allow_unencrypted_token=access.allow_unencrypted_token,
        token_file=_absolute(access.token_file),
        login=login,
        client_cert_file=_absolute(access.client_cert),
        client_key_file=_absolute(access.client_key),
        address_map=address_map(dict(map(_mapped, access.address_map or ()))),
        proxy=access.proxy,
        front_door=access.front_door,
        origin=access.origin(),
    )


def _absolute(file: Path | None) -> str | None:
    return None if file is None else str(file.resolve())


def _mapped(option: str) -> tuple[str, str]:
    advertised, divider, url = option.partition("=")
    if not divider:
        raise ConfigurationError("--address-map: expected ADVERTISED=URL, such as broker-1:8080=https://127.0.0.1:8443")
    return advertised, url


def _named(target: Target, settings: AdminSettings) -> str:
    """Reads the cluster's name, which only a superuser may: a wrong address or token shows at once."""
    with Reader(settings) as reader:
        own = reader.runtime_configuration().get("clusterName", "")
    if not own:
        raise ConfigurationError(f"{settings.bases[0]} tells no clusterName: is it the admin port of a Pulsar broker?")
    return require_cluster_name(target.cluster or own, named_by="--cluster")


_LAST_LINES = 3
_PATIENCE_SECONDS = 10


def run_job(script: Path, arguments: Sequence[str], environment: Mapping[str, str], say: Say) -> str:
    """Runs a job and returns the last line of its output.

    Args:
        script: The job.
        arguments: Its arguments; they must not contain a secret, as others can read them.
        environment: Its whole environment, where secrets belong.
        say: Called with progress messages.

    Raises:
        JobFailed: If it did not end successfully.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [sys.executable, str(script), *arguments]
        with started(command, environment, output.fileno()) as process:
            told = _followed(process.stderr or (), say)
            code = process.wait()
        output.seek(0)
        made = output.read().split("\n")
    if code:
        failure = f"{script.name} ended with {code}: {' / '.join(told) or 'it said nothing'}"
        raise JobFailed(hidden(failure, environment))
    return next(line for line in reversed(made) if line)


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], output: int, errors: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """Starts a process in a group of its own, as Spark starts Java as a child; ends the whole group."""
    process = subprocess.Popen(  # noqa: S603 - Python itself, with arguments made here
        command,
        env={**environment, AS_RECORDS: "1"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, number)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_PATIENCE_SECONDS)


def _followed(lines: Iterable[str], say: Say) -> list[str]:
    """Reads the log until it ends; returns the error that the job logged, or else the last lines."""
    errors: list[str] = []
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in map(str.rstrip, lines):
        record = job_record(line)
        if record is None:
            last.extend([line] if line else [])
            continue
        if record.progress:
            say(record.words)
        if record.error is not None:
            errors.append(job_failure(record.words, record.error))
        last.extend(record.words.splitlines())
    return errors[-1:] or list(last)


def hidden(words: str, environment: Mapping[str, str]) -> str:
    """Words of a process without the secrets that its environment holds."""
    for secret in (*secrets_in(environment), *secrets_of_kafka(environment)):
        words = words.replace(secret, "***")
    return words
