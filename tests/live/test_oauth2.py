"""Real brokers that take access tokens of an issuer: for the admin API and for events, renewed on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pulsar
import pytest

from lab.tokens import AUDIENCE
from lab.waiting import wait_until
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.notice import Event
from pulsar_steward.orchestration.events import publisher
from pulsar_steward.policy.place import SECRETS_FOLDERS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.logins import oauth2_in
from pulsar_steward.pulsar.settings import AdminSettings
from tests.builders import NOW
from tests.command import steward
from tests.live.hands import Hands
from tests.live.moves import loaded_bundle, owner_of
from tests.live.reached import Checkup, assert_told_by_nothing, by_access_tokens, said_by
from tests.oauth2_issuer import Issuer
from tests.unit.pulsar.scripted import scripted_brokers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended(
        "tests/unit/pulsar/test_logins.py",
        "tests/unit/orchestration/test_access.py",
        "tests/attacks/test_wire_reach.py",
    ),
]

SECRET = "marked-Cl13nt-S3cret-0f-Steward-that-stands-nowhere"
WRONG = "marked-0ther-S3cret-that-no-client-has-ever-had"
LIVES_S = 4
"""Seconds that an access token lives, by the issuer's word, where a connection outlives it."""

CHALLENGED_WITHIN_S = 60.0
TOPIC = str(Policy().events.topic)


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Lab:
    """Two brokers."""
    return by_access_tokens(labs)


@pytest.fixture
def issuer(lab: Lab) -> Iterator[Issuer]:
    """Gives tokens that the brokers take, a new one each time."""
    with scripted_brokers() as start:
        yield Issuer(start(), lambda: lab.access_token(3600), SECRET)


def credentials(folder: Path, issuer: Issuer, secret: str = SECRET, audience: str = AUDIENCE) -> Path:
    """A file of client credentials, as Pulsar's own clients read it."""
    file = folder / "oauth2.json"
    given = {"client_id": "steward", "client_secret": secret, "issuer_url": issuer.url, "audience": audience}
    file.write_text(json.dumps({"type": "client_credentials", **given}), encoding="utf-8")
    return file


def reaching(lab: Lab, file: Path) -> list[str]:
    """Options for the lab's address, authority and credentials."""
    return ["--admin-url", lab.admin_urls_tls[0], "--ca-file", str(lab.ca_file), "--oauth2-file", str(file)]


def settings(lab: Lab, file: Path) -> AdminSettings:
    """The same as settings."""
    return AdminSettings(lab.admin_urls_tls, ca_file=str(lab.ca_file), login=oauth2_in(file))


