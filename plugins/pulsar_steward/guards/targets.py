"""Guards of a move's target: it may have the bundle, and keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.load_manager import NO_TRAFFIC, after_move, move_of
from pulsar_steward.facts.shedding import PART, POINTS, may_exchange, sheds_from
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, TargetGuard
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import GuardResult
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.load_manager import LoadManager, Traffic
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
        manager = self._sheds(change.namespace, facts)
        if isinstance(manager, GuardResult):
            return manager
        traffic = facts.traffic(change)
        if isinstance(traffic, Unknown):
            return self.result(traffic.reason, passed=False)
        if change.namespace == TC_NAMESPACE and manager.leaves_idle and traffic == NO_TRAFFIC:
            begins = f"the brokers' own shedding ({manager.strategy_name}) begins with the bundle of most traffic"
            return self.result(f"{begins}, and this one has none, as coordinators make none", passed=True)
        return self._of_usages(change, traffic, manager, facts)

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
        reason = f"the brokers' own shedding ({manager.strategy_name}) leaves {namespace} alone"
        return self.result(reason, passed=True)

    def _of_usages(
        self, change: UnloadBundle, traffic: Traffic, manager: LoadManager, facts: ClusterFacts
    ) -> GuardResult:
        """Judges by the brokers' usages after the move: as they are told, and by the worst that they may be then."""
        before, move = facts.usages(), move_of(change, traffic)
        if isinstance(before, Unknown):
            return self.result(before.reason, passed=False)
        usages = after_move(before, move)
        full = any(each.full for each in before if each.broker == change.source)
        others = ""
        for at_worst, begins in (
            (False, "the brokers' own shedding would undo it"),
            (True, _perhaps(change, full=full)),
        ):
            taken = sheds_from(manager, usages, change.target, at_worst=at_worst)
            if isinstance(taken, Unknown):
                return self.result(taken.reason, passed=False)
            if undone := next((each for each in taken if each.may_take(traffic)), None):
                return self.result(f"{begins}: {undone.why}", passed=False)
            others = " and take at most others from there" if taken else ""
        # An exchange is no objection: the bundle in return is larger, and the load stays at least as even.
        fuller = may_exchange(manager, usages, move)
        unless = f", unless it gives it to {fuller} for a larger one" if fuller else ""
        return self.result(
            f"the brokers' own shedding ({manager.strategy_name}) would leave it on {change.target}{others}{unless}",
            passed=True,
        )


def _perhaps(change: UnloadBundle, *, full: bool) -> str:
    """Words on a move that shedding would undo by the worst figures alone."""
    more = f", as {change.source} has a resource used up, and its bundles may carry more than they tell" if full else ""
    return (
        f"whether the brokers' own shedding would undo it is not known{more}: by then usages may be {POINTS:,.0f}"
        f" points and traffic {PART:.0%} worse"
    )
