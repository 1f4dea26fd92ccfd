"""``pulsar_notify`` in a real Airflow: each event comes once, also where the scheduler is killed in between.

``steward doctor`` asks the same Airflow whether its recipients can be told.
"""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lab.airflow.server import running_airflow
from lab.waiting import wait_until
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.store import open_ledger
from tests.live.airflow_processes import scheduler_killed
from tests.unit.notify.sinks import HttpSink, SmtpSink, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage
    from pathlib import Path

    from lab.airflow.server import Airflow

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.extended("tests/unit/notify/test_recipients.py", "tests/unit/notify/test_teller.py"),
]

CLUSTER = "local"
WITHIN_S = 900.0
"""A claim of a worker that was killed counts for ten minutes."""

PEOPLE = tuple(f"person-{number}" for number in range(6))
"""Each halts the cluster once, so that messages are told apart."""

IMPATIENT = {
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
}
"""A scheduler that soon takes over what the one before left."""

POLICY = """
notify:
  recipients:
    hook: {connection: steward_notify_hook, kind: webhook}
    mail: {connection: steward_notify_mail, kind: smtp}
"""


ASKED = """
notify:
  recipients:
    hook: {connection: steward_notify_hook, kind: webhook}
    mail: {connection: steward_notify_mail, kind: smtp}
    pages: {connection: steward_notify_pages, kind: webhook}
    chat: {connection: steward_notify_chat, kind: slack}
    lost: {connection: steward_notify_lost, kind: webhook}
"""
"""Two recipients by variables, two by Airflow's database, of which one has no provider, and one that is nowhere."""


@pytest.fixture(scope="module")
def http() -> Iterator[HttpSink]:
    """A receiver by HTTP."""
    sink = HttpSink()
    with running(sink):
        yield sink


@pytest.fixture(scope="module")
def smtp() -> Iterator[SmtpSink]:
    """A mail server."""
    sink = SmtpSink()
    with running(sink):
        yield sink


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, http: HttpSink, smtp: SmtpSink) -> Iterator[Airflow]:
    """An Airflow of its own whose policy names both receivers: its scheduler is killed."""
    mail = {"from_email": "steward@example.org", "to": "ops@example.org", "disable_ssl": True, "disable_tls": True}
    hook = {"conn_type": "http", "host": "127.0.0.1", "port": http.port, "schema": "http"}
    settings = {
        **IMPATIENT,
        "AIRFLOW_CONN_STEWARD_NOTIFY_HOOK": json.dumps(hook),
        "AIRFLOW_CONN_STEWARD_NOTIFY_MAIL": json.dumps(
            {"conn_type": "smtp", "host": "127.0.0.1", "port": smtp.port, "extra": mail}
        ),
        "STEWARD_NOTIFY_SCHEDULE": "* * * * *",
    }
    with running_airflow(tmp_path_factory.mktemp("told"), settings) as airflow:
        (airflow.spec.steward_home / "policy.yaml").write_text(POLICY, encoding="utf-8")
        airflow.api.unpause("pulsar_notify")
        yield airflow


def halted(airflow: Airflow, person: str) -> None:
    engine = open_ledger(airflow.spec.ledger)
    say(engine, Halt(cluster=CLUSTER, at=datetime.now(UTC), halted=True, said_by=person, reason="an upgrade"))
    engine.dispose()


def posted(http: HttpSink, person: str) -> set[str]:
    """Ids of messages about what somebody did, by HTTP."""
    return {each.body["id"] for each in http.posted if f"by {person}" in json.dumps(each.body["notices"])}


def came(http: HttpSink, person: str) -> bool:
    """True once a message about what somebody did came by HTTP."""
    return bool(posted(http, person))


def body(mail: EmailMessage) -> str:
    return "".join(part.get_content() for part in mail.walk() if part.get_content_type() == "text/html")


def mailed(smtp: SmtpSink, person: str) -> set[str]:
    """The same by mail."""
    texts = {mail["Message-ID"]: f"{mail['Subject']} {body(mail)}" for _, mail in smtp.mails}
    return {name for name, text in texts.items() if person in text}


def all_came(http: HttpSink, smtp: SmtpSink) -> bool:
    """True once both receivers have been told of everybody."""
    return all(posted(http, each) and mailed(smtp, each) for each in PEOPLE)


def test_each_event_comes_once_though_the_scheduler_is_killed(told: Airflow, http: HttpSink, smtp: SmtpSink) -> None:
    """Each event reaches both receivers under a single message id, though the scheduler is killed in between."""
    for number, person in enumerate(PEOPLE):
        halted(told, person)
        if number % 2:
            before = PEOPLE[number - 1]
            wait_until(partial(came, http, before), f"{before} is told of", WITHIN_S)
            with scheduler_killed(told, alone=False):
                pass
    wait_until(lambda: all_came(http, smtp), "everything is told", WITHIN_S)
    assert {each: len(posted(http, each)) for each in PEOPLE} == dict.fromkeys(PEOPLE, 1)
    assert {each: len(mailed(smtp, each)) for each in PEOPLE} == dict.fromkeys(PEOPLE, 1)


def asked(airflow: Airflow, policy: Path, **variables: str) -> dict[str, dict[str, str]]:
    """Lines of ``steward doctor`` about recipients, by their names, in the environment that Airflow runs in."""
    command = [str(airflow.spec.python), "-m", "pulsar_steward.cli", "doctor", "--json", "--policy", str(policy)]
    ended = subprocess.run(command, env={**airflow.variables, **variables}, capture_output=True, text=True, check=False)
    lines = json.loads(ended.stdout)["lines"]
    return {each["subject"].split()[1]: each for each in lines if each["subject"].startswith("recipient ")}


def test_doctor_asks_this_airflow(told: Airflow, http: HttpSink, smtp: SmtpSink, tmp_path: Path) -> None:
    """Doctor checks recipients whose connections are variables or in Airflow's database, and names what is missing."""
    pages = {"conn_type": "http", "host": "127.0.0.1", "port": http.port, "schema": "http", "password": "secret-page"}
    told.api.add_connection("steward_notify_pages", json.dumps(pages))
    told.api.add_connection("steward_notify_chat", json.dumps({"conn_type": "slackwebhook", "password": "secret-chat"}))
    policy = tmp_path / "policy.yaml"
    policy.write_text(ASKED, encoding="utf-8")
    posted_before, mailed_before = len(http.posted), len(smtp.mails)
    lines = asked(told, policy)
    states = {name: line["state"] for name, line in lines.items()}
    assert states == {"hook": "ok", "mail": "ok", "pages": "ok", "chat": "problem", "lost": "problem"}, lines
    assert f"127.0.0.1:{http.port} answers" in lines["pages"]["words"]
    assert "pip install 'pulsar-steward[slack]'" in lines["chat"]["remedy"]
    assert "AIRFLOW_CONN_STEWARD_NOTIFY_LOST" in lines["lost"]["remedy"]
    assert "secret-" not in json.dumps(lines)
    assert (len(http.posted), len(smtp.mails)) == (posted_before, mailed_before)
    another = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    lines = asked(told, policy, AIRFLOW__CORE__FERNET_KEY=another)
    assert (lines["pages"]["state"], lines["hook"]["state"]) == ("problem", "ok"), lines
    assert "AIRFLOW__CORE__FERNET_KEY" in lines["pages"]["remedy"]
