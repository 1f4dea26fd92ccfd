"""The environment that every part of the lab's Airflow runs in; docker-compose.yml sets the same."""

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lab.target import PulsarTarget

PROJECT = Path(__file__).resolve().parents[2]
USERS = {"alice": "admin", "bob": "op", "carol": "viewer"}


class AirflowSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an Airflow that is to be started.

    Attributes:
        home: Holds everything of this Airflow: database, logs, Steward's snapshots and ledger.
        port: Where its API and pages are.
        database: SQLAlchemy URL of its own database, PostgreSQL by psycopg or SQLite.
        ledger: SQLAlchemy URL of Steward's ledger.
        users: Names and roles of simple auth users.
        dags: The folder of DAG files.
        python: The interpreter of the environment that it is installed in.
        triggerer: Whether it has a triggerer, in which questions wait.
    """

    home: Path
    port: int
    database: str
    ledger: str
    users: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(USERS))
    dags: Path = PROJECT / "dags"
    python: Path = Path(sys.executable)
    triggerer: bool = True

    @property
    def url(self) -> str:
        """Address of its pages."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def passwords_file(self) -> Path:
        """File in which the simple auth manager keeps the users' passwords."""
        return self.home / "passwords.json"

    @property
    def steward_home(self) -> Path:
        """Folder in which Steward keeps snapshots, policies and the ledger."""
        return self.home / "steward"


def environment(spec: AirflowSpec) -> dict[str, str]:
    """All variables of one Airflow; those of the calling process that belong to another Airflow are left out."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "STEWARD"))}
    path = os.pathsep.join([str(spec.python.parent), inherited.get("PATH", os.defpath)])
    return {
        **inherited,
        "PATH": path,
        "AIRFLOW_HOME": str(spec.home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(spec.dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{spec.url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in spec.users.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(spec.passwords_file),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": spec.database,
        **_asynchronous(spec.database),
        "AIRFLOW_CONN_STEWARD_LEDGER": json.dumps(_ledger_connection(spec.ledger)),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(spec.port),
        "AIRFLOW__API__BASE_URL": spec.url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        # A task asks the API server before it begins. Five seconds, as by default, kill it where a machine is busy.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "120",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(spec.home / "logs"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "STEWARD_HOME": str(spec.steward_home),
        "STEWARD_SCHEDULE": "",
        "STEWARD_HOUSEKEEPING_SCHEDULE": "",
        "STEWARD_NOTIFY_SCHEDULE": "",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


def _asynchronous(database: str) -> dict[str, str]:
    """Airflow would choose asyncpg for PostgreSQL; psycopg, which is there, does both."""
    if database.startswith("postgresql"):
        return {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database}
    return {}


def _ledger_connection(url: str) -> dict[str, object]:
    """A server's password goes where Airflow hides it; a file has none."""
    parts = urlsplit(url)
    if not parts.password:
        return {"conn_type": "generic", "extra": {"url": url}}
    return {
        "conn_type": "postgres",
        "host": parts.hostname,
        "port": parts.port,
        "login": parts.username,
        "password": parts.password,
        "schema": parts.path.removeprefix("/"),
    }


def connection_to(target: PulsarTarget, name: str = "local") -> dict[str, str]:
    """The variables that hold the Airflow connections ``pulsar_admin_<name>`` and ``pulsar_events_<name>`` to a Pulsar.

    Events have no token of less rights here: a lab with authentication knows the superuser only.
    """
    connections = {f"AIRFLOW_CONN_PULSAR_ADMIN_{name.upper()}": _admin_connection(target)}
    if target.service_url:
        extra = {"service_url": target.service_url}
        connections[f"AIRFLOW_CONN_PULSAR_EVENTS_{name.upper()}"] = {
            "conn_type": "generic",
            "password": target.token,
            "extra": extra,
        }
    return {
        variable: json.dumps({key: value for key, value in connection.items() if value})
        for variable, connection in connections.items()
    }


def connection_to_kafka(servers: str, name: str) -> dict[str, str]:
    """The variable that holds the Airflow connection ``pulsar_admin_<name>`` to a Kafka cluster."""
    document = {"conn_type": "kafka", "extra": {"bootstrap.servers": servers}}
    return {f"AIRFLOW_CONN_PULSAR_ADMIN_{name.upper()}": json.dumps(document)}


def _admin_connection(target: PulsarTarget) -> dict[str, object]:
    first = urlsplit(target.admin_urls[0])
    return {
        "conn_type": "http",
        "schema": first.scheme,
        "host": first.hostname,
        "port": first.port,
        "password": target.token,
        "extra": {"urls": list(target.admin_urls), "no_policy_file": True},
    }
