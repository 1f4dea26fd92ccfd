"""Credentials: a token file that rotates, OAuth2's client credentials, basic authentication, a plug-in."""

from __future__ import annotations

import base64
import json
import os
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pulsar_steward.errors import AdminError, ConfigurationError, NeverSent, NoAccessToken, NotAllowed
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar import credentials, oauth2
from pulsar_steward.pulsar.logins import Basic, ClientCredentials, Plugin, basic_in, oauth2_in
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.transport import Transport
from tests.cases import row_by_row
from tests.oauth2_issuer import DISCOVERY, TOKEN_PATH, Issuer
from tests.unit.pulsar.scripted import Handler, Reply, ScriptedBroker, answer, redirect

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.pulsar.conftest import MakeBroker


TENANTS = "/admin/v2/tenants"
SECRET = "a-client-secret-of-words"
WRITES: Any = frozenset({"GET", "PUT"})


@pytest.fixture
def issuer(make_broker: MakeBroker) -> Issuer:
    """Gives `first`, then `second`."""
    return Issuer(make_broker(), ["first", "second"], SECRET)


class Clock:
    """A clock that goes on when it is told to: the machine's may jump far ahead of a short-lived token."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Returns the seconds of this clock, in place of `time.monotonic`."""
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The one by which access tokens end."""
    clock = Clock()
    monkeypatch.setattr(oauth2, "time", clock)
    return clock


def let_in_with(*tokens: str) -> Reply:
    """Answers who has one of these tokens, and 401 to others."""

    def reply(handler: Handler) -> None:
        known = handler.headers.get("Authorization") in {f"Bearer {token}" for token in tokens}
        (answer(["t"]) if known else answer({"reason": "not you"}, status=401))(handler)

    return reply


def by_oauth2(broker: ScriptedBroker, issuer: Issuer, **fields: Any) -> AdminSettings:
    values = {"issuer_url": issuer.url, "audience": "urn:pulsar", "scope": "admin", **fields}
    login = ClientCredentials("steward", SecretStr(values.pop("secret", SECRET)), **values)
    return AdminSettings((broker.url,), limits=AdminPolicy(read_attempts=1), login=login)


def test_an_access_token_is_asked_for_once_and_sent_along(broker: ScriptedBroker, issuer: Issuer) -> None:
    """One access token is requested by the form that Pulsar's own clients send, and serves several readers."""
    broker.on(TENANTS, let_in_with("first"))
    made = by_oauth2(broker, issuer)
    for _ in range(3):
        with Reader(made) as reader:
            assert reader.tenants() == ("t",)
    assert issuer.asked == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["steward"],
            "client_secret": [SECRET],
            "audience": ["urn:pulsar"],
            "scope": ["admin"],
        }
    ]


def test_the_address_of_tokens_may_be_named_itself(broker: ScriptedBroker, issuer: Issuer) -> None:
    broker.on(TENANTS, let_in_with("first"))
    with Reader(by_oauth2(broker, issuer, issuer_url=None, token_url=f"{issuer.url}{TOKEN_PATH}")) as reader:
        assert reader.tenants() == ("t",)
    assert issuer.server.asked_for(DISCOVERY) == []


@pytest.mark.parametrize(("lives", "still", "due"), [(100, 79, 81), (3600, 3539, 3541)])
def test_the_next_one_is_asked_for_before_the_first_one_ends(
    lives: int, still: int, due: int, broker: ScriptedBroker, issuer: Issuer, clock: Clock
) -> None:
    """A new access token is requested when a fifth of the present one's lifetime, or a minute if less, is left."""
    issuer.expires_in = lives
    broker.on(TENANTS, answer([]))
    with Reader(by_oauth2(broker, issuer)) as reader:
        reader.tenants()
        clock.seconds = still
        reader.tenants()
        clock.seconds = due
        reader.tenants()
    assert [asked.authorization for asked in broker.asked] == ["Bearer first", "Bearer first", "Bearer second"]


