"""Planner: deletes abandoned subscriptions, if the policy allows such proposals.

It is off by default: no figure shows whether somebody still needs a subscription. So an operator has to decide that
people are asked about deletions (docs/remediations/subscription-deletion.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import SUBSCRIPTION_DELETION, Batch
from pulsar_steward.model.step import DeleteSubscription, GuardedChange, Step, Touched
from pulsar_steward.model.units import DAY, counted, seconds_in_words, time_in_words
from pulsar_steward.planners.base import Planner, Proposal, Vetoed, enumerated
from pulsar_steward.planners.snapshot_facts import guarded, objections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts, SubscriptionFact

GOAL = "Abandoned subscriptions"


def obstacle(planning: PlanningFacts, _: str) -> str | None:
    """A note if the policy does not allow proposals of deletions."""
    if planning.policy.subscriptions.delete_abandoned:
        return None
    return f"{GOAL}: no deletion is proposed, as the policy says so (policy key subscriptions.delete_abandoned)."


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for each namespace, of the longest unused subscriptions, at most as many as the policy allows."""
    limits, facts = planning.policy.subscriptions, {fact.subject: fact for fact in planning.subscriptions}
    answered = {finding.subject: finding for finding in findings}
    known = sorted((facts[each] for each in answered if each in facts), key=lambda fact: (-fact.seconds, fact.subject))
    old = [fact for fact in known if fact.seconds >= limits.minimum_days * DAY]
    vetoed = Vetoed()
    kept = [
        fact
        for fact in old
        if not vetoed.holds(objections(_deletion(planning, fact), planning, subscription=fact), fact.subject)
    ]
    by_namespace: defaultdict[str, list[SubscriptionFact]] = defaultdict(list)
    most = min(limits.most_steps_per_plan, planning.policy.guards.most_changes_per_run)
    for fact in kept[:most]:
        by_namespace[fact.namespace].append(fact)
    return Proposal(
        batches=tuple(
            _batch(planning, namespace, of_it, [answered[fact.subject] for fact in of_it])
            for namespace, of_it in sorted(by_namespace.items())
        ),
        notes=(
            *_notes(
                [each for each in answered if each not in facts],
                [fact.subject for fact in known if fact not in old],
                [fact.subject for fact in kept[most:]],
                most,
                planning,
            ),
            *vetoed.notes("subscriptions from deletion"),
        ),
    )


def _notes(
    unread: Sequence[str], young: Sequence[str], more: Sequence[str], most: int, planning: PlanningFacts
) -> Iterator[str]:
    limits = planning.policy.subscriptions
    if unread:
        yield (
            f"{GOAL}: nothing is proposed of {enumerated(unread)}, as the snapshot does not have them, or not when they"
            " were made, by which one that is made anew is told from them (policy key collect.drilled_topics)."
        )
    if young:
        yield (
            f"{GOAL}: nothing is proposed of {enumerated(young)} before nobody has come for"
            f" {counted(limits.minimum_days, 'day')} (policy key subscriptions.minimum_days)."
        )
    if more:
        of_run = most < limits.most_steps_per_plan
        key = "guards.most_changes_per_run" if of_run else "subscriptions.most_steps_per_plan"
        yield f"{GOAL}: {enumerated(more)} come with later plans, as one deletes {most:,} at most (policy key {key})."


def _batch(
    planning: PlanningFacts, namespace: str, facts: Sequence[SubscriptionFact], findings: Sequence[Finding]
) -> Batch:
    of_topic = Counter(fact.topic for fact in facts)
    steps = tuple(_step(planning, fact, number, of_topic[fact.topic] - 1) for number, fact in enumerate(facts, start=1))
    return Batch(
        kind=SUBSCRIPTION_DELETION,
        title=f"{namespace}: delete {counted(len(steps), 'abandoned subscription')}",
        findings=tuple(findings),
        steps=steps,
    )


def _deletion(planning: PlanningFacts, fact: SubscriptionFact, also: int = 0) -> GuardedChange:
    """The deletion of a subscription, if `also` others of the same topic are deleted before."""
    return GuardedChange(
        change=DeleteSubscription(
            namespace=fact.namespace,
            topic=fact.topic,
            subscription=fact.subscription,
            cursor=fact.cursor,
            stay=max(fact.state.others - also, 0),
        ),
        touched=Touched(producers=0, consumers=0, topics=1, coordinators=0),
        loss=_loss(fact, planning.policy.subscriptions.growth_percent),
    )


def _step(planning: PlanningFacts, fact: SubscriptionFact, number: int, also: int) -> Step:
    """The step at a place in its batch; `also` other subscriptions of the same topic are deleted too."""
    deletion = _deletion(planning, fact, also)
    now = counted(fact.state.entries, "entry", "entries")
    step = Step(
        change=deletion.change,
        touched=deletion.touched,
        loss=deletion.loss,
        why=(
            f"nobody has been connected to it since {time_in_words(fact.since)}"
            f" ({seconds_in_words(fact.seconds, rounded=True)}), and its backlog grew from {fact.entries_then:,} to"
            f" {now}"
        ),
        effect=_effect(fact, also),
        undo_note=(
            f"It cannot be undone: the {now} that it has not read are lost to it, and a new one of this name begins at"
            " the end, or with what others still keep."
        ),
    )
    return guarded(step, planning, place_in_run=number, subscription=fact)


def _effect(fact: SubscriptionFact, also: int) -> str:
    gone = f"{fact.topic} has no subscription {fact.subscription}"
    after = f", once the batch has deleted {also:,} more of it" if also else ""
    if stay := max(fact.state.others - also, 0):
        return f"{gone}, and {counted(stay, 'other subscription stays', 'other subscriptions stay')}{after}"
    return (
        f"{gone}, and no other one{after}: what is published there is kept only as long as its retention says, and"
        " brokers may delete the topic once nobody produces to it (`brokerDeleteInactiveTopicsEnabled`)"
    )


def _loss(fact: SubscriptionFact, growth_percent: int) -> Loss:
    """The maximum loss that an approval permits, and the data of its topic at the snapshot.

    The backlog of a subscription without consumers keeps growing. A limit that changed with every snapshot would
    require a new question each time. So there is room for growth, rounded up to a number that stays the same for a
    while.
    """
    room = 100 + growth_percent
    return Loss(
        topics=(TopicLoss(topic=fact.topic, messages=fact.state.entries, bytes=fact.state.topic_bytes),),
        messages=_rounded_up(fact.state.entries * room // 100),
        bytes=1 << max(fact.state.topic_bytes * room // 100 - 1, 0).bit_length(),
    )


def _rounded_up(count: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 and so on."""
    step = int("1".ljust(len(str(count)), "0"))
    return next(most for most in (step, 2 * step, 5 * step, 10 * step) if most >= count)


PLANNER = Planner(
    kinds=(SUBSCRIPTION_DELETION,),
    answers=frozenset({SUBSCRIPTION_ABANDONED.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    obstacle=obstacle,
    partial_note=f"{GOAL}: no deletion is proposed, as the snapshot is partial without {{missing}}.",
)
