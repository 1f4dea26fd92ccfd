"""Addresses of brokers: http and https side by side, a map, a proxy, client certificates, one front door."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pydantic import SecretStr
from urllib3 import HTTPSConnectionPool
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.errors import (
    AdminError,
    BehindFrontDoor,
    ClientCertificateWanted,
    ConfigurationError,
    HandshakeCut,
    NeverSent,
    NoTls,
    OnlyTls,
    ProxyFailed,
    RedirectRefused,
    TlsFailed,
)
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.faults import TLS_WORDS, in_our_words
from pulsar_steward.pulsar.members import BEHIND_FRONT_DOOR
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.transport import Transport
from tests.attacks.wire_parts import Authority, over_tls
from tests.cases import row_by_row
from tests.forward_proxy import ForwardProxy, forward_proxy, saying
from tests.unit.pulsar.scripted import MEMBERS, ScriptedBroker, answer, redirect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.pulsar.conftest import MakeBroker


CONFIGURATION = f"{MEMBERS}/configuration/runtime"
TENANTS = "/admin/v2/tenants"
ONCE = AdminPolicy(read_attempts=1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Vouches for the brokers of a test."""
    return Authority(tmp_path)


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    with forward_proxy() as made:
        yield made


def settings(url: str, authority: Authority | None = None, **fields: Any) -> AdminSettings:
    """Settings towards one address; each call is tried once."""
    ca_file = str(authority.files[0]) if authority else None
    return AdminSettings((url,), limits=fields.pop("limits", ONCE), ca_file=ca_file, **fields)


def base_of(made: AdminSettings, broker: str) -> str:
    """Address at which a broker is asked."""
    with Transport(made, frozenset({"GET"})) as transport:
        return transport.base_of(broker)


@row_by_row(
    "plain, tls, listed, reached",
    ("Optional[8080]", "Optional[8443]", "b-1:8080", "https://b-1:8443"),
    ("Optional[8080]", "Optional[8443]", "b-2:8443", "https://b-2:8443"),
    ("8080", "8443", "b-1:8080", "https://b-1:8443"),
    ("Optional[8080]", "Optional.empty", "b-1:8080", "http://b-1:8080"),
    ("Optional.empty", "Optional[8443]", "b-1:8443", "https://b-1:8443"),
    ("Optional[8080]", "Optional[8443]", "[2001:db8::1]:8080", "https://[2001:db8::1]:8443"),
    ("Optional[8080]", "Optional[8443]", "b-1:9999", "https://b-1:9999"),
)
def test_behind_an_https_address_brokers_are_reached_as_they_tell(
    plain: str, tls: str, listed: str, reached: str, broker: ScriptedBroker, authority: Authority
) -> None:
    url = over_tls(broker, authority.files)
    broker.on(CONFIGURATION, answer({"webServicePort": plain, "webServicePortTls": tls}))
    made = settings(url, authority)
    assert [base_of(made, listed) for _ in range(3)] == [reached] * 3
    assert len(broker.asked_for(CONFIGURATION)) == 1


def test_a_client_certificate_is_not_given_up_for_http(broker: ScriptedBroker, authority: Authority) -> None:
    """With a client certificate a broker without a TLS port is asked by https, unless the address map says http."""
    url = over_tls(broker, authority.files)
    broker.on(CONFIGURATION, answer({"webServicePort": "Optional[8080]", "webServicePortTls": "Optional.empty"}))
    mine = authority.certificate("steward")
    files = {"client_cert_file": str(mine[0]), "client_key_file": str(mine[1])}
    assert base_of(settings(url, authority, **files), "b-1:8080") == "https://b-1:8080"
    mapped = settings(url, authority, **files, address_map=address_map({"b-1:8080": "http://b-1:8080"}))
    assert base_of(mapped, "b-1:8080") == "http://b-1:8080"


def test_where_brokers_do_not_tell_their_ports_it_is_as_it_was(broker: ScriptedBroker, authority: Authority) -> None:
    """A broker's id is used with the scheme of the settings if the configuration does not tell the ports."""
    assert base_of(settings(over_tls(broker, authority.files), authority), "b-1:8080") == "https://b-1:8080"


def test_behind_an_http_address_nobody_is_asked(broker: ScriptedBroker) -> None:
    assert base_of(settings(broker.url), "b-1:8080") == "http://b-1:8080"
    assert broker.asked == []


