"""Transaction coordinators: how evenly they are spread over the brokers, and whether their number suits these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, brokers_of
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried

ELECTED_IN = "transactionCoordinatorScalableTopicsEnabled"
"""Setting of brokers of Pulsar 5 that elect leaders of further coordinators (PIP-473, apache/pulsar#25929).

Transactions of clients by the API of version 5 are with these. All other clients go on with the coordinators that
bundles of ``pulsar/system`` place. Tried on 5.0.1 (docs/pulsar-behaviour.md).
"""

WHO_LEADS = (
    "Who leads the coordinators of scalable topics cannot be told: {brokers} elect them"
    f" ({ELECTED_IN}), and neither the admin API nor a broker's metrics name a leader. The metadata store does, at"
    " /txn/tc/leader/NUMBER. Unloading bundles moves none, and a broker keeps what it leads until it ends. Then others"
    " take it, often one of them all: in a rolling restart end the broker that leads most last, so that they move once."
)


class TcSkewPolicy(Section):
    """Thresholds for unevenly placed transaction coordinators, and limits for moving them."""

    warning_spread_coordinators: int = number(
        3, "most minus fewest on a broker; a freshly started cluster shows 2 (6/6/4)", ge=2
    )
    settled_bundle_coordinators: int = number(
        4,
        "up to which a broker's only bundle with coordinators may stay: no move makes them fewer, and a"
        " split cannot be undone",
        ge=0,
    )
    critical_share_percent: int = percent(
        75, "share of all coordinators on one broker, whose restart would stall that many"
    )
    cooldown_minutes: int = number(30, "rest of a bundle after a move, against moving in circles", ge=0)


HOLDERS = f"""
with held_by as (
    select broker, count(*) as held,
        count(distinct bundle) = 1 and count(*) <= $settled_bundle_coordinators as settled
    from transaction_coordinators where broker is not null group by broker),
isolation as (
    select allowed_brokers from namespaces where namespace = '{TC_NAMESPACE}' and allowed_brokers is not null)
select broker, read, coalesce(held, 0) as held, coalesce(settled, false) as settled,
    exists(select 1 from isolation where not list_contains(allowed_brokers, broker)) as set_apart
from brokers left join held_by using (broker)
"""
"""Each broker with the number of its coordinators; coordinators of an unknown broker are not counted.

`settled`: all of them are in one bundle, and few. `set_apart`: isolation policies exclude the broker from the
coordinators' namespace.
"""

ELECTING = f"select broker from setting('{ELECTED_IN}') where value = 'true'"
"""Brokers that elect the leaders of coordinators of scalable topics."""

NOWHERE = "select count(*) as coordinators from transaction_coordinators where broker is null and broker_known"
"""Number of coordinators that are known to be on no broker."""


@dataclass(frozen=True)
class _Spread:
    """Coordinators by broker, as far as brokers were read."""

    total: int
    nowhere: int
    listed: int
    held: tuple[tuple[str, int], ...]
    """Brokers that were read, with their coordinators, the fullest first; at a tie, by the lowest id."""
    settled: frozenset[str]
    """Brokers with few coordinators, all in one bundle: no move reduces them, and no split is worthwhile."""

    @property
    def most(self) -> int:
        return self.held[0][1]

    @property
    def fewest(self) -> int:
        return self.held[-1][1]

    @property
    def spread(self) -> int:
        """Difference between the fullest broker that could be relieved and the emptiest; 0 if none could be."""
        relievable = (count for broker, count in self.held if broker not in self.settled)
        return max(max(relievable, default=0) - self.fewest, 0)

    @property
    def elsewhere(self) -> int:
        return self.total - sum(count for _, count in self.held)

    @property
    def share_percent(self) -> int:
        return self.most * 100 // self.total


def judge_tc_skew(queried: Queried, context: CheckContext[TcSkewPolicy]) -> Judgement:
    """Critical if one broker has nearly all coordinators; a warning if the spread is uneven."""
    about = context.about
    if not about.coordinators:
        return Judgement(quiet="Transactions are off: there are no coordinators.")
    # Without intentionally empty brokers: draining ones, and ones that isolation policies exclude.
    rows, draining = queried["holders"].rows, context.policy.brokers.draining
    listed = [row for row in rows if row["held"] or not (row["set_apart"] or row["broker"] in draining)]
    held = sorted(((row["broker"], row["held"]) for row in listed if row["read"]), key=lambda each: (-each[1], each[0]))
    settled = frozenset(row["broker"] for row in listed if row["settled"])
    nowhere = queried["nowhere"].one["coordinators"]
    spread = _Spread(about.coordinators, nowhere, len(listed), tuple(held), settled)
    if not spread.held:
        return Judgement(cannot_tell="No broker that may hold coordinators was read.")
    most, severity = spread.most * 100, Severity.WARNING
    # A single coordinator always means all coordinators on one broker.
    if min(spread.listed, spread.total) > 1 and most >= context.limits.critical_share_percent * spread.total:
        severity = Severity.CRITICAL
    elif spread.spread < context.limits.warning_spread_coordinators:
        # Coordinators without a broker are no sign of health: no transaction can begin with them.
        words = _sentence(spread)
        unknown = [words] if spread.elsewhere else []
        if electing := brokers_of(queried["electing"]):
            unknown.append(WHO_LEADS.format(brokers=named(electing)))
        return Judgement(quiet=words, cannot_tell=" ".join(unknown) or None)
    finding = TC_SKEW.finding(
        severity=severity,
        subject=about.cluster,
        evidence=_sentence(spread),
        figures={
            "brokers_read": len(spread.held),
            "coordinators": spread.total,
            "coordinators_elsewhere": spread.elsewhere,
            "fewest_coordinators": spread.fewest,
            "most_coordinators": spread.most,
            "share_percent": spread.share_percent,
            "spread_coordinators": spread.spread,
        },
    )
    return Judgement(findings=(finding,))


def _sentence(spread: _Spread) -> str:
    (fullest, most), (emptiest, fewest) = spread.held[0], spread.held[-1]
    words = f"{fullest} holds {most} of {counted(spread.total, 'transaction coordinator')} ({spread.share_percent} %)"
    if len(spread.held) > 1:
        words += f", {emptiest} holds {fewest}"
    if spread.nowhere:
        words += f"; nobody has {spread.nowhere}, which load when a client asks for them"
    if unread := spread.elsewhere - spread.nowhere:
        words += f"; {unread} are on no broker that was read"
    return words + "."


TC_SKEW = Check(
    check_id="tc-skew",
    harm=Harm.AT_RESTART,
    order=10,
    title="Transaction coordinators are unevenly spread over the brokers",
    advice=(
        "Move bundles of pulsar/system from the broker with the most coordinators to the one with the fewest.",
        "Balance the coordinators before business bundles, so that the two do not undo each other.",
        "Look at the spread after every restart and scale-out: brokers never move these bundles by themselves.",
    ),
    source="docs/knowledge.md A; apache/pulsar#22953",
    remedied_by="tc_balance",
    policy=TcSkewPolicy,
    cluster={"holders": Query(HOLDERS), "nowhere": Query(NOWHERE), "electing": Query(ELECTING)},
    judge=judge_tc_skew,
)


class TcCountPolicy(Section):
    """Thresholds for the number of transaction coordinators."""

    warning_share_percent: int = percent(
        33,
        "of all transactions with one coordinator, while more brokers could share them: so many stall when"
        " its broker restarts",
    )
    information_brokers_per_coordinator: int = number(
        4, "brokers of which only one can hold a coordinator; transactions load few of them", ge=2
    )
    warning_coordinators_per_broker: int = number(
        100,
        "each is a log of its own that is replayed after a move, and every client that uses transactions"
        " connects to all",
    )


class CoordinatorFigures(Figures, frozen=True, kw_only=True):
    """Brokers that may hold coordinators, the coordinators, and the share of transactions of each."""

    brokers: int
    coordinators: int
    share_percent: int


BROKERS = f"""
with isolation as (
    select allowed_brokers from namespaces where namespace = '{TC_NAMESPACE}' and allowed_brokers is not null)
select broker, exists(select 1 from isolation where not list_contains(allowed_brokers, broker)) as set_apart
from brokers
"""
"""Each broker, read or not; `set_apart`: isolation policies exclude it from the coordinators' namespace."""


def judge_tc_count(queried: Queried, context: CheckContext[TcCountPolicy]) -> Judgement:
    """At most one finding, about the cluster."""
    about, limits = context.about, context.limits
    if not about.coordinators:
        return Judgement(quiet="Transactions are off: there are no coordinators.")
    draining = context.policy.brokers.draining
    brokers = sum(not row["set_apart"] and row["broker"] not in draining for row in queried["listed"].rows)
    if not brokers:
        return Judgement(cannot_tell="No broker that may hold coordinators is listed.")
    severity, why = _trouble(about.coordinators, brokers, limits)
    there = "There is" if about.coordinators == 1 else "There are"
    able = counted(brokers, "broker that could hold one", "brokers that could hold them")
    words = f"{there} {counted(about.coordinators, 'transaction coordinator')} for {able}{why}."
    if severity is None:
        return Judgement(quiet=words)
    figures = CoordinatorFigures(
        brokers=brokers, coordinators=about.coordinators, share_percent=100 // about.coordinators
    )
    finding = TC_COUNT.finding(severity=severity, subject=about.cluster, evidence=words, figures=figures.by_name)
    return Judgement(findings=(finding,))


def _trouble(coordinators: int, brokers: int, limits: TcCountPolicy) -> tuple[Severity | None, str]:
    share = 100 // coordinators
    if coordinators < brokers and share >= limits.warning_share_percent:
        return Severity.WARNING, f": {share} % of all transactions stall whenever the broker of one of them restarts"
    if coordinators > limits.warning_coordinators_per_broker * brokers:
        return Severity.WARNING, (
            f", {coordinators // brokers:,} a broker: every client that uses transactions connects to each of them, and"
            " a broker that restarts has the logs of all of its own replayed elsewhere"
        )
    if coordinators * limits.information_brokers_per_coordinator < brokers:
        idle = counted(brokers - coordinators, "broker holds", "brokers hold")
        return Severity.INFO, f": at least {idle} none, and transactions load the rest"
    return None, ", which suits them"


TC_COUNT = Check(
    check_id="tc-count",
    harm=Harm.SLOW,
    order=15,
    title="There are too few or too many transaction coordinators for the brokers",
    advice=(
        "Too few: `pulsar-admin transactions scale-transactionCoordinators -r N`, N the number of brokers or more.",
        "Raising it cannot be undone: brokers refuse a lower number. Raise it in steps, and not further than needed.",
        "Look at tc-skew afterwards: new coordinators fall where hashes put them.",
        "Too many: only a cluster with new metadata has fewer; add brokers, or keep them evenly spread.",
        "Pulsar 5: those of scalable topics are transactionCoordinatorScalableTopicsParallelism, for good.",
        "Steward proposes a raise where the policy permits one (`guards.most_coordinators`), for a person to approve.",
    ),
    remedied_by="tc_count",
    source="docs/knowledge.md A: the number of TCs has to suit the number of brokers; apache/pulsar#15296",
    policy=TcCountPolicy,
    cluster={"listed": Query(BROKERS)},
    judge=judge_tc_count,
)
