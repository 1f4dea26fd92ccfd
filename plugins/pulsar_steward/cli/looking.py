"""Looks at a cluster: asks whether it lets us in, then runs the two Spark jobs, and gives back the snapshot."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pydantic import SecretStr

from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.settings import TOKEN_VARIABLE, AdminSettings
from pulsar_steward.cli.jobs import run_job
from pulsar_steward.cli.places import need_java, spark_apps
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.place import CLUSTER_NAME
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pulsar_steward.cli.saying import Say


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster is looked at, and how.

    Attributes:
        urls: Of its admin API.
        token_file: Holds the token; None: the variable `TOKEN_VARIABLE`, or none.
        ca_file: Certificates to trust.
        allow_unencrypted_token: Whether the token may go over ``http`` to another machine.
        cluster: What to call it; None: as it calls itself.
        policy: Thresholds and limits, those of single clusters among them.
    """

    urls: tuple[str, ...]
    token_file: Path | None = None
    ca_file: Path | None = None
    allow_unencrypted_token: bool = False
    cluster: str | None = None
    policy: Policy


def look(target: Target, folder: Path, say: Say) -> str:
    """Takes a snapshot and diagnoses it, in one Spark as starting a second takes longer, and returns where it is.

    Args:
        target: The cluster.
        folder: Where snapshots go.
        say: Told how far it is.

    Raises:
        AdminError: If the cluster cannot be reached, or does not let us in.
        ConfigurationError: If something is missing here.
        JobFailed: If a job did not end well.
    """
    settings, apps = settings_of(target), spark_apps()
    need_java()
    say(f"asking {settings.bases[0]} who is there")
    cluster = _named(target, settings)
    policy = ["--policy-json", target.policy.for_cluster(cluster).model_dump_json()]
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    say(f"collecting from the brokers of {cluster}")
    collected = ["--cluster", cluster, "--out", str(folder.resolve()), "--taken-at", taken_at]
    return run_job(apps / "collect.py", [*collected, "--diagnose", *policy], settings.in_environment(os.environ), say)


def settings_of(target: Target) -> AdminSettings:
    """How to reach the cluster.

    Raises:
        ConfigurationError: If an address or the token cannot be one.
    """
    token = _token(target.token_file)
    policy = target.policy.for_cluster(target.cluster) if target.cluster else target.policy
    return AdminSettings(
        urls=target.urls,
        token=SecretStr(token) if token is not None else None,
        limits=policy.admin,
        ca_file=str(target.ca_file.resolve()) if target.ca_file else None,
        allow_unencrypted_token=target.allow_unencrypted_token,
    )


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the token file {file} cannot be read: {type(error).__name__}") from error


def _named(target: Target, settings: AdminSettings) -> str:
    """Asks the cluster for its name, which only a superuser may: a wrong address or token shows before Spark starts."""
    with Reader(settings) as reader:
        own = reader.runtime_configuration().get("clusterName", "")
    if not own:
        raise ConfigurationError(f"{settings.bases[0]} tells no clusterName: is it the admin port of a Pulsar broker?")
    name = target.cluster or own
    if not CLUSTER_NAME.fullmatch(name):
        raise ConfigurationError(f"cluster name {name!r}: give one of letters, digits, '.', '_' and '-' by --cluster")
    return name
