"""Proxies, maps, front doors, issuers and client certificates: no secret goes where the settings do not name."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.cli.main import run
from pulsar_steward.cli.snapshot import hidden
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.errors import AdminError, ConfigurationError, NeverSent, RedirectRefused, Refused, Unreachable
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.logins import Basic, ClientCredentials
from pulsar_steward.pulsar.metrics import endpoint
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import permitted
from tests.attacks.wire_parts import TOKEN, Authority, over_tls, said_of_a_failure, settings
from tests.forward_proxy import forward_proxy
from tests.oauth2_issuer import DISCOVERY, TOKEN_PATH, Issuer
from tests.unit.pulsar.scripted import MEMBERS, ScriptedBroker, answer, raw, redirect
from tests.written import holders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.apply.worksite import Worksite
    from tests.unit.pulsar.scripted import Handler, Reply

TENANTS = "/admin/v2/tenants"
SECRET = "cl13nt-S3cret-0f-Steward-xYz"
PASSWORD = "a-password-of-words"
ONCE = AdminPolicy(read_attempts=1)


def by_oauth2(url: str, issuer: str, **fields: Any) -> AdminSettings:
    """Settings that ask an issuer for what they send to a broker."""
    login = ClientCredentials("steward", SecretStr(SECRET), **{"issuer_url": issuer, **fields})
    return AdminSettings((url,), limits=ONCE, login=login)


@pytest.fixture
def issuer(brokers: Callable[[], ScriptedBroker]) -> Issuer:
    """Gives a token that looks random."""
    return Issuer(brokers(), [TOKEN], SECRET)


def test_a_map_for_any_host_leads_to_no_stranger(brokers: Callable[[], ScriptedBroker]) -> None:
    """A redirect to a host that the cluster does not list is refused, however well its port fits the map."""
    first, stranger = brokers(), brokers()
    port = stranger.id.rpartition(":")[2]
    first.on(TENANTS, redirect(f"http://localhost:{port}{TENANTS}"))
    made = AdminSettings(
        (first.url,), SecretStr(TOKEN), ONCE, address_map=address_map({f"*:{port}": f"http://*:{port}"})
    )
    with Reader(made) as reader, pytest.raises(RedirectRefused, match="no web address of a broker"):
        reader.tenants()
    assert stranger.connections == []


def test_a_mapped_redirect_is_held_to_its_path(brokers: Callable[[], ScriptedBroker]) -> None:
    """A redirect that the address map covers is refused when it leads to another path."""
    first, owner = brokers(), brokers()
    first.on(TENANTS, redirect("http://b-2.internal:8080/admin/v2/clusters"))
    made = AdminSettings(
        (first.url,), SecretStr(TOKEN), ONCE, address_map=address_map({"b-2.internal:8080": owner.url})
    )
    with Reader(made) as reader, pytest.raises(RedirectRefused, match="another path"):
        reader.tenants()
    assert owner.connections == []


def test_a_broker_that_is_reached_by_https_stays_so(brokers: Callable[[], ScriptedBroker], tmp_path: Path) -> None:
    """A broker that the address map reaches by https is still reached so after a redirect to itself."""
    authority, front, mapped = Authority(tmp_path), brokers(), brokers()
    url = over_tls(mapped, authority.files)
    mapped.on(TENANTS, redirect(f"{TENANTS}?authoritative=true"), answer([]))
    made = AdminSettings(
        (front.url,), SecretStr(TOKEN), ONCE, str(authority.files[0]), address_map=address_map({"b-1:8080": url})
    )
    with Reader(made) as reader, reader.at("b-1:8080") as there:
        assert there.tenants() == ()
    assert len(mapped.asked) == 2


@pytest.mark.parametrize("reached", ["http://b-1.example.org:8080", "http://192.0.2.1:8080"])
def test_a_map_leads_no_token_into_the_open(reached: str, broker: ScriptedBroker) -> None:
    """A token is refused for unencrypted addresses that an address map leads to, also by a line for any host."""
    with pytest.raises(ConfigurationError, match="would travel unencrypted"):
        AdminSettings((broker.url,), SecretStr(TOKEN), address_map=address_map({"b-1:8080": reached}))
    made = AdminSettings((broker.url,), SecretStr(TOKEN), address_map=address_map({"*:8080": "http://*:8080"}))
    with (
        Reader(made) as reader,
        reader.at("192.0.2.1:8080") as there,
        pytest.raises(ConfigurationError, match="unencrypted to"),
    ):
        there.tenants()


@pytest.mark.parametrize("told", [{}, {"webServicePort": "Optional[8080]", "webServicePortTls": "Optional.empty"}])
def test_https_is_not_given_up_with_a_token(told: dict[str, str], broker: ScriptedBroker, tmp_path: Path) -> None:
    """Behind an https address a redirect to http is followed by https, or, where brokers have none, not at all."""
    authority = Authority(tmp_path)
    url = over_tls(broker, authority.files)
    broker.on(f"{MEMBERS}/configuration/runtime", answer(told))
    broker.on(MEMBERS, answer(["192.0.2.1:8080"]))
    broker.on(TENANTS, redirect(f"http://192.0.2.1:8080{TENANTS}"))
    made = settings(url, ca_file=authority.files[0], read_attempts=1, connect_timeout_seconds=0.2)
    with Reader(made) as reader, pytest.raises(AdminError) as caught:
        reader.tenants()
    if told:
        assert isinstance(caught.value, RedirectRefused)
        assert "would travel unencrypted" in caught.value.reason
    else:
        assert "https" not in caught.value.reason  # it was tried, and nobody is there
        assert not isinstance(caught.value, RedirectRefused)


def test_a_proxy_sees_hosts_and_no_secret(brokers: Callable[[], ScriptedBroker], tmp_path: Path) -> None:
    """A forward proxy sees the `CONNECT` request, but neither an authorization header nor the token."""
    authority, broker = Authority(tmp_path), brokers()
    url = over_tls(broker, authority.files)
    broker.on(TENANTS, answer([]))
    with forward_proxy() as proxy:
        made = AdminSettings((url,), SecretStr(TOKEN), ONCE, str(authority.files[0]), proxy=proxy.url)
        with Reader(made) as reader:
            reader.tenants()
    assert broker.asked[0].authorization == f"Bearer {TOKEN}"
    assert b"CONNECT" in proxy.read
    assert b"uthorization" not in proxy.read
    assert TOKEN[:16].encode() not in proxy.read


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_change_that_breaks_behind_a_proxy_is_sent_once(
    scheme: str, brokers: Callable[[], ScriptedBroker], tmp_path: Path
) -> None:
    """A change is not sent to another broker when the connection breaks after it was sent through a proxy."""
    authority, first, second = Authority(tmp_path), brokers(), brokers()
    urls = [over_tls(each, authority.files) if scheme == "https" else each.url for each in (first, second)]
    for each in (first, second):
        each.on("/admin/v2/namespaces/shop/live/0x00000000_0x80000000/unload", raw(b""))
    with forward_proxy() as proxy:
        made = AdminSettings(tuple(urls), limits=ONCE, ca_file=str(authority.files[0]), proxy=proxy.url)
        with Writer(made) as writer, pytest.raises(Unreachable) as caught:
            writer.send(calls.unload("shop/live", "0x00000000_0x80000000", "b:8080"), permitted)
    assert not isinstance(caught.value, NeverSent)
    assert (len(first.asked), len(second.asked)) == (1, 0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://broker:8080"])
def test_a_proxy_elsewhere_is_told_no_secret_in_clear(url: str) -> None:
    """Settings with a token, an http address and a proxy on another host are refused."""
    with pytest.raises(ConfigurationError, match="would travel unencrypted"):
        AdminSettings((url,), SecretStr(TOKEN), proxy="http://proxy.example.org:3128")


def test_a_proxy_of_the_environment_is_not_used(broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that only environment variables name is not used."""
    with forward_proxy() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        broker.on(TENANTS, answer([]))
        with Reader(settings(broker.url)) as reader:
            reader.tenants()
    assert proxy.asked == []


