"""All guards together: what each says of a step, and what a veto means for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guard.ack_holes import AckHoles
from pulsar_steward.guard.age_room import AgeRoom
from pulsar_steward.guard.boundaries import Boundaries
from pulsar_steward.guard.circles import Circles
from pulsar_steward.guard.clients import Clients
from pulsar_steward.guard.clocks import Clocks
from pulsar_steward.guard.cooldown import Cooldown
from pulsar_steward.guard.delayed_index import DelayedIndex
from pulsar_steward.guard.delayed_kept import DelayedKept
from pulsar_steward.guard.fresh_snapshot import FreshSnapshot
from pulsar_steward.guard.kinds import Objection
from pulsar_steward.guard.limits import Limits
from pulsar_steward.guard.loss_as_approved import LossAsApproved
from pulsar_steward.guard.owner import Owner
from pulsar_steward.guard.producers_return import ProducersReturn
from pulsar_steward.guard.protected import Protected
from pulsar_steward.guard.proved_first import ProvedFirst
from pulsar_steward.guard.quota_room import QuotaRoom
from pulsar_steward.guard.quotas_checked import QuotasChecked
from pulsar_steward.guard.same_cluster import SameCluster
from pulsar_steward.guard.setting_as_planned import SettingAsPlanned
from pulsar_steward.guard.target_active import TargetActive
from pulsar_steward.guard.target_allowed import TargetAllowed
from pulsar_steward.guard.whole_cluster import WholeCluster
from pulsar_steward.guard.window import Window

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.guard.kinds import Guard
    from pulsar_steward.model.step import GuardResult, Step
    from pulsar_steward.policy.schema import Policy

GUARDS: tuple[Guard, ...] = (
    SameCluster(),
    FreshSnapshot(),
    WholeCluster(),
    ProvedFirst(),
    Boundaries(),
    Owner(),
    TargetActive(),
    TargetAllowed(),
    Cooldown(),
    Circles(),
    Clients(),
    ProducersReturn(),
    AckHoles(),
    DelayedIndex(),
    SettingAsPlanned(),
    QuotaRoom(),
    AgeRoom(),
    LossAsApproved(),
    QuotasChecked(),
    Clocks(),
    DelayedKept(),
    Window(),
    Limits(),
    Protected(),
)
"""Every guard, in the order in which people read their results."""


def guards_of(step: Step) -> tuple[Guard, ...]:
    """The guards that look at this kind of change, all of them."""
    return tuple(
        guard
        for guard in GUARDS
        if isinstance(step.change, guard.applies_to) and (guard.applies_to_rollbacks or step.undoes is None)
    )


def evaluate(step: Step, facts: ClusterFacts, policy: Policy) -> tuple[GuardResult, ...]:
    """What each guard of its kind of change says of a step, in the order of `GUARDS`.

    Raises:
        AdminError: If what one of them needs cannot be read.
        LedgerError: If what the ledger has to tell cannot be read.
    """
    return tuple(guard.check(step, facts, policy) for guard in guards_of(step))


def objection_to(step: Step, facts: ClusterFacts, policy: Policy) -> tuple[Objection, str] | None:
    """Why a step must not be done now, with all reasons of that kind; None: no guard objects.

    Drift wins over refusal: where the cluster moved on, what the step would be refused for no longer stands either.

    Raises:
        AdminError: If what a guard needs cannot be read.
        LedgerError: If what the ledger has to tell cannot be read.
    """
    results = [(guard.objection, guard.check(step, facts, policy)) for guard in guards_of(step)]
    for objection in (Objection.DRIFTED, Objection.REFUSED):
        reasons = [
            f"{result.guard}: {result.reason}" for kind, result in results if kind is objection and not result.passed
        ]
        if reasons:
            return objection, "; ".join(reasons)
    return None
