"""All guards, their results for a step, and the step's outcome after a veto."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.ack_holes import AckHoles
from pulsar_steward.guard.age_room import AgeRoom
from pulsar_steward.guard.anti_affinity import AntiAffinity
from pulsar_steward.guard.boundaries import Boundaries
from pulsar_steward.guard.circles import Circles
from pulsar_steward.guard.clients import Clients
from pulsar_steward.guard.clocks import Clocks
from pulsar_steward.guard.cooldown import Cooldown
from pulsar_steward.guard.coordinator_limit import CoordinatorLimit
from pulsar_steward.guard.coordinators_rest import CoordinatorsRest
from pulsar_steward.guard.delayed_index import DelayedIndex
from pulsar_steward.guard.delayed_kept import DelayedKept
from pulsar_steward.guard.fresh_snapshot import FreshSnapshot
from pulsar_steward.guard.kinds import Objection
from pulsar_steward.guard.limits import Limits
from pulsar_steward.guard.longest_delay import LongestDelay
from pulsar_steward.guard.loss_as_approved import LossAsApproved
from pulsar_steward.guard.one_cluster import OneCluster
from pulsar_steward.guard.own_cursors import OwnCursors
from pulsar_steward.guard.owner import Owner
from pulsar_steward.guard.producers_return import ProducersReturn
from pulsar_steward.guard.protected import Protected
from pulsar_steward.guard.proved_first import ProvedFirst
from pulsar_steward.guard.quota_room import QuotaRoom
from pulsar_steward.guard.quotas_checked import QuotasChecked
from pulsar_steward.guard.same_cluster import SameCluster
from pulsar_steward.guard.setting_as_planned import SettingAsPlanned
from pulsar_steward.guard.shedding import Shedding
from pulsar_steward.guard.subscription_expendable import SubscriptionExpendable
from pulsar_steward.guard.subscription_unused import SubscriptionUnused
from pulsar_steward.guard.target_active import TargetActive
from pulsar_steward.guard.target_allowed import TargetAllowed
from pulsar_steward.guard.version_tried import VersionTried
from pulsar_steward.guard.volatile_topics import VolatileTopics
from pulsar_steward.guard.whole_cluster import WholeCluster
from pulsar_steward.guard.window import Window

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.guard.kinds import Guard
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
