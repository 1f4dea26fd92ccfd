"""Guards of a bundle that is moved or split: it is as planned, rests after a move, and its clients can return."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import BundleGuard, Objection, known
from pulsar_steward.model.pulsar_versions import drops_unsent, who_drops_unsent
from pulsar_steward.model.step import present_owner
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import BundleChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class Boundaries(BundleGuard):
    """Compares boundaries: for a bundle that was split since, brokers would respond with 412 or move other topics."""

    name = "boundaries"
    objection = Objection.DRIFTED

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step if its bundle is gone."""
        if there := facts.has_bundle(change):
            reason = f"{change.namespace} has a bundle {change.bundle}"
        else:
            reason = f"{change.namespace} has no bundle {change.bundle} any more: it was divided otherwise"
        return self.result(reason, passed=there)


class Owner(BundleGuard):
    """Compares owners: a bundle that was moved since no longer needs the step."""

    name = "owner"
    objection = Objection.DRIFTED

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step if its bundle has another owner, or none."""
        expected, owner = present_owner(change), facts.owner(change)
        if owner == expected:
            reason = f"{expected} owns it"
        elif isinstance(owner, Unknown):
            reason = owner.reason
        elif owner is None:
            reason = f"nobody owns it, not {expected}: the call would be answered and do nothing"
        else:
            reason = f"{owner} owns it, not {expected}"
        return self.result(reason, passed=owner == expected)


# The brokers' own shedders have unloaded bundles in circles: apache/pulsar#21722, #20822, #16059.
def rest_ends(moved_at: datetime, policy: Policy) -> datetime:
    """End of a moved bundle's cooldown, when it may be moved again."""
    return moved_at + timedelta(minutes=policy.tc_skew.cooldown_minutes)


class Cooldown(BundleGuard):
    """Checks the time of the last move: clients that have just reconnected would have to reconnect again."""

    name = "cooldown"
    objection = Objection.REFUSED
    not_asked_of_rollbacks = "a move that does harm is taken back soon, and clients have to reconnect for that"

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle that was moved within the cooldown."""
        moved_at = facts.moved_at(change)
        if moved_at is None:
            return self.result("not moved lately", passed=True)
        end = rest_ends(moved_at, policy)
        passed = facts.now >= end
        verb = "rested" if passed else "rests"
        reason = f"moved at {moved_at:%Y-%m-%d %H:%M:%S}, {verb} until {end:%Y-%m-%d %H:%M:%S} UTC"
        return self.result(reason, passed=passed)


# Two opposite moves of one bundle mean that two balancers disagree, or that the load follows the bundle. Another move
# would only continue the circle (apache/pulsar#21722, #20822, #16059).
class Circles(BundleGuard):
    """Looks for circles in the whole namespace, as the same load may return in another bundle."""

    name = "circles"
    objection = Objection.REFUSED
    ahead = True
    not_asked_of_rollbacks = "a person asks for it, and no balancer; what is proposed next stops at the circle"

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step in a namespace with a bundle that was moved away and back within `guards.circle_minutes`."""
        minutes = f"{counted(policy.guards.circle_minutes, 'minute')} (policy key guards.circle_minutes)"
        circling = facts.circling(change.namespace)
        if not circling:
            return self.result(f"no bundle of {change.namespace} moved in a circle within {minutes}", passed=True)
        reason = f"{circling[0]} of {change.namespace} was moved away and back within {minutes}"
        return self.result(reason, passed=False)


# Thousands of clients that reconnect at once are a risk themselves: operators saw this in clusters with 10,000
# clients on one partition.
class Clients(BundleGuard):
    """Counts the producers and consumers that have to reconnect."""

    name = "clients"
    objection = Objection.REFUSED
    ahead = True

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more clients than `apply.most_clients_per_step`."""
        most = policy.apply.most_clients_per_step
        clients = facts.clients(change)
        passed = clients <= most
        compared = "at most" if passed else "more than"
        reason = (
            f"{counted(clients, 'client')} would reconnect, {compared} {most:,} (policy key"
            " apply.most_clients_per_step)"
        )
        return self.result(reason, passed=passed)


# A move disconnects producers, and a broker accepts no producer for a topic over a `producer_*` quota: seen on 4.0.7
# (docs/pulsar-behaviour.md, Quotas). Operators lost the production of a whole cluster that way (docs/knowledge.md B).
class ProducersReturn(BundleGuard):
    """Compares backlogs with `producer_*` quotas, as a careless remediation can stop production."""

    name = "producers_return"
    objection = Objection.REFUSED

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with a topic over a `producer_*` quota, or within the policy's margin of it."""
        risks, margin = facts.move_risks(change), policy.guards.quota_margin_percent
        if risks.unknown:
            return self.result(f"not known: {'; '.join(risks.unknown)}", passed=False)
        key = "policy key guards.quota_margin_percent"
        if not risks.held_count:
            return self.result(
                f"no topic uses over {100 - margin} % of a quota that stops producers ({key})", passed=True
            )
        worst = risks.held[0]
        reason = (
            f"PRODUCERS COULD NOT COME BACK to {risks.held_count:,} of its topics: {worst.topic} uses"
            f" {worst.used_percent} % of its quota ({worst.limit}), with {counted(worst.producers, 'producer')};"
            f" {margin} % have to be free ({key}). Drain the backlog or raise the quota first"
        )
        return self.result(reason, passed=False)


# Some releases drop the cursors of replication that only a topic's own policy asks for, and begin anew at the end
# (apache/pulsar#22890): which broker loads the topic is not known beforehand, so every version counts.
class ReplicationKept(BundleGuard):
    """Looks for messages that a broker would never replicate once it loads their topic anew."""

    name = "replication_kept"
    objection = Objection.REFUSED

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with a topic that has something to send, by a policy of its own alone."""
        risks = facts.move_risks(change)
        if not risks.unsent:
            return self.result("nothing waits that a topic's own policy alone replicates", passed=True)
        versions = known(facts.versions())
        dropping = [each for each in versions if drops_unsent(each)]
        if not dropping:
            return self.result("brokers keep what is not replicated yet when they load a topic anew", passed=True)
        worst = risks.unsent[0]
        waits = "an unknown number waits"
        if worst.entries is not None:
            waits = counted(worst.entries, "entry waits", "entries wait")
        reason = (
            f"{who_drops_unsent(dropping[0])} never sends what waits of {counted(risks.unsent_count, 'topic')} once"
            f" it loads them anew, as their own policies alone name the cluster: {waits} of {worst.topic} for"
            f" {worst.cluster}, and what is published meanwhile. Name it in the namespace's policy, or upgrade, first"
        )
        return self.result(reason, passed=False)


# The in-memory tracker stores its index nowhere else: the broker that loads the topic reads all delayed messages anew
# (docs/knowledge.md D).
class DelayedIndex(BundleGuard):
    """Adds up the indexes that are in memory only; indexes in buckets survive a move."""

    name = "delayed_index"
    objection = Objection.REFUSED

    def check_change(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more than `guards.most_delayed_index_megabytes`."""
        held, most = facts.move_risks(change).delayed_index_bytes, policy.guards.most_delayed_index_megabytes << 20
        passed = held <= most
        compared = "at most" if passed else "more than"
        reason = (
            f"{bytes_in_words(held)} of delayed messages' indexes are in memory alone, {compared}"
            f" {bytes_in_words(most)} (policy key guards.most_delayed_index_megabytes)"
        )
        return self.result(reason if passed else f"{reason}: their backlogs would be read again", passed=passed)
