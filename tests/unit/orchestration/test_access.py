"""Credentials in Airflow connections: what stands in password, login and extra, and what contradicts itself."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pulsar
import pytest
from pydantic import SecretStr

from pulsar_steward.collect.kafka.settings import KafkaSettings, kafka_in
from pulsar_steward.errors import ConfigurationError, NoAccessToken
from pulsar_steward.model.system import System
from pulsar_steward.orchestration import connections, events
from pulsar_steward.orchestration.airflow_answers import connected
from pulsar_steward.orchestration.connections import ChangeAccess
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.logins import Basic, ClientCredentials, Plugin
from pulsar_steward.pulsar.settings import AdminSettings
from tests.cases import row_by_row
from tests.oauth2_issuer import Issuer
from tests.unit.pulsar.scripted import scripted_brokers

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hidden-secret"


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with credentials may be anywhere, unless a test says otherwise."""
    monkeypatch.setenv("STEWARD_SECRETS_FOLDERS", "/")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Settings of a connection with these fields."""

    def made(**fields: Any) -> AdminSettings:
        said = {"conn_type": "http", "host": "broker", "port": 8443, "schema": "https", **fields}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_ADMIN_EAST", json.dumps(said))
        return connections.admin_settings("east", Policy())

    return made


@row_by_row(
    "fields, login",
    ({"login": "me", "extra": {"auth": "basic"}}, Basic("me", SecretStr(SECRET))),
    ({"extra": {"auth_plugin": "athenz"}}, Plugin("athenz")),
    (
        {"login": "c", "extra": {"issuer_url": "https://i", "audience": "urn:x", "scope": "s"}},
        ClientCredentials("c", SecretStr(SECRET), issuer_url="https://i", audience="urn:x", scope="s"),
    ),
    (
        {"extra": {"token_url": "https://i/t", "client_id": "c", "issuer_ca_file": "/ca"}},
        ClientCredentials("c", SecretStr(SECRET), token_url="https://i/t", ca_file="/ca"),
    ),
)
def test_what_the_extra_names_decides(fields: dict[str, Any], login: Any, admin: Any) -> None:
    """The fields of a connection's extra decide which kind of login its password belongs to."""
    made = admin(password=SECRET, **fields)
    assert made.login == login
    assert made.token is None
    assert SECRET not in repr(made)


def test_a_login_alone_changes_nothing(admin: Any) -> None:
    """The password remains a token where the connection has a login and no extra."""
    made = admin(login="me", password=SECRET)
    assert (made.login, made.token) == (None, SecretStr(SECRET))


