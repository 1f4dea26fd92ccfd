"""Brokers' documents with one thing wrong: what cannot be read is named, the rest is there, and nothing breaks.

The documents are those of a made-up cluster, recorded once. In each case one of them is changed: a value anywhere in
it, the name of a key, its end, or the answer is an error.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pulsar_steward.errors import AdminError, TimedOut, Unreachable
from pulsar_steward.pulsar.exchange import Response
from tests.attacks.wire_replay import BASE, TOPICS, Read, Recorded, brokers, namespaces, overview, suspects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SEED = 20261122
CASES_A_DOCUMENT = 30

VALUES = (
    *("9223372036854775808", "-9223372036854775809", "9007199254740993", "123456789012345678901234567890"),
    *("1e400", "-1e400", "1e300", "-1", "-0.0", "1.5", "0", "4294967296", "NaN", "Infinity", '"NaN"', '"-1"'),
    *('"x"', '""', '"\\ud800"', '"\\u0000"', '"."', '"["', '"http://["', "null", "true", "[]", "{}", "[[]]", '{"a":1}'),
)
KEYS = (
    *("", ".", "x", "x/y", "x/y/z", "persistent://", "0xzz_0x1", "0x9_0x1", "a/b/0x0_0x1", "\ud800", "\x00"),
    *("a" * 70_000,),
)
BODIES = (b"", b"null", b"[]", b"{}", b"0", b'"x"', b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"[1", b"<html>")
STATUSES = (400, 401, 403, 404, 409, 412, 429, 500, 503)


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value in a document, lists and objects included."""
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from leaves(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: str) -> bytes:
    """The document with a raw text in the place of a value."""
    mark = "@@ here @@"
    text = json.dumps(_put(document, path, mark))
    return text.replace(json.dumps(mark), value).encode()


def _put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    head, *rest = path
    inner = _put(document[head], tuple(rest), value)
    if isinstance(document, dict):
        return {**document, head: inner}
    return [*document[:head], inner, *document[head + 1 :]]


def renamed(document: Any, path: tuple[Any, ...], name: str) -> bytes:
    """The document with another name for a key."""
    *above, key = path
    holder = document
    for each in above:
        holder = holder[each]
    return json.dumps(
        _put(document, tuple(above), {(name if at == key else at): value for at, value in holder.items()})
    ).encode()


