"""Guards of a move's target: it may have the bundle, and keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.load_manager import after_move, move_of
from pulsar_steward.facts.shedding import may_exchange, sheds_from
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, TargetGuard
from pulsar_steward.model.broker_defaults import EXTENSIBLE
from pulsar_steward.model.step import GuardResult
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.load_manager import LoadManager
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, UnloadBundle
    from pulsar_steward.policy.schema import Policy


class TargetActive(TargetGuard):
    """Checks the target: an unload to a lost broker gets 409, and a move to the owner only disconnects clients."""

    name = "target_active"
    objection = Objection.DRIFTED
    ahead = True

    def check_change(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move to a broker that is gone or owns the bundle already."""
        if not facts.is_active(change.target):
            return self.result(f"{change.target} is not active or did not answer", passed=False)
        if change.target == facts.owner(change):
            return self.result(f"{change.target} owns it already", passed=False)
        return self.result(f"{change.target} is active", passed=True)


class TargetAllowed(TargetGuard):
    """Checks the target: a draining broker stops soon, and an excluded one gives the bundle away at once."""

    name = "target_allowed"
    objection = Objection.REFUSED
    ahead = True

    def check_change(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move to a draining or excluded broker."""
        if change.target in policy.brokers.draining:
            reason = f"{change.target} is draining (policy key brokers.draining)"
            return self.result(reason, passed=False)
        allowed = facts.allowed_brokers(change.namespace)
        if allowed is not None and change.target not in allowed:
            reason = f"an isolation policy keeps {change.namespace} from {change.target}"
            return self.result(reason, passed=False)
        reason = f"{change.target} is not draining, and isolation policies leave it to {change.namespace}"
        return self.result(reason, passed=True)


# Brokers place the namespaces of a group on different brokers, so that the loss of one broker affects few of them. An
# unload with a destination ignores that.
class AntiAffinity(TargetGuard):
    """Counts the group's other namespaces on the target and on every broker that may have the bundle."""

    name = "anti_affinity"
    objection = Objection.REFUSED
    ahead = True

    def check_change(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move to a broker with more namespaces of the group than another broker has."""
        found = facts.anti_affinity(change.namespace)
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=facts.planning)
        if found is None:
            return self.result(f"{change.namespace} is in no anti-affinity group", passed=True)
        allowed = facts.allowed_brokers(change.namespace)
        others = {broker: count for broker, count in found.others.items() if allowed is None or broker in allowed}
        there, least = found.others.get(change.target, 0), min(others.values(), default=0)
        reason = (
            f"{change.target} has bundles of {counted(there, 'other namespace')} of the anti-affinity group"
            f" {found.group}, the broker with fewest {least:,}"
        )
        return self.result(reason, passed=there <= least)


# Two balancers that disagree move the same bundle back and forth, and its clients reconnect each time
# (apache/pulsar#21722, #20822, #16059).
class Shedding(TargetGuard):
    """Compares the brokers' usages after the move with the thresholds of the load manager's own strategy."""

    name = "shedding"
    objection = Objection.REFUSED
    ahead = True
    not_asked_of_rollbacks = "brokers may move the bundle again later, but it must not stay where it does harm"

    def check_change(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move that shedding would undo, or might undo because a fact is unknown."""
        told = self._sheds(change.namespace, facts)
        return told if isinstance(told, GuardResult) else self._of_usages(change, told, facts)

    def check_ahead(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move if the load manager is unknown; the throughput of a part is not known before the split."""
        told = self._sheds(step.change.namespace, facts)
        if isinstance(told, GuardResult):
            return told
        return self.result("what the brokers' own shedding would do is judged right before the move", passed=True)

    def _sheds(self, namespace: str, facts: ClusterFacts) -> GuardResult | LoadManager:
        """The load manager whose shedding goes by usages, or the result if these do not matter."""
        manager = facts.load_manager()
        if isinstance(manager, Unknown):
            return self.result(manager.reason, passed=False)
        if not manager.sheds:
            return self.result("the brokers' own shedding is off", passed=True)
        if manager.sheds_from(namespace):
            return manager
        # The modular manager spares no namespace: it also moved one of Pulsar's own, with a busy topic in it.
        spares = manager.name == EXTENSIBLE
        why = f"leaves {namespace} alone" if spares else "goes by traffic, and coordinators have none"
        return self.result(f"the brokers' own shedding ({manager.strategy_name}) {why}", passed=True)

    def _of_usages(self, change: UnloadBundle, manager: LoadManager, facts: ClusterFacts) -> GuardResult:
        """Judges by the brokers' usages after the move."""
        usages, traffic = facts.usages(), facts.traffic(change)
        if isinstance(usages, Unknown):
            return self.result(usages.reason, passed=False)
        if isinstance(traffic, Unknown):
            return self.result(traffic.reason, passed=False)
        move = move_of(change, traffic)
        usages = after_move(usages, move)
        taken = sheds_from(manager, usages, change.target)
        if isinstance(taken, Unknown):
            return self.result(taken.reason, passed=False)
        if undone := next((each for each in taken if each.may_take(traffic)), None):
            return self.result(f"the brokers' own shedding would undo it: {undone.why}", passed=False)
        others = " and take only others from there" if taken else ""
        # An exchange is no objection: the bundle in return is larger, and the load stays at least as even.
        fuller = may_exchange(manager, usages, move)
        unless = f", unless it gives it to {fuller} for a larger one" if fuller else ""
        return self.result(
            f"the brokers' own shedding ({manager.strategy_name}) would leave it on {change.target}{others}{unless}",
            passed=True,
        )
