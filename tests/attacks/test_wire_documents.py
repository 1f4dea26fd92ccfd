"""Brokers' documents with one thing wrong: what cannot be read is named, the rest is there, and nothing breaks.

The documents are those of a made-up cluster, recorded once. In each case one of them is changed: a value anywhere in
it, the name of a key, its end, or the answer is an error.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import msgspec
import pyarrow as pa
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.admin.exchange import Exchange, Response
from pulsar_steward.admin.own_settings import NamespaceDocument, defaults_in, own_settings_in
from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.settings import AdminSettings
from pulsar_steward.collect.arrow import (
    BROKER_TABLES,
    DRILL_TABLES,
    NAMESPACE_TABLES,
    OWN_POLICIES,
    SUSPECTS,
    UNREAD,
    as_answer,
)
from pulsar_steward.collect.broker import BrokerTask, Scope, read_brokers
from pulsar_steward.collect.coordinators import SystemBundle, placement
from pulsar_steward.collect.drill import DetailRequest, DrillTask, drill
from pulsar_steward.collect.namespace import Placement, read_namespaces
from pulsar_steward.collect.overview import look_over
from pulsar_steward.collect.suspects import SuspectCollector, worst_of
from pulsar_steward.errors import AdminError, BrokenAnswer, TimedOut, Unreachable
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.model.tables import BROKERS
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.model.tables import Table

SEED = 20261122
CASES_A_DOCUMENT = 30

LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
BASE = "persistent://acme/orders/t"
TOPICS = (f"{BASE}-partition-0", f"{BASE}-partition-1")
NAMESPACES = ("acme/orders", "acme/other")
SUBSCRIPTIONS = (
    SubscriptionSpec("s", consumers=2, backlog=10, unacked=3, ack_holes=4, delayed=2, rate_out=1.5, redeliver_rate=0.5),
)
POLICIES = {
    "retention_policies": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    "backlog_quota_map": {"destination_storage": {"limitSize": 10, "limitTime": -1, "policy": "producer_exception"}},
    "message_ttl_in_seconds": 7,
}
ISOLATION: dict[str, dict[str, object]] = {
    "gold": {
        "namespaces": ["acme/.*"],
        "primary": ["127.0.0.1"],
        "secondary": [],
        "auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1"}},
    }
}
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec(
            "acme/orders",
            bundles=2,
            topics=(TopicSpec("t", partitions=6, producers=1, subscriptions=SUBSCRIPTIONS, rate_in=2.0),),
            owner=1,
            policies=POLICIES,
        ),
        NamespaceSpec("acme/other", bundles=2, topics=(TopicSpec("u", partitions=4),), owner=2),
    ),
    isolation_policies=ISOLATION,
)
TAKEN_AT = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
POLICY = CollectPolicy(positions_from_topics=2, drill_calls_per_second=1000)


@dataclass(frozen=True)
class Recorded:
    """A cluster's answers by URL, its own name, and its brokers, ``host:webport``; nobody is there any more."""

    answers: dict[str, Response]
    cluster: str
    brokers: tuple[str, ...]

    @property
    def settings(self) -> AdminSettings:
        """How to reach it."""
        return AdminSettings(tuple(f"http://{each}" for each in self.brokers), limits=AdminPolicy(read_attempts=1))

    def url(self, number: int, path: str) -> str:
        """The first address that was asked at a broker and ends so, or holds this."""
        asked = [url for url in self.answers if urlsplit(url).netloc == self.brokers[number] and path in url]
        return next((url for url in asked if url.endswith(path)), asked[0])


class Read(NamedTuple):
    """What came of reading: rows by who they are about, and who was named as unread."""

    rows: dict[str, list[Any]]
    unread: set[str]


