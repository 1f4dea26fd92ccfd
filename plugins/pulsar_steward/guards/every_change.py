"""Guards of every change: the right and whole cluster, a tried version, an allowed time, the policy's limits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.guards.window_times import closes_at, opens_at
from pulsar_steward.model.pulsar_versions import objection_to, tried_as
from pulsar_steward.model.step import SetIsolation
from pulsar_steward.model.units import counted, named
from pulsar_steward.policy.names import naming

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class SameCluster(Guard):
    """Compares identities: a connection may have been pointed at another cluster since the approval."""

    name = "same_cluster"
    objection = Objection.DRIFTED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes any change if another cluster responds."""
        planned, answers = facts.planned_for, facts.identity()
        if not planned.is_same(answers):
            return self.result(f"Pulsar cluster {answers} answers, and the plan is for {planned}", passed=False)
        return self.result(f"Pulsar cluster {answers} answers", passed=True)


class FreshSnapshot(Guard):
    """Checks the snapshot's age, as a cluster changes in ways that no other guard checks."""

    name = "fresh_snapshot"
    objection = Objection.DRIFTED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes every step if the plan's snapshot is older than `guards.snapshot_valid_minutes`."""
        valid = timedelta(minutes=policy.guards.snapshot_valid_minutes)
        passed = facts.now - facts.seen_at <= valid
        reason = (
            f"the cluster was seen at {facts.seen_at:%Y-%m-%d %H:%M:%S} UTC,"
            f" {'within' if passed else 'longer ago than'} {counted(policy.guards.snapshot_valid_minutes, 'minute')}"
            " (policy key guards.snapshot_valid_minutes)"
        )
        return self.result(reason, passed=passed)


class WholeCluster(Guard):
    """Checks all brokers and bookies: it is not known yet where a silent broker's bundles will be loaded."""

    name = "whole_cluster"
    objection = Objection.REFUSED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes every step while a listed broker does not respond, or a bookie takes no writes."""
        if silent := facts.silent_brokers():
            return self.result(f"no answer from {', '.join(silent)}, which the cluster lists", passed=False)
        if read_only := facts.read_only_bookies():
            return self.result(f"read-only bookies: {', '.join(read_only)}", passed=False)
        return self.result("every listed broker answers, and no watched bookie is read-only", passed=True)


# A broker may respond normally to a call that it does not know: before 3.0, it ignores the destination of an unload.
class VersionTried(Guard):
    """Looks up the step's operation in the table of docs/versions.md; the least capable broker counts."""

    name = "version_tried"
    objection = Objection.REFUSED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes an operation that a broker's version lacks, that failed there, or that was never tried."""
        operation = kind_of(step.change).operation
        if operation is None:
            return self.result("it asks for nothing that a version of Pulsar might lack", passed=True)
        versions = facts.versions()
        if isinstance(versions, Unknown):
            return self.result(versions.reason, passed=False)
        here = policy.guards.versions_tried_here
        against = [reason for version in versions if (reason := objection_to(operation, version, here))]
        if against:
            return self.result("; ".join(against), passed=False)
        return self.result(f"{operation}: tried on {' and '.join(map(tried_as, versions))}", passed=True)


class ProvedFirst(Guard):
    """Looks for unproved changes since the snapshot; a later snapshot has seen their effect."""

    name = "proved_first"
    objection = Objection.REFUSED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes every step if another batch changed the cluster since the snapshot and was not proved."""
        if unproved := facts.unproved_batch():
            return self.result(f"{unproved}: observe again", passed=False)
        return self.result("all that Steward changed since the snapshot is proved", passed=True)


class Window(Guard):
    """Checks the time of the call; a plan may be made and approved at any time."""

    name = "window"
    objection = Objection.REFUSED
    ahead = True
    not_asked_of_rollbacks = "what does harm is taken back now, and not in the next window"

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes every step outside all of `guards.windows`."""
        windows = policy.guards.windows
        if not windows:
            return self.result("changes may be made at any time (policy key guards.windows)", passed=True)
        ends = [end for window in windows if (end := closes_at(window, facts.now)) > facts.now]
        if ends:
            return self.result(f"a maintenance window is open until {max(ends):%Y-%m-%d %H:%M %Z}", passed=True)
        opens = min(opens_at(window, facts.now) for window in windows)
        reason = f"no maintenance window is open; the next one opens at {opens:%Y-%m-%d %H:%M %Z}"
        return self.result(f"{reason} (policy key guards.windows)", passed=facts.planning)


class Limits(Guard):
    """Counts changes, so that a mistake in a plan or policy stays small."""

    name = "limits"
    objection = Objection.REFUSED
    ahead = True
    not_asked_of_rollbacks = (
        "it has no more steps than the batch that it takes back, and harm must not stay for an hour"
    )

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step beyond `guards.most_changes_per_run` or `guards.most_changes_per_hour`."""
        return self._count(facts, policy, 0)

    def check_ahead(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Counts the run's changes before it as made: what it waits for may be final."""
        return self._count(facts, policy, facts.own_changes_to_come())

    def _count(self, facts: ClusterFacts, policy: Policy, to_come: int) -> GuardResult:
        guards, made = policy.guards, facts.changes_in_the_last_hour()
        of_run = f"change {facts.place_in_run:,} of its run, of {guards.most_changes_per_run:,}"
        before_it = f" and {to_come:,} of its run before it" if to_come else ""
        of_hour = f"{counted(made, 'change')} in the last hour{before_it}, of {guards.most_changes_per_hour:,}"
        if facts.place_in_run > guards.most_changes_per_run:
            return self.result(f"{of_run} (policy key guards.most_changes_per_run)", passed=False)
        if made + to_come >= guards.most_changes_per_hour:
            return self.result(f"{of_hour} (policy key guards.most_changes_per_hour)", passed=False)
        return self.result(f"{of_run}; {of_hour}", passed=True)


class Protected(Guard):
    """Looks the namespace up in the policy, which overrides every finding."""

    name = "protected"
    objection = Objection.REFUSED
    ahead = True

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step in a namespace of `apply.protected_namespaces`, or an isolation policy on it or its brokers."""
        if isinstance(step.change, SetIsolation):
            return self._of_group(step.change, facts, policy)
        namespace = step.change.namespace
        by = naming(namespace, policy.apply.protected_namespaces)
        state = "is not protected" if by is None else "is protected" if by == namespace else f"is protected, as {by} is"
        return self.result(f"{namespace} {state} (policy key apply.protected_namespaces)", passed=by is None)

    def _of_group(self, change: SetIsolation, facts: ClusterFacts, policy: Policy) -> GuardResult:
        protected, key = policy.apply.protected_namespaces, "(policy key apply.protected_namespaces)"
        if not protected:
            return self.result(f"no namespace is protected {key}", passed=True)
        found = facts.isolation()
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=False)
        about = dict.fromkeys(found.claimed(change.before, change.after), "which it is about,")
        for name, brokers in found.losing(found.after(change)).items():
            about.setdefault(name, f"which could not be on {named(sorted(brokers))} any more,")
        first = next((name for name in about if naming(name, protected) is not None), None)
        if first is not None:
            return self.result(f"{first}, {about[first]} is protected {key}", passed=False)
        return self.result(
            f"no namespace that it is about, or that loses brokers to it, is protected {key}", passed=True
        )
