"""Steward's settings from Airflow's connections. Secrets are kept in memory only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import Connection
from sqlalchemy.engine import URL

from pulsar_steward.collect.kafka.settings import KafkaSettings
from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.ledger.store import open_ledger, read_url
from pulsar_steward.model.cluster import admin_connection, change_connection
from pulsar_steward.model.system import System
from pulsar_steward.orchestration.access import Access, access_of, address_map_in, is_set, require_allowed_files
from pulsar_steward.orchestration.home import home
from pulsar_steward.policy.files import policy_file
from pulsar_steward.policy.load import load_policy
from pulsar_steward.pulsar.addresses import travels_unencrypted
from pulsar_steward.pulsar.logins import Plugin
from pulsar_steward.pulsar.settings import REMEDY, AdminSettings

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Engine

    from pulsar_steward.policy.schema import Policy

LEDGER = "steward_ledger"
KAFKA = "kafka"
"""Type of connections to Kafka clusters."""

NO_POLICY = "no_policy_file"
READ_ONLY = "read_only"

_REACHING = frozenset({"address_map", "proxy", "front_door"})
"""Keys in a connection's extra for the way to its addresses."""


def admin_settings(cluster: str, policy: Policy) -> AdminSettings:
    """Admin API settings for reading a cluster, from the connection ``pulsar_admin_<cluster>``.

    The connection's type is HTTP: host, port, schema (``http`` or ``https``), the token in the password. Its extra may
    contain ``no_policy_file``, ``read_only`` and the keys in docs/reaching-a-cluster.md.

    Raises:
        ConfigurationError: If there is no such connection, it is not usable, or it is of a Kafka cluster.
    """
    name, connection = _admin_connection(cluster)
    if _system_of(connection) is not System.PULSAR:
        raise ConfigurationError(
            f"the connection {name!r} is of a Kafka cluster, and a Pulsar cluster is needed here."
            f" {System.KAFKA.only_looked_at}"
        )
    urls = _urls(connection) or (
        _url(connection, "http", f"the connection {name!r} names no host: give a broker's, or `urls` in its extra"),
    )
    return _settings(name, connection, urls, policy)


def observed_settings(cluster: str, policy: Policy) -> AdminSettings | KafkaSettings:
    """Settings for observing a cluster, from the connection ``pulsar_admin_<cluster>``, by the type of which.

    That of a Kafka cluster is as Airflow's provider for Kafka has it: its extra contains ``bootstrap.servers`` and
    further properties.

    Raises:
        ConfigurationError: If there is no such connection, or it is not usable.
    """
    name, connection = _admin_connection(cluster)
    if _system_of(connection) is System.PULSAR:
        return admin_settings(cluster, policy)
    return _kafka_settings(name, connection)


def system_of(cluster: str) -> System:
    """System of a cluster, by the type of its connection; Pulsar if there is none."""
    connection = connection_named(admin_connection(cluster))
    return System.PULSAR if connection is None else _system_of(connection)


def _system_of(connection: Connection) -> System:
    return System.KAFKA if connection.conn_type == KAFKA else System.PULSAR


def _kafka_settings(name: str, connection: Connection) -> KafkaSettings:
    extra = connection.extra_dejson
    require_allowed_files(name, extra, ("ssl.key.location", "ssl.certificate.location"))
    own = {"bootstrap.servers", "region", "allow_unencrypted_token"}
    login = {"sasl.username": connection.login, "sasl.password": connection.password}
    properties = {key: str(value) for key, value in extra.items() if key not in own}
    servers = extra.get("bootstrap.servers") or f"{connection.host}:{connection.port}"
    return KafkaSettings(
        servers=str(servers),
        properties={key: value for key, value in login.items() if value} | properties,
        allow_unencrypted=is_set(name, extra, "allow_unencrypted_token"),
    )


class ChangeAccess(NamedTuple):
    """Connections for changing a cluster.

    Attributes:
        settings: Admin API settings of the connection that may change it.
        observed: Settings of the connection for reading, if it has other addresses: then it has to be proved that both
            lead to one cluster. None: there is one connection, or both have the same addresses.
    """

    settings: AdminSettings
    observed: AdminSettings | None = None