def events_connection(lab: Lab, cluster: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Airflow connection of a cluster's events, by TLS and the same credentials."""
    extra = {"service_url": lab.service_url_tls, "ca_file": str(lab.ca_file), "oauth2_file": str(file)}
    given = json.dumps({"conn_type": "generic", "extra": extra})
    monkeypatch.setenv(SECRETS_FOLDERS, str(file.parent))
    monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_EVENTS_{cluster.upper()}", given)


def published(lab: Lab, issuer: Issuer, file: Path, cluster: str) -> list[dict[str, Any]]:
    """Events of a cluster, read by Pulsar's own client with its own kind of OAuth2."""
    given = {"issuer_url": issuer.url, "private_key": str(file), "audience": AUDIENCE}
    client = pulsar.Client(
        lab.service_url_tls,
        authentication=pulsar.AuthenticationOauth2(json.dumps(given)),
        tls_trust_certs_file_path=str(lab.ca_file),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        reader, found = client.create_reader(TOPIC, pulsar.MessageId.earliest), []
        while reader.has_message_available():
            found.append(msgspec.json.decode(reader.read_next(5000).data()))
    finally:
        client.close()
    return [event for event in found if event["cluster"] == cluster]


def test_a_checkup(lab: Lab, issuer: Issuer, tmp_path: Path) -> None:
    """A check-up asks for another access token if brokers refuse the first one, which has ended."""
    issuer.tokens = [lab.access_token(-60), lab.access_token(3600)]
    file = credentials(tmp_path, issuer)
    checkup = Checkup(tmp_path, *reaching(lab, file))
    checkup.assert_complete(2)
    assert len(issuer.given) == 2
    assert_told_by_nothing([SECRET, *issuer.given], lab, tmp_path, said_by(checkup.ended), but=[file])


def test_an_approved_move_and_its_events(
    lab: Lab, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    file = credentials(tmp_path, issuer)
    events_connection(lab, tmp_path.name, file, monkeypatch)
    move = loaded_bundle(lab, "public/oauth2")
    issuer.expires_in = 0.1  # so they are renewed after a moment, and are good for longer
    with (
        publisher(tmp_path.name, Policy().events) as listener,
        Hands.on(lab, tmp_path, settings=settings(lab, file), listener=listener) as hands,
    ):
        plan = hands.plan_of(move)
        hands.heal(plan)
        rows = hands.ledger.outcomes(plan.plan_id, "b1")
    issuer.expires_in = 60
    events = published(lab, issuer, file, tmp_path.name)
    assert owner_of(lab, move) == move.target
    assert len(issuer.given) > 5
    assert len(set(issuer.given)) == len(issuer.given)
    assert [(event["event"], event["result"]) for event in events] == [("outcome", "done"), ("proof", "proved")]
    said = [caplog.text, json.dumps(events), str(rows)]
    assert_told_by_nothing([SECRET, *issuer.given], lab, tmp_path, *said, but=[file])


def test_events_outlive_their_token(
    lab: Lab, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.tokens, issuer.expires_in = (lambda: lab.access_token(LIVES_S + 1)), LIVES_S
    file = credentials(tmp_path, issuer)
    events_connection(lab, tmp_path.name, file, monkeypatch)
    with publisher(tmp_path.name, Policy().events) as listener:
        assert listener is not None
        listener(an_event(tmp_path.name, "first"))
        given = len(issuer.given)
        wait_until(lambda: len(issuer.given) > given, "another token is asked for", CHALLENGED_WITHIN_S)
        listener(an_event(tmp_path.name, "second"))
    issuer.tokens = lambda: lab.access_token(60)
    events = published(lab, issuer, file, tmp_path.name)
    assert [event["reason"] for event in events] == ["first", "second"]
    assert_told_by_nothing([SECRET, *issuer.given], lab, tmp_path, caplog.text, json.dumps(events), but=[file])


def an_event(cluster: str, reason: str) -> Event:
    """An event to publish."""
    said = {"event": "proof", "result": "proved", "reason": reason, "ledger_head": "0:0"}
    return msgspec.convert({"cluster": cluster, "plan_id": "p", "batch_id": "b1", "run": "r", "at": NOW, **said}, Event)


@pytest.mark.parametrize("command", ["checkup", "doctor"])
def test_a_wrong_client_secret(command: str, lab: Lab, issuer: Issuer, tmp_path: Path) -> None:
    file = credentials(tmp_path, issuer, WRONG)
    ended = steward(tmp_path, command, *reaching(lab, file))
    assert ended.returncode == 2
    assert "the issuer refuses: invalid_client" in " ".join(said_by(ended).split())
    assert "--oauth2-file" in said_by(ended)
    assert_told_by_nothing([WRONG, SECRET], lab, tmp_path, said_by(ended), but=[file])


def test_a_token_for_somebody_else(lab: Lab, issuer: Issuer, tmp_path: Path) -> None:
    """A token for another audience is refused with 401, and another token is asked for only once."""
    issuer.tokens = lambda: lab.access_token(3600, "urn:pulsar:other")
    file = credentials(tmp_path, issuer)
    checkup = Checkup(tmp_path, *reaching(lab, file))
    checkup.assert_shut_out("401")
    assert len(issuer.given) == 2
    assert_told_by_nothing([SECRET, *issuer.given], lab, tmp_path, said_by(checkup.ended), but=[file])


def test_an_approved_move_whose_issuer_refuses(
    lab: Lab, issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = credentials(tmp_path, issuer)
    move = loaded_bundle(lab, "public/oauth2-refused")
    with Hands.on(lab, tmp_path, settings=settings(lab, file)) as hands:
        plan = hands.plan_of(move)
        hands.approve(plan, plan.batches[0])
        credentials(tmp_path, issuer, WRONG)
        (outcome,) = replace(hands, settings=settings(lab, file)).apply(plan, plan.batches[0])
    assert outcome.outcome is Outcome.REFUSED
    assert "the issuer refuses" in outcome.reason
    assert owner_of(lab, move) == move.source
    told = [caplog.text, outcome.reason]
    assert_told_by_nothing([SECRET, WRONG, *issuer.given], lab, tmp_path, *told, but=[file])
