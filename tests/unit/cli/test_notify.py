"""``steward notify --dry-run``, and what ``steward doctor`` says of recipients."""

from __future__ import annotations

import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.cli.doctor.recipients import by_airflow, recipient_lines
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.messages import DeliveryState, Try, open_messages
from pulsar_steward.ledger.outbox import Outbox
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.notify.addresses import Address, AddressFound, Asked
from pulsar_steward.notify.gather import new_messages, notices_now, policies_of
from pulsar_steward.policy.notify import RecipientKind
from pulsar_steward.snapshots.latest import SnapshotShelf
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward


POLICY = """
notify:
  recipients:
    ops: {connection: steward_notify_ops, kind: webhook}
    mail: {connection: steward_notify_mail, kind: smtp, min_severity: critical}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``STEWARD_HOME`` with recipients for every cluster."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("STEWARD_HOME", str(folder))
    monkeypatch.setenv("STEWARD_CLUSTER", "east")
    return folder


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A ledger in which a cluster is halted."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    say(engine, Halt(cluster="east", at=at, halted=True, said_by="bob", reason="an \x1b[31mupgrade"))
    engine.dispose()
    return url


def test_what_would_be_sent(steward: Steward, ledger: str, golden: Golden) -> None:
    """A dry run prints the messages for each recipient and sends none, so a second one counts as many."""
    ended = steward("notify", "--dry-run", "--ledger", ledger, "--airflow-url", "https://airflow.example.org")
    assert (ended.code, ended.err) == (0, "")
    golden(ended.out)
    assert steward("notify", "--dry-run", "--ledger", ledger).out.endswith("1 message would be sent now.\n")


def test_it_sends_nothing(steward: Steward, ledger: str) -> None:
    """The command refuses to run without --dry-run, and names the DAG that sends the messages."""
    ended = steward("notify", "--ledger", ledger)
    assert (ended.code, "pulsar_notify" in ended.err) == (2, True)


def test_without_recipients_nothing_would_be_sent(steward: Steward, home: Path) -> None:
    (home / "policy.yaml").unlink()
    ended = steward("notify", "--dry-run")
    assert (ended.code, ended.out) == (0, "No policy names a recipient of messages: nothing is sent.\n")


def test_a_policy_that_does_not_hold_up_is_named(steward: Steward, home: Path) -> None:
    """A recipient whose connection is for another purpose is refused, and the error has the prefix to use."""
    (home / "policy.yaml").write_text("notify: {recipients: {x: {connection: pulsar_admin_east, kind: webhook}}}")
    ended = steward("notify", "--dry-run")
    assert (ended.code, "steward_notify_" in ended.err) == (2, True)


def test_doctor_looks_at_each_recipient(golden: Golden) -> None:
    """A recipient has a line if it answers, refuses, has no connection, or cannot be looked up; none gets a byte."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(10)
        port = server.getsockname()[1]

        def lookup(asked: Sequence[Asked]) -> list[AddressFound]:
            here = AddressFound(asked[0].connection, Address("127.0.0.1", port, tls=False))
            return [here, AddressFound(asked[1].connection, trouble="there is no such connection", remedy="add it")]

        told = list(recipient_lines(None, None, lookup))
        with server.accept()[0] as taken:
            assert taken.recv(1) == b""
    there = list(recipient_lines(None, None, lookup))
    lines = [*told, there[0], *recipient_lines(None, None, lambda _: None)]
    golden(
        "\n".join(
            f"{each.state} {each.subject}: {each.words} {each.remedy}".replace(f":{port}", ":PORT") for each in lines
        )
    )


def test_doctor_says_what_was_given_up(ledger: str, home: Path) -> None:
    """The line on a recipient's messages has the last reason of a message that was given up."""
    now = datetime.now(UTC)
    engine = ledger_at(ledger)
    shelf, policies = SnapshotShelf(str(home)), policies_of(["east"]).policies
    Outbox(engine).queue(new_messages(engine, notices_now(engine, shelf, policies, now), policies, now))
    with one_moment(engine) as connection:
        [message] = open_messages(connection)
    result = Try(
        attempt=3, state=DeliveryState.GIVEN_UP, at=now - timedelta(hours=1), reason="127.0.0.1:1 answered 500"
    )
    Outbox(engine).record(message.message_id, result)
    engine.dispose()
    line = list(recipient_lines(None, ledger, lambda _: None))[-1]
    assert (line.subject, "answered 500" in line.words) == ("messages to ops", True)


def test_doctor_asks_the_airflow_of_this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A recipient's address is read from the connections of the Airflow in this environment, by another process."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW_CONN_STEWARD_NOTIFY_OPS", "https://:secret@hooks.example.org:8443/https")
    found = by_airflow([Asked("steward_notify_ops", RecipientKind.WEBHOOK)], seconds=600)
    assert found == [AddressFound("steward_notify_ops", Address("hooks.example.org", 8443, tls=True))]
