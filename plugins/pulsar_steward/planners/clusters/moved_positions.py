"""Subscriptions of a namespace that moves: what would be read again or missed, and which positions go along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.model.units import counted
from pulsar_steward.planners.clusters.stages import call, not_yet, ready, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.facts.namespace_look import NamespaceLook, Position
    from pulsar_steward.planners.clusters.stages import Point

KEEPS_POSITIONS = "enableReplicatedSubscriptions"

Amount = tuple[int, int | None]
"""Entries, and messages in each; None: not told."""


def positions_of(source: NamespaceLook, target: NamespaceLook) -> Iterator[Point]:
    """Points about the durable subscriptions of the source's loaded topics."""
    held = {(topic, name): each for topic, told in source.loaded.items() for name, each in told.positions.items()}
    yield from _along(held, source)
    yield from _levels(held, source, target)


def _along(held: dict[tuple[str, str], Position], source: NamespaceLook) -> Iterator[Point]:
    """Whether positions are replicated, by the source."""
    if source.settings.get(KEEPS_POSITIONS, "true").lower() == "false":
        yield not_yet(f"{source.cluster} replicates no positions: its brokers have `{KEEPS_POSITIONS}=false`")
    if apart := [place for place, each in held.items() if each.replicated is False]:
        calls = (
            call(source, "topics", "set-replicated-subscription-status", *_named(topic, name), "--enable")
            for topic, name in apart
        )
        words = counted(len(apart), "subscription", "subscriptions")
        yield not_yet(f"{words} without a replicated position; consumers have to ask for it as well", calls)
    if unasked := sum(each.replicated is None for each in held.values()):
        words = counted(unasked, "subscription")
        yield unknown(f"whether the position of {words} is replicated: too many to ask, or not told")


def _levels(held: dict[tuple[str, str], Position], source: NamespaceLook, target: NamespaceLook) -> Iterator[Point]:
    """What is left to read at both ends."""
    absent: dict[tuple[str, str], Amount] = {}
    again: list[Amount] = []
    missed: list[Amount] = []
    unloaded = 0
    for (topic, name), here in held.items():
        if topic not in target.loaded:
            unloaded += 1
        elif (there := target.loaded[topic].positions.get(name)) is None:
            absent[topic, name] = here.entries, here.messages_per_entry
        elif there.entries > here.entries:
            again.append((there.entries - here.entries, here.messages_per_entry or there.messages_per_entry))
        elif there.entries < here.entries:
            missed.append((here.entries - there.entries, here.messages_per_entry or there.messages_per_entry))
    if absent:
        calls = (call(target, "topics", "create-subscription", *_named(topic, name)) for topic, name in absent)
        words = counted(len(absent), "subscription is", "subscriptions are")
        amount = _in_words(list(absent.values()))
        yield not_yet(f"{words} not at {target.cluster}: made now, they would miss {amount}", calls)
    if unloaded:
        words = counted(unloaded, "subscription")
        yield unknown(f"positions of {words} at {target.cluster}, which has not loaded their topics")
    level = len(held) - len(absent) - unloaded - len(again) - len(missed)
    said = [f"{counted(level, 'subscription')} with as much to read at both"]
    said += [f"{counted(len(again), 'subscription')} would read {_in_words(again)} again"] if again else []
    said += [f"{counted(len(missed), 'subscription')} would miss up to {_in_words(missed)}"] if missed else []
    yield not_yet("; ".join(said)) if missed and _is_still(source, target) else ready("; ".join(said))


def _is_still(source: NamespaceLook, target: NamespaceLook) -> bool:
    """True if nothing is on its way any more that the target could still get."""
    sent = (topic.replication.get(target.pulsar_name) for topic in source.loaded.values())
    return not any(each.entries or each.rate_out for each in sent if each is not None)


def _named(topic: str, subscription: str) -> tuple[str, ...]:
    return partitioned_topic(topic), "--subscription", subscription


def _in_words(amounts: Sequence[Amount]) -> str:
    """Amounts in messages, or in entries where it is not told how many messages these have."""
    if all(each is not None for _, each in amounts):
        return counted(sum(entries * (each or 1) for entries, each in amounts), "message")
    return f"{counted(sum(entries for entries, _ in amounts), 'entry', 'entries')}, each a message or a batch"
