"""``pulsar_notify`` in a real Airflow: each event comes once, also where the scheduler is killed in between."""

from __future__ import annotations

import json
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
    """Somebody halts the cluster."""
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
    """The text of a mail."""
    return "".join(part.get_content() for part in mail.walk() if part.get_content_type() == "text/html")


def mailed(smtp: SmtpSink, person: str) -> set[str]:
    """The same by mail."""
    texts = {mail["Message-ID"]: f"{mail['Subject']} {body(mail)}" for _, mail in smtp.mails}
    return {name for name, text in texts.items() if person in text}


def all_came(http: HttpSink, smtp: SmtpSink) -> bool:
    """True once both receivers have been told of everybody."""
    return all(posted(http, each) and mailed(smtp, each) for each in PEOPLE)


def test_each_event_comes_once_though_the_scheduler_is_killed(told: Airflow, http: HttpSink, smtp: SmtpSink) -> None:
    """To both receivers; a message that is sent again has the id that it had, and is the same."""
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
