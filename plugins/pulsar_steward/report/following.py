"""Sections of an approval request on later effects: messages in flight of moves, and the days after a rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.model.plan import BROKER_DRAIN, TakenBack
from pulsar_steward.model.units import counted, seconds_in_words
from pulsar_steward.report import approval_group as group
from pulsar_steward.report.markdown import bullets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy

MINUTE = 60


def in_flight(steps: Sequence[Step]) -> Iterator[str]:
    """Section on messages that are redelivered or lost when clients reconnect."""
    again = sum(step.moving_messages.again for step in steps)
    topics = sum(step.moving_messages.volatile_topics for step in steps)
    if not again and not topics:
        return
    yield "### Messages in flight"
    yield bullets([*_again(steps, again), *_lost(steps, topics)])


def what_follows(batch: Batch, policy: Policy) -> Iterator[str]:
    """Section of a rollback: proposals that it prevents for a while."""
    if not batch.is_rollback:
        return
    yield "### What follows"
    yield bullets([*_rest(batch, policy), *_not_asked(policy)])


def _again(steps: Sequence[Step], again: int) -> Iterator[str]:
    if again:
        yield (
            f"At most {counted(again, 'acknowledged message is', 'acknowledged messages are')} delivered again: a batch"
            " that is acknowledged in part comes again whole. What consumers hold and did not acknowledge comes again"
            f" in any case. Steps: {_named(step.step_id for step in steps if step.moving_messages.again)}."
        )


def _lost(steps: Sequence[Step], topics: int) -> Iterator[str]:
    if topics:
        lost = sum(step.moving_messages.lost for step in steps)
        of_topics = counted(topics, "topic that is not persistent loses", "topics that are not persistent lose")
        yield (
            f"{of_topics} what is published until clients are back: at most about {counted(lost, 'message')}, by the"
            " rates of the snapshot. Nothing stores these messages. Steps:"
            f" {_named(step.step_id for step in steps if step.moving_messages.volatile_topics)}."
        )


def _named(ids: Iterator[str]) -> str:
    return group.few_ids(list(ids))


def _rest(batch: Batch, policy: Policy) -> Iterator[str]:
    """Things that guards leave alone for a while; moves of a drain count as no circle."""
    disturbed = [kind_of(step.change).disturbs for step in batch.steps]
    namespaces = sorted({bundle.namespace for bundle in disturbed if bundle is not None and bundle.moves})
    if not namespaces:
        return
    drained = isinstance(batch.takes_back, TakenBack) and batch.takes_back.kind == BROKER_DRAIN
    if (minutes := policy.guards.circle_minutes) and not drained:
        named = ", ".join(group.first_of(namespaces, group.MAX_EXAMPLES, "more namespace"))
        yield (
            "Its bundles will have been moved away and back: nothing is moved or split in"
            f" {named} for {_minutes(minutes)} (policy key guards.circle_minutes)."
        )
    if minutes := policy.tc_skew.cooldown_minutes:
        yield f"Each of these bundles rests for {_minutes(minutes)} (policy key tc_skew.cooldown_minutes)."


def _not_asked(policy: Policy) -> Iterator[str]:
    minutes = policy.approval.ask_again_minutes
    yield f"What is taken back is not proposed again for {_minutes(minutes)} (policy key approval.ask_again_minutes)."


def _minutes(minutes: int) -> str:
    return seconds_in_words(minutes * MINUTE)