def overview(known: Recorded) -> Read:
    """What is asked once, and what follows from it: each figure is about itself."""
    with Reader(known.settings) as reader:
        found = look_over(reader)
    placement(found.coordinators, [SystemBundle("0x00000000_0xffffffff", None, owner_known=True)])
    namespaces(known, Placement(found.brokers, found.policies), found.namespaces)
    figures = {name: [value] for name, value in msgspec.structs.asdict(found).items() if name != "unread"}
    return Read(figures, set(found.unread))


def brokers(known: Recorded) -> Read:
    """Two brokers, as a task of Spark's reads them: rows by broker."""
    tasks = [BrokerTask(name, known.cluster, leader=False) for name in known.brokers[1:]]
    worst, rows, unread = SuspectCollector(20, from_consumed_bytes=1), defaultdict[str, list[Any]](list), set[str]()
    for piece in read_brokers(known.settings, tasks, Scope(TAKEN_AT, POLICY)):
        worst.sees(piece)
        for row in checked(piece, BROKER_TABLES):
            if piece.table == BROKERS and not row["read"] and row["failure"]:
                unread.add(row["broker"])
            row.pop("clock_skew_milliseconds", None)
            row.pop("read_milliseconds", None)
            rows[whose(row, known)].append((piece.table.name, row))
    found = [row for piece in worst.found() for row in checked(piece, BROKER_TABLES)]
    worst_of(pa.Table.from_pylist(found, schema_of(SUSPECTS)), 10)
    return Read(rows, unread)


def whose(row: dict[str, Any], known: Recorded) -> str:
    """The broker that a row is of; those of subscriptions and clients tell their namespace only."""
    named = row.get("broker") or row.get("owner") or row.get("source")
    return named or known.brokers[1 if row["namespace"] == "acme/orders" else 2]


def namespaces(known: Recorded, where: Placement | None = None, names: Iterable[str] = NAMESPACES) -> Read:
    """Namespaces by name; what plans are made of later has to be readable then."""
    rows, unread = dict[str, list[Any]](), set[str]()
    for piece in read_namespaces(known.settings, where or Placement(known.brokers, ()), names):
        for row in checked(piece, NAMESPACE_TABLES):
            if piece.table == UNREAD:
                unread.add(row["name"])
                continue
            msgspec.json.decode(row["policies_json"], type=NamespaceDocument)
            assert ranges_of(row["boundaries"])[0].lower == 0
            rows[row["namespace"]] = [row]
    return Read(rows, unread)


def suspects(known: Recorded) -> Read:
    """What an owner is asked of suspects: rows by topic. What is left out is logged."""
    wanted = (
        DetailRequest(f"acme/orders/{LOWER}", TOPICS[0], internals=True),
        DetailRequest(f"acme/orders/{LOWER}", BASE, policies=True),
        DetailRequest(f"acme/orders/{UPPER}", TOPICS[1]),
    )
    rows = defaultdict[str, list[Any]](list)
    for piece in drill(known.settings, DrillTask(known.brokers[1], known.cluster, wanted), POLICY):
        for row in checked(piece, DRILL_TABLES):
            if piece.table == OWN_POLICIES:
                own_settings_in(row["topic_quota_json"], row["topic_retention_json"])
            rows[row.get("topic") or row["base"]].append(row)
    return Read(rows, {*TOPICS, BASE})


