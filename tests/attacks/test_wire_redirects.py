"""A broker, or who speaks in its place, that redirects a call: what was approved is called there, or nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from pulsar_steward.errors import RedirectRefused
from pulsar_steward.model.setting import SettingName
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import permitted
from tests.attacks.wire_parts import certificate, over_tls, settings
from tests.unit.pulsar.scripted import MEMBERS, ScriptedBroker, answer, redirect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.pulsar.calls import Call

RETENTION = calls.set_to("persistent://shop/live/orders", SettingName.RETENTION, None)
QUOTA = calls.set_to("shop/live", SettingName.SIZE_QUOTA, None)
UNLOAD = calls.unload("shop/live", "0x00000000_0x80000000", "broker-2:8080")
SPLIT = calls.split("shop/live", "0x00000000_0x80000000", "topic_count_equally_divide")
RIGHT_TO_LEFT = "\u202e".encode().decode("latin-1")  # as it comes over the wire
AWKWARD = calls.set_to("persistent://shop/live/a/b%2Fc ~d", SettingName.RETENTION, None)


@pytest.fixture
def pair(brokers: Callable[[], ScriptedBroker]) -> tuple[ScriptedBroker, ScriptedBroker]:
    """Two members of one cluster; the second one does what it is asked."""
    first, second = brokers(), brokers()
    first.on(MEMBERS, answer([first.id, second.id]))
    for call in (RETENTION, QUOTA, UNLOAD, SPLIT, AWKWARD):
        second.on(call.path, answer(status=204))
    return first, second


def sent_on(pair: tuple[ScriptedBroker, ScriptedBroker], call: Call, path: str, query: str, status: int = 307) -> None:
    """Sends a call that the first broker redirects to the second one, at a path with a query."""
    first, second = pair
    first.on(call.path, redirect(f"{second.url}{path}{'?' if query else ''}{query}", status))
    with Writer(settings(first.url)) as writer:
        writer.send(call, permitted)


OTHER_PATHS = [
    (RETENTION, "/admin/v2/persistent/payments/live/orders/retention", "payments/live/orders/retention"),
    (RETENTION, "/admin/v2/namespaces/shop/live/retention", "namespaces/shop"),
    (RETENTION, RETENTION.path.removesuffix("/retention"), "orders in place of orders/retention"),
    (RETENTION, f"{RETENTION.path}/", "retention/ in place of retention"),
    (RETENTION, f"{RETENTION.path};force=true", "retention;force=true in place of"),
    (RETENTION, RETENTION.path.replace("orders", "Orders"), "Orders/retention in place of orders/retention"),
    (RETENTION, RETENTION.path.replace("orders", "orders%00"), "orders%00"),
    (RETENTION, RETENTION.path.replace("/orders", "/x/../orders"), "another path"),
    (AWKWARD, AWKWARD.path.replace("a%2Fb", "a/b"), "another path"),
    (AWKWARD, AWKWARD.path.replace("%252F", "%2F"), "another path"),
    (AWKWARD, AWKWARD.path.replace("%20", "+"), "another path"),
]


@pytest.mark.parametrize(("call", "path", "words"), OTHER_PATHS)
def test_what_was_approved_for_one_path_is_not_done_at_another(
    call: Call, path: str, words: str, pair: tuple[ScriptedBroker, ScriptedBroker]
) -> None:
    """A change is refused when a redirect leads to another path, and the error says so."""
    with pytest.raises(RedirectRefused) as caught:
        sent_on(pair, call, path, urlencode(call.query))
    assert words in str(caught.value)
    assert pair[1].connections == []


OTHER_QUERIES = [
    (UNLOAD, "destinationBroker=broker-3%3A8080"),
    (UNLOAD, "destinationBroker=broker-2%3A8080&destinationBroker=broker-3%3A8080"),
    (UNLOAD, "destinationBroker=broker-2%3A8080&authoritative=true&force=true"),
    (UNLOAD, "destinationBroker=broker-2%3A8080&authoritative=perhaps"),
    (UNLOAD, "destinationBroker=broker-2%3A8080&authoritative=true&authoritative=false"),
    (UNLOAD, "destinationbroker=broker-2%3A8080"),
    (UNLOAD, "destinationBroker=broker-2%3A8080&listenerName=internal"),
    (SPLIT, "splitAlgorithmName=range_equally_divide&unload=false"),
    (SPLIT, "splitAlgorithmName=topic_count_equally_divide&unload=true"),
    (SPLIT, "splitAlgorithmName=topic_count_equally_divide"),
    (QUOTA, "backlogQuotaType=message_age"),
    (QUOTA, ""),
    (RETENTION, "isGlobal=true"),
]


@pytest.mark.parametrize(("call", "query"), OTHER_QUERIES)
def test_a_redirect_adds_nothing_to_a_call_and_takes_nothing_away(
    call: Call, query: str, pair: tuple[ScriptedBroker, ScriptedBroker]
) -> None:
    """A change is refused when a redirect alters its query or gives `authoritative` an invalid value."""
    with pytest.raises(RedirectRefused, match=r"another query|neither true nor false"):
        sent_on(pair, call, call.path, query)
    assert pair[1].connections == []


@pytest.mark.parametrize(
    ("call", "query"),
    [
        (UNLOAD, "destinationBroker=broker-2%3A8080&authoritative=false"),
        (UNLOAD, "destinationBroker=broker-2:8080&authoritative=true"),
        (UNLOAD, "authoritative=true"),
        (UNLOAD, ""),
        (SPLIT, "splitAlgorithmName=topic_count_equally_divide&unload=false&authoritative=false"),
        (RETENTION, "authoritative=true"),
        (RETENTION, "authoritative=true#fragment"),
        (AWKWARD, "authoritative=true"),
    ],
)
def test_what_pulsar_itself_answers_is_followed(
    call: Call, query: str, pair: tuple[ScriptedBroker, ScriptedBroker]
) -> None:
    """A redirect as Pulsar itself gives it is followed with the same method and path at the other broker."""
    sent_on(pair, call, call.path, query)
    (asked,) = pair[1].asked
    assert (asked.method, asked.target) == (call.method, f"{call.path}?{query}".partition("#")[0].rstrip("?"))


def test_another_way_to_write_the_same_path_is_the_same(pair: tuple[ScriptedBroker, ScriptedBroker]) -> None:
    """A redirect that escapes the same path in another way is followed, with the path as first written."""
    sent_on(pair, AWKWARD, AWKWARD.path.replace("%2F", "%2f").replace("~", "%7E").replace("shop", "%73hop"), "")
    assert [asked.target for asked in pair[1].asked] == [AWKWARD.path]


def test_a_lookup_may_come_back_as_javas_encoder_writes_it(pair: tuple[ScriptedBroker, ScriptedBroker]) -> None:
    """A lookup's redirect may write spaces as plus signs, and is refused when it unescapes a literal plus."""
    second = pair[1]
    lookup = calls.look_up("persistent://shop/live/a b*c~d+e")
    written = lookup.path.replace("%20", "+").replace("%2A", "*").replace("~", "%7E")
    second.on(lookup.path, answer({}))
    sent_on(pair, lookup, written, "authoritative=true")
    assert [asked.target for asked in second.asked] == [f"{lookup.path}?authoritative=true"]
    with pytest.raises(RedirectRefused, match="another path"):
        sent_on(pair, lookup, lookup.path.replace("%2B", "+"), "")


