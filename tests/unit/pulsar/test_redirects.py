"""Answers that are none: redirects and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pulsar_steward.errors import NeverSent, NotAllowed, RedirectRefused, ServerError, Unreachable
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.faults import why_refused
from pulsar_steward.pulsar.logins import Basic, Plugin
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from tests.cases import cases, row_by_row
from tests.unit.cli.test_doctor import a_token
from tests.unit.pulsar.conftest import TOKEN, MakeBroker, MakeTransport, Pair
from tests.unit.pulsar.scripted import MEMBERS, ScriptedBroker, answer, raw, redirect

if TYPE_CHECKING:
    from pathlib import Path


PATH = "/admin/v2/namespaces/t/n/0x00000000_0x80000000/unload"
BEARER = f"Bearer {TOKEN}"


@pytest.fixture
def pair(make_broker: MakeBroker) -> Pair:
    """Two members of one cluster: the first redirects to the second."""
    first, second = make_broker(), make_broker()
    first.on(MEMBERS, answer([first.id, second.id]))
    first.on(PATH, redirect(f"{second.url}{PATH}"))
    second.on(PATH, answer(status=204))
    return first, second


@row_by_row(
    "method, status",
    *((method, status) for method in ("GET", "PUT", "POST", "DELETE") for status in (301, 302, 307, 308)),
    ("GET", 303),
)
def test_a_redirect_to_a_member_keeps_method_and_token(
    method: Any, status: int, pair: Pair, transport: MakeTransport
) -> None:
    first, second = pair
    first.on(PATH, redirect(f"{second.url}{PATH}", status))
    given = transport(first.url).send(method, PATH)
    assert given.broker == second.id
    assert [(asked.method, asked.authorization) for asked in second.asked] == [(method, BEARER)]


def test_the_query_of_a_redirect_takes_the_place_of_the_first(pair: Pair, transport: MakeTransport) -> None:
    """The query of a redirect replaces that of the call, so the destination of an unload is there once."""
    first, second = pair
    first.on(PATH, redirect(f"{second.url}{PATH}?destinationBroker=b%3A1&authoritative=true"))
    transport(first.url).send("PUT", PATH, {"destinationBroker": "b:1"})
    assert first.asked_for(PATH)[0].target == f"{PATH}?destinationBroker=b%3A1"
    assert second.asked[0].target == f"{PATH}?destinationBroker=b%3A1&authoritative=true"


LOOKUP = "/lookup/v2/topic/persistent/t/n/topic"


@row_by_row(
    "query, followed",
    ("authoritative=false&listenerName=internal", True),
    ("listenerName=internal&listenerName=other", False),
    ("listenerName=a%26b", False),
    ("listenerName=internal&force=true", False),
)
def test_a_lookup_may_be_sent_on_with_a_listener(
    query: str, pair: Pair, transport: MakeTransport, *, followed: bool
) -> None:
    """As brokers of 5.0.1 do by default, whatever they were asked with; nothing else may be added."""
    first, second = pair
    first.on(LOOKUP, redirect(f"{second.url}{LOOKUP}?{query}"))
    second.on(LOOKUP, answer(b"{}"))
    if followed:
        assert transport(first.url).get(LOOKUP).broker == second.id
        return
    with pytest.raises(RedirectRefused):
        transport(first.url).get(LOOKUP)
    assert second.connections == []


def test_two_redirects_are_followed(make_broker: MakeBroker, transport: MakeTransport) -> None:
    """Two redirects of an unload are followed, to the leader and to the owner, and the members are listed once."""
    first, leader, owner = make_broker(), make_broker(), make_broker()
    first.on(MEMBERS, answer([first.id, leader.id, owner.id]))
    first.on(PATH, redirect(f"{leader.url}{PATH}"))
    leader.on(PATH, redirect(f"{owner.url}{PATH}"))
    owner.on(PATH, answer(status=204))
    assert transport(first.url).send("PUT", PATH).broker == owner.id
    assert len(first.asked_for(MEMBERS)) == 1


def test_a_redirect_within_a_broker_is_relative(broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A redirect without a host is followed at the same broker, and the members are not listed."""
    broker.on(PATH, redirect(f"{PATH}?authoritative=true"), answer(b"[]"))
    assert transport(broker.url).get(PATH).body == b"[]"
    assert [asked.target for asked in broker.asked] == [PATH, f"{PATH}?authoritative=true"]