def test_client_credentials_in_a_file(admin: Any, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    told = {"client_id": "c", "client_secret": SECRET, "issuer_url": "https://i", "audience": "urn:file", "scope": "s"}
    file.write_text(json.dumps(told))
    made = admin(extra={"oauth2_file": str(file), "audience": "urn:x"})
    assert made.login == ClientCredentials("c", SecretStr(SECRET), issuer_url="https://i", audience="urn:x", scope="s")


def test_a_token_file(admin: Any, tmp_path: Path) -> None:
    """A token file that cannot be read is an error at once; otherwise its present token and its path are kept."""
    file = tmp_path / "token"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        admin(extra={"token_file": str(file)})
    file.write_text(f"{SECRET}\n")
    made = admin(extra={"token_file": str(file)})
    assert (made.token, made.token_file) == (SecretStr(SECRET), str(file))
    file.write_text("another\n")
    assert admin(extra={"token_file": str(file)}).token == SecretStr("another")


def test_transport(admin: Any) -> None:
    """Certificates, proxy, address map and front door are read from the extra, given as JSON values or as text."""
    extra = {
        "client_cert_file": "/cert.pem",
        "client_key_file": "/key.pem",
        "ca_file": "/ca.pem",
        "proxy": "http://proxy:3128",
        "address_map": {"b-1:8080": "https://c:8443"},
    }
    made = admin(extra=extra)
    assert (made.client_cert_file, made.client_key_file, made.ca_file) == ("/cert.pem", "/key.pem", "/ca.pem")
    assert (made.proxy, made.address_map) == ("http://proxy:3128", (("b-1:8080", "https://c:8443"),))
    assert admin(extra={**extra, "address_map": json.dumps(extra["address_map"])}) == made
    assert admin(extra={"front_door": "true"}).front_door is True


@row_by_row(
    "extra, words",
    ({"auth": "basic", "issuer_url": "https://i"}, "several kinds of credentials: `issuer_url`, `auth`"),
    ({"auth": "ntlm"}, "`auth` in the extra"),
    ({"auth": "basic"}, "basic authentication needs a user"),
    ({"issuer_url": "https://i"}, "`client_id`"),
    ({"token_file": "/token"}, "`token_file`, and a password"),
    ({"front_door": "perhaps"}, "`front_door` in the extra"),
    ({"address_map": "{"}, "`address_map`"),
    ({"proxy": "proxy:3128"}, "`proxy`"),
    ({"client_key_file": "/key.pem"}, "`client_key_file`"),
)
def test_what_contradicts_itself_is_told_with_its_key(extra: dict[str, Any], words: str, admin: Any) -> None:
    """A contradictory or invalid extra is refused with an error that names its key and not the password."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        admin(password=SECRET, extra=extra)
    assert SECRET not in str(caught.value)


CHANGING = "hidden-secret-of-the-other"


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch, admin: Any) -> Any:
    """Access for changing, by a connection with these fields; that for looking reaches brokers in a way of its own."""

    def made(**fields: Any) -> ChangeAccess:
        reaching = {"ca_file": "/ca.pem", "proxy": "http://proxy:3128", "address_map": {"b-1:8080": "https://c:8443"}}
        admin(password=SECRET, extra={**reaching, "client_cert_file": "/cert.pem", "token_file": None})
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_CHANGE_EAST", json.dumps({"conn_type": "http", **fields}))
        return connections.change_access("east", Policy())

    return made


def test_without_another_connection_one_serves_both(admin: Any) -> None:
    """The admin connection also serves for changes when there is no change connection, unless it is `read_only`."""
    looking = admin(password=SECRET)
    assert connections.change_access("east", Policy()) == ChangeAccess(looking)
    admin(password=SECRET, extra={"read_only": "true"})
    with pytest.raises(ConfigurationError, match=r"'pulsar_admin_east' is for looking only.*no 'pulsar_change_east'"):
        connections.change_access("east", Policy())


def test_a_connection_without_addresses_has_the_others(change: Any) -> None:
    made = change(password=CHANGING)
    looking = connections.admin_settings("east", Policy())
    assert made.observed is None
    assert made.settings == replace(looking, token=SecretStr(CHANGING), client_cert_file=None)
    assert change(login="c", password=CHANGING, extra={"auth": "basic"}).settings.token is None


def test_a_connection_with_addresses_is_one_of_its_own(change: Any) -> None:
    """A change connection with a host uses nothing of the admin connection, which is kept as `observed`."""
    made = change(host="gateway", port=9443, schema="https", password=CHANGING)
    assert (made.settings.urls, made.settings.proxy, made.settings.ca_file) == (("https://gateway:9443",), None, None)
    assert made.observed == connections.admin_settings("east", Policy())


def test_a_way_without_addresses_is_an_error(change: Any) -> None:
    """A connection for changes that names a proxy but no host is a configuration error."""
    with pytest.raises(ConfigurationError, match="'pulsar_change_east' says `proxy`, and no host"):
        change(password=CHANGING, extra={"proxy": "http://other:3128"})


def test_a_secret_goes_unencrypted_where_its_own_connection_says_so(admin: Any) -> None:
    plain = {"schema": "http", "extra": {"allow_unencrypted_token": True}}
    admin(password=SECRET, **plain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_PULSAR_CHANGE_EAST", json.dumps({"conn_type": "http", "password": CHANGING}))
        with pytest.raises(ConfigurationError, match="would travel unencrypted"):
            connections.change_access("east", Policy())
        allowed = {"conn_type": "http", "password": CHANGING, "extra": json.dumps({"allow_unencrypted_token": True})}
        patch.setenv("AIRFLOW_CONN_PULSAR_CHANGE_EAST", json.dumps(allowed))
        assert connections.change_access("east", Policy())


FOLDERS = "STEWARD_SECRETS_FOLDERS"


@pytest.mark.parametrize("key", ["token_file", "oauth2_file", "client_cert_file", "client_key_file"])
def test_files_are_in_folders_for_secrets(
    key: str, admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A credential file outside the allowed folders is refused, also when a link or a relative path leads there."""
    allowed, others = tmp_path / "allowed", tmp_path / "others"
    allowed.mkdir()
    others.mkdir()
    (others / "fernet").write_text(SECRET)
    (allowed / "out").symlink_to(others / "fernet")
    (allowed / "way").symlink_to(others)
    monkeypatch.setenv(FOLDERS, f"{allowed}:{tmp_path / 'none'}")
    for file in (others / "fernet", allowed / "out", allowed / "way" / "fernet", allowed / ".." / "others" / "fernet"):
        with pytest.raises(ConfigurationError, match=rf"`{key}` of .* 'pulsar_admin_east'.*{FOLDERS}") as no:
            admin(extra={key: str(file)})
        assert SECRET not in str(no.value)


def test_a_link_within_the_folders_is_followed(admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "..data").mkdir(parents=True)
    (tmp_path / "real" / "..data" / "token").write_text(SECRET)
    (tmp_path / "real" / "token").symlink_to("..data/token")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    monkeypatch.setenv(FOLDERS, str(tmp_path / "linked"))
    file = tmp_path / "linked" / "token"
    assert admin(extra={"token_file": str(file)}).token_file == str(file)


@pytest.mark.parametrize(
    "file", ["/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/fernet_key", "/etc/passwd", "token"]
)
def test_by_default_only_folders_for_pulsar_are(file: str, admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting, credential files are accepted only from the default folders for Pulsar's secrets."""
    monkeypatch.delenv(FOLDERS)
    with pytest.raises(ConfigurationError, match=r"/run/secrets/pulsar, /var/run/secrets/pulsar, .*/secrets"):
        admin(extra={"token_file": file})


def test_home_holds_secrets_too(admin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default a token file may be in the folder `secrets` of Steward's home, and nowhere else in that home."""
    monkeypatch.delenv(FOLDERS)
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text(SECRET)
    assert admin(extra={"token_file": str(tmp_path / "secrets" / "token")}).token == SecretStr(SECRET)
    (tmp_path / "token").write_text(SECRET)
    with pytest.raises(ConfigurationError, match=FOLDERS):
        admin(extra={"token_file": str(tmp_path / "token")})


class Client:
    """Options that Pulsar's client is made with."""

    def __init__(self, service_url: str, **options: Any) -> None:
        self.service_url, self.options = service_url, options

    def create_producer(self, *_: object, **__: object) -> None:
        """Accepts the call and returns no producer."""


@pytest.fixture
def publishing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Options of the client that publishes under a connection with these fields, and how it lets itself in."""
    made: list[Any] = []
    for name in ("AuthenticationToken", "AuthenticationBasic", "AuthenticationTLS"):
        monkeypatch.setattr(pulsar, name, lambda *given, name=name: made.append((name, given)))
    monkeypatch.setattr(pulsar, "Client", Client)

    def connected(**fields: Any) -> tuple[dict[str, Any], list[Any]]:
        extra = {"service_url": "pulsar+ssl://b:6651", **fields.pop("extra", {})}
        monkeypatch.setenv("AIRFLOW_CONN_PULSAR_EVENTS_EAST", json.dumps({"conn_type": "x", "extra": extra, **fields}))
        sender = events._Sender("east", "persistent://public/default/e", 1)
        sender._connected()
        assert isinstance(sender._client, Client)
        return sender._client.options, made

    return connected


def test_events_by_a_token_and_a_user(publishing: Any) -> None:
    """The client for events authenticates with Pulsar's own classes for a token and for a user with a password."""
    assert publishing(password=SECRET)[1] == [("AuthenticationToken", (SECRET,))]
    assert publishing(login="me", password=SECRET, extra={"auth": "basic"})[1][1:] == [
        ("AuthenticationBasic", ("me", SECRET))
    ]


def test_events_by_a_client_certificate(publishing: Any) -> None:
    """A client certificate alone authenticates the client for events, and a token beside it takes its place."""
    files = {"client_cert_file": "/cert.pem", "client_key_file": "/key.pem"}
    options, made = publishing(extra=files)
    assert made == [("AuthenticationTLS", ("/cert.pem", "/key.pem"))]
    assert options["tls_certificate_file_path"] == "/cert.pem"
    assert options["tls_private_key_file_path"] == "/key.pem"
    assert publishing(password=SECRET, extra=files)[1][1:] == [("AuthenticationToken", (SECRET,))]


def test_events_by_a_token_file(publishing: Any, tmp_path: Path) -> None:
    """The client for events reads the token file anew whenever it asks for the token."""
    file = tmp_path / "token"
    file.write_text("first")
    ((name, (supplier,)),) = publishing(extra={"token_file": str(file)})[1]
    assert (name, supplier()) == ("AuthenticationToken", "first")
    file.write_text("the-second")
    assert supplier() == "the-second"


def test_events_by_client_credentials(publishing: Any, tmp_path: Path) -> None:
    """The client for events gets a new access token after expiry, and a refusal is an error without secrets."""
    with scripted_brokers() as start:
        issuer = Issuer(start(), ["first", "second"], SECRET)
        issuer.expires_in = 0.01
        file = tmp_path / "oauth2.json"
        file.write_text(json.dumps({"client_id": "steward", "client_secret": SECRET, "issuer_url": issuer.url}))
        ((name, (supplier,)),) = publishing(extra={"oauth2_file": str(file)})[1]
        assert name == "AuthenticationToken"
        time.sleep(0.02)
        assert supplier() == "second"
        with pytest.raises(NoAccessToken, match="the issuer refuses") as caught:
            publishing(login="steward", password="hidden-other", extra={"issuer_url": issuer.url})
    assert "hidden" not in str(caught.value)


def test_events_by_a_plug_in_are_refused(publishing: Any) -> None:
    with pytest.raises(ConfigurationError, match="events go nowhere: `auth_plugin`"):
        publishing(extra={"auth_plugin": "athenz"})


@pytest.mark.parametrize(
    "fields", [{"login": "c", "extra": {"issuer_url": "https://i"}}, {"login": "me", "extra": {"auth": "basic"}}]
)
def test_no_secret_of_events_travels_unencrypted(fields: dict[str, Any], publishing: Any) -> None:
    """The client for events refuses to send client credentials or a password over an unencrypted connection."""
    fields["extra"] = {**fields["extra"], "service_url": "pulsar://broker:6650"}
    with pytest.raises(ConfigurationError, match="would travel unencrypted"):
        publishing(password=SECRET, **fields)


@row_by_row(
    "fields, origin",
    ({}, "the password of the connection 'pulsar_admin_east'"),
    ({"password": SECRET}, "the connection 'pulsar_admin_east'"),
    ({"extra": {"client_cert_file": "/c.pem"}}, "`client_cert_file` /c.pem of the connection 'pulsar_admin_east'"),
)
def test_messages_name_where_credentials_are_from(fields: dict[str, Any], origin: str, admin: Any) -> None:
    """The origin of credentials is their connection, or the field of it that would hold a token."""
    assert admin(**fields).origin == origin


def test_messages_name_the_connection_that_changes(change: Any) -> None:
    assert change(password=CHANGING).settings.origin == "the connection 'pulsar_change_east'"
    assert change().settings.origin == "the password of the connection 'pulsar_change_east'"


def test_a_fleet_has_the_settings_of_each_connection(admin: Any) -> None:
    """As variables of another process, with the region that the extra names; one that is missing says so."""
    made = admin(password=SECRET, extra={"region": "eu", "proxy": "http://127.0.0.1:3128"})
    found = connected("east")
    assert (found.region, found.trouble) == ("eu", "")
    assert AdminSettings.from_environment(found.variables, Policy().admin) == made
    missing = connected("no-such")
    assert (missing.variables, "no Airflow connection 'pulsar_admin_no-such'" in missing.trouble) == ({}, True)


def test_a_kafka_cluster_is_only_looked_at(admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is that of Airflow's provider; whatever else asks for it, as to change it, is refused."""
    kafka = {"bootstrap.servers": "kafka:9093", "security.protocol": "SASL_SSL", "region": "eu"}
    with pytest.raises(ConfigurationError, match="'pulsar_admin_east' is of a Kafka cluster, and a Pulsar cluster"):
        admin(conn_type="kafka", login="reader", password=SECRET, extra=kafka)
    found = connected("east")
    assert (found.region, found.trouble) == ("eu", "")
    properties = {"security.protocol": "SASL_SSL", "sasl.username": "reader", "sasl.password": SECRET}
    assert kafka_in(found.variables) == KafkaSettings(servers="kafka:9093", properties=properties)
    assert connections.observed_settings("east", Policy()) == kafka_in(found.variables)
    assert (connections.system_of("east"), connections.system_of("nowhere")) == (System.KAFKA, System.PULSAR)
    with pytest.raises(ConfigurationError, match="there is nothing to change"):
        connections.change_access("east", Policy())
    monkeypatch.setenv("STEWARD_SECRETS_FOLDERS", "/no/such")
    with pytest.raises(ConfigurationError):
        admin(conn_type="kafka", extra=kafka | {"ssl.key.location": "/etc/passwd"})
    assert "is not in a folder for secrets of this worker" in connected("east").trouble
