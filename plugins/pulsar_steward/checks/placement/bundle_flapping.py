"""Bundles that change their owner again and again, each time with all their clients.

If no restart explains the moves, the bundle is named; if restarts do, the broker that restarts again and again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.earlier import by_time, looking_back, too_few, within
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import CheckContext, Queried, QueryRows, Row

STARTS = f"""
select source as broker, max(value) as started from metrics
where series = '{STARTED}' and source_kind = 'broker' and isfinite(value) group by source
"""
"""Start times of brokers' processes, seconds since the epoch."""

OWNERS = """
with owned as (
    select namespace, bundle, owner, min(owner) over same = max(owner) over same as sure
    from bundles where owner is not null and not is_heartbeat(namespace)
    window same as (partition by namespace, bundle)),
held as (
    select owner as broker,
        coalesce(list(namespace || '/' || bundle order by namespace, bundle) filter (sure), []) as bundles
    from owned group by owner)
select broker, coalesce(read, false) as read, held.bundles from brokers full join held using (broker)
"""
"""One row per listed broker: whether it was read, and its bundles, null if it has none.

One row per bundle would be far more data, as hardly any bundle moves. A bundle that two brokers report is just moving.
"""


@dataclass(frozen=True)
class OwnershipPeriod:
    """A bundle at one owner, from the snapshot of `at` on; `restart`: the owner before was away when it left."""

    owner: str
    at: datetime
    restart: bool = False


@dataclass(frozen=True)
class Journey:
    """The owners of a bundle over time: its periods at one owner (`stays`), in order of time; at least two."""

    namespace: str
    bundle: str
    stays: tuple[OwnershipPeriod, ...]

    @property
    def explained(self) -> int:
        """Number of moves away from brokers that were away."""
        return sum(stay.restart for stay in self.stays)

    @property
    def moves(self) -> int:
        """Number of the other moves, without a restart to explain them."""
        return len(self.stays) - 1 - self.explained

    @property
    def returns(self) -> int:
        """Number of these moves that went straight back to the previous owner."""
        there_and_back = zip(self.stays, self.stays[1:], self.stays[2:], strict=False)
        return sum(
            before.owner == back.owner and not there.restart and not back.restart
            for before, there, back in there_and_back
        )

    @property
    def weight(self) -> int:
        """Weight of the moves: a move straight back counts as two."""
        return self.moves + self.returns


@dataclass(frozen=True)
class Restarts:
    """A broker whose process restarted again and again.

    Attributes:
        broker: The broker.
        seen: Times of the snapshots that show a later start than the snapshot before, in order. A snapshot has only the
            last start, so there may have been more.
        left: Number of bundles that moved away from it while it was away.
    """

    broker: str
    seen: tuple[datetime, ...]
    left: int


