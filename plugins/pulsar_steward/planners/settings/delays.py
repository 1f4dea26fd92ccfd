"""Planner: sets a time to live longer than the longest delay, and a maximum delay if there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.delayed.delayed_past_ttl import CHECK as DELAYED_PAST_TTL
from pulsar_steward.checks.delayed.delayed_past_ttl import DelayFigures
from pulsar_steward.model.setting import DelayedDelivery, SettingName, TimeToLive
from pulsar_steward.model.units import HOUR, seconds_in_words
from pulsar_steward.planners.base import Planner, Proposal
from pulsar_steward.planners.settings.facts import unread_loss
from pulsar_steward.planners.settings.namespaces import PARTIAL, RETENTION_KIND, batches_of, facts_by_name, obstacle
from pulsar_steward.planners.settings.sizes import above
from pulsar_steward.planners.settings.targets import TargetSettings, namespace_of

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.remedies import DelayedDeliveryRemedy


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal: the time to live first, then the maximum delay."""
    if goal in planning.claimed_settings:
        return _none(goal, "as this plan changes other settings of it first")
    fact = facts_by_name(planning)[goal]
    decided = _decided(planning, fact, findings)
    return _none(goal, decided) if isinstance(decided, str) else batches_of(planning, fact, decided, findings)


def _none(goal: str, reason: str) -> Proposal:
    return Proposal(notes=(f"{goal}: neither a longer time to live nor a bound of delays is proposed, {reason}.",))


def _decided(planning: PlanningFacts, fact: NamespaceFact, findings: tuple[Finding, ...]) -> TargetSettings | str:
    """The settings that the namespace should have, or the reason why they are not changed."""
    remedy, now = planning.policy.delayed_delivery_remedy, {**planning.defaults, **fact.own}
    ttl, delays = now.get(SettingName.TTL), now.get(SettingName.DELAYED_DELIVERY)
    if not isinstance(ttl, TimeToLive) or ttl.seconds <= 0:
        return "as it has no time to live any more"
    bound = max(DelayFigures.of(finding).longest_delay_seconds for finding in findings)
    longest, words = (bound, f"delays up to {seconds_in_words(bound)} are allowed") if bound else _bound(fact, remedy)
    if not longest:
        return words
    decided = TargetSettings(now)
    if not bound:
        if not isinstance(delays, DelayedDelivery) or not delays.active:
            return "as brokers do not tell that they deliver messages delayed there, or in which ticks"
        after = msgspec.structs.replace(delays, longest_milliseconds=longest * 1000)
        why = f"nothing bounds the delay that a producer may ask for; {words}"
        decided.put(SettingName.DELAYED_DELIVERY, after, why)
    seconds, sum_words = _time_to_live(fact, longest, remedy)
    if seconds > remedy.most_ttl_hours * HOUR:
        most = seconds_in_words(remedy.most_ttl_hours * HOUR)
        return f"as {words}; {sum_words}, and it is raised to {most} at most: decide by hand"
    if seconds > ttl.seconds:
        expire = f"messages expire {seconds_in_words(ttl.seconds)} after they are published, whatever their delay"
        decided.put(SettingName.TTL, TimeToLive(seconds=seconds), f"{expire}; {words}; {sum_words}")
        decided.averted = unread_loss(fact, fact.delayed_topics)
    return decided if decided.why else f"as its time to live is longer already: {words}"


def _bound(fact: NamespaceFact, remedy: DelayedDeliveryRemedy) -> tuple[int, str]:
    """Maximum delay in seconds, and its computation as text; 0 and the reason if there should be none."""
    if not remedy.longest_delay_hours:
        return 0, (
            "as nothing bounds the delay that a producer may ask for, and the policy names no bound"
            " (delayed_delivery_remedy.longest_delay_hours)"
        )
    usual, oldest = remedy.longest_delay_hours * HOUR, fact.ages.oldest_seconds
    waited = -(-oldest * (100 + remedy.age_headroom_percent) // (100 * HOUR)) * HOUR
    words = f"{seconds_in_words(max(usual, waited))} are to be enough (delayed_delivery_remedy.longest_delay_hours"
    if waited <= usual:
        return usual, f"{words})"
    return waited, (
        f"{words} is {seconds_in_words(usual)}, but a message of {fact.ages.topic} waits for"
        f" {seconds_in_words(oldest, rounded=True)} already, + {remedy.age_headroom_percent} %)"
    )


def _time_to_live(fact: NamespaceFact, longest: int, remedy: DelayedDeliveryRemedy) -> tuple[int, str]:
    """Time to live in seconds (whole hours), and its computation as text."""
    least = max(longest, fact.ages.oldest_seconds)
    seconds = -(-above(least, remedy.ttl_margin_percent) // HOUR) * HOUR
    oldest = "" if least == longest else f", and a backlog is {seconds_in_words(least, rounded=True)} old"
    return seconds, (
        f"with {remedy.ttl_margin_percent} % left for consumers once they are due{oldest}, a time to live of"
        f" {seconds_in_words(seconds)} is needed"
    )


PLANNER = Planner(
    kinds=(RETENTION_KIND,),
    answers=frozenset({DELAYED_PAST_TTL.check_id}),
    goal=namespace_of,
    propose=propose,
    obstacle=obstacle,
    partial_note=PARTIAL,
)
