"""Spark from the connection ``spark_default``, and the environment of a Spark process."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.cluster import change_connection
from pulsar_steward.orchestration.connections import connection_named

if TYPE_CHECKING:
    from pulsar_steward.pulsar.settings import AdminSettings

SPARK = "spark_default"
CHANGE_VARIABLES = f"AIRFLOW_CONN_{change_connection('').upper()}"


def is_defined() -> bool:
    """True if the connection ``spark_default`` exists."""
    return connection_named(SPARK) is not None


class SparkPlace(NamedTuple):
    """Spark of the connection ``spark_default``.

    Attributes:
        local: True if executors run in the task itself.
        conf: Spark's settings from the connection's extra.
    """

    local: bool
    conf: dict[str, str]


def configured_place() -> SparkPlace:
    """Spark's place and settings: the object ``conf`` in the connection's extra.

    Raises:
        ConfigurationError: If the connection has settings that Steward's jobs do not support.
    """
    connection = connection_named(SPARK)
    if connection is None:
        return SparkPlace(local=True, conf={})
    extra = connection.extra_dejson
    if (mode := extra.get("deploy-mode") or "client") != "client":
        raise ConfigurationError(
            f"the connection {SPARK!r} says deploy-mode {mode!r}: a driver outside of the task would get neither the"
            " cluster's addresses nor its token. Take deploy-mode out: only executors have to be in the cluster"
        )
    local = re.fullmatch(r"local(\[.*\])?", connection.host or "") is not None
    return SparkPlace(local=local, conf=_spark_conf(extra.get("conf") or {}))


def _spark_conf(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(str(key).startswith("spark.") for key in given):
        raise ConfigurationError(
            f"`conf` in the extra of the connection {SPARK!r} has to be an object of Spark's settings, such as"
            ' {"spark.executor.memory": "2g"}'
        )
    return {str(key): json.dumps(value) if isinstance(value, bool) else str(value) for key, value in given.items()}


def pass_settings(settings: AdminSettings) -> None:
    """Puts addresses and token into this process's environment, for the Spark process that it will start.

    They are not in the operator's ``env_vars``, as Airflow shows these in its pages. Connections for changing a cluster
    that are defined by environment variables are removed: a Spark job only reads.
    """
    written = settings.in_environment(os.environ)
    written = {name: value for name, value in written.items() if not name.startswith(CHANGE_VARIABLES)}
    for name in os.environ.keys() - written.keys():
        del os.environ[name]
    os.environ.update(written)