def test_a_token_that_is_valid_stays_in_use_while_the_issuer_is_down(
    broker: ScriptedBroker, issuer: Issuer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A token is sent until it ends if the issuer fails, and the issuer is not asked again for each call."""
    issuer.expires_in = 100
    broker.on(TENANTS, answer([]))
    with Reader(by_oauth2(broker, issuer)) as reader:
        reader.tenants()
        issuer.server.on(TOKEN_PATH, answer({"error": "server_error"}, status=500))
        clock.seconds = 81
        reader.tenants()
        reader.tenants()
        assert len([asked for asked in issuer.server.asked if asked.path == TOKEN_PATH]) == 2
        clock.seconds = 101
        with pytest.raises(NoAccessToken):
            reader.tenants()
    assert [asked.authorization for asked in broker.asked] == ["Bearer first"] * 3
    assert "still valid" in caplog.text


def test_a_401_has_it_renewed_once(broker: ScriptedBroker, issuer: Issuer) -> None:
    """After a 401 a new access token is requested, and the read is sent again with it."""
    broker.on(TENANTS, let_in_with("second"))
    with Reader(by_oauth2(broker, issuer)) as reader:
        assert reader.tenants() == ("t",)
    assert [asked.authorization for asked in broker.asked] == ["Bearer first", "Bearer second"]


def test_a_401_again_is_the_answer(broker: ScriptedBroker, issuer: Issuer) -> None:
    """A second 401 is final: the issuer is asked for two tokens in all, also when further calls are refused."""
    issuer.tokens = [f"token-{number}" for number in range(50)]
    broker.on(TENANTS, answer({"reason": "not you"}, status=401))
    with Reader(by_oauth2(broker, issuer)) as reader:
        for _ in range(5):
            with pytest.raises(NotAllowed):
                reader.tenants()
    assert len(issuer.asked) == 2


def test_a_change_is_not_sent_again_after_a_401(broker: ScriptedBroker, issuer: Issuer) -> None:
    broker.on("/x", let_in_with("second"))
    with Transport(by_oauth2(broker, issuer), WRITES) as transport:
        with pytest.raises(NotAllowed):
            transport.send("PUT", "/x")
        assert [asked.authorization for asked in broker.asked] == ["Bearer first"]
        transport.send("PUT", "/x")
    assert [asked.authorization for asked in broker.asked] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("trouble", ["the issuer fails", "the issuer is gone", "another place gives tokens"])
def test_a_401_is_the_answer_where_no_newer_token_is_given(
    trouble: str, make_broker: MakeBroker, issuer: Issuer, refusing: str
) -> None:
    """A change that got a 401 raises `NotAllowed` if no new token can be had, and no other broker gets it."""
    first, second = make_broker(), make_broker()
    second.on("/x", answer(status=204))

    def refuse(handler: Handler) -> None:
        if trouble == "the issuer fails":
            issuer.server.on(TOKEN_PATH, answer({"error": "server_error"}, status=500))
        elif trouble == "the issuer is gone":
            issuer.server.on(DISCOVERY, redirect(f"http://{refusing}/"))
        else:
            issuer.server.on(DISCOVERY, answer({"token_endpoint": f"http://{refusing}{TOKEN_PATH}"}))
        answer({"reason": "not you"}, status=401)(handler)

    first.on("/x", refuse)
    made = replace(by_oauth2(first, issuer), urls=(first.url, second.url))
    with Transport(made, WRITES) as transport, pytest.raises(NotAllowed, match="not you"):
        transport.send("PUT", "/x")
    assert second.connections == []


def test_a_token_that_was_not_given_for_now_is_asked_for_again(broker: ScriptedBroker, issuer: Issuer) -> None:
    """A read is tried again if the issuer is unavailable for the moment and gives no access token."""
    broker.on(TENANTS, let_in_with("first"))
    given = issuer.reply()
    issuer.server.on(TOKEN_PATH, answer({"error": "temporarily_unavailable"}, status=503), given)
    with Reader(replace(by_oauth2(broker, issuer), limits=AdminPolicy(read_attempts=2))) as reader:
        assert reader.tenants() == ("t",)


def test_a_change_for_which_no_token_was_given_was_never_sent(broker: ScriptedBroker, issuer: Issuer) -> None:
    issuer.server.on(TOKEN_PATH, answer({"error": "server_error"}, status=500))
    never_sent = pytest.raises(NeverSent, match="the issuer refuses: server_error")
    with Transport(by_oauth2(broker, issuer), WRITES) as transport, never_sent:
        transport.send("PUT", "/x")
    assert broker.asked == []


def test_an_issuer_that_refuses_is_told_without_the_secret(broker: ScriptedBroker, issuer: Issuer) -> None:
    wrong = "another-secret-of-many-words"
    with Reader(by_oauth2(broker, issuer, secret=wrong)) as reader, pytest.raises(NoAccessToken) as caught:
        reader.tenants()
    assert caught.value.reason == "the issuer refuses: invalid_client: no client has the secret ***"
    assert broker.asked == []


@row_by_row(
    "given",
    answer(b"<html>hidden"),
    answer({"token": "hidden"}),
    answer({"access_token": "hidden words"}),
    answer({"access_token": "", "refresh_token": "hidden"}),
    answer({"access_token": "hidden\nbreak"}),
    answer({"access_token": "hidden", "token_type": "mac"}),
    answer({"access_token": "other", "token_type": "hidden"}),
)
def test_what_is_no_bearer_token_is_not_sent(given: Reply, broker: ScriptedBroker, issuer: Issuer) -> None:
    """An issuer's answer without a bearer token raises an error that does not quote it, and the broker is not asked."""
    issuer.server.on(TOKEN_PATH, given)
    with Reader(by_oauth2(broker, issuer)) as reader, pytest.raises(NoAccessToken, match="the issuer gave") as caught:
        reader.tenants()
    assert "hidden" not in str(caught.value)
    assert broker.asked == []


@row_by_row(
    "fields, words",
    ({}, "`issuer_url` or `token_url`"),
    ({"issuer_url": "https://i", "token_url": "https://i/t"}, "one of both"),
    ({"issuer_url": "i.example.org"}, "`issuer_url` is no address"),
    ({"issuer_url": "https://me:hidden@i"}, "`issuer_url` is no address"),
)
def test_client_credentials_that_cannot_work_are_told(fields: dict[str, str], words: str) -> None:
    """An error about client credentials names the wrong key and shows no password."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        ClientCredentials("steward", SecretStr("hidden"), **fields)
    assert "hidden" not in str(caught.value)


def test_a_file_as_pulsars_own_clients_have_it(tmp_path: Path) -> None:
    """A file is read as Pulsar's own clients write it, and values that are given elsewhere take precedence."""
    file = tmp_path / "key.json"
    written = {"type": "client_credentials", "client_id": "c", "client_secret": "s", "issuer_url": "https://i"}
    file.write_text(json.dumps(written))
    made = oauth2_in(file, {"audience": "urn:x", "client_id": None})
    assert made == ClientCredentials("c", SecretStr("s"), issuer_url="https://i", audience="urn:x")
    assert oauth2_in(file, {"client_id": "d"}).client_id == "d"


@row_by_row(
    "content, words",
    (None, "key.json cannot be read: there is no such file: check its path"),
    ("{hidden", "key.json cannot be read: it is no valid JSON"),
    ('["hidden"]', "key.json cannot be read: it is no JSON object"),
    ("\udcff", "key.json cannot be read: it is no text in UTF-8"),
    ('{"client_id": "hidden"}', "`client_secret` in `oauth2_file`"),
)
def test_a_file_of_client_credentials_that_is_none_is_told(content: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    if content is not None:
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=words) as caught:
        oauth2_in(file)
    assert "hidden" not in str(caught.value)
    assert caught.value.__context__ is None


def rotating(broker: ScriptedBroker, file: Path) -> AdminSettings:
    token = SecretStr(file.read_text().strip())
    return AdminSettings((broker.url,), token, AdminPolicy(read_attempts=1), token_file=str(file))


def put(file: Path, token: str) -> None:
    """Puts a token in the place of another one, as secrets that are mounted change."""
    new = file.with_suffix(".new")
    new.write_text(f"{token}\n")
    new.replace(file)


def test_a_token_file_is_read_again_when_it_changes(broker: ScriptedBroker, tmp_path: Path) -> None:
    file = tmp_path / "token"
    put(file, "first")
    broker.on(TENANTS, answer([]))
    with Reader(rotating(broker, file)) as reader:
        reader.tenants()
        put(file, "second")
        reader.tenants()
        file.unlink()
        reader.tenants()
        put(file, "not a token")
        reader.tenants()
        put(file, "third")
        reader.tenants()
    sent = [asked.authorization for asked in broker.asked]
    assert sent == [f"Bearer {token}" for token in ("first", "second", "second", "second", "third")]


def test_a_token_file_that_was_written_to_in_place_is_read_after_a_401(broker: ScriptedBroker, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first1")
    seen = file.stat()
    broker.on(TENANTS, let_in_with("second"))
    made = rotating(broker, file)
    with Reader(made) as reader:
        reader._transport._exchange._credential.headers(broker.url)  # it is read now
        file.write_text("second")
        os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert reader.tenants() == ("t",)


def test_a_token_file_that_only_another_machine_has_is_no_failure(broker: ScriptedBroker, tmp_path: Path) -> None:
    made = AdminSettings((broker.url,), SecretStr("first"), token_file=str(tmp_path / "elsewhere"))
    broker.on(TENANTS, answer([]))
    with Reader(made) as reader:
        reader.tenants()
    assert broker.asked[0].authorization == "Bearer first"


def test_basic_authentication(broker: ScriptedBroker) -> None:
    """Basic authentication sends the user name and the password in the header that HTTP defines for it."""
    broker.on(TENANTS, answer([]))
    made = AdminSettings((broker.url,), login=Basic("me", SecretStr("pass:wörd")))
    with Reader(made) as reader:
        reader.tenants()
    sent = base64.b64encode("me:pass:wörd".encode()).decode()
    assert broker.asked[0].authorization == f"Basic {sent}"


@pytest.mark.parametrize(
    ("username", "password"), [("", "p"), ("a:b", "p"), ("a\n", "p"), ("a", ""), ("a", "hid\nden")]
)
def test_a_user_or_password_that_cannot_be_sent_is_told(username: str, password: str) -> None:
    """A user name or a password that cannot be sent is refused, and the error does not show the password."""
    with pytest.raises(ConfigurationError, match="basic authentication") as caught:
        Basic(username, SecretStr(password))
    assert "hid" not in str(caught.value)


def test_a_file_of_a_user_and_a_password(tmp_path: Path) -> None:
    """A file with one line `user:password` is read; the error about other content does not show the content."""
    file = tmp_path / "basic"
    file.write_text("me:pass:word\n")
    assert basic_in(file) == Basic("me", SecretStr("pass:word"))
    file.write_text("hidden")
    with pytest.raises(ConfigurationError, match="`user:password`") as caught:
        basic_in(file)
    assert "hidden" not in str(caught.value)


class _EntryPoint:
    def __init__(self, call: Any) -> None:
        self._call = call

    def load(self) -> Any:
        """Module that was installed."""
        return self._call


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Callables that packages offer, by name."""
    offered: dict[str, Any] = {}

    def entry_points(group: str, name: str) -> list[_EntryPoint]:
        assert group == "pulsar_steward.auth_headers"
        return [_EntryPoint(offered[name])] if name in offered else []

    monkeypatch.setattr(credentials, "entry_points", entry_points)
    oauth2._credential_of.cache_clear()
    return offered


def test_a_plug_in_gives_headers_such_as_for_athenz(installed: dict[str, Any], broker: ScriptedBroker) -> None:
    asked = []

    def headers(url: str) -> dict[str, str]:
        asked.append(url)
        return {"Authorization": "Athenz a-role-token"}

    installed["athenz"] = headers
    broker.on(TENANTS, answer([]))
    with Reader(AdminSettings((broker.url,), login=Plugin("athenz"))) as reader:
        reader.tenants()
    assert broker.asked[0].authorization == "Athenz a-role-token"
    assert asked == [f"{broker.url}{TENANTS}"]


def test_a_plug_in_that_is_not_installed_is_told(installed: dict[str, Any]) -> None:
    """Only an entry point of an installed package can be a plug-in; the path of a callable is refused."""
    assert installed == {}
    for name in ("athenz", "os.system"):
        with pytest.raises(ConfigurationError, match="no installed package offers"):
            Reader(AdminSettings(("http://127.0.0.1:1",), login=Plugin(name)))
    with pytest.raises(ConfigurationError, match="entry point"):
        Plugin("os:system")


@pytest.mark.parametrize("made", [ValueError("hidden"), {"X": "a\r\nY: hidden"}, {"X Y": "hidden"}, {"X": 1}, "hidden"])
def test_a_plug_in_that_gives_no_headers_is_told(made: Any, installed: dict[str, Any], broker: ScriptedBroker) -> None:
    """A plug-in that fails or returns invalid headers raises an error without its words, and no call is sent."""

    def headers(_: str) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    installed["broken"] = headers
    with (
        Reader(AdminSettings((broker.url,), login=Plugin("broken"))) as reader,
        pytest.raises(ConfigurationError, match="returned no headers") as caught,
    ):
        reader.tenants()
    assert "hidden" not in str(caught.value)
    assert broker.asked == []


def test_two_ways_to_be_let_in_are_a_contradiction() -> None:
    """Settings with both a token and a login are refused, as it is not clear which one was meant."""
    with pytest.raises(ConfigurationError, match="leave one of them out"):
        AdminSettings(("https://a:1",), SecretStr("t"), login=Basic("a", SecretStr("b")))


@row_by_row(
    "login",
    Basic("me", SecretStr("pass word")),
    ClientCredentials("c", SecretStr("s"), issuer_url="https://i", audience="a", scope="b", ca_file="/ca"),
    ClientCredentials("c", SecretStr("s"), token_url="https://i/t"),
    Plugin("athenz"),
)
def test_logins_travel_to_other_processes(login: Any) -> None:
    """A login is the same after it was passed on through an environment variable or by pickle."""
    given = AdminSettings(("https://a:1",), login=login)
    assert AdminSettings.from_environment(given.in_environment({}), given.limits) == given
    assert pickle.loads(pickle.dumps(given)) == given  # noqa: S301 - as Spark hands it to executors


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "other"}', '{"kind": "basic", "hidden": 1}'])
def test_a_login_in_the_environment_that_is_none_is_told(text: str) -> None:
    """The error about an invalid login in the environment does not show the variable's content."""
    environment = {"STEWARD_ADMIN_URLS": "https://a:1", "STEWARD_ADMIN_LOGIN": text}
    with pytest.raises(ConfigurationError, match="login in the environment") as caught:
        AdminSettings.from_environment(environment, AdminPolicy())
    assert "hidden" not in str(caught.value)


def test_an_issuer_that_cannot_be_reached_is_told(broker: ScriptedBroker, refusing: str) -> None:
    """The error about an issuer that cannot be reached names the issuer's address."""
    login = ClientCredentials("steward", SecretStr(SECRET), issuer_url=f"http://{refusing}")
    made = AdminSettings((broker.url,), limits=AdminPolicy(read_attempts=1), login=login)
    with Reader(made) as reader, pytest.raises(AdminError, match=refusing):
        reader.tenants()
