"""Who listens between Steward and a cluster: no token travels in clear unless that is allowed, nor to a wrong host."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pulsar_steward.apply.journal import Journal
from pulsar_steward.cli.main import run
from pulsar_steward.errors import ConfigurationError, RedirectRefused
from pulsar_steward.model.notice import Event
from pulsar_steward.orchestration import connections
from pulsar_steward.orchestration.events import publisher
from pulsar_steward.policy.schema import AdminPolicy, EventsPolicy, Policy
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from tests.attacks.wire_parts import TOKEN, certificate, server_context, settings
from tests.unit.pulsar.scripted import MEMBERS, ScriptedBroker, answer, redirect

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

SECRET = SecretStr(TOKEN)
EVENTS_TOKEN = "a-token-that-may-produce-to-one-topic"
PATH = "/admin/v2/tenants"


@pytest.mark.parametrize(
    "url",
    [
        "http://broker:8080",
        "http://10.1.2.3:8080",
        "http://[2001:db8::1]:8080",
        "http://localhost.example.org:8080",
        "http://127.0.0.1.example.org:8080",
        "http://0.0.0.0:8080",
        "http://[::ffff:10.1.2.3]:8080",
    ],
)
def test_an_address_that_would_carry_the_token_in_clear_is_refused(url: str) -> None:
    """The settings refuse a token for an unencrypted remote address and name the option that allows it."""
    with pytest.raises(ConfigurationError, match=r"would travel unencrypted to .*allow_unencrypted_token") as caught:
        AdminSettings((url,), SECRET)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080", "http://127.8.9.1:1", "http://localhost:8080", "http://[::1]:1", "https://b:8443"]
)
def test_what_never_leaves_the_machine_is_no_travel(url: str) -> None:
    """The settings give out the token for loopback addresses and for `https` addresses."""
    assert AdminSettings((url,), SECRET).token_for(url) == SECRET


def test_somebody_may_allow_it_and_without_a_token_nothing_is_at_stake() -> None:
    """An unencrypted address is accepted without a token, or with one if `allow_unencrypted_token` is set."""
    url = "http://broker:8080"
    assert AdminSettings((url,)).token_for(url) is None
    assert AdminSettings((url,), SECRET, allow_unencrypted_token=True).token_for(url) == SECRET


def test_one_of_several_addresses_is_enough_to_refuse() -> None:
    """Settings are refused when any of several addresses would get the token unencrypted."""
    with pytest.raises(ConfigurationError, match="to broker-2:8080"):
        AdminSettings(("http://127.0.0.1:8080", "http://broker-2:8080"), SECRET)


def test_a_broker_behind_a_tunnel_gets_no_token_in_clear(broker: ScriptedBroker) -> None:
    """A listed broker on another host gets no token over http, although the settings name loopback."""
    with (
        Reader(settings(broker.url)) as reader,
        reader.at("192.0.2.1:8080") as there,
        pytest.raises(ConfigurationError, match=r"unencrypted to 192\.0\.2\.1:8080"),
    ):
        there.owned_bundles("local", "192.0.2.1:8080")


def test_a_redirect_does_not_lead_the_token_into_the_open(broker: ScriptedBroker) -> None:
    """A redirect to a broker on another host is refused when the token would travel unencrypted."""
    broker.on(MEMBERS, answer([broker.id, "192.0.2.1:8080"]))
    broker.on(PATH, redirect(f"http://192.0.2.1:8080{PATH}"))
    with (
        Reader(settings(broker.url, read_attempts=1)) as reader,
        pytest.raises(RedirectRefused, match="would travel unencrypted"),
    ):
        reader.tenants()


def connection(monkeypatch: pytest.MonkeyPatch, name: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "generic", **fields}))


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        ({}, True),
        ({"allow_unencrypted_token": False}, True),
        ({"allow_unencrypted_token": "false"}, True),
        ({"allow_unencrypted_token": True}, False),
        ({"allow_unencrypted_token": "true"}, False),
        ({"urls": ["https://broker:8443"]}, False),
    ],
)
def test_the_admin_connection_is_held_to_it(
    extra: dict[str, Any], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The admin connection refuses an unencrypted token unless its extra allows it or names an `https` address."""
    connection(monkeypatch, "pulsar_admin_east", host="broker", port=8080, password=TOKEN, extra=extra)
    if refused:
        with pytest.raises(ConfigurationError, match="unencrypted to broker:8080"):
            connections.admin_settings("east", Policy())
    else:
        assert connections.admin_settings("east", Policy()).token == SECRET


