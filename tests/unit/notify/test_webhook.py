"""Messages by HTTP: what arrives, and what is refused."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError, NotDelivered
from pulsar_steward.notify.addresses import Address, ConnectionFields, address_of, webhook_of
from pulsar_steward.notify.compose import composed
from pulsar_steward.notify.webhook import ID_HEADER, post
from pulsar_steward.policy.notify import RecipientKind
from tests.unit.notify.notices import AIRFLOW, NASTY, a_notice

if TYPE_CHECKING:
    from tests.unit.notify.sinks import HttpSink

MESSAGE = composed("id-1", [a_notice(subject="two questions", text=NASTY)], AIRFLOW)
SECRET = "secret-password"


def fields(**given: Any) -> ConnectionFields:
    """A connection to this machine."""
    usual: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": 1,
        "schema": "http",
        "login": None,
        "password": None,
        "extra": {},
    }
    return ConnectionFields(**{"name": "steward_notify_ops", **usual, **given})


def sent(http: HttpSink, **given: Any) -> None:
    """Sends a message."""
    post(webhook_of(fields(port=http.port, **given)), MESSAGE)


def test_a_message_arrives_whole(http: HttpSink) -> None:
    """A webhook gets the whole message as JSON, and the message's id in a header as well."""
    sent(http, extra={"path": "/hooks/steward?team=a"})
    [posted] = http.posted
    assert posted.path == "/hooks/steward?team=a"
    assert posted.headers[ID_HEADER] == posted.body["id"] == "id-1"
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.body["notices"][0]["text"] == NASTY
    assert "Authorization" not in posted.headers


@pytest.mark.parametrize(
    ("login", "expected"), [(None, f"Bearer {SECRET}"), ("ops", "Basic b3BzOnNlY3JldC1wYXNzd29yZA==")]
)
def test_a_receiver_may_ask_who_sends(http: HttpSink, login: str | None, expected: str) -> None:
    """A password alone is sent as a bearer token, and beside a login as basic authentication."""
    sent(http, login=login, password=SecretStr(SECRET))
    assert http.posted[0].headers["Authorization"] == expected


@pytest.mark.parametrize("status", [301, 307, 400, 404, 500, 503])
def test_only_a_yes_is_a_yes(http: HttpSink, status: int) -> None:
    """Every status other than success fails the delivery, and a redirect is not followed."""
    http.status, http.location = status, f"http://127.0.0.1:{http.port}/elsewhere"
    with pytest.raises(NotDelivered, match=str(status)):
        sent(http)
    assert [each.path for each in http.posted] == ["/"]


def test_nobody_there_is_told_without_secrets() -> None:
    """The error for a receiver that cannot be reached names its address, but neither path nor password."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotDelivered, match=f"127.0.0.1:{port}") as caught:
        post(webhook_of(fields(port=port, password=SecretStr(SECRET), extra={"path": "/secret-path"})), MESSAGE)
    assert "secret" not in str(caught.value)


def test_an_answer_that_never_ends_is_cut(http: HttpSink) -> None:
    """A call whose answer never ends fails by the total time limit, although each byte comes in time."""
    http.drip_seconds = 0.05
    began = time.monotonic()
    with pytest.raises(NotDelivered):
        post(webhook_of(fields(port=http.port)), MESSAGE, seconds=60, total_seconds=0.5)
    assert 0.5 <= time.monotonic() - began < 60
    assert [each.path for each in http.posted] == ["/"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"host": "hooks.example.org", "port": None, "schema": None}, Address("hooks.example.org", 443, tls=True)),
        ({"host": "https://hooks.example.org:8443/x"}, Address("hooks.example.org", 8443, tls=True)),
        ({"extra": {"url": "https://hooks.example.org/a/b?c=d"}}, Address("hooks.example.org", 443, tls=True)),
        (
            {"host": "hooks.example.org", "port": None, "extra": {"allow_unencrypted": True}},
            Address("hooks.example.org", 80, tls=False),
        ),
    ],
)
def test_where_a_webhook_is(given: dict[str, Any], expected: Address) -> None:
    """A webhook's address follows from the connection's fields, or from a whole URL in host or extra."""
    assert webhook_of(fields(**given)).address == expected


@pytest.mark.parametrize(
    "given",
    [
        {"host": "hooks.example.org"},
        {"host": None},
        {"host": "https://user:secret-password@hooks.example.org"},
        {"host": "ftp://hooks.example.org"},
        {"host": "https://hooks.example.org:99999"},
        {"host": "https://"},
        {"extra": {"url": "https://hooks.example.org/a\r\nX-Evil: 1"}},
        {"extra": {"url": "https://hooks.example.org/ä"}},
    ],
    ids=["unencrypted", "no host", "a user", "no http", "no port", "empty", "a line end", "not ascii"],
)
def test_what_is_no_receiver_is_refused(given: dict[str, Any]) -> None:
    """An invalid webhook is refused with an error that names the connection and none of its secrets."""
    with pytest.raises(ConfigurationError, match="steward_notify_ops") as caught:
        webhook_of(fields(**given))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (RecipientKind.SMTP, {"host": "mail.example.org", "port": None}, Address("mail.example.org", 465, tls=True)),
        (
            RecipientKind.SMTP,
            {"host": "mail.example.org", "port": 587, "extra": {"disable_ssl": True}},
            Address("mail.example.org", 587, tls=False),
        ),
        (RecipientKind.SLACK, {"host": None}, Address("hooks.slack.com", 443, tls=True)),
        (
            RecipientKind.SLACK,
            {"password": SecretStr("https://slack.example.org/T/B/x")},
            Address("slack.example.org", 443, tls=True),
        ),
        (RecipientKind.PAGERDUTY, {}, Address("events.pagerduty.com", 443, tls=True)),
        (RecipientKind.APPRISE, {}, None),
    ],
)
def test_where_others_are(kind: RecipientKind, given: dict[str, Any], expected: Address | None) -> None:
    """Mail, Slack and PagerDuty connections have an address that can be checked, and Apprise has none."""
    assert address_of(kind, fields(**given)) == expected


def test_a_mail_does_not_travel_unencrypted() -> None:
    """An unencrypted mail connection is refused unless it is allowed or leads to this machine."""
    bare = {"disable_ssl": True, "disable_tls": True}
    with pytest.raises(ConfigurationError, match="unencrypted"):
        address_of(RecipientKind.SMTP, fields(host="mail.example.org", extra=bare))
    assert address_of(RecipientKind.SMTP, fields(extra=bare))
    assert address_of(RecipientKind.SMTP, fields(host="mail.example.org", extra={**bare, "allow_unencrypted": "true"}))