def change_access(cluster: str, policy: Policy) -> ChangeAccess:
    """Access for changing a cluster, from the connection ``pulsar_change_<cluster>``, or else the one for reading.

    Only tasks that carry out approved changes may call this. A connection without a host or `urls` uses the addresses
    of ``pulsar_admin_<cluster>``, with its address map, proxy and front door, but never its credentials.

    Raises:
        ConfigurationError: If a connection is missing or not usable, or the one for reading is `read_only`.
    """
    observed = admin_settings(cluster, policy)
    name = change_connection(cluster)
    connection = connection_named(name)
    if connection is None:
        admin_name, admin = _admin_connection(cluster)
        if is_set(admin_name, admin.extra_dejson, READ_ONLY):
            raise ConfigurationError(
                f"nothing is changed: the connection {admin_name!r} is for looking only (`{READ_ONLY}`), and there is"
                f" no {name!r}, or this worker may not have it: add one with credentials that may change the cluster"
            )
        return ChangeAccess(observed)
    if _urls(connection) or connection.host:
        urls = _urls(connection) or (_url(connection, "http", ""),)
        return ChangeAccess(_settings(name, connection, urls, policy), observed)
    if given := sorted(_REACHING & {key for key, value in connection.extra_dejson.items() if value}):
        raise ConfigurationError(
            f"the connection {name!r} says {', '.join(f'`{key}`' for key in given)}, and no host: without addresses of"
            f" its own it has those of {admin_connection(cluster)!r}. Name its `urls`, or leave that out"
        )
    own = access_of(name, connection)
    settings = replace(
        observed,
        token=own.token,
        token_file=own.token_file,
        login=own.login,
        ca_file=own.ca_file or observed.ca_file,
        client_cert_file=own.client_cert_file,
        client_key_file=own.client_key_file,
        allow_unencrypted_token=own.allowed,
        origin=own.origin,
    )
    return ChangeAccess(settings)


def _admin_connection(cluster: str) -> tuple[str, Connection]:
    name = admin_connection(cluster)
    connection = connection_named(name)
    if connection is None:
        raise ConfigurationError(
            f"there is no Airflow connection {name!r}: add one of type HTTP with a broker's host and port, and the"
            " token as password"
        )
    return name, connection


def _urls(connection: Connection) -> tuple[str, ...]:
    return tuple(connection.extra_dejson.get("urls") or ())


def _settings(name: str, connection: Connection, urls: tuple[str, ...], policy: Policy) -> AdminSettings:
    """Admin API settings from a connection, for the given addresses."""
    extra, access = connection.extra_dejson, access_of(name, connection)
    return AdminSettings(
        urls=urls,
        token=access.token,
        limits=policy.admin,
        ca_file=access.ca_file,
        allow_unencrypted_token=access.allowed,
        token_file=access.token_file,
        login=access.login,
        client_cert_file=access.client_cert_file,
        client_key_file=access.client_key_file,
        address_map=address_map_in(extra),
        proxy=extra.get("proxy") or None,
        front_door=is_set(name, extra, "front_door"),
        origin=access.origin,
    )


def policy_of(cluster: str) -> Policy:
    """Policy of a cluster; a missing file is an error, unless the cluster's connection allows the defaults.

    Raises:
        PolicyError: If the policy does not exist or is not valid.
        ConfigurationError: If the connection's setting for a missing policy is neither true nor false.
    """
    file = policy_file(cluster)
    if file is None:
        name = admin_connection(cluster)
        connection = connection_named(name)
        if connection is None or not is_set(name, connection.extra_dejson, NO_POLICY):
            raise PolicyError(
                f"there is no policy for cluster {cluster!r}: on this machine {home()} holds neither"
                f" policies/{cluster}.yaml nor policy.yaml. Put one there, or say"
                f' `"{NO_POLICY}": true` in the extra of the connection {name!r} if the defaults shall hold'
            )
    return load_policy(file).for_cluster(cluster)