@pytest.mark.parametrize("name", ["admin", "events"])
def test_a_key_that_is_neither_true_nor_false_allows_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is refused when its `allow_unencrypted_token` is neither true nor false."""
    extra = {"allow_unencrypted_token": "yes", "service_url": "pulsar://broker:6650"}
    connection(monkeypatch, f"pulsar_{name}_east", host="broker", password=TOKEN, extra=extra)
    with pytest.raises(ConfigurationError, match="has to be true or false"):
        connections.events_door("east") if name == "events" else connections.admin_settings("east", Policy())


def test_a_process_is_told_all_of_it_and_nothing_of_another_cluster() -> None:
    """Settings are read back equal from a process's environment, and writing others removes the earlier values."""
    given = AdminSettings(("http://a:1",), SECRET, AdminPolicy(read_attempts=7), "/ca", allow_unencrypted_token=True)
    assert AdminSettings.from_environment(given.in_environment({}), given.limits) == given
    written = AdminSettings(("https://a:1",)).in_environment(given.in_environment({"PATH": "/bin"}))
    assert written == {"PATH": "/bin", "STEWARD_ADMIN_URLS": "https://a:1"}


@pytest.mark.parametrize("command", ["checkup", "plan"])
def test_the_command_line_is_held_to_it(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands refuse to send a token over http unless `--allow-unencrypted-token` is given, and name it."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    arguments = [command, "--admin-url", "http://no-such-host.invalid:8080", "--token-file", str(token)]
    assert run(arguments) == 2
    refused = capsys.readouterr()
    assert run([*arguments, "--allow-unencrypted-token"]) == 2
    tried = capsys.readouterr()
    assert "--allow-unencrypted-token" in refused.err
    assert "does not resolve" in tried.err
    assert TOKEN not in "".join([*refused, *tried])


EVENT = Event(
    event="outcome", cluster="east", plan_id="p", batch_id="b1", run="r", at=datetime(2026, 1, 31, tzinfo=UTC),
    result="done", reason="", ledger_head="1:a",
)  # fmt: skip
BRIEF = EventsPolicy(timeout_seconds=1)


class Listener:
    """A server that a client of Pulsar may connect to, and everything that came before it gave up."""

    def __init__(self) -> None:
        self.heard = b""
        self.connections = 0
        self.port = 0
        self.failures: list[str] = []


@contextmanager
def listening(context: ssl.SSLContext | None = None) -> Iterator[Listener]:
    """Takes whoever connects to a port of loopback, and writes down the first that each says."""
    told, over = Listener(), threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                taken = server.accept()[0]
            except OSError:
                return
            told.connections += 1
            try:
                with context.wrap_socket(taken, server_side=True) if context else taken as spoken:
                    spoken.settimeout(2)
                    told.heard += spoken.recv(65536)
            except OSError as error:
                told.failures.append(str(error))

    with socket.create_server(("127.0.0.1", 0)) as server:
        told.port = server.getsockname()[1]
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield told
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def published(monkeypatch: pytest.MonkeyPatch, service_url: str, **extra: Any) -> str:
    """Publishes an event by the events' own connection; returns what came of it."""
    extra = {"service_url": service_url, **extra}
    connection(monkeypatch, "pulsar_events_east", password=EVENTS_TOKEN, extra=extra)
    with publisher("east", BRIEF) as send:
        assert send is not None
        with pytest.raises(Exception, match=r".") as caught:
            send(EVENT)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_events_do_not_give_their_token_to_a_host_of_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events client sends no token to a host whose certificate is for another name."""
    files = certificate(tmp_path, "somebody-else.example.org")
    with listening(server_context(files)) as server:
        published(monkeypatch, f"pulsar+ssl://localhost:{server.port}", ca_file=str(files[0]))
        assert server.connections
    assert server.heard == b""


def test_events_do_not_give_their_token_to_a_host_that_nobody_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events client sends no token to a host whose certificate is not trusted."""
    files = certificate(tmp_path, "localhost")
    with listening(server_context(files)) as server:
        published(monkeypatch, f"pulsar+ssl://localhost:{server.port}")
        assert server.connections
    assert server.heard == b""


def test_events_trust_the_certificates_of_their_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events client trusts the `ca_file` of its connection and sends the events' token, not the admin token."""
    files = certificate(tmp_path, "localhost")
    connection(monkeypatch, "pulsar_admin_east", host="https://broker:8443", password=TOKEN)
    with listening(server_context(files)) as server:
        published(monkeypatch, f"pulsar+ssl://localhost:{server.port}", ca_file=str(files[0]))
    assert EVENTS_TOKEN.encode() in server.heard
    assert TOKEN.encode() not in server.heard


@pytest.mark.parametrize("place", ["broker:6650", "10.1.2.3:6650", "127.0.0.1:6650,broker:6650", "[2001:db8::1]:6650"])
def test_the_events_token_does_not_travel_unencrypted(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is not sent when one broker's address is unencrypted; the error has the remedy, not the token."""
    said = published(monkeypatch, f"pulsar://{place}")
    assert "would travel unencrypted to" in said
    assert "allow_unencrypted_token" in said
    assert EVENTS_TOKEN not in said


def test_the_events_token_may_be_allowed_to_and_stays_on_the_machine_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events' token is sent in clear to loopback, and accepted for other hosts with `allow_unencrypted_token`."""
    with listening() as server:
        published(monkeypatch, f"pulsar://127.0.0.1:{server.port}")
    assert EVENTS_TOKEN.encode() in server.heard
    extra = {"service_url": "pulsar://broker:6650", "allow_unencrypted_token": True}
    connection(monkeypatch, "pulsar_events_east", password=EVENTS_TOKEN, extra=extra)
    assert connections.events_door("east").token == SecretStr(EVENTS_TOKEN)


def test_events_never_carry_the_admin_token(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Events are not sent without a connection of their own; the log names it, and no error is raised."""

    class Ledger:
        """Knows where its chain ends, and takes what is recorded."""

        head = "1:a"

        def record_proof(self, proof: object) -> None:
            """Takes it."""

    with listening() as server:
        extra = {"urls": ["https://broker:8443"], "service_url": f"pulsar://127.0.0.1:{server.port}"}
        connection(monkeypatch, "pulsar_admin_east", password=TOKEN, extra=extra)
        with publisher("east", BRIEF) as send:
            assert send is not None
            ledger: Any = Ledger()  # as much of a writer as is used
            journal = Journal(ledger, "east", send)
            journal._tell(PROOF, event="proof", at=EVENT.at, result="proved", reason="")
    assert server.connections == 0
    assert "there is no Airflow connection 'pulsar_events_east'" in caplog.text
    assert TOKEN not in caplog.text


class _Proof:
    plan_id, batch_id, run = "p", "b1", "r"


PROOF: Any = _Proof()


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"extra": {"service_url": "pulsar+ssl://a:6651,b:6651"}}, "pulsar+ssl://a:6651,b:6651"),
        ({"host": "pulsar+ssl://a:6651"}, "pulsar+ssl://a:6651"),
        ({"host": "a", "port": 6651, "schema": "pulsar+ssl"}, "pulsar+ssl://a:6651"),
        ({"host": "127.0.0.1", "port": 6650}, "pulsar://127.0.0.1:6650"),
    ],
)
def test_where_events_go(fields: dict[str, Any], address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address for events comes from `service_url` in the extra, or from the connection's own fields."""
    connection(monkeypatch, "pulsar_events_east", **fields)
    assert connections.events_door("east").service_url == address


@pytest.mark.parametrize(
    "fields",
    [{}, {"extra": {"service_url": "http://a:8080"}}, {"host": "https://a"}, {"host": "pulsar://me:secret@a:6650"}],
)
def test_an_events_connection_without_a_usable_address_is_told(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An events connection without a usable address is refused with an error that repeats no secret."""
    connection(monkeypatch, "pulsar_events_east", **fields)
    with pytest.raises(ConfigurationError, match="events go nowhere") as caught:
        connections.events_door("east")
    assert "secret" not in str(caught.value)
