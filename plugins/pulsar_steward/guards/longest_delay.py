"""Guard: a maximum delay is not shorter than the time that messages already wait.

Brokers do not report the delay of a message. A message that has waited longer than the new maximum may have a delay
that would be refused; or its subscription is slow, which looks the same (docs/knowledge.md D and F).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard
from pulsar_steward.model.setting import DelayedDelivery
from pulsar_steward.model.units import counted, milliseconds_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class LongestDelay(SettingGuard):
    """Compares the age of the oldest unconsumed message with the maximum delay."""

    name = "longest_delay"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a shorter maximum if a waiting message is older; right before the call, also if one may be older."""
        bound = change.after_in_force
        if not change.refuses_delays or not isinstance(bound, DelayedDelivery):
            return self.result("no delay is refused that was taken before", passed=True)
        ages = facts.backlog_ages(change)
        if isinstance(ages, Unknown):
            return self.result(ages.reason, passed=False)
        words = milliseconds_in_words(bound.longest_milliseconds)
        if ages.oldest_seconds * 1000 > bound.longest_milliseconds:
            waits = f"a message of {ages.topic} waits for {seconds_in_words(ages.oldest_seconds)} already"
            return self.result(f"{waits}: longer delays than {words} may be in use", passed=False)
        if ages.unknown and not facts.planning:
            unknown = f"of {counted(ages.unknown, 'topic')} with a backlog its age is not known: {ages.why_unknown}"
            return self.result(unknown, passed=False)
        return self.result(f"no message is known to wait for longer than {words}", passed=True)