class EventsDoor(NamedTuple):
    """Endpoint for a cluster's events: service URL and credentials, which are separate from the admin connection's."""

    service_url: str
    access: Access

    @property
    def token(self) -> SecretStr | None:
        """Token of the events' connection, or None."""
        return self.access.token

    @property
    def settings(self) -> AdminSettings:
        """Settings for renewing tokens; only their credentials are used, their address is never called."""
        access = self.access
        return AdminSettings(
            ("https://nowhere.invalid",),
            token=access.token,
            token_file=access.token_file,
            login=access.login,
            allow_unencrypted_token=access.allowed,
        )


def events_door(cluster: str) -> EventsDoor:
    """Endpoint for events, from the connection ``pulsar_events_<cluster>``.

    Its extra contains ``service_url`` (``pulsar+ssl://host:port,...``), unless host, port and schema are set, and may
    contain ``ca_file``, ``allow_unencrypted_token`` and other credentials (docs/events.md). The token in its password
    only needs the right to produce to the topic of events. The admin connection's token, a superuser's, is never used
    here.

    Raises:
        ConfigurationError: If there is no such connection, it is not usable, or its token would travel unencrypted.
    """
    name = f"pulsar_events_{cluster}"
    connection = connection_named(name)
    if connection is None:
        raise ConfigurationError(
            f"events go nowhere: there is no Airflow connection {name!r}: add one with `service_url`, such as"
            " pulsar+ssl://broker:6651, in its extra, and as password a token that may produce to the topic of events"
        )
    extra = connection.extra_dejson
    nowhere = f"events go nowhere: {name!r} has no `service_url` in its extra, and no host"
    address = str(extra.get("service_url") or _url(connection, "pulsar", nowhere))
    scheme, divider, hosts = address.partition("://")
    if scheme not in {"pulsar", "pulsar+ssl"} or not divider or "@" in hosts or not hosts.rstrip("/"):
        raise ConfigurationError(
            f"events go nowhere: {name!r} names no service URL such as pulsar+ssl://broker:6651 or pulsar://broker:6650"
        )
    access = access_of(name, connection)
    if isinstance(access.login, Plugin):
        raise ConfigurationError(
            f"events go nowhere: `auth_plugin` in the extra of {name!r} gives headers, which Pulsar's client does not"
            " send: use a token, OAuth2, basic, or a client certificate"
        )
    open_to_all = [host for host in hosts.split(",") if travels_unencrypted(f"{scheme}://{host}")]
    if (access.token is not None or access.login is not None) and open_to_all and not access.allowed:
        raise ConfigurationError(
            f"events go nowhere: their token would travel unencrypted to {', '.join(open_to_all)}: {REMEDY}"
        )
    return EventsDoor(address, access)


def ledger() -> Engine:
    """Opens the ledger of ``steward_ledger``: any SQLAlchemy URL as host or in its extra; a SQLite file by default.

    Raises:
        ConfigurationError: If the connection has no usable URL.
        LedgerError: If the ledger cannot be reached.
    """
    return open_ledger(ledger_url())


def ledger_url() -> URL:
    """URL of the ledger.

    Raises:
        ConfigurationError: If the connection has no usable URL.
    """
    connection = connection_named(LEDGER)
    if connection is None:
        return read_url(f"sqlite:///{home() / 'ledger.db'}")
    if url := connection.extra_dejson.get("url"):
        return read_url(url)
    if not connection.conn_type or not connection.host:
        raise ConfigurationError(f"the connection {LEDGER!r} names no database: give a host, or `url` in its extra")
    driver = "postgresql+psycopg" if connection.conn_type in {"postgres", "postgresql"} else connection.conn_type
    return URL.create(
        driver,
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
    )


def connection_named(name: str) -> Connection | None:
    """A connection of Airflow; None: it does not exist, or no secrets backend could be read."""
    try:
        connection: Connection = Connection.get(name)
    except AirflowNotFoundException:
        return None
    return connection


def _url(connection: Connection, scheme: str, missing: str) -> str:
    """Address from a connection's host, port and schema.

    Args:
        connection: The connection.
        scheme: Scheme if the connection has no schema.
        missing: Error message if it has no host.

    Raises:
        ConfigurationError: If it has none.
    """
    if not connection.host:
        raise ConfigurationError(missing)
    if "://" in connection.host:
        return connection.host
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or scheme}://{connection.host}{port}"
