"""Guards of isolation policies: the group is wanted, has brokers and room, and takes nothing from anybody else."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import Aspect
from pulsar_steward.facts.room import limits_after_loss, limits_of_moves
from pulsar_steward.guards.kinds import IsolationGuard, Objection, StepGuard, known
from pulsar_steward.model.isolation import Reach, policies_in_words, policy_in_words
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.facts.room import Burden, RoomLimits
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
        found = known(facts.isolation())
        # A draining broker stops soon: it is nobody's broker, and others come to carry its load.
        stopping = frozenset(policy.brokers.draining)
        return self.check_divided(step, change, msgspec.structs.replace(found, stopping=stopping), policy)

    @abstractmethod
    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it, by the cluster as it is now, with draining brokers as stopping."""


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
        found = known(facts.isolation())
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
        found = known(facts.isolation())
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
    """Counts the running brokers of the group, and the brokers that are left to each other namespace."""

    name = "group_brokers"
    objection = Objection.REFUSED

    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a group of no namespace or of too few brokers, and a namespace that is left too few brokers."""
        reason = f"without {change.policy} its namespaces may run on any broker without a group"
        if change.after is not None:
            if not now.claimed(change.after):
                return self.result("no namespace is in the group: its brokers would serve nobody", passed=False)
            running, needed = sorted(change.after.primaries(now.running)), max(change.after.least_primaries, 1)
            holds = f"{counted(len(running), 'running broker')} ({named(running)})" if running else "no running broker"
            reason = f"the group holds {holds}, of {needed:,} at least"
            if len(running) < needed:
                return self.result(reason, passed=False)
        # A rollback restores what there was, also where it leaves a namespace one broker.
        then, least = now.after(change), policy.guards.least_brokers if step.undoes is None else 1
        left = {name: len(then.left_to(name)) for name in now.namespaces}
        lost = [name for name, number in left.items() if number < min(least, len(now.left_to(name)))]
        if lost:
            fewest = min(left[name] for name in lost)
            words = f"{counted(fewest, 'running broker')} would be left to {named(lost)}, of at least {least:,}"
            return self.result(f"{words} (guards.least_brokers)", passed=False)
        kept = counted(least, "broker")
        return self.result(f"{reason}; every namespace keeps {kept}, or as many as now", passed=True)


class GroupRoom(_OfWhole):
    """Compares the brokers' load on both sides of the policy with the limits, also after the loss of a broker."""

    name = "group_room"
    objection = Objection.REFUSED

    def check_divided(self, step: GuardedChange, change: SetIsolation, now: Isolation, policy: Policy) -> GuardResult:
        """Vetoes a policy that confines namespaces, of the group or not, to brokers without room, or of unknown room.

        These brokers must have room as well when the busiest of them is lost.
        """
        then = now.after(change)
        if not (losing := now.losing(then)):
            return self.result("nothing is kept to fewer brokers", passed=True)
        against: dict[str, None] = {}
        figures, by_topics, idle = [], set[str](), 0
        for when, side, burden, limits in _looks(then, losing, policy):
            who = f"{when}{counted(len(side), 'broker')} ({named(sorted(side))})"
            against |= dict.fromkeys(burden.shortages(limits, who))
            figures.append(f"{who} would have {burden.words(limits)}")
            by_topics.update(burden.by_topics)
            idle = max(idle, burden.idle)
        told = list(against) or figures
        if by_topics:
            told.append(f"no throughput was reported by {named(sorted(by_topics))}: usage is divided by topics there")
        if idle:
            told.append(f"{counted(idle, 'topic comes', 'topics come')} without throughput now: usage is a lower bound")
        return self.result("; ".join(told), passed=not against)


def _looks(
    then: Isolation, losing: Iterable[str], policy: Policy
) -> Iterator[tuple[str, frozenset[str], Burden, RoomLimits]]:
    """The load on the brokers that namespaces are confined to: when in words, the brokers, the load, its limits."""
    sides = then.sides(losing)
    for side in sides:
        yield "", side, then.burden(side), limits_of_moves(policy)
    # One broker alone is for `group_brokers` to permit: nobody is left to take over.
    for lost in dict.fromkeys(then.busiest(side) for side in sides if len(side) > 1):
        without = then.without(lost)
        for side in without.sides(losing):
            if side not in sides:
                yield f"after the loss of {lost}, ", side, without.burden(side), limits_after_loss(policy)
