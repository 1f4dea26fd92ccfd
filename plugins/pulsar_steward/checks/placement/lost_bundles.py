"""Bundles without an owner that users' clients were connected to when they last had one, by namespace.

A diagnosis reads a few hours of snapshots. Where isolation policies leave a namespace no broker, nothing of it can have
been loaded since: what was found in these snapshots holds on, and the next diagnosis goes on from there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.earlier import EarlierRows, window_minutes
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.checks.check import Answers, CheckAnswer, CheckContext, Row


class BundleWithoutOwnerPolicy(Section):
    """Thresholds for bundles that nobody owns though clients used them."""

    window_minutes: int = Field(
        360, ge=1, description="earlier snapshots that are looked at for the last owner of a bundle"
    )
    minimum_minutes: int = Field(
        2,
        ge=1,
        description="without an owner, from one snapshot to another: a dead broker's session lasts half a minute",
    )
    warning_clients: int = Field(
        1, ge=1, description="producers and consumers of a namespace's bundles when they last had an owner"
    )


MAX_BUNDLES = 10_000
"""Most bundles without an owner that are looked up in earlier snapshots."""

# Namespaces that nobody uses may have most of them: so each namespace has its turn.
WITHOUT_OWNER = """
select namespace, bundle, allowed_brokers, n.bundles as bundles_of_namespace,
    coalesce(len(allowed_brokers) = 0, false) as nowhere,
    row_number() over (partition by namespace order by bundle) as turn
from bundles b join namespaces n using (namespace)
where b.owner is null and b.owner_known and not is_heartbeat(namespace)
"""

IN_TURN = "nowhere desc, turn, namespace, bundle"

OWNERS_BEFORE = """
select namespace, bundle, owner, owner_known, allowed_brokers
from bundles semi join without_owner using (namespace, bundle) left join namespaces using (namespace)
"""
"""Owners of the same bundles in an earlier snapshot."""

# Brokers' own readers of a namespace's policies are no clients: they leave with its last bundle.
CLIENTS_BEFORE = """
select namespace, bundle, count(*) as topics, sum(coalesce(producers, 0) + coalesce(consumers, 0))::bigint as clients
from raw_topics semi join without_owner using (namespace, bundle)
where of_users(topic) group by namespace, bundle having clients > 0
"""

FOUND_BEFORE = """
select subject as namespace, try_cast(figures_json->>'bundles' as bigint) as bundles,
    try_cast(figures_json->>'topics' as bigint) as topics, try_cast(figures_json->>'clients' as bigint) as clients,
    try_cast(figures_json->>'since_epoch_seconds' as bigint) as since_epoch_seconds
from findings where check_id = 'bundle-without-owner' and since_epoch_seconds is not null
"""


@dataclass(frozen=True)
class LostBundle:
    """A bundle that has no owner, and had one while clients used it.

    Attributes:
        row: Its row of this snapshot.
        since: Time of the first of the snapshots in a row in which it had no owner.
        owner: Its last owner.
        owned_at: Time of the snapshot that shows it there.
        allowed_then: Brokers that isolation policies left to its namespace then; None: every broker.
        topics: Users' topics that were loaded in it then.
        clients: Their producers and consumers.
    """

    row: Row
    since: datetime
    owner: str
    owned_at: datetime
    allowed_then: tuple[str, ...] | None
    topics: int
    clients: int


@dataclass(frozen=True)
class LostBundles:
    """Lost bundles of a namespace.

    Attributes:
        row: The row of one of its bundles without an owner.
        bundles: Number of lost bundles.
        topics: Topics in them, when each last had an owner.
        clients: Clients of these.
        since: Time since when the first of them has had no owner.
        worst: The one with most clients; None: their owners are further back than the snapshots reach.
    """

    row: Row
    bundles: int
    topics: int
    clients: int
    since: datetime
    worst: LostBundle | None

    @property
    def namespace(self) -> str:
        """The namespace."""
        return str(self.row["namespace"])

    @property
    def nowhere(self) -> bool:
        """True if isolation policies leave the namespace no broker that is there."""
        return bool(self.row["nowhere"])


def lost_bundles(answers: Answers, context: CheckContext[BundleWithoutOwnerPolicy]) -> Iterator[LostBundles]:
    """Yields each namespace with lost bundles."""
    before = EarlierRows.of(answers["owners_before"], context, window_minutes, "namespace", "bundle")
    clients = _clients(answers["clients_before"])
    theirs: dict[str, list[Row]] = defaultdict(list)
    for row in answers["without_owner"].rows:
        theirs[row["namespace"]].append(row)
    known = {row["namespace"]: row for row in sorted(answers["found_before"].rows, key=itemgetter("taken_at"))}
    for namespace, rows in theirs.items():
        limits = context.limits_of(namespace)
        lost = [found for row in rows if (found := _lost(row, before, clients, limits)) is not None]
        if lost:
            yield _together(rows[0], lost)
        elif rows[0]["nowhere"] and namespace in known:
            yield _held_on(rows[0], known[namespace])


def _clients(answer: CheckAnswer) -> Mapping[tuple[str, str, datetime], tuple[int, int]]:
    """Topics and clients of a bundle at the time of a snapshot; shards may each have some of its topics."""
    found: dict[tuple[str, str, datetime], tuple[int, int]] = {}
    for row in answer.rows:
        key = row["namespace"], row["bundle"], row["taken_at"]
        topics, clients = found.get(key, (0, 0))
        found[key] = topics + row["topics"], clients + row["clients"]
    return found


def _lost(
    row: Row,
    before: EarlierRows,
    clients: Mapping[tuple[str, str, datetime], tuple[int, int]],
    limits: BundleWithoutOwnerPolicy,
) -> LostBundle | None:
    """The bundle as lost; None: it had no clients right before it lost its owner, or nobody knows."""
    since = None
    for at, older in before.told(row):
        if older is None:
            return None  # no such bundle: its namespace is younger, or it came of a split
        if older["owner"] is None:
            since = at if older["owner_known"] else since
            continue
        there = clients.get((row["namespace"], row["bundle"], at))
        if there is None or since is None or before.seconds_since(since) < 60 * limits.minimum_minutes:
            return None
        if at < before.ago(limits.window_minutes):
            return None
        allowed = None if older["allowed_brokers"] is None else tuple(older["allowed_brokers"])
        return LostBundle(row, since, older["owner"], at, allowed, *there)
    return None


def _together(row: Row, lost: Sequence[LostBundle]) -> LostBundles:
    return LostBundles(
        row=row,
        bundles=len(lost),
        topics=sum(each.topics for each in lost),
        clients=sum(each.clients for each in lost),
        since=min(each.since for each in lost),
        worst=min(lost, key=lambda each: (-each.clients, each.row["bundle"])),
    )


def _held_on(row: Row, known: Row) -> LostBundles:
    since = datetime.fromtimestamp(known["since_epoch_seconds"], UTC)
    return LostBundles(row, known["bundles"], known["topics"], known["clients"], since, None)
