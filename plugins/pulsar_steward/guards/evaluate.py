"""All guards, their results for a step, and the step's outcome after a veto."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.bundles import (
    Boundaries,
    Circles,
    Clients,
    Cooldown,
    DelayedIndex,
    Owner,
    ProducersReturn,
    ReplicationKept,
)
from pulsar_steward.guards.every_change import (
    FreshSnapshot,
    Limits,
    Protected,
    ProvedFirst,
    SameCluster,
    VersionTried,
    WholeCluster,
    Window,
)
from pulsar_steward.guards.in_flight import AckHoles, LossAsApproved, VolatileTopics
from pulsar_steward.guards.isolation import (
    GroupBrokers,
    GroupRoom,
    GroupStands,
    GroupUnclaimed,
    GroupWanted,
    IsolationAsPlanned,
)
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.quotas import AgeRoom, QuotaHeld, QuotaRoom, QuotasChecked
from pulsar_steward.guards.raises import (
    CoordinatorLimit,
    CoordinatorsRest,
    PartitionLimit,
    PartitionOrder,
    TopicAsPlanned,
)
from pulsar_steward.guards.settings import (
    BookiesEnough,
    Clocks,
    CopiesKept,
    DelayedKept,
    LongestDelay,
    OneCluster,
    OwnCursors,
    ScalableTopics,
    SettingAsPlanned,
)
from pulsar_steward.guards.subscriptions import SubscriptionExpendable, SubscriptionUnused
from pulsar_steward.guards.targets import AntiAffinity, Shedding, TargetActive, TargetAllowed

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.guards.kinds import Guard
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy

GUARDS: tuple[Guard, ...] = (
    SameCluster(),
    FreshSnapshot(),
    WholeCluster(),
    VersionTried(),
    ProvedFirst(),
    Boundaries(),
    Owner(),
    TargetActive(),
    TargetAllowed(),
    AntiAffinity(),
    Shedding(),
    Cooldown(),
    Circles(),
    Clients(),
    ProducersReturn(),
    AckHoles(),
    VolatileTopics(),
    DelayedIndex(),
    ReplicationKept(),
    CoordinatorLimit(),
    CoordinatorsRest(),
    TopicAsPlanned(),
    PartitionLimit(),
    PartitionOrder(),
    GroupStands(),
    IsolationAsPlanned(),
    GroupWanted(),
    GroupUnclaimed(),
    GroupBrokers(),
    GroupRoom(),
    SettingAsPlanned(),
    OneCluster(),
    ScalableTopics(),
    QuotaRoom(),
    AgeRoom(),
    SubscriptionUnused(),
    SubscriptionExpendable(),
    OwnCursors(),
    QuotaHeld(),
    LossAsApproved(),
    QuotasChecked(),
    Clocks(),
    DelayedKept(),
    LongestDelay(),
    CopiesKept(),
    BookiesEnough(),
    Window(),
    Limits(),
    Protected(),
)
"""Every guard, in the order in which people read their results."""


def guards_of(step: GuardedChange) -> tuple[Guard, ...]:
    """All guards that check a step."""
    return tuple(guard for guard in GUARDS if guard.is_asked_of(step))


def evaluate(step: GuardedChange, facts: ClusterFacts, policy: Policy) -> tuple[GuardResult, ...]:
    """Results of all guards for a step's kind of change, in the order of `GUARDS`.

    Raises:
        AdminError: If a fact that a guard needs cannot be read.
        LedgerError: If the ledger cannot be read.
    """
    return tuple(guard.check(step, facts, policy) for guard in guards_of(step))


def objection_to(
    step: GuardedChange, facts: ClusterFacts, policy: Policy, *, ahead: bool = False
) -> tuple[Objection, str] | None:
    """Outcome and reasons if a step must not be done now; None: no guard vetoes it.

    Drift has priority over refusal: if the cluster has changed, the reasons for a refusal are outdated too.

    Args:
        step: The step.
        facts: Facts of the cluster.
        policy: Thresholds and limits.
        ahead: True if steps that it waits for are not done yet: only guards that can check it then are asked.

    Raises:
        AdminError: If a fact that a guard needs cannot be read.
        LedgerError: If the ledger cannot be read.
    """
    results = [
        (guard.objection, (guard.check_ahead if ahead else guard.check)(step, facts, policy))
        for guard in guards_of(step)
        if guard.ahead or not ahead
    ]
    for objection in (Objection.DRIFTED, Objection.REFUSED):
        reasons = [
            f"{result.guard}: {result.reason}" for kind, result in results if kind is objection and not result.passed
        ]
        if reasons:
            return objection, "; ".join(reasons)
    return None