def test_what_a_proxy_says_is_no_answer_of_a_broker(tmp_path: Path) -> None:
    """A proxy's refusal, also a redirect or a 401, raises `NeverSent` and is not followed by another request."""
    authority = Authority(tmp_path)
    for refusal in (
        b"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    ):
        with forward_proxy() as proxy:
            proxy.refusal = refusal
            made = AdminSettings(("https://b:1",), SecretStr(TOKEN), ONCE, str(authority.files[0]), proxy=proxy.url)
            with Reader(made) as reader, pytest.raises(NeverSent, match="the forward proxy"):
                reader.tenants()
            assert len(proxy.asked) == 1


def shown_certificates(shown: list[Any]) -> Reply:
    """Answers with an empty list, and notes whether a client certificate was shown."""

    def reply(handler: Handler) -> None:
        assert isinstance(handler.connection, ssl.SSLSocket)
        shown.append(handler.connection.getpeercert(binary_form=True))
        answer([])(handler)

    return reply


def asking_for_certificates(server: ScriptedBroker, authority: Authority) -> str:
    """Has a server ask for client certificates, and take anybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.files)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(authority.files[0])
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    return f"https://{server.id}"


def test_a_client_certificate_and_a_login_are_for_brokers_only(
    brokers: Callable[[], ScriptedBroker], tmp_path: Path
) -> None:
    """The client certificate and the authorization header go to brokers only, not to a bookie or an issuer."""
    authority, broker, bookie, giving = Authority(tmp_path), brokers(), brokers(), brokers()
    shown: dict[str, list[Any]] = {"broker": [], "bookie": []}
    urls = [asking_for_certificates(each, authority) for each in (broker, bookie, giving)]
    broker.on(TENANTS, shown_certificates(shown["broker"]))
    bookie.on("/metrics", shown_certificates(shown["bookie"]))
    asked: list[Any] = []

    def give(handler: Handler) -> None:
        asked.append((handler.headers.get("Authorization"), handler.connection.getpeercert(binary_form=True)))
        answer({"access_token": TOKEN})(handler)

    giving.on(TOKEN_PATH, give)
    mine = authority.certificate("steward")
    ca_file = str(authority.files[0])
    login = ClientCredentials("steward", SecretStr(SECRET), token_url=urls[2] + TOKEN_PATH, ca_file=ca_file)
    made = AdminSettings(
        (urls[0],), None, ONCE, ca_file, login=login, client_cert_file=str(mine[0]), client_key_file=str(mine[1])
    )
    with Reader(made) as reader:
        reader.tenants()
    with endpoint(made, urls[1]) as transport:
        transport.get_here("/metrics")
    assert shown["broker"][0] is not None
    assert shown["bookie"] == [None]
    assert asked == [(None, None)]
    assert bookie.asked[0].authorization is None


def test_a_client_secret_is_for_the_issuer_only(broker: ScriptedBroker, issuer: Issuer) -> None:
    """Brokers get the access token and never the client secret; the issuer gets no authorization header."""
    broker.on(TENANTS, answer({"reason": "expired"}, status=401))
    with Reader(by_oauth2(broker.url, issuer.url)) as reader, pytest.raises(AdminError):
        reader.tenants()
    assert len(issuer.asked) == 2
    assert {asked.authorization for asked in issuer.server.asked} == {None}
    assert {asked.authorization for asked in broker.asked} == {f"Bearer {TOKEN}"}
    assert SECRET.encode() not in b"".join(asked.target.encode() + asked.body for asked in broker.asked)


@pytest.mark.parametrize("way", ["its document", "a redirect of its document", "a redirect of the form"])
def test_an_issuer_sends_the_client_secret_nowhere_else(
    way: str, brokers: Callable[[], ScriptedBroker], issuer: Issuer, broker: ScriptedBroker
) -> None:
    """The client secret is not sent to another port that the issuer's document or redirects point to."""
    stranger = brokers()
    if way == "its document":
        issuer.server.on(DISCOVERY, answer({"token_endpoint": f"{stranger.url}{TOKEN_PATH}"}))
    else:
        path = DISCOVERY if way == "a redirect of its document" else TOKEN_PATH
        issuer.server.on(path, redirect(f"{stranger.url}{path}"))
    with Reader(by_oauth2(broker.url, issuer.url)) as reader, pytest.raises((AdminError, ConfigurationError)):
        reader.tenants()
    assert stranger.connections == []
    assert broker.asked == []


@pytest.mark.parametrize("key", ["issuer_url", "token_url"])
def test_a_client_secret_does_not_travel_unencrypted(key: str) -> None:
    """A client secret for an issuer over http is refused unless it is on this machine or the settings allow it."""
    login = ClientCredentials("c", SecretStr(SECRET), **{key: "http://issuer.example.org"})
    with pytest.raises(ConfigurationError, match="client secret would travel unencrypted") as caught:
        AdminSettings(("https://b:1",), login=login)
    assert SECRET not in str(caught.value)
    AdminSettings(("https://b:1",), login=login, allow_unencrypted_token=True)
    AdminSettings(("https://b:1",), login=ClientCredentials("c", SecretStr(SECRET), **{key: "http://127.0.0.1:8080"}))


@pytest.mark.parametrize("login", ["basic", "oauth2"])
def test_other_secrets_do_not_travel_unencrypted_either(login: str) -> None:
    """A password or an access token for a broker over http is refused."""
    made: Any = {
        "basic": Basic("me", SecretStr(PASSWORD)),
        "oauth2": ClientCredentials("c", SecretStr(SECRET), issuer_url="https://i"),
    }[login]
    with pytest.raises(ConfigurationError, match="would travel unencrypted to b:8080"):
        AdminSettings(("http://b:8080",), login=made)


ENCODED = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize("echo", [PASSWORD, ENCODED, f"Basic {ENCODED}", f"user me:{PASSWORD}"])
@pytest.mark.parametrize("where", ["reason", "location", "phrase"])
def test_a_password_that_is_repeated_is_masked(
    echo: str, where: str, broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A password that a broker repeats, in clear or encoded, is in no error and no log."""
    replies = {
        "reason": answer({"reason": f"no {echo}"}, status=401),
        "location": redirect(f"http://{echo.replace(' ', '')}/x"),
        "phrase": answer({"reason": f"failed: {echo}"}, status=500),
    }
    broker.on(TENANTS, replies[where])
    kept = said_of_a_failure(AdminSettings((broker.url,), limits=ONCE, login=Basic("me", SecretStr(PASSWORD))), caplog)
    assert PASSWORD not in kept
    assert ENCODED not in kept


def test_an_access_token_that_is_repeated_is_masked(
    broker: ScriptedBroker, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """Access tokens that a broker repeats are masked, the present one and the one before it."""
    later = TOKEN[::-1]
    issuer.tokens = [TOKEN, later]
    broker.on(TENANTS, answer({"reason": f"{TOKEN} is over"}, status=401), answer({"reason": f"{TOKEN} {later}"}, 403))
    kept = said_of_a_failure(by_oauth2(broker.url, issuer.url), caplog)
    assert "*** ***" in kept
    for secret in (TOKEN, later, SECRET):
        assert secret not in kept


def test_a_secret_that_an_issuer_repeats_is_masked(
    broker: ScriptedBroker, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """The client secret and the access token are in no error and no log if the issuer repeats them."""
    for reply in (
        answer({"error": "invalid_client", "error_description": f"not {SECRET}"}, 401),
        answer(f"{SECRET} {TOKEN}".encode()),
        answer({"access_token": f"{SECRET} {TOKEN}"}),
        redirect(f"http://127.0.0.1:1/{SECRET}"),
    ):
        issuer.server.on(TOKEN_PATH, reply)
        kept = said_of_a_failure(by_oauth2(broker.url, issuer.url), caplog)
        assert SECRET not in kept
        assert TOKEN not in kept


def test_the_next_token_of_a_file_is_masked(
    broker: ScriptedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A token that was read from the token file later is masked like the first one."""
    file = tmp_path / "token"
    later = TOKEN[::-1]
    file.write_text(later)
    made = AdminSettings((broker.url,), SecretStr(TOKEN), ONCE, token_file=str(file))
    broker.on(TENANTS, answer({"reason": f"{later} and {TOKEN}"}, status=500))
    kept = said_of_a_failure(made, caplog)
    assert broker.asked[0].authorization == f"Bearer {later}"
    assert later not in kept
    assert TOKEN not in kept


@pytest.mark.parametrize(
    ("login", "secret"),
    [
        (None, TOKEN),
        (Basic("me", SecretStr(PASSWORD)), PASSWORD),
        (ClientCredentials("c", SecretStr(SECRET), issuer_url="https://i"), SECRET),
    ],
)
def test_what_a_job_says_last_holds_no_secret_of_its_environment(login: Any, secret: str) -> None:
    """The last words of a Spark job are shown with the secrets of its environment masked."""
    made = AdminSettings(("https://a:1",), SecretStr(TOKEN) if login is None else None, login=login)
    assert hidden(f"it ended with {secret}!", made.in_environment({})) == "it ended with ***!"
    assert secret not in repr(made)


def test_a_checkup_with_client_credentials_keeps_no_secret(
    brokers: Callable[[], ScriptedBroker],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A check-up with client credentials keeps no secret in its snapshot, page, JSON or terminal output."""
    monkeypatch.setattr(diagnose, "__defaults__", ([BY_ID["tc-skew"]], 1))  # all take two seconds of a processor
    given = Issuer(brokers(), [TOKEN], SECRET)
    file, kept = tmp_path / "oauth2.json", tmp_path / "kept"
    kept.mkdir()
    file.write_text(json.dumps({"client_id": "steward", "client_secret": SECRET, "issuer_url": given.url}))
    with running_simulator(ClusterSpec(), token=TOKEN) as simulator:
        options = ["--admin-url", simulator.admin_urls[0], "--oauth2-file", str(file), "--keep", str(kept)]
        code = run(["checkup", *options, "--html", str(kept / "page.html"), "--json", str(kept / "report.json")])
    told = capfd.readouterr()
    assert code in {0, 1}, told.err
    assert len(given.asked) == 1
    assert {".html", ".json", ".parquet"} <= {each.suffix for each in kept.rglob("*")}
    assert holders([SECRET, TOKEN], [kept], {"output": told.out, "errors": told.err}) == set()


def test_behind_a_front_door_nothing_is_changed(brokers: Callable[[], ScriptedBroker]) -> None:
    """A writer refuses a change behind a front door before it opens a connection."""
    door = brokers()
    made = AdminSettings((door.url,), front_door=True)
    with Writer(made) as writer, pytest.raises(NeverSent, match="nothing is changed"):
        writer.send(calls.unload("shop/live", "0x00000000_0x80000000", "b:8080"), permitted)
    assert door.connections == []


def test_an_approved_batch_is_refused_behind_a_front_door(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approved batch is refused behind a front door without any call, and the ledger has the reason."""
    plan = site.approved(site.move(0))
    made = replace(site.settings, front_door=True)
    monkeypatch.setattr(type(site), "settings", property(lambda _: made))
    with pytest.raises(Refused, match=r"nothing could be proved: .*`front_door`"):
        site.carry_out(plan)
    assert site.changes() == []
    (outcome,) = site.ledger.outcomes(plan.plan_id, "b1")
    assert outcome.outcome is Outcome.REFUSED
    assert "front_door" in outcome.reason