def test_http_and_https_brokers_side_by_side(make_broker: MakeBroker, authority: Authority) -> None:
    """Brokers that the settings name by http and by https are each asked by their own scheme."""
    plain, secure = make_broker(), make_broker()
    url = over_tls(secure, authority.files)
    for each, names in ((plain, ["a"]), (secure, ["b"])):
        each.on(TENANTS, answer(names))
    made = AdminSettings((url, plain.url), limits=ONCE, ca_file=str(authority.files[0]))
    with Reader(made) as reader, reader.at(plain.id) as one, reader.at(secure.id) as other:
        assert (one.tenants(), other.tenants()) == (("a",), ("b",))


@row_by_row(
    "given, advertised, reached",
    ({"b-1.internal:8080": "https://127.0.0.1:18443"}, "b-1.internal:8080", "https://127.0.0.1:18443"),
    ({"b-1.internal:8080": "https://127.0.0.1:18443/"}, "B-1.Internal:8080", "https://127.0.0.1:18443"),
    ({"*:8080": "https://*:8443"}, "b-7:8080", "https://b-7:8443"),
    ({"*:8080": "https://*:8443", "b-7:8080": "http://c:1"}, "b-7:8080", "http://c:1"),
    ({"*:8080": "https://*:8443"}, "b-7:8081", "http://b-7:8081"),
)
def test_the_map_says_where_an_advertised_broker_is_reached(
    given: dict[str, str], advertised: str, reached: str, broker: ScriptedBroker
) -> None:
    """A broker's own entry in the address map takes precedence over the entry for its port."""
    assert base_of(settings(broker.url, address_map=address_map(given)), advertised) == reached


@row_by_row(
    "given",
    [],
    "b:8080",
    {"b": "https://c:1"},
    {"http://b:8080": "https://c:1"},
    {"b:8080": "c:1"},
    {"b:8080": "https://me:hidden@c:1"},
    {"me:hidden@b:8080": "https://c:1"},
    {"b:8080": "https://*:8443"},
    {"b:8080": None},
    {"*": "https://*:8443"},
    {"*:8080": "http://tunnel:1"},
)
def test_a_map_that_is_none_is_told_with_its_key(given: object) -> None:
    """An invalid address map is refused with an error that names the key and shows no password."""
    with pytest.raises(ConfigurationError, match="address_map") as caught:
        address_map(given)
    assert "hidden" not in str(caught.value)


def test_where_tls_ends_before_brokers_the_remedy_is_the_map() -> None:
    """A token for an https address is not sent to a broker by http; the error names `address_map` as a remedy."""
    made = AdminSettings(("https://gateway:8443",), SecretStr("made-up"))
    with pytest.raises(ConfigurationError, match=r"to b-1\.internal:8080: .*`address_map` \(--address-map\), or allow"):
        made.token_for("http://b-1.internal:8080")


def test_a_redirect_to_an_advertised_address_goes_where_the_map_says(make_broker: MakeBroker) -> None:
    front, owner = make_broker(), make_broker()
    front.on(TENANTS, redirect(f"http://b-2.internal:8080{TENANTS}?authoritative=true"))
    owner.on(TENANTS, answer(["t"]))
    made = settings(front.url, address_map=address_map({"b-2.internal:8080": owner.url}))
    with Reader(made) as reader:
        assert reader.tenants() == ("t",)
    assert [asked.target for asked in owner.asked] == [f"{TENANTS}?authoritative=true"]


def test_behind_a_balancer_that_ends_tls_a_redirect_to_http_stays_with_tls(
    make_broker: MakeBroker, authority: Authority
) -> None:
    front, owner = make_broker(), make_broker()
    url = over_tls(front, authority.files)
    over_tls(owner, authority.files)
    tls_port = owner.id.rpartition(":")[2]
    front.on(CONFIGURATION, answer({"webServicePort": "Optional[8080]", "webServicePortTls": f"Optional[{tls_port}]"}))
    front.on(MEMBERS, answer(["127.0.0.1:8080"]))
    front.on(TENANTS, redirect(f"http://127.0.0.1:8080{TENANTS}"))
    owner.on(TENANTS, answer(["t"]))
    with Reader(settings(url, authority)) as reader:
        assert reader.tenants() == ("t",)


