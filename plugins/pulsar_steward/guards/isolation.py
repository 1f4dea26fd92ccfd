"""Guards of isolation policies: the group is wanted, has brokers and room, and takes nothing from anybody else."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from pulsar_steward.changes.isolation import policy_in_words
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import IsolationGuard, Objection
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.isolation import IsolationPolicy
    from pulsar_steward.model.step import GuardResult, SetIsolation
    from pulsar_steward.policy.schema import Policy


class GroupWanted(IsolationGuard):
    """Compares the new policy with the group that Steward's policy asks for, which it does not by default."""

    name = "group_wanted"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "a person asks for the policy that there was before"

    def check_change(self, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a policy that is not, or no longer, asked for in the same words."""
        wanted = {group.name: group.isolation for group in policy.brokers.groups}.get(change.policy)
        if wanted != change.after:
            reason = f"the group {change.policy} is {policy_in_words(wanted)} by now (policy key brokers.groups)"
            return self.result(reason, passed=False)
        return self.result(f"the group {change.policy} is wanted so (policy key brokers.groups)", passed=True)


class _OfWhole(IsolationGuard):
    """A guard that looks at the cluster as the change would divide it."""

    def check_change(self, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes whatever is not known; else asks `check_divided`."""
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        return self.check_divided(change, found, policy)

    @abstractmethod
    def check_divided(self, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it, by the cluster as it is now."""


class IsolationAsPlanned(IsolationGuard):
    """Compares the present policy, and the cluster that the call names, with the plan's."""

    name = "isolation_as_planned"
    objection = Objection.DRIFTED

    def check_change(self, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a policy that somebody changed since, and one of another cluster."""
        here = facts.identity().name
        if change.pulsar_cluster != here:
            reason = f"it is a policy of the Pulsar cluster {change.pulsar_cluster}, and {here} answers"
            return self.result(reason, passed=False)
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        now = found.policies.get(change.policy)
        reason = f"the isolation policy {change.policy} is {policy_in_words(now)}"
        return self.result(reason, passed=now == change.before)


class GroupUnclaimed(_OfWhole):
    """Looks for another policy about one of the namespaces: brokers take the first one in their hash map."""

    name = "group_unclaimed"
    objection = Objection.REFUSED

    def check_divided(self, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a policy for a namespace that another policy is about."""
        if found := now.after(change).elsewhere(change.policy):
            namespace, other = found
            return self.result(f"the isolation policy {other} is about {namespace} already", passed=False)
        return self.result("no other isolation policy is about its namespaces", passed=True)


class GroupBrokers(_OfWhole):
    """Counts the running brokers of the group, and those that are left to every other namespace."""

    name = "group_brokers"
    objection = Objection.REFUSED

    def check_divided(self, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a group with fewer brokers than its minimum, and a namespace without any broker."""
        reason = f"without {change.policy} its namespaces may be on any broker of no group"
        if change.after is not None:
            few = _too_few(change.after, now, policy)
            reason = _brokers_in_words(change.after, now, policy)
            if few:
                return self.result(reason, passed=False)
        before, after = set(now.without_broker()), now.after(change).without_broker()
        if lost := [name for name in after if name not in before]:
            return self.result(f"no running broker would be left to {named(lost)}", passed=False)
        return self.result(f"{reason}; every other namespace has a broker", passed=True)


def _running(after: IsolationPolicy, now: Isolation, policy: Policy) -> list[str]:
    return sorted(after.primaries(now.loads).difference(policy.brokers.draining))


def _too_few(after: IsolationPolicy, now: Isolation, policy: Policy) -> bool:
    return len(_running(after, now, policy)) < max(after.least_primaries, 1)


def _brokers_in_words(after: IsolationPolicy, now: Isolation, policy: Policy) -> str:
    running = _running(after, now, policy)
    holds = f"the group holds {counted(len(running), 'running broker')} ({named(running)})" if running else ""
    return f"{holds or 'the group holds no running broker'}, of {max(after.least_primaries, 1):,} at least"


class GroupRoom(_OfWhole):
    """Compares the load that the group comes to with the limits of `cluster-placement`."""

    name = "group_room"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "nothing is moved by it, and a group that does harm must not stay"

    def check_divided(self, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a group whose brokers would come to too many topics or too much CPU, or may do."""
        if change.after is None:
            return self.result("nothing is kept to fewer brokers", passed=True)
        room, most = now.room(change.after), policy.partition_ceiling.critical_topics_per_broker
        if not room.brokers:
            return self.result("the group holds no running broker", passed=False)
        if room.silent:
            return self.result(f"{named(room.silent)} did not report the CPU usage", passed=False)
        percent = policy.cluster_placement.warning_cpu_percent_after_loss
        reason = (
            f"with all bundles of its namespaces, each of {counted(room.brokers, 'broker')} would have"
            f" {counted(room.topics_each, 'topic')} of at most {most:,} (partition_ceiling.critical_topics_per_broker)"
            f" and {room.cpu_each:,} % CPU of at most {percent:,} % (cluster_placement.warning_cpu_percent_after_loss)"
        )
        return self.result(reason, passed=room.topics_each < most and room.cpu_each < percent)
