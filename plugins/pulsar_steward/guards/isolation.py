"""Guards of isolation policies: the group is wanted, has brokers and room, and takes nothing from anybody else."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import Aspect
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import IsolationGuard, Objection, StepGuard
from pulsar_steward.model.isolation import Reach, policies_in_words, policy_in_words
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class GroupWanted(IsolationGuard):
    """Compares the new policy with the group that Steward's policy asks for, which it does not by default."""

    name = "group_wanted"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "a person asks for the policy that there was before"

    def check_change(self, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a policy that is not, or no longer, asked for in the same words."""
        group = policy.brokers.group(change.policy)
        wanted = group.isolation if group else None
        if wanted != change.after:
            now, then = policies_in_words(wanted, change.after)
            reason = f"the group {change.policy} is {now} by now, and not {then} (policy key brokers.groups)"
            return self.result(reason, passed=False)
        return self.result(f"the group {change.policy} is wanted so (policy key brokers.groups)", passed=True)


class _OfWhole(StepGuard[SetIsolation]):
    """A guard that looks at the cluster as the change would divide it."""

    aspect = Aspect.ISOLATION
    changes = SetIsolation

    def check_step(self, step: GuardedChange, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes whatever is not known; else asks `check_divided`."""
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        # A draining broker stops soon: it is nobody's broker, and has no room.
        loads = {broker: load for broker, load in found.loads.items() if broker not in policy.brokers.draining}
        return self.check_divided(step, change, msgspec.structs.replace(found, loads=loads), policy)

    @abstractmethod
    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it, by the cluster as it is now, without draining brokers."""


class IsolationAsPlanned(StepGuard[SetIsolation]):
    """Compares the present policy, all that it matches, and the cluster that the call names, with the plan's."""

    name = "isolation_as_planned"
    objection = Objection.DRIFTED
    aspect = Aspect.ISOLATION
    changes = SetIsolation

    def check_step(self, step: GuardedChange, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a policy that somebody changed since, one that matches others, and one of another cluster."""
        here = facts.identity().name
        if change.pulsar_cluster != here:
            reason = f"it is a policy of the Pulsar cluster {change.pulsar_cluster}, and {here} answers"
            return self.result(reason, passed=False)
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        present = found.policies.get(change.policy)
        now, then = policies_in_words(present, change.before)
        if present != change.before:
            return self.result(f"the isolation policy {change.policy} is {now}, and was {then}", passed=False)
        planned = step.reach if isinstance(step.reach, Reach) else Reach()
        if others := planned.differences(found.reach(change)):
            return self.result(f"since this was planned, {others}", passed=False)
        return self.result(f"the isolation policy {change.policy} is {now}, and matches the same", passed=True)


class GroupStands(StepGuard[UnloadBundle]):
    """Looks whether a move is still for a group: one that was taken back, or changed, moves nothing more."""

    name = "group_stands"
    objection = Objection.DRIFTED
    aspect = Aspect.OWNER
    changes = UnloadBundle
    ahead = True

    def is_asked_of(self, step: GuardedChange) -> bool:
        """True for a move to a group's brokers."""
        return isinstance(step.group, str) and super().is_asked_of(step)

    def check_step(self, step: GuardedChange, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move for a group that is not wanted, or whose policy is not as wanted, or that has the bundle."""
        group = policy.brokers.group(str(step.group))
        wanted = group.isolation if group else None
        if wanted is None or not wanted.claims(change.namespace):
            reason = f"no group {step.group} with {change.namespace} is wanted by now (policy key brokers.groups)"
            return self.result(reason, passed=False)
        if facts.planning:
            return self.result(f"the group {step.group} is wanted (policy key brokers.groups)", passed=True)
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        now = found.policies.get(str(step.group))
        if not wanted.is_as(now):
            return self.result(f"the isolation policy {step.group} is {policy_in_words(now)} by now", passed=False)
        allowed = found.allowed(change.namespace)
        if allowed is None or change.source in allowed:
            return self.result(f"isolation policies leave {change.namespace} on {change.source}", passed=False)
        return self.result(f"the isolation policy {step.group} is as wanted", passed=True)

    def check_ahead(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a move for a group that is not wanted; its policy is not set yet."""
        wanted = policy.brokers.group(str(step.group)) is not None
        return self.result(f"the group {step.group} is to be set first", passed=wanted)


class GroupUnclaimed(_OfWhole):
    """Looks for another policy about one of the namespaces: brokers take the first one in their hash map."""

    name = "group_unclaimed"
    objection = Objection.REFUSED

    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a policy for a namespace that another policy is about."""
        if found := now.after(change).elsewhere(change.policy):
            namespace, other = found
            return self.result(f"the isolation policy {other} is about {namespace} already", passed=False)
        return self.result("no other isolation policy is about its namespaces", passed=True)


class GroupBrokers(_OfWhole):
    """Counts the running brokers of the group, and those that are left to every namespace, also at the next restart."""

    name = "group_brokers"
    objection = Objection.REFUSED

    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a group of no namespace or of too few brokers, and a namespace that is left too few brokers."""
        reason = f"without {change.policy} its namespaces may be on any broker of no group"
        if change.after is not None:
            if not now.claimed(change.after):
                return self.result("no namespace is in the group: its brokers would serve nobody", passed=False)
            running, needed = sorted(change.after.primaries(now.loads)), max(change.after.least_primaries, 1)
            holds = f"{counted(len(running), 'running broker')} ({named(running)})" if running else "no running broker"
            reason = f"the group holds {holds}, of {needed:,} at least"
            if len(running) < needed:
                return self.result(reason, passed=False)
        # A rollback restores what there was, also where it leaves a namespace one broker.
        then, least = now.after(change), policy.guards.least_brokers if step.undoes is None else 1
        left = {name: then.number_left(name) for name in now.namespaces}
        lost = [name for name, number in left.items() if number < min(least, now.number_left(name))]
        if lost:
            fewest = min(left[name] for name in lost)
            words = f"{counted(fewest, 'running broker')} would be left to {named(lost)}, of at least {least:,}"
            return self.result(f"{words} (guards.least_brokers)", passed=False)
        kept = counted(least, "broker")
        return self.result(f"{reason}; every namespace keeps {kept}, or as many as now", passed=True)


class GroupRoom(_OfWhole):
    """Compares the load that the group comes to with the limits of `cluster-placement`."""

    name = "group_room"
    objection = Objection.REFUSED

    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a group whose brokers would come to too many topics or too much CPU, or may do."""
        if change.after is None or change.only_loosens:
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