Owners: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""Rows of `OWNERS` by the time of their snapshot."""

Starts: TypeAlias = "Mapping[datetime, Sequence[Row]]"
"""Rows of `STARTS` by the time of their snapshot."""

Gone: TypeAlias = "Mapping[str, Sequence[datetime]]"
"""Brokers that were away at some time since the snapshot before, with the times of all such snapshots."""


def journeys(times: Sequence[datetime], owners: Owners, gone: Gone) -> Iterator[Journey]:
    """Yields journeys of bundles that moved between `times`, the oldest first; unknown owners are skipped."""
    stays: dict[str, list[OwnershipPeriod]] = {}
    seen: dict[str, datetime] = {}
    for at in times:
        for row in owners.get(at, ()):
            here = OwnershipPeriod(row["broker"], at)
            for name in row["bundles"] or ():
                so_far = stays.setdefault(name, [here])
                if (source := so_far[-1].owner) != here.owner:
                    restart = any(seen[name] < moment <= at for moment in gone.get(source, ()))
                    so_far.append(OwnershipPeriod(here.owner, at, restart))
                seen[name] = at
    for name, its_stays in stays.items():
        if len(its_stays) > 1:
            namespace, _, bundle = name.rpartition("/")
            yield Journey(namespace, bundle, tuple(its_stays))


def away(times: Sequence[datetime], owners: Owners, starts: Starts) -> Gone:
    """Brokers that were away at some time since the snapshot before: restarted, not listed, or not read.

    A broker without a known start counts as away if it has no bundle left.

    Args:
        times: Times of the snapshots, the oldest first.
        owners: The owners in them.
        starts: The rows of `STARTS` by the time of their snapshot.
    """
    gone: dict[str, list[datetime]] = defaultdict(list)
    brokers = {row["broker"] for rows in owners.values() for row in rows}
    for before, after in pairwise(times):
        rows = {row["broker"]: row for row in owners.get(after, ())}
        started = {row["broker"]: row["started"] for row in starts.get(after, ())}
        for broker in brokers:
            row = rows.get(broker)
            if row is None or not row["read"]:
                gone[broker].append(after)
            elif broker in started:
                if started[broker] > before.timestamp():
                    gone[broker].append(after)
            elif row["bundles"] is None:
                gone[broker].append(after)
    return gone


def restarts(times: Sequence[datetime], starts: Starts, journeys: Iterable[Journey]) -> list[Restarts]:
    """Brokers that restarted between snapshots (`times`, the oldest first), by name; unknown starts are skipped."""
    last: dict[str, float] = {}
    seen: dict[str, list[datetime]] = defaultdict(list)
    for at in times:
        for row in starts.get(at, ()):
            if row["started"] > last.get(row["broker"], row["started"]):
                seen[row["broker"]].append(at)
            last[row["broker"]] = row["started"]
    left = Counter(before.owner for journey in journeys for before, after in pairwise(journey.stays) if after.restart)
    return [Restarts(broker, tuple(seen[broker]), left[broker]) for broker in sorted(seen)]


class BundleFlappingPolicy(Section):
    """Thresholds for bundles that change their owner repeatedly; a move straight back counts as two."""

    window_minutes: int = number(360, "earlier snapshots that are looked at")
    warning_moves: int = number(
        4, "within the window; 3 are a move and its undoing, which Steward may have done itself", ge=2
    )
    critical_moves: int = number(8, "the same; there and back three times are 9", ge=2)
    warning_broker_restarts: int = number(
        3, "of a broker within the window; a rolling restart is one, and two where it is repeated", ge=2
    )
    critical_broker_restarts: int = number(6, "the same: it hardly serves anybody in between", ge=2)


MIN_SNAPSHOTS = 3
SHEDDING, STRATEGY = "loadBalancerSheddingEnabled", "loadBalancerLoadSheddingStrategy"

SETTINGS = f"""
select distinct key, value from configuration where key in ('{SHEDDING}', '{STRATEGY}') and value is not null
"""


def needed_snapshots(limits: BundleFlappingPolicy) -> int:
    """Minimum number of snapshots: n snapshots of a bundle moving back and forth weigh 2 (n - 1) - 1 moves."""
    return max(MIN_SNAPSHOTS, -(-(limits.warning_moves + 3) // 2))


def judge(queried: Queried, context: CheckContext[BundleFlappingPolicy]) -> Judgement:
    """Judges by the weight of a bundle's moves, and by a broker's starts; too few snapshots give no verdict."""
    limits, about = context.limits, context.about
    earlier = within(about, limits.window_minutes)[::-1]
    found = _found(queried, [*(each.taken_at for each in earlier), about.taken_at], limits)
    snapshots, needed = len(earlier) + 1, needed_snapshots(limits)
    if not found and snapshots < needed:
        return Judgement(cannot_tell=too_few(snapshots, needed, limits.window_minutes))
    partial = sum(each.partial for each in earlier)
    seen = f"{counted(snapshots, 'snapshot')} since {time_in_words(earlier[0].taken_at)}"
    incomplete = f"{partial} of the {seen} {'is' if partial == 1 else 'are'} partial."
    return Judgement(
        findings=tuple(found),
        quiet=f"No bundle moved to and fro in the {seen}.",
        cannot_tell=incomplete if partial else None,
    )


def _found(queried: Queried, times: Sequence[datetime], limits: BundleFlappingPolicy) -> list[Finding]:
    """Findings about restarting brokers, then about moved bundles."""
    owners = {**by_time(queried["owners_before"].rows), times[-1]: queried["owners"].rows}
    starts = {**by_time(queried["starts_before"].rows), times[-1]: queried["starts"].rows}
    moved = list(journeys(times, owners, away(times, owners, starts)))
    found = []
    for each in sorted(restarts(times, starts, moved), key=lambda each: (-len(each.seen), each.broker)):
        count, are = len(each.seen), "is" if each.left == 1 else "are"
        if count < limits.warning_broker_restarts:
            continue
        words = (
            f"Broker {each.broker} has restarted at least {counted(count, 'time')} within"
            f" {counted(limits.window_minutes, 'minute')}; its start was a new one at"
            f" {', '.join(map(time_in_words, each.seen))}: it crashes again and again, or is ended. Each time its"
            f" bundles go to others, with all their clients; {counted(each.left, 'move')} of bundles away from it {are}"
            " among the snapshots."
        )
        critical = count >= limits.critical_broker_restarts
        figures = {"moves_from_broker": each.left, "restarts": count}
        found.append(_finding(each.broker, words, figures, critical=critical))
    shedding = _shedding_words(queried["settings"])
    for journey in sorted(moved, key=lambda each: (-each.weight, each.namespace, each.bundle)):
        if journey.weight < limits.warning_moves:
            continue
        explained = f", {journey.explained} more as their owner was away" if journey.explained else ""
        stays = " → ".join(f"{stay.owner} ({time_in_words(stay.at)})" for stay in journey.stays)
        words = (
            f"Moved {counted(journey.moves, 'time')}, {journey.returns} of them straight back{explained}; first seen at"
            f" {stays}; {shedding}."
        )
        figures = {
            "moves": journey.moves,
            "moves_back": journey.returns,
            "moves_from_brokers_away": journey.explained,
            "owners": len({stay.owner for stay in journey.stays}),
        }
        critical = journey.weight >= limits.critical_moves
        found.append(_finding(f"{journey.namespace}/{journey.bundle}", words, figures, critical=critical))
    return found


def _finding(subject: str, evidence: str, figures: dict[str, int], *, critical: bool) -> Finding:
    severity = Severity.CRITICAL if critical else Severity.WARNING
    return CHECK.finding(severity=severity, subject=subject, evidence=evidence, figures=figures)


def _shedding_words(settings: QueryRows) -> str:
    """Text about load shedding as a possible cause; indirect, as brokers do not report the bundles that they shed."""
    values: dict[str, list[str]] = {SHEDDING: [], STRATEGY: []}
    for row in settings.rows:
        values[row["key"]].append(row["value"])
    if not values[SHEDDING]:
        return f"whether the brokers' own shedding is on ({SHEDDING}) was not read"
    if "true" in values[SHEDDING]:
        names = ", ".join(each.rpartition(".")[2] for each in values[STRATEGY])
        return f"the brokers' own shedding is on{f' ({names})' if names else ''} and may be what moves it"
    return f"the brokers' own shedding is off ({SHEDDING}), so somebody or something else moves it"


CHECK = Check(
    check_id="bundle-flapping",
    harm=Harm.SLOW,
    order=50,
    title="A bundle changes its owner again and again, or a broker restarts again and again",
    advice=(
        "Where a broker restarts: read the end of its log, and see what ends it (out of memory, a failing probe).",
        "See who moved it: the leader's log names what shedding unloaded; Steward's own moves are in its ledger.",
        "Make shedding calmer: a larger threshold, longer `loadBalancerSheddingGracePeriodMinutes`, another strategy.",
        "Turn shedding off (`loadBalancerSheddingEnabled`) while you look: each move reconnects all clients.",
        "Split a bundle that is too hot for any broker (check hot-bundle): whoever takes it sheds it again.",
        "Let no two balancers work on the same cluster, such as scripts beside the brokers' own shedding.",
    ),
    source="docs/checks/bundle-flapping.md; apache/pulsar#21722, apache/pulsar#20822, apache/pulsar#16059",
    policy=BundleFlappingPolicy,
    shards={"starts": Query(STARTS)},
    earlier={"owners_before": looking_back(OWNERS, small=True), "starts_before": looking_back(STARTS)},
    cluster={"owners": Query(OWNERS), "settings": Query(SETTINGS)},
    judge=judge,
)
