"""Notices on their way: their words and links, webhooks, and what is tried again."""

from __future__ import annotations

import ast
import re
import socket
import time
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError, NotDelivered
from pulsar_steward.ledger.messages import DeliveryState, Queued, Try
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.notify.addresses import Address, ConnectionFields, address_of, webhook_of
from pulsar_steward.notify.compose import MANY, composed, message_id, question_path
from pulsar_steward.notify.gather import CLAIM_VALID, GIVEN_UP_AFTER, Turn, pause_after, turn
from pulsar_steward.notify.webhook import ID_HEADER, post
from pulsar_steward.orchestration.home import TELLING
from pulsar_steward.policy.notify import RecipientKind
from tests.builders import NOW
from tests.cases import cases, row_by_row
from tests.unit.notify.notices import AIRFLOW, NASTY, a_notice

if TYPE_CHECKING:
    from tests.golden import Golden
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


@row_by_row(
    "given, expected",
    ({"host": "hooks.example.org", "port": None, "schema": None}, Address("hooks.example.org", 443, tls=True)),
    ({"host": "https://hooks.example.org:8443/x"}, Address("hooks.example.org", 8443, tls=True)),
    ({"extra": {"url": "https://hooks.example.org/a/b?c=d"}}, Address("hooks.example.org", 443, tls=True)),
    (
        {"host": "hooks.example.org", "port": None, "extra": {"allow_unencrypted": True}},
        Address("hooks.example.org", 80, tls=False),
    ),
)
def test_where_a_webhook_is(given: dict[str, Any], expected: Address) -> None:
    """A webhook's address follows from the connection's fields, or from a whole URL in host or extra."""
    assert webhook_of(fields(**given)).address == expected


@cases(
    "given",
    ("unencrypted", {"host": "hooks.example.org"}),
    ("no host", {"host": None}),
    ("a user", {"host": "https://user:secret-password@hooks.example.org"}),
    ("no http", {"host": "ftp://hooks.example.org"}),
    ("no port", {"host": "https://hooks.example.org:99999"}),
    ("empty", {"host": "https://"}),
    ("a line end", {"extra": {"url": "https://hooks.example.org/a\r\nX-Evil: 1"}}),
    ("not ascii", {"extra": {"url": "https://hooks.example.org/ä"}}),
)
def test_what_is_no_receiver_is_refused(given: dict[str, Any]) -> None:
    """An invalid webhook is refused with an error that names the connection and none of its secrets."""
    with pytest.raises(ConfigurationError, match="steward_notify_ops") as caught:
        webhook_of(fields(**given))
    assert "secret" not in str(caught.value)


