"""A made-up cluster whose answers are recorded once and given again, with what reads them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import msgspec
import pyarrow as pa
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from pulsar_steward.collect.arrow import (
    BROKER_TABLES,
    DRILL_TABLES,
    NAMESPACE_TABLES,
    OWN_POLICIES,
    SUSPECTS,
    UNREAD,
    as_answer,
)
from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.bundles import SystemBundle, placement
from pulsar_steward.collect.drill import DetailRequest, DrillTask, drill
from pulsar_steward.collect.overview import PlacementInput, look_over, read_namespaces
from pulsar_steward.collect.suspects import SuspectCollector, worst_of
from pulsar_steward.errors import AdminError
from pulsar_steward.model.bundles import ranges_of
from pulsar_steward.model.tables import BROKERS
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.exchange import Exchange, Response
from pulsar_steward.pulsar.own_settings import NamespaceDocument, own_settings_in
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.model.tables import Table

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
        """Settings with which the recorded brokers are asked."""
        return AdminSettings(tuple(f"http://{each}" for each in self.brokers), limits=AdminPolicy(read_attempts=1))

    def url(self, number: int, path: str) -> str:
        """The first address that was asked at a broker and ends so, or holds this."""
        asked = [url for url in self.answers if urlsplit(url).netloc == self.brokers[number] and path in url]
        return next((url for url in asked if url.endswith(path)), asked[0])


class Read(NamedTuple):
    """Result of reading: rows by who they are about, and who was named as unread."""

    rows: dict[str, list[Any]]
    unread: set[str]


def overview(known: Recorded) -> Read:
    """Facts that are asked once, and what follows from them: each figure is about itself."""
    with Reader(known.settings) as reader:
        found = look_over(reader)
    placement(found.coordinators, [SystemBundle("0x00000000_0xffffffff", None, owner_known=True)])
    namespaces(known, PlacementInput(found.brokers, found.policies, found.pulsar_cluster), found.namespaces)
    figures = {name: [value] for name, value in msgspec.structs.asdict(found).items() if name != "unread"}
    return Read(figures, set(found.unread))


def brokers(known: Recorded) -> Read:
    """Two brokers, as a task of Spark's reads them: rows by broker."""
    tasks = [BrokerTask(name, known.cluster, leader=False) for name in known.brokers[1:]]
    worst, rows, unread = SuspectCollector(20, from_consumed_bytes=1), defaultdict[str, list[Any]](list), set[str]()
    for piece in read_brokers(known.settings, tasks, ReadScope(TAKEN_AT, POLICY)):
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


def namespaces(known: Recorded, where: PlacementInput | None = None, names: Iterable[str] = NAMESPACES) -> Read:
    """Namespaces by name; what plans are made of later has to be readable then."""
    rows, unread = dict[str, list[Any]](), set[str]()
    for piece in read_namespaces(known.settings, where or PlacementInput(known.brokers, {}, known.cluster), names):
        for row in checked(piece, NAMESPACE_TABLES):
            if piece.table == UNREAD:
                unread.add(row["name"])
                continue
            msgspec.json.decode(row["policies_json"], type=NamespaceDocument)
            assert ranges_of(row["boundaries"])[0].lower == 0
            rows[row["namespace"]] = [row]
    return Read(rows, unread)


def suspects(known: Recorded) -> Read:
    """An owner's answers about suspects: rows by topic. What is left out is logged."""
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


def recording() -> Recorded:
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


def replaying(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> dict[str, Response | AdminError]:
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
