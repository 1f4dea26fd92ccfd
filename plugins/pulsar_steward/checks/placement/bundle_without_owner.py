"""Bundles that do not load: they have no owner, and clients used their topics when they last had one.

A bundle is loaded within a second once a client asks for one of its topics. Clients ask again and again, and no broker
gives up an idle bundle. So the past of a bundle shows whether it is unused or fails to load.

A diagnosis reads a few hours of snapshots. If isolation policies leave a namespace no broker, none of its bundles can
have loaded since: earlier findings remain true, and the next diagnosis continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, Query, Scope, grouped, nothing_read
from pulsar_steward.checks.earlier import EarlierRows, looking_back, window_minutes
from pulsar_steward.decoding import decode
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class BundleWithoutOwnerPolicy(Section):
    """Thresholds for bundles that nobody owns though clients used them."""

    window_minutes: int = number(360, "earlier snapshots that are looked at for the last owner of a bundle")
    minimum_minutes: int = number(
        2, "without an owner, from one snapshot to another: a dead broker's session lasts half a minute"
    )
    warning_clients: int = number(1, "producers and consumers of a namespace's bundles when they last had an owner")


MAX_BUNDLES = 10_000
"""Maximum number of bundles without an owner that are looked up in earlier snapshots."""

# Unused namespaces may have most of these bundles, so the namespaces take turns.
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

# The readers of a namespace's policies are the brokers' own, no clients: they leave with its last bundle.
CLIENTS_BEFORE = """
select namespace, bundle, count(*) as topics, sum(coalesce(producers, 0) + coalesce(consumers, 0))::bigint as clients
from raw_topics semi join without_owner using (namespace, bundle)
where of_users(topic) group by namespace, bundle having clients > 0
"""

FOUND_BEFORE = "select subject, figures_json from findings where check_id = 'bundle-without-owner'"


@dataclass(frozen=True)
class LostBundle:
    """A bundle without an owner, that had one while clients used it.

    Attributes:
        row: Its row of this snapshot.
        since: Time of the first of the consecutive snapshots without an owner.
        owner: Its last owner.
        owned_at: Time of the last snapshot with that owner.
        allowed_then: Brokers that isolation policies allowed its namespace then; None: all brokers.
        topics: User topics that were loaded in it then.
        clients: Producers and consumers of these topics.
    """

    row: Row
    since: datetime
    owner: str
    owned_at: datetime
    allowed_then: tuple[str, ...] | None
    topics: int
    clients: int


class LostFigures(Figures, frozen=True, kw_only=True):
    """Figures of a namespace's lost bundles, from which the next diagnosis continues.

    Attributes:
        bundles: Number of lost bundles.
        bundles_of_namespace: Number of all its bundles.
        clients: Clients of the lost bundles, each counted when it last had an owner.
        since_epoch_seconds: Time since when the first of them has had no owner.
        topics: Topics in them at that time.
    """

    bundles: int
    bundles_of_namespace: int
    clients: int
    since_epoch_seconds: int
    topics: int


@dataclass(frozen=True)
class LostBundles:
    """Lost bundles of a namespace.

    Attributes:
        row: The row of one of its bundles without an owner.
        figures: Their figures.
        worst: The lost bundle with most clients; None: it lost its owner before the oldest snapshot.
    """

    row: Row
    figures: LostFigures
    worst: LostBundle | None

    @property
    def namespace(self) -> str:
        """The namespace."""
        return str(self.row["namespace"])

    @property
    def nowhere(self) -> bool:
        """True if isolation policies leave the namespace none of the existing brokers."""
        return bool(self.row["nowhere"])


def judge(queried: Queried, context: CheckContext[BundleWithoutOwnerPolicy]) -> Judgement:
    """A warning for a namespace, critical if isolation policies leave it no broker; the most clients first."""
    found = [
        each
        for each in _lost_bundles(queried, context)
        if each.figures.clients >= context.limits_of(each.namespace).warning_clients
    ]
    found.sort(key=lambda each: (-each.figures.clients, each.namespace))
    listed = frozenset(row["broker"] for row in queried["listed"].rows)
    least = "At least " if queried["without_owner"].more else ""
    findings = tuple(
        CHECK.finding(
            severity=Severity.CRITICAL if each.nowhere else Severity.WARNING,
            subject=each.namespace,
            evidence=least + " ".join(_sentences(each, listed)),
            figures=each.figures.by_name,
        )
        for each in found
    )
    without, missing = queried["without_owner"], nothing_read(queried)
    have = counted(without.count, "bundle has", "bundles have")
    if missing is None and without.rows and not context.about.earlier:
        missing = f"{have} no owner, and no earlier snapshot shows whether clients used them."
    elif missing is None and without.more:
        missing = f"{have} no owner; {MAX_BUNDLES:,} of them were looked up, and no client used these."
    quiet = "Every bundle that had clients still has an owner."
    return Judgement(findings=findings, quiet=quiet, cannot_tell=missing)


def _lost_bundles(queried: Queried, context: CheckContext[BundleWithoutOwnerPolicy]) -> Iterator[LostBundles]:
    """Yields each namespace with lost bundles."""
    before = EarlierRows.of(queried["owners_before"], context, window_minutes, "namespace", "bundle")
    # Topics and clients of a bundle at the time of a snapshot; shards may each have some of its topics.
    clients: dict[tuple[str, str, datetime], tuple[int, int]] = {}
    for row in queried["clients_before"].rows:
        key = row["namespace"], row["bundle"], row["taken_at"]
        topics, count = clients.get(key, (0, 0))
        clients[key] = topics + row["topics"], count + row["clients"]
    known = {
        row["subject"]: row["figures_json"] for row in sorted(queried["found_before"].rows, key=itemgetter("taken_at"))
    }
    for (namespace,), rows in grouped(queried["without_owner"].rows, "namespace").items():
        limits = context.limits_of(namespace)
        lost = [found for row in rows if (found := _lost(row, before, clients, limits)) is not None]
        row = rows[0]
        if lost:
            figures = LostFigures(
                bundles=len(lost),
                bundles_of_namespace=row["bundles_of_namespace"],
                clients=sum(each.clients for each in lost),
                since_epoch_seconds=int(min(each.since for each in lost).timestamp()),
                topics=sum(each.topics for each in lost),
            )
            yield LostBundles(row, figures, min(lost, key=lambda each: (-each.clients, each.row["bundle"])))
        elif row["nowhere"] and namespace in known:
            then = decode(known[namespace], LostFigures)
            now = msgspec.structs.replace(then, bundles_of_namespace=row["bundles_of_namespace"])
            yield LostBundles(row, now, None)


def _lost(
    row: Row,
    before: EarlierRows,
    clients: Mapping[tuple[str, str, datetime], tuple[int, int]],
    limits: BundleWithoutOwnerPolicy,
) -> LostBundle | None:
    """The bundle as lost; None: it had no clients right before it lost its owner, or this is not known."""
    since = None
    for at, older in before.told(row):
        if older is None:
            return None  # no such bundle: its namespace is younger, or the bundle came from a split
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


def _sentences(found: LostBundles, listed: frozenset[str]) -> Iterator[str]:
    worst, figures = found.worst, found.figures
    have, them = ("has", "it") if figures.bundles == 1 else ("have", "them")
    since = datetime.fromtimestamp(figures.since_epoch_seconds, UTC)
    yield (
        f"{figures.bundles:,} of {counted(figures.bundles_of_namespace, 'bundle')} {have} had no owner in any"
        f" snapshot since {time_in_words(since)}; before, {counted(figures.clients, 'client')} used"
        f" {counted(figures.topics, 'topic')} in {them}."
    )
    if worst is not None:
        yield (
            f"{worst.row['bundle']} was on {worst.owner} at {time_in_words(worst.owned_at)}, with"
            f" {counted(worst.topics, 'topic')} and {counted(worst.clients, 'client')}."
        )
    if found.nowhere:
        yield "Isolation policies leave the namespace no broker that is there: nobody can reach these topics."
        if worst is not None:
            where = "any broker"
            if worst.allowed_then is not None:
                gone = "" if listed & set(worst.allowed_then) else ", of which none is listed any more"
                where = f"{named(sorted(worst.allowed_then)) or 'none'}{gone}"
            yield f"At {time_in_words(worst.owned_at)} it could be on {where}."
    elif worst is not None:
        if (allowed := found.row["allowed_brokers"]) is not None:
            yield f"Isolation policies leave it {named(sorted(allowed))}."
        yield (
            "Either no broker loads what clients ask for, or these clients left between"
            f" {time_in_words(worst.owned_at, seconds=True)} and {time_in_words(worst.since, seconds=True)}, when the"
            " owner did: both look the same in snapshots."
        )


CHECK = Check(
    check_id="bundle-without-owner",
    headlines={Harm.CUT_OFF: "TOPICS NOT SERVED: bundles without an owner"},
    harm=Harm.CUT_OFF,
    order=55,
    title="Bundles that clients used have no owner: they do not load",
    advice=(
        "Ask for one of the topics, and read the answer: `pulsar-admin topics lookup TOPIC` loads what can be loaded.",
        "See which brokers may have the namespace: `pulsar-admin ns-isolation-policy list CLUSTER`.",
        "A policy keeps its primary brokers from all other namespaces, too: with all brokers in it, these have none.",
        "Start the brokers of its group, or give its policy secondary brokers, or take a mistaken policy back.",
        "Else read the logs of the leader and of the last owner (`steward checkup --logs`) for the bundle's name.",
        "Clients that were switched off are well: the finding ends with the snapshots that still show them.",
    ),
    source="docs/knowledge.md F; docs/checks/bundle-without-owner.md",
    scope=Scope.NAMESPACE,
    policy=BundleWithoutOwnerPolicy,
    shards={"without_owner": Query(WITHOUT_OWNER, worst_first=IN_TURN, most=MAX_BUNDLES, small=True)},
    earlier={
        "owners_before": looking_back(OWNERS_BEFORE, small=True),
        "clients_before": looking_back(CLIENTS_BEFORE),
        "found_before": looking_back(FOUND_BEFORE, small=True),
    },
    cluster={"read": BROKERS_READ, "listed": Query("select broker from brokers")},
    judge=judge,
)