def test_the_second_of_two_redirects_is_held_to_the_first_call(brokers: Callable[[], ScriptedBroker]) -> None:
    """A call is refused if the second of two redirects changes the query of the first call."""
    first, second, third = brokers(), brokers(), brokers()
    first.on(MEMBERS, answer([first.id, second.id, third.id]))
    first.on(UNLOAD.path, redirect(f"{second.url}{UNLOAD.path}?authoritative=true"))
    second.on(UNLOAD.path, redirect(f"{third.url}{UNLOAD.path}?destinationBroker=broker-3%3A8080"))
    with Writer(settings(first.url)) as writer, pytest.raises(RedirectRefused, match="another query"):
        writer.send(UNLOAD, permitted)
    assert third.connections == []


@pytest.mark.parametrize("call", [RETENTION, QUOTA, UNLOAD], ids=["delete", "delete with a query", "put"])
def test_a_change_is_not_turned_into_something_to_read(call: Call, pair: tuple[ScriptedBroker, ScriptedBroker]) -> None:
    """A change that is redirected with status 303 is refused and not sent on."""
    with pytest.raises(RedirectRefused, match="303"):
        sent_on(pair, call, call.path, urlencode(call.query), status=303)
    assert pair[1].connections == []


def test_looking_is_held_to_its_path_as_well(pair: tuple[ScriptedBroker, ScriptedBroker]) -> None:
    """A call that only reads is refused when a redirect leads to another path."""
    first, second = pair
    first.on("/admin/v2/namespaces/shop", redirect(f"{second.url}/admin/v2/namespaces/payments"))
    with Reader(settings(first.url, read_attempts=1)) as reader, pytest.raises(RedirectRefused, match="payments"):
        reader.namespaces("shop")
    assert second.connections == []


