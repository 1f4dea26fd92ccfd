"""Subscriptions of a namespace that moves: what would be read again or missed, and which positions go along."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.model.units import counted
from pulsar_steward.planners.clusters.stages import call, not_yet, ready, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.facts.namespace_look import NamespaceLook, Position
    from pulsar_steward.model.staged_move import Point

Place = tuple[str, str]
"""A topic and the name of a subscription."""

Amount = tuple[int, int | None]
"""Entries, and messages in each; None: not told."""


def positions_of(source: NamespaceLook, target: NamespaceLook) -> Iterator[Point]:
    """Points about the durable subscriptions of the source's loaded topics."""
    every = {(topic, name): each for topic, told in source.loaded.items() for name, each in told.positions.items()}
    if not every:
        yield ready(f"{source.cluster} has no loaded topic with a subscription")
        return
    taken = {
        (topic, name)
        for topic, name in every
        if (told := target.loaded.get(topic)) and name in told.positions and told.positions[name].consumers
    }
    if taken:
        yield ready(f"{counted(len(taken), 'subscription')} with consumers at {target.cluster} already")
    held = {place: each for place, each in every.items() if place not in taken}
    yield from _along(held, source)
    if held:
        yield from _levels(held, source, target)


def _along(held: dict[Place, Position], source: NamespaceLook) -> Iterator[Point]:
    """Whether positions are replicated, by the source."""
    if not source.keeps_positions:
        yield not_yet(
            f"{source.cluster} replicates no positions: its brokers have `enableReplicatedSubscriptions=false`"
        )
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


def _levels(held: dict[Place, Position], source: NamespaceLook, target: NamespaceLook) -> Iterator[Point]:
    """What is left to read at both ends."""
    found: defaultdict[str, dict[Place, Amount]] = defaultdict(dict)
    for place, here in held.items():
        kind, amount = _compared(place, here, source, target)
        found[kind][place] = amount
    for kind, of_kind in sorted(found.items()):
        many, words = counted(len(of_kind), "subscription"), _in_words(list(of_kind.values()))
        match kind:
            case "absent":
                # From the end, it would miss what was replicated before it was made.
                begin = ("--messageId", "earliest")
                calls = (call(target, "topics", "create-subscription", *_named(*place), *begin) for place in of_kind)
                told = f"with {words} to read at {source.cluster}; made by the call, they begin with the first message"
                yield not_yet(f"{many} missing at {target.cluster}, {told} there", calls)
            case "missed":
                yield not_yet(f"{many} would miss {words}: read these at {source.cluster} first")
            case "unloaded":
                yield unknown(f"positions of {many} at {target.cluster}, which has not loaded their topics")
            case "again":
                yield ready(f"{many} would read {words} again")
            case "coming":
                yield ready(f"{many} with {words} on the way to {target.cluster}")
            case _:
                yield ready(f"{many} with as much to read at both")


def _compared(place: Place, here: Position, source: NamespaceLook, target: NamespaceLook) -> tuple[str, Amount]:
    """How the target compares, and by how much."""
    topic, name = place
    if topic not in target.loaded:
        return "unloaded", (0, None)
    there = target.loaded[topic].positions.get(name)
    if there is None:
        return "absent", (here.entries, here.messages_per_entry)
    fewer, size = here.entries - there.entries, here.messages_per_entry or there.messages_per_entry
    if fewer > 0:
        link = source.loaded[topic].replication.get(target.pulsar_name)
        return "coming" if link and fewer <= link.entries_between_looks else "missed", (fewer, size)
    return "again" if fewer < 0 else "same", (-fewer, size)


def _named(topic: str, subscription: str) -> tuple[str, ...]:
    return partitioned_topic(topic), "--subscription", subscription


def _in_words(amounts: Sequence[Amount]) -> str:
    """Amounts in messages, or in entries where it is not told how many messages these have."""
    if all(each is not None for _, each in amounts):
        return counted(sum(entries * (each or 1) for entries, each in amounts), "message")
    return f"{counted(sum(entries for entries, _ in amounts), 'entry', 'entries')}, each a message or a batch"
