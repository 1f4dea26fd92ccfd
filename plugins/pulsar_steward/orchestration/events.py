"""Publishing of events to a topic of the cluster with the Pulsar client. A failure to publish stops nothing."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsar_steward.orchestration import connections
from pulsar_steward.pulsar.credentials import Tokens
from pulsar_steward.pulsar.logins import Basic, ClientCredentials
from pulsar_steward.pulsar.oauth2 import credential_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pulsar

    from pulsar_steward.apply.journal import Listener
    from pulsar_steward.model.notice import Event
    from pulsar_steward.policy.schema import EventsPolicy

log = logging.getLogger(__name__)


@contextmanager
def publisher(cluster: str, policy: EventsPolicy) -> Iterator[Listener | None]:
    """Yields the function that publishes a cluster's events; None if publishing is off.

    The connection is looked up and opened with the first event.
    """
    if policy.topic is None:
        yield None
        return
    sender = _Sender(cluster, policy.topic, policy.timeout_seconds)
    try:
        yield sender.send
    finally:
        sender.close()


def _quiet_logger() -> logging.Logger:
    """Logger that silences the client, which logs an error for each failed try; the journal logs a failure once."""
    quiet = logging.getLogger(f"{__name__}.client")
    quiet.setLevel(logging.CRITICAL)
    return quiet


class _Sender:
    """One producer, created for the first event; after a failure the rest of the task's events are not tried."""

    def __init__(self, cluster: str, topic: str, timeout_seconds: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._seconds = timeout_seconds
        self._client: pulsar.Client | None = None
        self._producer: pulsar.Producer | None = None
        self._failed = False

    def send(self, event: Event) -> None:
        """Publishes one event, keyed by its plan so that a plan's events stay in order.

        Raises:
            Exception: Any error of the client; the journal logs it and goes on.
        """
        if self._failed:
            log.info("the event topic failed before: not published: %s %s", event.event, event.result)
            return
        self._failed = True  # until it succeeds: the next event must not wait for the same failure
        if self._producer is None:
            self._producer = self._connected()
        self._producer.send(event.encoded(), partition_key=event.plan_id, properties={"event": event.event})
        self._failed = False

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._client is None:
            return
        try:
            self._client.close()
        except Exception as error:  # noqa: BLE001 - the client raises bare errors, and everything is sent by now
            log.info("closing the event producer: %s", error)

    def _connected(self) -> pulsar.Producer:
        import pulsar  # a native library that most tasks never need

        door = connections.events_door(self._cluster)
        certificate = door.access.client_cert_file
        self._client = pulsar.Client(
            door.service_url,
            authentication=_authentication(door),
            tls_trust_certs_file_path=door.access.ca_file,
            tls_certificate_file_path=certificate,
            tls_private_key_file_path=door.access.client_key_file or certificate,
            tls_allow_insecure_connection=False,
            tls_validate_hostname=True,  # else any certificate that is trusted for any host would be accepted
            operation_timeout_seconds=self._seconds,
            connection_timeout_ms=self._seconds * 1000,
            logger=_quiet_logger(),
        )
        return self._client.create_producer(self._topic, send_timeout_millis=self._seconds * 1000)


def _authentication(door: connections.EventsDoor) -> pulsar.Authentication | None:
    """Credentials of the producer, for Pulsar's client.

    OAuth2 access tokens are requested here and not by the client: it trusts other certificates than those in the
    settings, and follows an issuer's redirects. Brokers see no difference: they receive a token.
    """
    import pulsar

    access = door.access
    if isinstance(access.login, Basic):
        return pulsar.AuthenticationBasic(access.login.username, access.login.password.get_secret_value())
    if isinstance(access.login, ClientCredentials) or access.token_file is not None:
        tokens = credential_of(door.settings)
        if isinstance(tokens, Tokens):
            tokens.token()  # to fail here: inside the client it would become a client error
            return pulsar.AuthenticationToken(tokens.token)
    if access.token is not None:
        return pulsar.AuthenticationToken(access.token.get_secret_value())
    if access.client_cert_file is not None:
        return pulsar.AuthenticationTLS(access.client_cert_file, access.client_key_file or access.client_cert_file)
    return None