@row_by_row(
    "kind, given, expected",
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


MINUTE = timedelta(minutes=1)
NOTIFY = Path(__file__).resolve().parents[3] / "dags" / "notify.py"


def tried(*states: DeliveryState) -> Queued:
    """A message with tries, the last of which is of `NOW`."""
    tries = tuple(Try(attempt=number, state=state, at=NOW, reason="") for number, state in enumerate(states, start=1))
    return Queued(message_id="m", recipient="ops", at=NOW, notices=(a_notice(),), tries=tries)


@row_by_row(
    "message, after, expected",
    (tried(), 0 * MINUTE, Turn.SEND),
    (tried(DeliveryState.CLAIMED), CLAIM_VALID - MINUTE, Turn.WAIT),
    (tried(DeliveryState.CLAIMED), CLAIM_VALID, Turn.SEND),
    (tried(DeliveryState.FAILED), 0 * MINUTE, Turn.WAIT),
    (tried(DeliveryState.FAILED), MINUTE, Turn.SEND),
    (tried(DeliveryState.FAILED, DeliveryState.FAILED), MINUTE, Turn.WAIT),
    (tried(DeliveryState.FAILED, DeliveryState.FAILED), 2 * MINUTE, Turn.SEND),
    (tried(DeliveryState.FAILED), GIVEN_UP_AFTER, Turn.GIVE_UP),
    (tried(), GIVEN_UP_AFTER, Turn.GIVE_UP),
    (tried(DeliveryState.SENT), MINUTE, Turn.OVER),
    (tried(DeliveryState.SENT, DeliveryState.CLAIMED), 2 * CLAIM_VALID, Turn.OVER),
    (tried(DeliveryState.GIVEN_UP), 2 * GIVEN_UP_AFTER, Turn.OVER),
    (tried(DeliveryState.OUTDATED), GIVEN_UP_AFTER, Turn.OVER),
)
def test_the_turn_of_a_message(message: Queued, after: timedelta, expected: Turn) -> None:
    """A message's next turn (send, wait, give up or over) follows from its tries and the time."""
    assert turn(message, NOW + after) is expected


def test_pauses_grow_to_an_hour() -> None:
    """The pause between tries doubles from one minute up to an hour, and stays at an hour."""
    pauses = [pause_after(attempt) for attempt in (1, 2, 3, 4, 7, 8, 1000)]
    assert pauses == [MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 60 * MINUTE, 60 * MINUTE, 60 * MINUTE]


def test_no_two_workers_send_one_message_at_once() -> None:
    """A claim is valid for longer than `TELLING`, which the DAG's file sets as the limit of the task that makes it."""
    assert CLAIM_VALID > TELLING
    found = ast.walk(ast.parse(NOTIFY.read_text(encoding="utf-8")))
    [task] = [each for each in found if isinstance(each, ast.FunctionDef) and each.name == "notify"]
    [decorator] = task.decorator_list
    assert isinstance(decorator, ast.Call)
    options = {each.arg: ast.unparse(each.value) for each in decorator.keywords}
    assert (ast.unparse(decorator.func), options.get("execution_timeout")) == ("task", "TELLING")


MAPPED = "dags/:dagId/runs/:runId/tasks/:taskId/mapped/:mapIndex/required_actions"
NOT_MAPPED = "dags/:dagId/runs/:runId/tasks/:taskId/required_actions"


@row_by_row(
    "voice, index, path, route",
    (1, "7", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.approve/mapped/7/required_actions", MAPPED),
    (2, "0", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.confirm/mapped/0/required_actions", MAPPED),
    (1, "-1", "/dags/dag/runs/run%2Fwith%2F3%3A%2B/tasks/batch.approve/required_actions", NOT_MAPPED),
)
def test_questions_are_where_airflow_has_them(voice: int, index: str, path: str, route: str) -> None:
    """A question's path matches exactly one route of the installed Airflow, also where a run's name holds slashes."""
    assert question_path(f"dag/run/with/3:+/{index}", voice) == path
    assert [each for each in routes_below_runs() if leads_to(path, each)] == [route]


def test_other_addresses_are_told_apart() -> None:
    """A path that Airflow's pages do not have matches none of their routes."""
    routes = routes_below_runs()
    assert routes >= {MAPPED, NOT_MAPPED}
    assert not any(leads_to("/dags/dag/runs/run/tasks/batch.approve/mapped/7/questions", each) for each in routes)
    assert not any(leads_to("/dags/dag/runs/run/required_actions/7", each) for each in routes)


def test_one_notice_is_its_own_message(golden: Golden) -> None:
    """A message of a single notice is encoded as the JSON document that a webhook gets."""
    message = composed("id-1", [a_notice(plan_id="plan-1")], AIRFLOW)
    golden(msgspec.json.format(message.encoded()).decode())


def test_many_questions_are_one_message(golden: Golden) -> None:
    """A message lists the first of many questions, counts the others, and links to the list of all."""
    notices = [a_notice(name=str(number)) for number in range(203)]
    message = composed("id-1", notices, AIRFLOW)
    golden(f"{message.subject}\n{message.text}\n{message.link}")
    assert len(message.notices) == 203


def test_several_clusters_share_a_message() -> None:
    west = a_notice(Occasion.FAILED, "2", cluster="west", severity=Severity.CRITICAL)
    message = composed("id-1", [a_notice(Occasion.FAILED), west], AIRFLOW)
    assert (message.clusters, message.severity) == (("east", "west"), Severity.CRITICAL)
    assert message.link == f"{AIRFLOW}/steward/"


def test_every_occasion_has_words_for_many() -> None:
    """Every occasion has words for a message of several notices."""
    assert set(MANY) == set(Occasion)


def test_nothing_is_hidden_in_json() -> None:
    """A message's JSON escapes invisible characters, and decoding it gives the name unchanged."""
    encoded = composed("id-1", [a_notice(cluster=NASTY)], "").encoded()
    assert "\u202e" not in encoded.decode()
    assert msgspec.json.decode(encoded)["clusters"] == [NASTY]


def test_an_id_is_of_a_recipient_and_its_notices() -> None:
    """A message's id is the same for the same recipient and notices, and another one for others."""
    notices = [a_notice(), a_notice(name="2")]
    assert message_id("ops", notices) == message_id("ops", notices)
    assert len({message_id("ops", notices), message_id("dev", notices), message_id("ops", notices[:1])}) == 3


def test_without_an_address_of_airflow_the_path_has_to_do() -> None:
    assert composed("id-1", [a_notice()], "").link == "/steward/plans/1"


QUOTED = r"[`\"']([^`\"']*)[`\"']"
PATH = re.compile(rf"\bpath:{QUOTED}")
WITH_TABS = re.compile(rf"\{{children:([\w$]+),element:[^{{}}]*\{{\}}\),path:{QUOTED}\}}")
"""A route whose tabs are a list with a name."""


def routes_below_runs() -> frozenset[str]:
    """Addresses of tabs within a run: ``dags/:dagId/runs/:runId/.../tab``.

    Task instances have such, mapped or not, as both share the list of their tabs.
    """
    return frozenset(
        f"{route}/{tab}"
        for script in _scripts()
        for tabs, route in WITH_TABS.findall(script)
        if route.startswith("dags/:dagId/runs/")
        for tab in _tabs(script, tabs)
    )


def leads_to(address: str, route: str) -> bool:
    """True if a route of the pages is that of an address."""
    parts, pattern = address.strip("/").split("/"), route.split("/")
    return len(parts) == len(pattern) and all(b.startswith(":") or a == b for a, b in zip(parts, pattern, strict=True))


def _scripts() -> list[str]:
    airflow = find_spec("airflow")
    assert airflow is not None
    assert airflow.origin is not None
    assets = Path(airflow.origin).parent / "ui" / "dist" / "assets"
    scripts = [each.read_text("utf-8") for each in sorted(assets.glob("index-*.js"))]
    assert scripts, f"no compiled pages in {assets}"
    return scripts


def _tabs(script: str, name: str) -> set[str]:
    """Paths within the list of this name; the list ends where its brackets are closed."""
    begins = re.search(rf"(?<![\w$]){re.escape(name)}=\[", script)
    assert begins is not None, name
    depth, end = 1, begins.end()
    while depth:
        depth += {"[": 1, "]": -1}.get(script[end], 0)
        end += 1
    return set(PATH.findall(script[begins.end() : end]))