def test_a_refusal_is_plain_text_whatever_the_redirect_says(pair: tuple[ScriptedBroker, ScriptedBroker]) -> None:
    """The refusal of a redirect holds only printable characters and does not repeat a long path in full."""
    with pytest.raises(RedirectRefused) as caught:
        sent_on(pair, RETENTION, f"/admin/v2/\x1b[2J{RIGHT_TO_LEFT}{'x' * 500}", "")
    assert str(caught.value).isprintable()
    assert "x" * 100 not in str(caught.value)


@pytest.fixture
def tls_pair(
    brokers: Callable[[], ScriptedBroker], tmp_path: Path
) -> tuple[ScriptedBroker, ScriptedBroker, tuple[Path, Path]]:
    """Two TLS addresses of one host, of which the cluster lists the plain port only."""
    files = certificate(tmp_path)
    first, second = brokers(), brokers()
    for broker in (first, second):
        over_tls(broker, files)
    first.on(MEMBERS, answer(["127.0.0.1:1"]))
    first.on(QUOTA.path, redirect(f"https://{second.id}{QUOTA.path}?{urlencode(QUOTA.query)}"))
    second.on(QUOTA.path, answer(status=204))
    return first, second, files


def test_over_tls_a_host_of_the_cluster_has_no_other_ports(
    tls_pair: tuple[ScriptedBroker, ScriptedBroker, tuple[Path, Path]],
) -> None:
    """A redirect over TLS is refused if its port is not that of a broker's web address."""
    first, second, files = tls_pair
    first.on(f"{MEMBERS}/configuration/runtime", answer({"webServicePortTls": "Optional[8443]"}))
    with (
        Writer(settings(f"https://{first.id}", ca_file=files[0])) as writer,
        pytest.raises(RedirectRefused, match="no web address of a broker"),
    ):
        writer.send(QUOTA, permitted)
    assert second.connections == []


@pytest.mark.parametrize("known_by", ["the settings", "the brokers' configuration", "the list"])
def test_over_tls_a_port_that_brokers_are_known_to_have_is_theirs(
    known_by: str, tls_pair: tuple[ScriptedBroker, ScriptedBroker, tuple[Path, Path]]
) -> None:
    """A redirect to a TLS port is followed when settings, brokers' configuration or the list name the port."""
    first, second, files = tls_pair
    urls = [f"https://{first.id}"]
    if known_by == "the settings":
        urls.append(f"https://{second.id}")
    elif known_by == "the list":
        first.on(MEMBERS, answer([second.id]))
    else:
        told = {"webServicePortTls": f"Optional[{second.id.rpartition(':')[2]}]"}
        first.on(f"{MEMBERS}/configuration/runtime", answer(told))
    with Writer(settings(*urls, ca_file=files[0])) as writer:
        writer.send(QUOTA, permitted)
    assert [asked.method for asked in second.asked] == ["DELETE"]