def test_a_redirect_to_a_stranger_is_refused(make_broker: MakeBroker, transport: MakeTransport) -> None:
    """A redirect to a host that the cluster does not list is refused, and no connection to it is made."""
    first, stranger = make_broker(), make_broker()
    first.on(PATH, redirect(f"{stranger.url}{PATH}"))
    with pytest.raises(RedirectRefused, match=f"redirected to {stranger.id}, which is no web address of a broker"):
        transport(first.url).send("PUT", PATH)
    assert stranger.asked == []
    assert stranger.connections == []


@row_by_row(
    "target",
    "https://{member}{path}",
    "ftp://{member}{path}",
    "file://{path}",
    "javascript:1",
    "http://user:hidden@{member}{path}",
    "http://{member}@elsewhere{path}",
    "//elsewhere{path}",
    "http://[elsewhere",
    "http://",
    "",
)
def test_a_redirect_to_what_is_no_member_is_refused(target: str, pair: Pair, transport: MakeTransport) -> None:
    """A redirect with another scheme, a user or no host is refused, and its password is not quoted."""
    first, second = pair
    first.on(PATH, redirect(target.format(member=second.id, path=PATH)))
    with pytest.raises(RedirectRefused) as caught:
        transport(first.url).send("PUT", PATH)
    assert second.connections == []
    assert "hidden" not in str(caught.value)
    assert len(first.asked_for(PATH)) == 1


def test_a_redirect_in_a_circle_ends(pair: Pair, transport: MakeTransport) -> None:
    """Two brokers that redirect to each other are asked once each, and the call ends with an error."""
    first, second = pair
    second.on(PATH, redirect(f"{first.url}{PATH}"))
    with pytest.raises(RedirectRefused, match="in circles"):
        transport(first.url).send("PUT", PATH)
    assert (len(first.asked_for(PATH)), len(second.asked)) == (1, 1)


@pytest.mark.parametrize("allowed", [1, 4])
def test_redirects_are_bounded(allowed: int, pair: Pair, transport: MakeTransport) -> None:
    """A chain of redirects that never repeats ends with an error at the policy's limit."""
    first, second = pair
    sets = [f"{PATH}?authoritative={value}" for value in ("false", "true")]
    first.on(PATH, redirect(f"{second.url}{PATH}"), *(redirect(f"{second.url}{each}") for each in sets))
    second.on(PATH, *(redirect(f"{first.url}{each}") for each in sets), answer(status=204))
    with pytest.raises(RedirectRefused, match="too often"):
        transport(first.url, redirects=allowed).send("PUT", PATH)
    assert len([asked for asked in first.asked + second.asked if asked.path == PATH]) == allowed + 1


def test_a_list_of_members_that_is_redirected_is_not_believed(
    make_broker: MakeBroker, transport: MakeTransport
) -> None:
    """A redirect of the list of members is not followed, so that a stranger cannot name the members."""
    first, stranger = make_broker(), make_broker()
    first.on(PATH, redirect(f"{stranger.url}{PATH}"))
    first.on(MEMBERS, redirect(f"{stranger.url}{MEMBERS}"))
    with pytest.raises(RedirectRefused):
        transport(first.url).send("PUT", PATH)
    assert stranger.connections == []


def test_without_a_list_of_members_no_redirect_is_followed(pair: Pair, transport: MakeTransport) -> None:
    """A redirect is not followed if the members cannot be listed; the error has the reason."""
    first, second = pair
    first.on(MEMBERS, answer({"reason": "metadata store is down"}, status=500))
    with pytest.raises(ServerError, match="metadata store is down"):
        transport(first.url).send("PUT", PATH)
    assert second.connections == []


@pytest.mark.parametrize("trouble", ["refused", "gone"])
def test_a_change_that_was_redirected_is_in_doubt_where_members_cannot_be_learned(
    trouble: str, pair: Pair, transport: MakeTransport, refusing: str
) -> None:
    """A redirected change may have been sent if the members cannot be listed, and no other broker gets it."""
    first, second = pair
    used = transport(first.url)
    if trouble == "refused":
        first.on(MEMBERS, answer({"reason": "not you"}, status=401))
    else:

        def gone(_: str) -> None:
            raise NeverSent("GET", MEMBERS, refusing, "no connection")

        used._members._ask = gone  # type: ignore[assignment]  # a broker that goes between two calls
    with pytest.raises(Unreachable, match="where to cannot be checked") as caught:
        used.send("PUT", PATH)
    assert not isinstance(caught.value, NeverSent)
    assert second.connections == []
    assert len(first.asked_for(PATH)) == 1


