"""Guards of a namespace's or topic's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard, known
from pulsar_steward.model.setting import BacklogQuota, DelayedDelivery, Persistence, SettingName, TimeToLive, in_words
from pulsar_steward.model.units import counted, milliseconds_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class SettingAsPlanned(SettingGuard):
    """Compares values: a value that somebody set since planning is not overwritten, as no rollback would know it."""

    name = "setting_as_planned"
    objection = Objection.DRIFTED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a change of a setting that has, or inherits, another value by now."""
        found = facts.setting(change)
        now, then = change.in_words(found), change.in_words(change.before)
        words = f"the {change.name} of {change.holder} is {now}"
        if found != change.before:
            return self.result(f"{words}, no longer {then}", passed=False)
        if not isinstance(change.inherited, msgspec.UnsetType):
            applies = facts.inherited(change)
            if applies != change.inherited:
                now, then = in_words(change.name, applies), in_words(change.name, change.inherited)
                inherits = f"where none is set on {change.holder}, the {change.name} is {now}, no longer {then}"
                return self.result(inherits, passed=False)
        return self.result(words, passed=True)


# Policies of a namespace are in the configuration store, which clusters may share. A value set in one cluster then
# applies in all clusters that serve the namespace, but their backlogs and messages are not known here.
class OneCluster(SettingGuard):
    """Looks for other clusters in the namespace's policies; a topic's own setting applies to this cluster only."""

    name = "one_cluster"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a setting of a namespace that other clusters serve too."""
        if change.topic is not None:
            return self.result("a topic's own setting is of this cluster alone", passed=True)
        others = known(facts.other_clusters(change.namespace))
        if not others:
            return self.result(f"no other cluster serves {change.namespace}", passed=True)
        reason = f"{', '.join(others)} would get it as well, as {change.namespace} is served there too: set it by hand"
        return self.result(reason, passed=False)


# Pulsar 5: a scalable topic's segments obey the namespace's settings, and no list of topics has those that are not
# loaded. So their backlogs are not known (docs/pulsar-behaviour.md, Pulsar 5.0.1).
class ScalableTopics(SettingGuard):
    """Looks for scalable topics of the namespace, whose segments a limit would take messages or producers from."""

    name = "scalable_topics"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a value that takes messages or stops producers that the former did not, where there may be any."""
        if change.topic is not None or not (change.loses_messages or change.stops_producers):
            reason = (
                f"it takes no more from scalable topics of {change.namespace}, and stops no more of their producers"
            )
            return self.result(reason, passed=True)
        found = facts.scalable_topics(change.namespace)
        if isinstance(found, Unknown):
            return self.result(found.reason, passed=facts.planning)
        if not found:
            return self.result(f"{change.namespace} has no scalable topic", passed=True)
        reason = (
            f"{change.namespace} has {counted(len(found), 'scalable topic')}, such as {found[0]}: their segments would"
            " obey it too, and Steward does not know what waits in them. Set it by hand"
        )
        return self.result(reason, passed=False)


# A broker compares the client's timestamp with its own clock: clock skew evicts or expires messages too early
# (docs/knowledge.md B).


BY_AGE = frozenset({SettingName.AGE_QUOTA, SettingName.TTL})


class Clocks(SettingGuard):
    """Compares the brokers' clocks with each other."""

    name = "clocks"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a new or shorter age limit if clocks differ by more than `guards.most_clock_difference_seconds`."""
        if change.name not in BY_AGE or _is_no_shorter(change.before_in_force, change.after_in_force):
            return self.result("no limit by age is set, or becomes shorter", passed=True)
        apart, most = known(facts.clock_difference()), policy.guards.most_clock_difference_seconds
        passed = apart <= most * 1000
        reason = (
            f"brokers' clocks are {apart / 1000:,.1f} s apart, {'at most' if passed else 'more than'} {most} s"
            " (policy key guards.most_clock_difference_seconds)"
        )
        return self.result(reason if passed else f"{reason}: have them follow one time server first", passed=passed)


def _is_no_shorter(before: Setting | msgspec.UnsetType | None, after: Setting | msgspec.UnsetType | None) -> bool:
    """True if no message reaches the limit earlier than before, and the limit has the same effect."""
    match before, after:
        case _, None | TimeToLive(seconds=0):
            return True
        case TimeToLive(seconds=then), TimeToLive(seconds=now):
            return 0 < then <= now
        case BacklogQuota(policy=did, limit_seconds=then), BacklogQuota(policy=does, limit_seconds=now):
            return did is does and 0 < then <= now
        case _:
            return False


# Brokers do not report the delay of a message. A message that has waited longer than the new maximum may have a delay
# that would be refused; or its subscription is slow, which looks the same (docs/knowledge.md D and F).
class LongestDelay(SettingGuard):
    """Compares the age of the oldest unconsumed message with the maximum delay."""

    name = "longest_delay"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a shorter maximum if a waiting message is older; right before the call, also if one may be older."""
        bound = change.after_in_force
        if not change.refuses_delays or not isinstance(bound, DelayedDelivery):
            return self.result("no delay is refused that was taken before", passed=True)
        ages = known(facts.backlog_ages(change))
        words = milliseconds_in_words(bound.longest_milliseconds)
        if ages.oldest_seconds * 1000 > bound.longest_milliseconds:
            waits = f"a message of {ages.topic} waits for {seconds_in_words(ages.oldest_seconds)} already"
            return self.result(f"{waits}: longer delays than {words} may be in use", passed=False)
        if ages.unknown and not facts.planning:
            unknown = f"of {counted(ages.unknown, 'topic')} with a backlog its age is not known: {ages.why_unknown}"
            return self.result(unknown, passed=False)
        return self.result(f"no message is known to wait for longer than {words}", passed=True)