def test_what_goes_through_a_proxy(proxy: ForwardProxy, broker: ScriptedBroker, authority: Authority) -> None:
    """Calls by https share one tunnel through the proxy, which reads the host and not the path."""
    url = over_tls(broker, authority.files)
    broker.on(TENANTS, answer(["t"]))
    with Reader(settings(url, authority, proxy=proxy.url)) as reader:
        assert reader.tenants() == ("t",)
        assert reader.tenants() == ("t",)
    assert [line.rpartition(" ")[0] for line in proxy.asked] == [f"CONNECT {broker.id}"]
    assert TENANTS.encode() not in proxy.read


def test_http_goes_through_a_proxy_as_well(proxy: ForwardProxy, broker: ScriptedBroker) -> None:
    """A call by plain http is sent to the proxy as a request with the whole address."""
    broker.on(TENANTS, answer(["t"]))
    with Reader(settings(broker.url, proxy=proxy.url)) as reader:
        assert reader.tenants() == ("t",)
    assert proxy.asked == [f"GET {broker.url}{TENANTS} HTTP/1.1"]


def test_what_may_keep_a_call_back_is_asked_when_the_tunnel_is_there(
    proxy: ForwardProxy, broker: ScriptedBroker, authority: Authority
) -> None:
    """The last check before a change runs after the proxy has made the tunnel and before the call is sent."""
    url = over_tls(broker, authority.files)
    broker.on("/x", answer(status=204))
    seen: list[tuple[int, int]] = []
    methods: Any = frozenset({"GET", "PUT"})
    with Transport(settings(url, authority, proxy=proxy.url), methods) as transport:
        transport.send("PUT", "/x", may_leave=lambda: seen.append((len(proxy.asked), len(broker.asked))))
    assert seen == [(1, 0)]


def test_a_proxy_that_refuses_is_named(proxy: ForwardProxy) -> None:
    """The error names the proxy that refused and is a `NeverSent`, as the call did not reach the broker."""
    proxy.refusal = b"HTTP/1.1 403 Not that host\r\nContent-Length: 0\r\n\r\n"
    with (
        Reader(settings("https://b-1:8443", proxy=proxy.url)) as reader,
        pytest.raises(NeverSent, match=r"the forward proxy \(`proxy`\) refuses it: .*403 Not that host"),
    ):
        reader.tenants()


def test_a_proxy_that_is_not_there_is_named(refusing: str) -> None:
    """The reason of the error is that the proxy cannot be reached, and names the setting to check."""
    with (
        Reader(settings("https://b-1:8443", proxy=f"http://{refusing}")) as reader,
        pytest.raises(ProxyFailed) as caught,
    ):
        reader.tenants()
    assert caught.value.reason == "no connection: the forward proxy cannot be reached: check `proxy`"


@pytest.mark.parametrize(
    "given", ["proxy:3128", "https://proxy:3128", "socks5://proxy:1080", "http://me:hidden@proxy:1"]
)
def test_a_proxy_that_is_none_is_told(given: str) -> None:
    """An invalid address of a proxy is refused with an error that names the key and shows no password."""
    with pytest.raises(ConfigurationError, match="`proxy`") as caught:
        settings("https://b:8443", proxy=given)
    assert "hidden" not in str(caught.value)


def test_a_client_certificate_is_shown_to_brokers_that_ask_for_one(
    broker: ScriptedBroker, authority: Authority
) -> None:
    mine = authority.certificate("steward")
    url = over_tls(broker, authority.files, clients_of=authority.files[0])
    broker.on(TENANTS, answer(["t"]))
    with Reader(settings(url, authority, client_cert_file=str(mine[0]), client_key_file=str(mine[1]))) as reader:
        assert reader.tenants() == ("t",)
    assert broker.asked[0].authorization is None


def test_without_a_client_certificate_the_remedy_is_named(broker: ScriptedBroker, authority: Authority) -> None:
    url = over_tls(broker, authority.files, clients_of=authority.files[0])
    error = failure(settings(url, authority))
    # The alert may be lost with the connection that the server closes right behind it.
    assert type(error) in {ClientCertificateWanted, HandshakeCut}
    assert "`client_cert_file`" in error.reason