def checked(piece: TableBatch, tables: Sequence[Table]) -> list[dict[str, Any]]:
    """A piece's rows, as Spark would get them."""
    as_answer(piece, tables).validate(full=True)
    found: list[dict[str, Any]] = piece.rows.to_pylist()
    return found


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    """A made-up cluster's answers to all that collecting asks."""
    answers: dict[str, Response] = {}
    whole, pieces = Exchange.whole, Exchange.pieces

    def noted(self: Exchange, method: str, url: str, query: Any = None, *rest: Any) -> Response:
        answer = answers[_key(url, query)] = whole(self, method, url, query, *rest)
        return answer

    def noted_pieces(self: Exchange, url: str) -> Iterator[Response | bytes]:
        head, *body = pieces(self, url)
        assert isinstance(head, Response)
        lines = [line for line in b"".join(cast("list[bytes]", body)).splitlines(keepends=True) if b"pulsar_s" in line]
        answers[url] = Response(head.status, None, b"".join(lines[:40]), head.phrase, head.date)
        yield from [head, *body]

    with pytest.MonkeyPatch.context() as patched, running_simulator(SPEC) as simulator:
        patched.setattr(Exchange, "whole", noted)
        patched.setattr(Exchange, "pieces", noted_pieces)
        listed = tuple(url.partition("//")[2] for url in simulator.admin_urls)
        known = Recorded(answers, simulator.cluster, listed)
        for read in (overview, brokers, namespaces, suspects):
            read(known)
    return known


def _key(url: str, query: Any) -> str:
    return f"{url}?{urlencode(query)}" if query else url


@pytest.fixture
def replayed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> dict[str, Response | AdminError]:
    """The same answers without anybody who gives them; a test may put others in their place."""
    given: dict[str, Response | AdminError] = dict(recorded.answers)

    def answer(url: str) -> Response:
        found = given.get(url) or Response(404, None, b"", "Not Found", None)
        if isinstance(found, AdminError):
            raise found
        return found

    def whole(_: Exchange, method: str, url: str, query: Any = None, *rest: Any) -> Response:
        return answer(_key(url, query))

    def pieces(_: Exchange, url: str) -> Iterator[Response | bytes]:
        found = answer(url)
        yield from (found, bytes(found.body))

    monkeypatch.setattr(Exchange, "whole", whole)
    monkeypatch.setattr(Exchange, "pieces", pieces)
    return given


