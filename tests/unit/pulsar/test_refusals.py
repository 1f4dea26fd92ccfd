"""What a refused call says about the credentials that were sent: from where, and why they do not suffice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from pulsar_steward.errors import NotAllowed
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.faults import why_refused
from pulsar_steward.pulsar.logins import Basic, Plugin
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from tests.unit.cli.test_doctor import a_token
from tests.unit.pulsar.scripted import answer, raw

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.pulsar.scripted import ScriptedBroker

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
        "no credentials were sent, and this cluster demands some: give a superuser's token by --token-file"
    )
    assert said(broker, a_token(sub="watcher"), "--token-file /place/token") == (
        "asked by a token for 'watcher', from --token-file /place/token, which the broker does not accept: it has"
        " expired, is meant for another cluster, or is signed by another key"
    )


@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (401, "requires super-user access")])
def test_a_role_that_may_not_is_told(broker: ScriptedBroker, status: int, reason: str) -> None:
    """A broker that gives a reason knows the role, which the error names."""
    broker.on(TENANTS, answer({"reason": reason}, status=status))
    assert said(broker, a_token(sub="watcher"), "the variable X") == (
        "asked by a token for 'watcher', from the variable X, which may not do this: its role has to be a superuser's"
    )


def test_the_token_that_was_sent_last_is_the_one_that_expired(broker: ScriptedBroker, tmp_path: Path) -> None:
    """A token file that was replaced by an expired token is told by that token's role and time."""
    broker.on(TENANTS, PAGE)
    file = tmp_path / "token"
    file.write_text(a_token(sub="late", exp=86_400), encoding="utf-8")
    words = said(broker, a_token(sub="first"), "here", str(file))
    assert words == "asked by a token for 'late', from here, which expired at 1970-01-02 00:00 UTC: have a new one made"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (AdminSettings(URLS), "no credentials were sent"),
        (
            AdminSettings(URLS, login=Basic("ann", SecretStr("made-up")), origin="--basic-file f"),
            (
                "asked as user 'ann', by a password, from --basic-file f, which the broker does not accept: the user"
                " or the password is wrong"
            ),
        ),
        (
            AdminSettings(URLS, client_cert_file="c.pem", origin="--client-cert c.pem"),
            (
                "asked by a client certificate, from --client-cert c.pem, which the broker does not accept: it stands"
                " for nobody there"
            ),
        ),
        (
            AdminSettings(URLS, login=Plugin("athenz")),
            (
                "asked by headers of the plug-in 'athenz', from these settings, which the broker does not accept: they"
                " are wrong, or it wants credentials of another kind"
            ),
        ),
    ],
    ids=["a server that is no broker", "basic", "certificate", "plug-in"],
)
def test_each_kind_of_credentials_has_its_words(made: AdminSettings, words: str) -> None:
    """A 401 names the kind of credentials, and what may be wrong with those."""
    assert why_refused(made, None, 401, reasoned=False) == words
