"""Too few transaction coordinators for the brokers to share, or so many that they cost more than they help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.placement.tc_skew import NOT_BY_BUNDLE
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Figures, Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried

HOW_MANY = (
    f"{NOT_BY_BUNDLE} Where Pulsar 5 elects their leaders (transactionCoordinatorScalableTopicsEnabled), there are as"
    " many as transactionCoordinatorScalableTopicsParallelism says, which has to be the same on every broker and cannot"
    " be changed later: choose as many as there are to be brokers, or more, before the cluster is first started."
)


class TcCountPolicy(Section):
    """Thresholds for the number of transaction coordinators."""

    warning_share_percent: int = Field(
        33,
        ge=1,
        le=100,
        description="of all transactions with one coordinator, while more brokers could share them: so many stall when"
        " its broker restarts",
    )
    information_brokers_per_coordinator: int = Field(
        4, ge=2, description="brokers of which only one can hold a coordinator; transactions load few of them"
    )
    warning_coordinators_per_broker: int = Field(
        100,
        ge=1,
        description="each is a log of its own that is replayed after a move, and every client that uses transactions"
        " connects to all",
    )


class CoordinatorFigures(Figures, frozen=True, kw_only=True):
    """Brokers that may hold coordinators, the coordinators, and the share of transactions of each."""

    brokers: int
    coordinators: int
    share_percent: int


LISTED = f"""
with isolation as (
    select allowed_brokers from namespaces where namespace = '{TC_NAMESPACE}' and allowed_brokers is not null)
select broker, exists(select 1 from isolation where not list_contains(allowed_brokers, broker)) as set_apart
from brokers
"""
"""Each broker, read or not; `set_apart`: isolation policies exclude it from the coordinators' namespace."""


def judge(queried: Queried, context: CheckContext[TcCountPolicy]) -> Judgement:
    """At most one finding, about the cluster."""
    about, limits = context.about, context.limits
    if not about.tcs_by_bundle:
        return Judgement(cannot_tell=HOW_MANY)
    if not about.coordinators:
        return Judgement(quiet="Transactions are off: there are no coordinators.")
    draining = context.policy.brokers.draining
    brokers = sum(not row["set_apart"] and row["broker"] not in draining for row in queried["listed"].rows)
    if not brokers:
        return Judgement(cannot_tell="No broker that may hold coordinators is listed.")
    severity, why = _trouble(about.coordinators, brokers, limits)
    words = f"{_has(about.coordinators, brokers)}{why}."
    if severity is None:
        return Judgement(quiet=words)
    return Judgement(findings=(_finding(about.cluster, severity, words, about.coordinators, brokers),))


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


def _has(coordinators: int, brokers: int) -> str:
    there = "There is" if coordinators == 1 else "There are"
    able = counted(brokers, "broker that could hold one", "brokers that could hold them")
    return f"{there} {counted(coordinators, 'transaction coordinator')} for {able}"


def _finding(cluster: str, severity: Severity, words: str, coordinators: int, brokers: int) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=severity,
        subject=cluster,
        evidence=words,
        figures=CoordinatorFigures(
            brokers=brokers, coordinators=coordinators, share_percent=100 // coordinators
        ).by_name,
    )


CHECK = Check(
    check_id="tc-count",
    order=15,
    title="There are too few or too many transaction coordinators for the brokers",
    advice=(
        "Too few: `pulsar-admin transactions scale-transactionCoordinators -r N`, N the number of brokers or more.",
        "Raising it cannot be undone: brokers refuse a lower number. Raise it in steps, and not further than needed.",
        "Look at tc-skew afterwards: new coordinators fall where hashes put them.",
        "Too many: only a cluster with new metadata has fewer; add brokers, or keep them evenly spread.",
        "Steward proposes a raise where the policy permits one (`guards.most_coordinators`), for a person to approve.",
    ),
    remedied_by="tc_count",
    source="docs/knowledge.md A: the number of TCs has to suit the number of brokers; apache/pulsar#15296",
    policy=TcCountPolicy,
    cluster={"listed": Query(LISTED)},
    judge=judge,
)