@pytest.mark.parametrize(
    "alert", ["TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_BAD_CERTIFICATE"]
)
def test_the_alert_of_a_server_that_wants_another_certificate(alert: str) -> None:
    """A TLS alert about the client certificate is recognized inside the nested errors of the libraries."""
    told = ssl.SSLError(1, "made up")
    told.reason = alert
    inner = urllib3_errors.MaxRetryError(HTTPSConnectionPool("b"), "/", urllib3_errors.SSLError(told))
    ours = in_our_words(requests.exceptions.SSLError(inner), "GET", "/", "b:1")
    assert (type(ours), ours.reason) == (ClientCertificateWanted, TLS_WORDS[ClientCertificateWanted])


def failure(made: AdminSettings) -> AdminError:
    """Why a call failed."""
    with Reader(made) as reader, pytest.raises(AdminError) as caught:
        reader.tenants()
    return caught.value


def said(made: AdminSettings) -> tuple[type[AdminError], str]:
    """Class and reason of the error of a call that failed."""
    error = failure(made)
    return type(error), error.reason


def test_a_wrong_authority_a_wrong_scheme_and_their_words(
    broker: ScriptedBroker, authority: Authority, tmp_path: Path
) -> None:
    """An unknown authority, a port without TLS and one with TLS only raise errors with words of their own."""
    url = over_tls(broker, authority.files)
    other = tmp_path / "other"
    other.mkdir()
    assert said(settings(url, Authority(other))) == (TlsFailed, "TLS failed: check the certificate and `ca_file`")
    with saying(b"HTTP/1.1 400 Illegal character\r\n\r\n") as plain:
        words = "TLS failed: what answers there speaks none: is that the port for http?"
        assert said(settings(f"https://{plain}", authority)) == (NoTls, words)
    with saying(b"\x15\x03\x03\x00\x02\x02\x50") as secure:  # as Jetty does
        assert said(settings(f"http://{secure}")) == (OnlyTls, "what answers there speaks TLS only: use https")


@pytest.mark.parametrize("key", ["ca_file", "client_cert_file"])
@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_a_file_of_certificates_that_is_none_is_told(key: str, content: str | None, tmp_path: Path) -> None:
    """A missing or invalid file of certificates is refused with its key when the reader is made."""
    file = tmp_path / "certificates.pem"
    if content is not None:
        file.write_text(content)
    keys: dict[str, Any] = {key: str(file)}
    made = AdminSettings(("https://b:8443",), **keys)
    with pytest.raises(ConfigurationError, match=f"`{key}` .*certificates.pem cannot be used"):
        Reader(made)


def test_a_key_without_its_certificate_is_told() -> None:
    with pytest.raises(ConfigurationError, match="client_key_file"):
        settings("https://b:8443", client_key_file="key.pem")


def test_behind_a_front_door_the_cluster_can_be_asked_and_no_broker(broker: ScriptedBroker) -> None:
    broker.on(TENANTS, answer(["t"]))
    with Reader(settings(broker.url, front_door=True)) as reader:
        assert reader.tenants() == ("t",)
        for each in (broker.id, "b-1:8080"):
            with pytest.raises(BehindFrontDoor) as caught:
                reader.at(each)
            assert caught.value.reason == BEHIND_FRONT_DOOR


def test_a_front_door_with_a_map_is_a_contradiction() -> None:
    with pytest.raises(ConfigurationError, match=r"`front_door` .* `address_map`"):
        settings("https://b:8443", front_door=True, address_map=address_map({"b:1": "https://c:1"}))


def test_all_of_it_travels_to_other_processes() -> None:
    """Settings of how brokers are reached are the same after they were passed on through environment variables."""
    given = AdminSettings(
        ("https://a:1", "https://b:2"),
        SecretStr("made-up"),
        AdminPolicy(),
        "/ca.pem",
        token_file="/token",
        client_cert_file="/cert.pem",
        client_key_file="/key.pem",
        address_map=address_map({"b:8080": "https://c:8443", "*:8080": "https://*:8443"}),
        proxy="http://proxy:3128",
    )
    door = AdminSettings(("https://a:1",), front_door=True)
    for each in (given, door):
        assert AdminSettings.from_environment(each.in_environment({}), each.limits) == each


def test_a_redirect_off_the_front_door_is_refused(make_broker: MakeBroker) -> None:
    door, member = make_broker(), make_broker()
    door.on(MEMBERS, answer([door.id, member.id]))
    door.on(TENANTS, redirect(f"{member.url}{TENANTS}"))
    with Reader(settings(door.url, front_door=True)) as reader, pytest.raises(RedirectRefused):
        reader.tenants()
    assert member.connections == []
