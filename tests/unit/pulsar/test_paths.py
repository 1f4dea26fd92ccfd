"""Paths, settings and bodies of calls, and what a topic stores."""

from __future__ import annotations

import mmap
import tempfile
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError, InvalidName, NotFound
from pulsar_steward.pulsar import calls, paths
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.body import gathered
from pulsar_steward.pulsar.own_settings import StoredTopic
from pulsar_steward.pulsar.settings import AdminSettings
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.pulsar.conftest import MakeTransport
    from tests.unit.pulsar.scripted import ScriptedBroker

AWKWARD = ("a/b", "50%", "%2F", "two words", 'it\'s "so"', "ünï-主題", "a?b#c", "a+b&c=d", "~._-", "a\\b;c", "\t\n")

names = st.text(min_size=1).filter(lambda name: name not in {".", ".."})
local_names = names.filter(lambda name: "/" not in name)

BUILDERS: dict[str, tuple[Callable[[str], str], list[str]]] = {
    "tenant": (paths.tenant_namespaces, ["admin", "v2", "namespaces", "{}"]),
    "bundle to unload": (
        lambda name: calls.unload("t/n", name, "b:1").path,
        ["admin", "v2", "namespaces", "t", "n", "{}", "unload"],
    ),
    "bundle to split": (
        lambda name: calls.split("t/n", name, "a").path,
        ["admin", "v2", "namespaces", "t", "n", "{}", "split"],
    ),
    "namespace": (lambda name: paths.namespace(f"t/{name}"), ["admin", "v2", "namespaces", "t", "{}"]),
    "below a namespace": (
        lambda name: paths.namespace(f"t/{name}", "bundles"),
        ["admin", "v2", "namespaces", "t", "{}", "bundles"],
    ),
    "topic": (lambda name: paths.topic(f"persistent://t/n/{name}"), ["admin", "v2", "persistent", "t", "n", "{}"]),
    "lookup": (
        lambda name: paths.lookup(f"persistent://t/n/{name}"),
        ["lookup", "v2", "topic", "persistent", "t", "n", "{}"],
    ),
}


def segments(path: str) -> list[str]:
    return [unquote(segment) for segment in path.removeprefix("/").split("/")]


@given(names)
def test_a_segment_unquotes_to_the_name_it_was_made_of(name: str) -> None:
    """A quoted name unquotes to the same name, and has no character that could end its segment."""
    quoted = paths.segment(name)
    assert unquote(quoted) == name
    assert not set(quoted) & set("/?#%;&+ \"'\\") - {"%"}


@pytest.mark.parametrize("builder", BUILDERS)
@given(name=names)
def test_a_name_stays_one_segment(builder: str, name: str) -> None:
    build, expected = BUILDERS[builder]
    assert segments(build(name)) == [part.format(name) for part in expected]


@given(local_names, local_names)
def test_a_namespace_is_two_segments(tenant: str, local: str) -> None:
    """A tenant and a namespace are quoted each on its own, so that the slash between them stays one."""
    assert segments(paths.namespace(f"{tenant}/{local}")) == ["admin", "v2", "namespaces", tenant, local]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_walk_the_path_is_refused(name: str) -> None:
    """An empty name and a name of dots are refused, as the path would lead to another resource."""
    with pytest.raises(InvalidName, match="cannot be a part"):
        paths.segment(name)


@pytest.mark.parametrize("namespace", ["tenant", "/ns", "tenant/"])
def test_half_a_namespace_is_refused(namespace: str) -> None:
    """A namespace without a tenant or without a local name is refused."""
    with pytest.raises(InvalidName, match="cannot be a part"):
        paths.namespace(namespace, "bundles")