VALUES = (
    *("9223372036854775808", "-9223372036854775809", "9007199254740993", "123456789012345678901234567890"),
    *("1e400", "-1e400", "1e300", "-1", "-0.0", "1.5", "0", "4294967296", "NaN", "Infinity", '"NaN"', '"-1"'),
    *('"x"', '""', '"\\ud800"', '"\\u0000"', '"."', '"["', '"http://["', "null", "true", "[]", "{}", "[[]]", '{"a":1}'),
)
KEYS = (
    "",
    ".",
    "x",
    "x/y",
    "x/y/z",
    "persistent://",
    "0xzz_0x1",
    "0x9_0x1",
    "a/b/0x0_0x1",
    "\ud800",
    "\x00",
    "a" * 70_000,
)
BODIES = (b"", b"null", b"[]", b"{}", b"0", b'"x"', b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"[1", b"<html>")
STATUSES = (400, 401, 403, 404, 409, 412, 429, 500, 503)


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value may be put in a document: each of its values, lists and objects too."""
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
    """What may be wrong with one answer, a seeded choice of all."""

    def other(body: bytes, status: int = 200) -> Response:
        return Response(status, None, body, answer.phrase, answer.date)

    drawn = random.Random(SEED)  # noqa: S311 - the same cases every time
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
    """Whatever is wrong with it: nothing breaks, and all that it is not about is there as before."""
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
    """Absence of data is never health, nor a namespace that was deleted though it is still listed."""
    document = DOCUMENTS[name]
    replayed[recorded.url(document.broker, document.path)] = BROKEN[kind]
    after = document.read(recorded)
    assert after.unread == {recorded.brokers[1] if unread == "the broker" else unread}


OUT_OF_RANGE = ["9223372036854775808", "-9223372036854775809", "1e400", "NaN", '"NaN"', "1.5e9", "[]"]


@pytest.mark.parametrize("value", OUT_OF_RANGE)
@pytest.mark.parametrize("key", ["msgBacklog", "unackedMessages", "availablePermits", "storageSize", "producerCount"])
def test_a_number_that_no_table_holds_makes_one_broker_unread(
    key: str, value: str, recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """Its place in the document is said; all other brokers are there."""
    url, before = recorded.url(1, "broker-stats/topics"), brokers(recorded)
    body = re.sub(
        rb'("%s": ?)[0-9]+' % key.encode(), rb"\g<1>" + value.encode(), bytes(recorded.answers[url].body), count=1
    )
    assert body != recorded.answers[url].body
    replayed[url] = Response(200, None, body, "OK", None)
    after, (mine, other) = brokers(recorded), recorded.brokers[1:]
    assert after.unread == {mine}
    assert after.rows[other] == before.rows[other]
    ((_, row),) = after.rows[mine]
    assert row["failure"].startswith("GET /admin/v2/broker-stats/topics at")


def test_sums_that_no_table_holds_make_one_broker_unread(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """Each figure is in range, and all of them together are not."""
    url = recorded.url(1, "broker-stats/topics")
    document = json.loads(bytes(recorded.answers[url].body))
    ((bundle, domains),) = list(document["acme/orders"].items())[:1]
    (topic,) = list(domains["persistent"].values())[:1]
    domains["persistent"] = {f"{BASE}{number}": {**topic, "backlogSize": 1 << 53} for number in range(2048)}
    replayed[url] = Response(200, None, json.dumps(document).encode(), "OK", None)
    after = brokers(recorded)
    assert bundle in {LOWER, UPPER}
    assert after.unread == {recorded.brokers[1]}


def test_the_largest_figures_that_are_told_are_kept(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """Nothing that is in range is lost, rounded or refused on its way into rows and among suspects."""
    url = recorded.url(1, "broker-stats/topics")
    most = 1 << 53
    text = re.sub(rb'("unackedMessages": ?)[0-9]+', rb"\g<1>%d" % most, bytes(recorded.answers[url].body))
    replayed[url] = Response(200, None, text, "OK", None)
    after = brokers(recorded)
    assert after.unread == set()
    found = [row["unacked_messages"] for name, row in after.rows[recorded.brokers[1]] if name == "subscriptions"]
    assert set(found) == {most}


def test_a_first_broker_that_is_sick_does_not_keep_the_others_from_telling(
    recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """What cannot be read is asked of the next address, as what is not answered is."""
    replayed[f"http://{recorded.brokers[0]}/admin/v2/tenants"] = Response(200, None, b'{"busy": true}', "OK", None)
    settings = dataclasses.replace(recorded.settings, limits=AdminPolicy(read_attempts=2))
    replayed[f"http://{recorded.brokers[1]}/admin/v2/tenants"] = Response(200, None, b'["acme"]', "OK", None)
    with Reader(settings) as reader:
        assert reader.tenants() == ("acme",)


@pytest.mark.parametrize("name", ["evil@127.0.0.1:1", "127.0.0.1:1/admin", "127.0.0.1:1?x=", "127.0.0.1", "", "a b:1"])
def test_what_is_no_broker_is_not_called(
    name: str, recorded: Recorded, replayed: dict[str, Response | AdminError]
) -> None:
    """A listed name becomes a part of addresses: it is a host and a port, and nothing else."""
    listed = json.dumps([*recorded.brokers, name]).encode()
    replayed[recorded.url(0, "/admin/v2/brokers")] = Response(200, None, listed, "OK", None)
    with pytest.raises(BrokenAnswer, match="cannot be read: Expected `str` matching regex"):
        overview(recorded)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "1e300", "9" * 400, "-" + "9" * 400, "", "x", "0x10"])
def test_a_default_that_is_no_number_counts_as_not_set(value: str) -> None:
    """Brokers tell every value as text; what is in force is worked out from it for plans and before calls."""
    keys = ("backlogQuotaDefaultLimitGB", "defaultRetentionTimeInMinutes", "ttlDurationDefaultInSeconds")
    known = defaults_in({**dict.fromkeys(keys, value), "backlogQuotaDefaultRetentionPolicy": "producer_exception"})
    assert known == {}