def cases(answer: Response) -> list[tuple[str, Response | AdminError]]:
    """Faults of one answer, a seeded choice of all."""

    def other(body: bytes, status: int = 200) -> Response:
        return Response(status, None, body, answer.phrase, answer.date)

    drawn = random.Random(SEED)
    made: list[tuple[str, Response | AdminError]] = [
        (f"status {status}", other(b'{"reason": "no"}', status)) for status in STATUSES
    ]
    made += [
        ("unreachable", Unreachable("GET", "/", "b:1", "refused")),
        ("silent", TimedOut("GET", "/", "b:1", "late")),
    ]
    made += [(f"body {body[:10]!r}", other(body)) for body in BODIES]
    made += [("cut short", other(bytes(answer.body)[: len(answer.body) // 2]))]
    try:
        document = json.loads(bytes(answer.body))
    except ValueError:
        return made
    places = list(leaves(document))
    for _ in range(CASES_A_DOCUMENT):
        path, value = drawn.choice(places), drawn.choice(VALUES)
        made.append((f"{path} is {value}", other(changed(document, path, value))))
        if path and isinstance(path[-1], str):
            name = drawn.choice(KEYS)
            made.append((f"{path} is called {name[:20]!r}", other(renamed(document, path, name))))
    return made


class Document(NamedTuple):
    """A document that something is wrong with: where it is, what reads it, and whom it is about, by name."""

    broker: int
    path: str
    read: Callable[[Recorded], Read]
    about: tuple[str, ...]


ITSELF = ("the broker",)
"""Stands for the broker whose documents are changed: its name is another one each time."""

SUSPECTS_OF_LOWER = (TOPICS[0], BASE)
DOCUMENTS = {
    "its statistics": Document(1, "broker-stats/topics", brokers, ITSELF),
    "its bundles": Document(1, "ownedNamespaces", brokers, ITSELF),
    "its load": Document(1, "load-report", brokers, ITSELF),
    "its configuration": Document(1, "configuration/runtime", brokers, ITSELF),
    "its version": Document(1, "brokers/version", brokers, ITSELF),
    "its metrics": Document(1, "/metrics/", brokers, ITSELF),
    "positions of coordinators": Document(1, "namespaces/pulsar/system/", brokers, ITSELF),
    "positions of topics": Document(1, "namespaces/acme/orders/", brokers, ITSELF),
    "its bundles, of suspects": Document(1, "ownedNamespaces", suspects, (*TOPICS, BASE)),
    "a suspect's statistics": Document(1, "/stats?", suspects, SUSPECTS_OF_LOWER),
    "a suspect's ledgers": Document(1, "internalStats", suspects, SUSPECTS_OF_LOWER),
    "a suspect's quotas": Document(1, "backlogQuotaMap", suspects, SUSPECTS_OF_LOWER),
    "a suspect's retention": Document(1, "/retention", suspects, SUSPECTS_OF_LOWER),
    "a namespace": Document(0, "/admin/v2/namespaces/acme/orders", namespaces, ("acme/orders",)),
    "the brokers": Document(0, "/admin/v2/brokers", overview, ("brokers",)),
    "the configuration": Document(
        0, "configuration/runtime", overview, ("pulsar_cluster", "load_manager", "coordinators", "policies")
    ),
    "the version": Document(0, "brokers/version", overview, ("version",)),
    "the leader": Document(0, "leaderBroker", overview, ("leader",)),
    "the coordinators": Document(0, "assign/partitions", overview, ("coordinators",)),
    "the bookies": Document(0, "bookies/all", overview, ("bookies",)),
    "isolation policies": Document(0, "namespaceIsolationPolicies", overview, ("policies",)),
    "the tenants": Document(0, "/admin/v2/tenants", overview, ("namespaces",)),
    "a tenant's namespaces": Document(0, "/admin/v2/namespaces/acme", overview, ("namespaces",)),
}
NEEDED = {"the brokers", "the configuration"}
"""Without these nothing can be read: that is said by an error of ours."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_one_wrong_document_costs_no_more_than_what_it_is_about(
    name: str, recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """A faulty document changes only the rows that it is about, and reading it raises no unexpected error."""
    document = DOCUMENTS[name]
    url, before = recorded.url(document.broker, document.path), document.read(recorded)
    about = {recorded.brokers[1]} if document.about is ITSELF else set(document.about)
    wrong = []
    for case, answer in cases(recorded.answers[url]):
        if document.read is suspects and isinstance(answer, AdminError):
            continue  # of a broker that does not answer no more suspects are asked about
        replayed[url] = answer
        try:
            after = document.read(recorded)
        except AdminError as error:
            if name not in NEEDED:
                wrong.append(f"{case}: nothing was read: {error}")
        except Exception as error:  # noqa: BLE001 - that there is none is what is tested
            wrong.append(f"{case}: {type(error).__name__}: {str(error)[:200]}")
        else:
            others = before.rows.keys() - about
            wrong += [f"{case}: {who} is different" for who in others if before.rows[who] != after.rows.get(who)]
            gone = about & before.rows.keys() - after.rows.keys() - after.unread
            wrong += [f"{case}: {who} is gone without a word" for who in gone]
    assert wrong == []


BROKEN: dict[str, Response | AdminError] = {
    "404": Response(404, None, b'{"reason": "no such thing"}', "Not Found", None),
    "429": Response(429, None, b"", "Too Many Requests", None),
    "500": Response(500, None, b"<html>", "Internal Server Error", None),
    "cut short": Response(200, None, b'{"a": [', "OK", None),
    "silent": TimedOut("GET", "/", "b:1", "no answer within the time limit"),
}
NAMED = [
    ("its statistics", BROKEN, "the broker"),
    ("its bundles", BROKEN, "the broker"),
    ("a namespace", BROKEN, "acme/orders"),
    ("the version", BROKEN, "version"),
    ("the leader", BROKEN.keys() - {"404"}, "leader"),  # there may be none
    ("the coordinators", BROKEN.keys() - {"404"}, "transaction coordinators"),
    ("isolation policies", BROKEN.keys() - {"404"}, "isolation policies"),
    ("the tenants", BROKEN, "*/*"),
    ("a tenant's namespaces", BROKEN, "acme/*"),
]


@pytest.mark.parametrize(
    ("name", "kind", "unread"), [(name, kind, unread) for name, kinds, unread in NAMED for kind in sorted(kinds)]
)
def test_what_is_not_answered_is_named_and_makes_the_snapshot_partial(
    name: str, kind: str, unread: str, recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """A broker, namespace or fact of the cluster whose document cannot be read is listed as unread."""
    document = DOCUMENTS[name]
    replayed[recorded.url(document.broker, document.path)] = BROKEN[kind]
    assert document.read(recorded).unread == {recorded.brokers[1] if unread == "the broker" else unread}