@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_arrives_as_it_is(name: str, broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A name with special characters arrives at the broker unchanged and as one segment."""
    with pytest.raises(NotFound):
        transport(broker.url).send("GET", paths.topic(f"persistent://t/n/{name}"))
    assert segments(broker.asked[-1].target) == ["admin", "v2", "persistent", "t", "n", name]


@pytest.mark.parametrize("value", AWKWARD)
def test_an_awkward_query_arrives_as_it_is(value: str, broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A value with special characters in the query arrives at the broker unchanged, and adds no key."""
    transport(broker.url).send("GET", paths.BROKERS, {"name": value})
    assert parse_qs(broker.asked[-1].target.partition("?")[2], strict_parsing=True) == {"name": [value]}


@row_by_row(
    "urls, words",
    ((), "give at least one"),
    (("broker:8080",), "is not an admin URL"),
    (("pulsar://broker:6650",), "is not an admin URL"),
    (("http://",), "is not an admin URL"),
    (("http://:8080",), "is not an admin URL"),
    (("http://broker:port",), "is not an admin URL"),
    (("http://broker:99999",), "is not an admin URL"),
    (("http://[broker",), "is not an admin URL"),
    (("http://user:hidden@broker:8080",), "broker:8080 holds a user or password"),
    (("ftp://user:hidden@broker:8080",), "broker:8080 holds a user or password"),
    (("user:hidden@broker:8080",), "broker:8080 holds a user or password"),
    (("http://user:hidden@",), "holds a user or password"),
)
def test_urls_that_cannot_work_are_refused(urls: tuple[str, ...], words: str) -> None:
    """An invalid URL is refused with an error that says what is wrong and shows no password."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        AdminSettings(urls)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "hidden\n", " hidden", "hid den", "hidden\r\nX-Other: 1", "hidden-ü"])
def test_a_token_that_no_header_carries_is_refused(token: str) -> None:
    """A token that a header cannot carry is refused with an error that does not show it."""
    with pytest.raises(ConfigurationError, match="is empty or holds white space") as caught:
        AdminSettings(("http://broker:8080",), SecretStr(token))
    assert "hidden" not in str(caught.value)


def test_a_slash_behind_an_address_does_no_harm() -> None:
    made = AdminSettings(("https://a:8443/", "https://b:8443"))
    assert made.schemes == {"https"}
    assert made.bases == ("https://a:8443", "https://b:8443")


def test_an_address_with_a_path_is_refused() -> None:
    """Calls and the token would go to the root of that host, where something else may be."""
    with pytest.raises(ConfigurationError, match=r"has a path \(/pulsar\).*Write https://b:8443"):
        AdminSettings(("https://a:8443", "https://b:8443/pulsar/"))
    with pytest.raises(ConfigurationError, match="the address of broker:8080 has a path"):
        address_map({"broker:8080": "https://b:8443/pulsar"})


PIECES = [b'["', b"x" * 1000, b'",', b" 7]"]


@pytest.mark.parametrize(("most", "kind"), [(1 << 20, bytes), (1007, bytes), (1006, mmap.mmap), (0, mmap.mmap)])
def test_a_large_body_lies_in_a_file_that_is_gone_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, kind: type
) -> None:
    """A body over the limit is mapped from a file that is deleted at once, and it reads like any other body."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    body = gathered(iter(PIECES), most)

    assert isinstance(body, kind)
    assert bytes(body) == b"".join(PIECES)
    assert msgspec.json.decode(body) == ["x" * 1000, 7]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_an_empty_body() -> None:
    """A body without any pieces is empty, as in an answer with status 204."""
    assert gathered([]) == b""


LAST = {"ledgerId": 27, "timestamp": 1_795_548_071_657, "isOffloaded": False}
CLOSED = [
    {"ledgerId": 8, "entries": 1000, "size": 130_000, "timestamp": 1_000, "isOffloaded": False},
    {"ledgerId": 20, "entries": 1000, "size": 260_000, "timestamp": 2_000, "isOffloaded": False},
]


def stored(*positions: tuple[int, int], in_ledger: int = -1, ledgers: list[object] | None = None) -> StoredTopic:
    """A topic with a subscription for each mark-delete position."""
    cursors = {
        f"sub-{number}": {
            "version": 1,
            "cursorsLedgerId": in_ledger,
            "markDelete": {"ledgerId": ledger, "entryId": entry},
        }
        for number, (ledger, entry) in enumerate(positions)
    }
    document = {
        "version": 3,
        "creationDate": "2026-11-24T19:13:25.727Z",
        "ledgers": [*CLOSED, LAST] if ledgers is None else ledgers,
        "cursors": cursors,
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=StoredTopic)


@cases(
    "topic, consumed",
    ("nobody reads", stored(), [8, 20]),
    ("begun", stored((8, 499)), [8]),
    ("the slowest counts", stored((8, 499), (20, 999)), [8]),
    ("nothing", stored((5, 10)), []),
    ("its position is in a ledger", stored((8, -1), in_ledger=14), [8, 20]),
    ("only the last ledger", stored((20, 999), ledgers=[LAST]), []),
)
def test_what_may_be_consumed_is_told_as_far_as_positions_are_known(topic: StoredTopic, consumed: list[int]) -> None:
    """A closed ledger may be consumed unless the store tells that a cursor has not reached it."""
    assert [each.ledger_id for each in topic.consumed] == consumed


@pytest.mark.parametrize(("ledger", "since"), [(27, 2_000), (20, 1_000), (8, 1_795_547_605_727)])
def test_a_ledger_was_written_to_from_the_end_of_the_one_before(ledger: int, since: int) -> None:
    """What a ledger holds was published after the one before was closed, or after the topic was made."""
    topic = stored()
    assert topic.published_since(ledger) == since
    assert StoredTopic(ledgers=topic.ledgers[2:], cursors={}).published_since(27) is None


def test_a_ledger_that_is_written_to_was_not_closed() -> None:
    """The earliest closing from a ledger on is told, of a ledger that is gone that of the next; of the last none is."""
    topic = stored()
    assert [topic.closed_since(ledger) for ledger in (5, 8, 20, 27)] == [1_000, 1_000, 2_000, None]