# Delayed messages count as backlog, and their age counts from publishing. Eviction, TTL and age limits delete them
# before they are due, or stop their topic's producers until then
# (docs/knowledge.md B and F; apache/pulsar#21898, #25010).
class DelayedKept(SettingGuard):
    """Looks for delayed messages if a limit that deletes messages is set or tightened."""

    name = "delayed_kept"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a limit that would delete delayed messages, or might because their number is unknown."""
        if not concerns_delayed(change):
            return self.result("it takes no message away, and none is too old for it", passed=True)
        delayed = known(facts.delayed_messages(change))
        if delayed:
            fate = "could be lost" if change.takes_messages else "would grow too old, and stop their producers"
            return self.result(f"{counted(delayed, 'delayed message')} of {change.holder} {fate}", passed=False)
        return self.result(f"{change.holder} has no delayed messages", passed=True)


def concerns_delayed(change: ChangeSetting) -> bool:
    """True if a change deletes messages, or limits the age of a backlog that may contain delayed messages."""
    quota = change.after_in_force
    by_age = change.name is SettingName.AGE_QUOTA and isinstance(quota, BacklogQuota) and quota.limit_seconds > 0
    return change.takes_messages or by_age


# Eviction, a time to live and age limits apply to every durable cursor of a topic. No application can decide that a
# cursor of Pulsar's own needs no more messages: some may not be replicated or compacted yet.
class OwnCursors(SettingGuard):
    """Looks for Pulsar's own cursors that a limit would move past messages."""

    name = "own_cursors"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a limit that would or might skip messages of such a cursor, and names the cursor and the remedy."""
        if not change.takes_messages:
            return self.result("it takes no message away", passed=True)
        taken = facts.taken(change)
        if isinstance(taken, Unknown):
            return self.result(f"which cursors on {change.holder} would lose messages is not known", passed=False)
        if not taken.own:
            return self.result("no cursor of Pulsar's own would lose anything at once", passed=True)
        first, others = taken.own[0], len(taken.own) - 1
        more = f" (and those of {counted(others, 'more cursor')})" if others else ""
        words = f"{first.holder.taken_in_words(first.topic)}{more} would be lost at once: {first.holder.remedy}"
        return self.result(words, passed=False)


# Qw is how many bookies may lose an entry before it is gone, and Qa how many have it when a producer is told that it
# is stored: with less of either, what is written from then on is lost sooner, and nothing copies it later.
class CopiesKept(SettingGuard):
    """Compares the copies of new ledgers with those in force."""

    name = "copies_kept"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes fewer copies unless `guards.fewer_copies` permits them, and quorums that no broker takes (400)."""
        if change.name is not SettingName.PERSISTENCE:
            return self.result("it changes no copies", passed=True)
        before, after = change.before_in_force, change.after_in_force
        if not isinstance(before, Persistence) or not isinstance(after, Persistence):
            return self.result(f"how many copies {change.holder} keeps before or after it is not known", passed=False)
        if not after.ensemble >= after.write_quorum >= after.ack_quorum > 0:
            return self.result(f"{after.quorums_in_words}: E has to be at least Qw, and Qw at least Qa", passed=False)
        if after.write_quorum >= before.write_quorum and after.ack_quorum >= before.ack_quorum:
            return self.result(f"{after.quorums_in_words}: no fewer copies than now", passed=True)
        words = (
            f"{after.quorums_in_words} are fewer copies than {before.quorums_in_words} (policy key guards.fewer_copies)"
        )
        return self.result(words, passed=policy.guards.fewer_copies)


# Without as many writable bookies as E no ledger can be made: no topic can be loaded, and loaded ones stop at their
# next ledger.
class BookiesEnough(SettingGuard):
    """Compares E with the bookies that may take writes: all, or those of the namespace's or the brokers' groups."""

    name = "bookies_enough"
    objection = Objection.REFUSED

    def check_change(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes an E over the bookies that may be writable; a larger E or Qw also over those that are known to be."""
        if change.name is not SettingName.PERSISTENCE:
            return self.result("it asks for no more bookies", passed=True)
        before, after = change.before_in_force, change.after_in_force
        if not isinstance(after, Persistence):
            return self.result(f"which E {change.holder} has after it is not known", passed=False)
        was = before.quorums[:2] if isinstance(before, Persistence) else (0, 0)
        if was == after.quorums[:2]:
            return self.result(f"E {after.ensemble} and Qw {after.write_quorum} stay as they are", passed=True)
        told = known(facts.bookies(change.namespace))
        of_groups = f" {told.groups}" if told.groups else ""
        words = f"E {after.ensemble} of {counted(told.may_write, 'bookie')}{of_groups} that may take writes"
        raised = after.ensemble > was[0] or after.write_quorum > was[1]
        if after.ensemble > told.may_write:
            words += ": no ledger could be made"
        elif raised and after.ensemble > told.writable and not facts.planning:
            words += f", and only {told.writable:,} of them are known to (policy key collect.metrics_urls)"
        else:
            return self.result(words, passed=True)
        return self.result(words, passed=False)
