"""All guards, their results for a step, and the step's outcome after a veto."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.ack_holes import AckHoles
from pulsar_steward.guards.age_room import AgeRoom
from pulsar_steward.guards.anti_affinity import AntiAffinity
from pulsar_steward.guards.boundaries import Boundaries
from pulsar_steward.guards.circles import Circles
from pulsar_steward.guards.clients import Clients
from pulsar_steward.guards.clocks import Clocks
from pulsar_steward.guards.cooldown import Cooldown
from pulsar_steward.guards.coordinator_limit import CoordinatorLimit
from pulsar_steward.guards.coordinators_rest import CoordinatorsRest
from pulsar_steward.guards.delayed_index import DelayedIndex
from pulsar_steward.guards.delayed_kept import DelayedKept
from pulsar_steward.guards.fresh_snapshot import FreshSnapshot
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.limits import Limits
from pulsar_steward.guards.longest_delay import LongestDelay
from pulsar_steward.guards.loss_as_approved import LossAsApproved
from pulsar_steward.guards.one_cluster import OneCluster
from pulsar_steward.guards.own_cursors import OwnCursors
from pulsar_steward.guards.owner import Owner
from pulsar_steward.guards.producers_return import ProducersReturn
from pulsar_steward.guards.protected import Protected
from pulsar_steward.guards.proved_first import ProvedFirst
from pulsar_steward.guards.quota_room import QuotaRoom
from pulsar_steward.guards.quotas_checked import QuotasChecked
from pulsar_steward.guards.same_cluster import SameCluster
from pulsar_steward.guards.setting_as_planned import SettingAsPlanned
from pulsar_steward.guards.shedding import Shedding
from pulsar_steward.guards.subscription_expendable import SubscriptionExpendable
from pulsar_steward.guards.subscription_unused import SubscriptionUnused
from pulsar_steward.guards.target_active import TargetActive
from pulsar_steward.guards.target_allowed import TargetAllowed
from pulsar_steward.guards.version_tried import VersionTried
from pulsar_steward.guards.volatile_topics import VolatileTopics
from pulsar_steward.guards.whole_cluster import WholeCluster
from pulsar_steward.guards.window import Window

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
    CoordinatorLimit(),
    CoordinatorsRest(),
    SettingAsPlanned(),
    OneCluster(),
    QuotaRoom(),
    AgeRoom(),
    SubscriptionUnused(),
    SubscriptionExpendable(),
    OwnCursors(),
    LossAsApproved(),
    QuotasChecked(),
    Clocks(),
    DelayedKept(),
    LongestDelay(),
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


def objection_to(step: GuardedChange, facts: ClusterFacts, policy: Policy) -> tuple[Objection, str] | None:
    """Outcome and reasons if a step must not be done now; None: no guard vetoes it.

    Drift has priority over refusal: if the cluster has changed, the reasons for a refusal are outdated too.

    Raises:
        AdminError: If a fact that a guard needs cannot be read.
        LedgerError: If the ledger cannot be read.
    """
    results = [(guard.objection, guard.check(step, facts, policy)) for guard in guards_of(step)]
    for objection in (Objection.DRIFTED, Objection.REFUSED):
        reasons = [
            f"{result.guard}: {result.reason}" for kind, result in results if kind is objection and not result.passed
        ]
        if reasons:
            return objection, "; ".join(reasons)
    return None
