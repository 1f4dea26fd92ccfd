"""Failing over, judged before it is done: what the other clusters would be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.planners.clusters.losing import MissingNamespace, loss_of
from tests.unit.planners.clusters.replicating import ORDERS, name_of, subscribed, taken, topic_of

if TYPE_CHECKING:
    from pathlib import Path


def drilled(subscription: str, *, replicated: bool, number: int = 0) -> dict[str, Any]:
    """A subscription of a topic that was looked into."""
    return {"topic": name_of(number=number), "subscription": subscription, "replicated": replicated}


def test_the_other_that_lacks_the_least_is_what_counts(tmp_path: Path) -> None:
    """Of two others, the one with fewer entries waiting; a topic that is not sent there is counted."""
    told = [topic_of(cluster="west", backlog_entries=9, delay_seconds=30), topic_of(number=1)]
    three = {ORDERS: ("east", "west", "south")}
    members = {
        "east": taken(tmp_path, "east", *told, serving=three),
        "south": taken(tmp_path, "south", serving=three),
        "west": taken(tmp_path, "west", serving=three),
    }
    (found,) = loss_of("east", members).namespaces
    assert found.served_by == ("west", "south")
    assert (found.topics, found.entries, found.messages, found.delay_seconds) == (2, 9, None, 30)
    assert (found.unsent_topics, found.is_complete) == (1, False)


def test_topics_that_keep_nothing_do_not_stand_for_those_that_are_not_sent(tmp_path: Path) -> None:
    """A topic that is not persistent has a replicator as well, and is none of the topics that are counted."""
    volatile = topic_of(number=2, cluster="west") | {"topic": "non-persistent://acme/orders/t-2"}
    members = {"east": taken(tmp_path, "east", topic_of(), volatile), "west": taken(tmp_path, "west")}
    (found,) = loss_of("east", members).namespaces
    assert (found.topics, found.unsent_topics, found.is_complete) == (1, 1, False)


def test_a_namespace_of_nobody_else_comes_first_with_all_that_it_stores(tmp_path: Path) -> None:
    """One of the same name that serves itself has other messages."""
    serving = {ORDERS: ("east", "west"), "acme/own": ("east",)}
    own = topic_of("acme/own")
    east = taken(tmp_path, "east", topic_of(cluster="west"), own, serving=serving)
    west = taken(tmp_path, "west", own, serving={ORDERS: ("east", "west"), "acme/own": ("west",)})
    first, second = loss_of("east", {"east": east, "west": west}).namespaces
    assert (first.namespace, first.served_by, first.stored_bytes, first.entries) == ("acme/own", (), 1000, None)
    assert (second.namespace, second.entries, second.is_complete) == (ORDERS, 0, True)


def test_positions_that_nobody_else_has(tmp_path: Path) -> None:
    """Kept, not replicated, absent at the other's loaded topic, and not told: of a topic that is not loaded there."""
    here = [topic_of(number=number, cluster="west") for number in (0, 1)]
    east = taken(
        tmp_path,
        "east",
        *here,
        subscriptions=[*(subscribed(0, name) for name in ("kept", "apart", "absent")), subscribed(1, "unknown")],
        drilled=[drilled("kept", replicated=True), drilled("apart", replicated=False)],
    )
    west = taken(tmp_path, "west", topic_of(), subscriptions=[subscribed(0, name) for name in ("kept", "apart")])
    (found,) = loss_of("east", {"east": east, "west": west}).namespaces
    assert (found.subscriptions, found.subscriptions_lost, found.subscriptions_unknown) == (4, 2, 1)


def test_what_no_topic_tells_is_not_told(tmp_path: Path) -> None:
    """Policies name the other cluster, and no loaded topic has a replicator to it."""
    members = {name: taken(tmp_path, name) for name in ("east", "west")}
    (found,) = loss_of("east", members).namespaces
    assert isinstance(found, MissingNamespace)
    assert (found.served_by, found.entries, found.is_complete) == (("west",), None, False)
    with pytest.raises(ConfigurationError, match="members are east, west"):
        loss_of("north", members)
