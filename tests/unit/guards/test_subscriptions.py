"""Guards of deletions of subscriptions: nobody uses them, they are users', and no more is lost than was approved."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import evaluate, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.subscriptions import SubscriptionUnused
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.subscription import SubscriptionState
from tests.builders import CURSOR, NOW, Seen, a_deletion, a_look, a_policy, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step

TOPIC = "persistent://shop/events/orders"
LOSS = Loss(topics=(TopicLoss(topic=TOPIC, messages=2_000, bytes=200_000),), messages=5_000, bytes=262_144)
STATE = SubscriptionState(consumers=0, entries=2_000, topic_bytes=200_000, cursor=CURSOR, replicated=False)


def seen(limits: dict[str, Any] | None = None, state: object = STATE, **told: Any) -> Seen:
    """A look at a subscription that nobody uses, under a policy that lets it be deleted."""
    policy = a_policy(subscriptions={"delete_abandoned": True, **(limits or {})})
    return a_look(policy, subscription=state, **told)


def with_state(**fields: Any) -> Seen:
    """A look at one in another state."""
    return seen(state=msgspec.structs.replace(STATE, **fields))


def with_cursor(**fields: Any) -> Seen:
    """A look at one with another cursor."""
    return with_state(cursor=msgspec.structs.replace(CURSOR, **fields))


def milliseconds(days_ago: float) -> int:
    """A time, as a broker tells it."""
    return int((NOW - timedelta(days=days_ago)).timestamp() * 1000)


def a_step_of(topic: str = TOPIC, subscription: str = "audit") -> Step:
    """A step, approved with its loss."""
    return a_step(a_deletion(topic, subscription), loss=LOSS)


def test_guards_of_deletions() -> None:
    """The deletion of a subscription is checked by the general guards, its own ones and the guard of losses."""
    assert [result.guard for result in evaluate(a_step_of(), *seen())] == [
        "same_cluster",
        "fresh_snapshot",
        "whole_cluster",
        "version_tried",
        "proved_first",
        "subscription_unused",
        "subscription_expendable",
        "loss_as_approved",
        "window",
        "limits",
        "protected",
    ]


@pytest.mark.parametrize(
    ("look", "objection", "words"),
    [
        (seen(), None, ""),
        (with_state(moved_milliseconds=milliseconds(36)), None, ""),
        (with_state(entries=5_000, topic_bytes=262_144), None, ""),
        (seen(state=Unknown("nobody tells")), Objection.DRIFTED, "subscription_unused: nobody tells"),
        (seen(state=None), Objection.DRIFTED, "any more: somebody deleted it, or its topic"),
        (with_state(consumers=2), Objection.DRIFTED, "2 consumers are connected to subscription audit"),
        (
            with_state(moved_milliseconds=milliseconds(34)),
            Objection.DRIFTED,
            "consumed, skipped or expired at 2026-01-26",
        ),
        (with_state(entries=1_999), Objection.DRIFTED, "1,999 entries, fewer than the 2,000"),
        (with_state(cursor=None), Objection.DRIFTED, "is not known to be the planned one"),
        (with_cursor(created=NOW), Objection.DRIFTED, "was made anew at 2026-03-01 12:00:00 UTC"),
        (with_cursor(position="1:7"), Objection.DRIFTED, "is at position 1:7, no longer at 1:-1"),
        (with_cursor(written="9:1"), Objection.DRIFTED, "was written since, without another position (9:1, no longer"),
        (seen(consumers_beside=1), Objection.DRIFTED, "1 consumer of this name is connected to other partitions"),
        (seen(consumers_beside=Unknown("not told")), Objection.DRIFTED, "subscription_unused: not told"),
        (with_state(entries=5_001), Objection.REFUSED, "loss_as_approved: 5,001 entries"),
        (with_state(topic_bytes=262_145), Objection.REFUSED, "loss_as_approved: 2,000 entries (256 KiB)"),
        (with_state(replicated=True), Objection.REFUSED, "is replicated to other clusters"),
        (with_state(replicated=None), Objection.REFUSED, "whether it is replicated is asked right before the call"),
        (seen({"delete_abandoned": False}), Objection.REFUSED, "subscriptions.delete_abandoned"),
        (seen({"protected_topics": [TOPIC]}), Objection.REFUSED, "subscriptions.protected_topics"),
        (seen({"protected_subscriptions": ["audit"]}), Objection.REFUSED, "subscriptions.protected_subscriptions"),
    ],
)
def test_what_is_said_of_a_deletion(look: Seen, objection: Objection | None, words: str) -> None:
    """The deletion of a subscription is vetoed on any sign of use, unknown state, greater loss or policy against it."""
    found = objection_to(a_step_of(), *look)
    assert (found and found[0]) == objection
    assert words in (found[1] if found else "")


def test_whether_it_is_replicated_no_snapshot_tells() -> None:
    """Unknown replication of a subscription is no veto at planning."""
    state = msgspec.structs.replace(STATE, replicated=None)
    assert objection_to(a_step_of(), *seen(state=state, planning=True)) is None


@pytest.mark.parametrize(
    ("topic", "name", "words"),
    [
        (TOPIC, "__compaction", "is Pulsar's own"),
        ("persistent://shop/events/__change_events", "audit", "is of a topic of Pulsar's own"),
        ("persistent://pulsar/system/x", "audit", "is of a topic of Pulsar's own"),
        (TOPIC, "pulsar.dedup", "is a cursor of deduplication or replication"),
        (TOPIC, "pulsar.repl.west", "is a cursor of deduplication or replication"),
        (TOPIC, "reader-1a2b3c", "is a reader's"),
        (TOPIC, "multiTopicsReader-1a2b3c", "is a reader's"),
        (TOPIC, "a+b", "would read + in it as something else"),
        (TOPIC, "50%", "would read % in it as something else"),
        (TOPIC, "..", "cannot be a part of a path"),
    ],
)
def test_what_is_no_users_or_cannot_be_called_stays(topic: str, name: str, words: str) -> None:
    found = objection_to(a_step_of(topic, name), *seen())
    assert found is not None
    assert (found[0], words in found[1]) == (Objection.REFUSED, True), found


@pytest.mark.parametrize("name", ["reader-of-audit", "my-reader-1", "repl", "dedup"])
def test_names_that_only_look_alike_are_users(name: str) -> None:
    assert objection_to(a_step_of(subscription=name), *seen()) is None


def test_a_protected_topic_protects_its_partitions() -> None:
    look = seen({"protected_topics": [TOPIC]})
    found = objection_to(a_step_of(f"{TOPIC}-partition-3"), *look)
    assert found is not None
    assert "its topic is protected" in found[1]


def test_a_step_that_does_not_say_what_is_lost_is_refused() -> None:
    result = SubscriptionUnused().check(a_step(a_deletion(TOPIC)), *seen())
    assert not result.passed
    assert "is not in the plan" in result.reason