def test_a_configured_base_is_a_member(pair: Pair, transport: MakeTransport) -> None:
    """A redirect to an address of the settings is followed without asking for the list of members."""
    first, second = pair
    assert transport(first.url, second.url).send("PUT", PATH).broker == second.id
    assert first.asked_for(MEMBERS) == []


def test_a_broker_that_joined_later_is_a_member(make_broker: MakeBroker, transport: MakeTransport) -> None:
    """The list of members is read again when a redirect names a broker that it does not hold."""
    first, second, late = make_broker(), make_broker(), make_broker()
    first.on(MEMBERS, answer([first.id, second.id]), answer([first.id, second.id, late.id]))
    first.on(PATH, redirect(f"{second.url}{PATH}"), redirect(f"{late.url}{PATH}"))
    for member in (second, late):
        member.on(PATH, answer(status=204))
    used = transport(first.url)
    assert [used.send("PUT", PATH).broker for _ in range(2)] == [second.id, late.id]


TENANTS = "/admin/v2/tenants"
PAGE = raw(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
URLS = ("http://127.0.0.1:1",)


def said(broker: ScriptedBroker, token: str | None, origin: str, token_file: str | None = None) -> str:
    """Error of a refused call with a token, or with none."""
    given = SecretStr(token) if token else None
    limits = AdminPolicy(read_attempts=1)
    made = AdminSettings((broker.url,), given, limits, token_file=token_file, origin=origin)
    with Reader(made) as reader, pytest.raises(NotAllowed) as refused:
        reader.tenants()
    assert token is None or token not in str(refused.value) + repr(refused.value)
    return str(refused.value).partition("; ")[2]


def test_no_token_is_told_from_a_refused_one(broker: ScriptedBroker) -> None:
    """A 401 without credentials says how to give some; one with a token says which was sent, and that it is wrong."""
    broker.on(TENANTS, PAGE)
    assert said(broker, None, "--token-file") == (
        "no credentials were sent, and this cluster demands some; give a superuser's token by --token-file"
    )
    assert said(broker, a_token(sub="watcher"), "--token-file /place/token") == (
        "asked by a token for 'watcher', from --token-file /place/token, which the broker does not accept: it has"
        " expired, is meant for another cluster, or is signed by another key; give valid credentials of a superuser by"
        " --token-file /place/token"
    )


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (401, "requires super-user access")])
def test_a_role_that_may_not_is_told(broker: ScriptedBroker, status: int, reason: str) -> None:
    """A broker that gives a reason knows the role, which the error names."""
    broker.on(TENANTS, answer({"reason": reason}, status=status))
    assert said(broker, a_token(sub="watcher"), "the variable X") == (
        "asked by a token for 'watcher', from the variable X, which may not do this: its role has to be a superuser's;"
        " give a superuser's credentials by the variable X"
    )


def test_the_token_that_was_sent_last_is_the_one_that_expired(broker: ScriptedBroker, tmp_path: Path) -> None:
    broker.on(TENANTS, PAGE)
    file = tmp_path / "token"
    file.write_text(a_token(sub="late", exp=86_400), encoding="utf-8")
    words = said(broker, a_token(sub="first"), "here", str(file))
    assert words == (
        "asked by a token for 'late', from here, which expired at 1970-01-02 00:00 UTC; have a new one made, and give"
        " it by here"
    )


@cases(
    "made, words",
    ("a server that is no broker", AdminSettings(URLS), "no credentials were sent"),
    (
        "basic",
        AdminSettings(URLS, login=Basic("ann", SecretStr("made-up")), origin="--basic-file f"),
        (
            "asked as user 'ann', by a password, from --basic-file f, which the broker does not accept: the user"
            " or the password is wrong"
        ),
    ),
    (
        "certificate",
        AdminSettings(URLS, client_cert_file="c.pem", origin="--client-cert c.pem"),
        (
            "asked by a client certificate, from --client-cert c.pem, which the broker does not accept: it stands"
            " for nobody there"
        ),
    ),
    (
        "plug-in",
        AdminSettings(URLS, login=Plugin("athenz")),
        (
            "asked by headers of the plug-in 'athenz', from these settings, which the broker does not accept: they"
            " are wrong, or it wants credentials of another kind"
        ),
    ),
)
def test_each_kind_of_credentials_has_its_words(made: AdminSettings, words: str) -> None:
    """A 401 names the kind of credentials, and what may be wrong with those."""
    assert why_refused(made, None, 401, reasoned=False)[0] == words
