"""Guards of deletions of subscriptions, and of raises of partitions and coordinators."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.apply.live_topics import restless_coordinators
from pulsar_steward.facts.partitions import PartitionedTopic, ordering
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import evaluate, guards_of, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.raises import (
    CoordinatorLimit,
    CoordinatorsRest,
    PartitionLimit,
    PartitionOrder,
    TopicAsPlanned,
)
from pulsar_steward.guards.subscriptions import SubscriptionUnused
from pulsar_steward.model.bundles import TC_NAMESPACE, position_of, tc_topic
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.step import AddPartitions, RaiseCoordinators, Step
from pulsar_steward.model.subscription import SubscriptionState
from tests.builders import CURSOR, NOW, Seen, a_deletion, a_look, a_move, a_policy, a_step, broker
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.policy.schema import Policy

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


@row_by_row(
    "look, objection, words",
    (seen(), None, ""),
    (with_state(moved_milliseconds=milliseconds(36)), None, ""),
    (with_state(entries=5_000, topic_bytes=262_144), None, ""),
    (seen(state=Unknown("nobody tells")), Objection.DRIFTED, "subscription_unused: nobody tells"),
    (seen(state=None), Objection.DRIFTED, "any more: somebody deleted it, or its topic"),
    (with_state(consumers=2), Objection.DRIFTED, "2 consumers are connected to subscription audit"),
    (with_state(moved_milliseconds=milliseconds(34)), Objection.DRIFTED, "consumed, skipped or expired at 2026-01-26"),
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


@row_by_row(
    "topic, name, words",
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


PARTED = "persistent://shop/orders/t"
PERMITS = a_policy(guards={"most_partitions": 16})


def more(after: int = 4) -> Any:
    """A raise of two partitions."""
    return a_step(AddPartitions(namespace="shop/orders", topic=PARTED, before=2, after=after))


def topic(**fields: Any) -> PartitionedTopic:
    """Two partitions with a shared subscription."""
    return PartitionedTopic(**{"partitions": 2, "subscriptions": {"app": "Shared"}, **fields})


@row_by_row(
    "after, found, words",
    (17, topic(), "17 of at most 16"),
    (2, topic(), "2 are not more than 2"),
    (4, topic(most_partitions=3), "brokers permit 3 in a topic, not 4"),
    (4, topic(most_topics=10, topics=9), "shop/orders would have 11 topics, and may have 10"),
    (4, Unknown("who knows"), "who knows"),
)
def test_what_is_above_a_limit_is_refused(after: int, found: PartitionedTopic | Unknown, words: str) -> None:
    """A number above the limit of the policy, the brokers or the namespace is refused, as is one that is no raise."""
    result = PartitionLimit().check(more(after), *a_look(PERMITS, partitioned_topic=found))
    assert not result.passed
    assert words in result.reason


@pytest.mark.parametrize("found", [topic(), topic(most_partitions=4), topic(most_topics=11, topics=9)])
def test_what_is_at_a_limit_may_be_done(found: PartitionedTopic) -> None:
    """A number that no limit is below passes."""
    assert PartitionLimit().check(more(), *a_look(PERMITS, partitioned_topic=found)).passed


def test_nothing_is_raised_by_default() -> None:
    result = PartitionLimit().check(more(), *a_look())
    assert (result.passed, result.reason) == (
        False,
        "the policy permits no raise of their number (guards.most_partitions)",
    )


@row_by_row(
    "fields, words",
    ({"subscriptions": {"app": "Key_Shared"}}, "subscription app (Key_Shared) keeps the order of keys"),
    ({"subscriptions": {"app": "Shared", "b": "Failover"}}, "subscription b (Failover) keeps the order"),
    ({"subscriptions": {"app": "Exclusive"}}, "subscription app (Exclusive) keeps the order"),
    ({"subscriptions": {"app": "None"}}, "has no consumer"),
    ({"subscriptions": {"reader-1a2b": "Exclusive"}}, "reader reader-1a2b may not look"),
    ({"compacted": True}, "it is compacted"),
    ({"clusters": ("west",)}, "it is shared with west"),
)
def test_who_would_notice_it_is_named(fields: dict[str, Any], words: str) -> None:
    """Ordered and unknown subscriptions, readers, compaction and other clusters each stop a raise, with the reason."""
    result = PartitionOrder().check(more(), *a_look(PERMITS, partitioned_topic=topic(**fields)))
    assert not result.passed
    assert words in result.reason


def test_shared_subscriptions_permit_it() -> None:
    """A topic with shared subscriptions alone passes, Pulsar's own cursors aside; an unknown one does not."""
    own = topic(subscriptions={"app": "Shared", "pulsar.dedup": "None"})
    assert PartitionOrder().check(more(), *a_look(PERMITS, partitioned_topic=own)).passed
    assert not PartitionOrder().check(more(), *a_look(PERMITS, partitioned_topic=Unknown("who knows"))).passed


@cases(
    "created, passed, words",
    ("before", NOW - timedelta(seconds=66), True, "before what it was planned by"),
    ("while clocks may differ", NOW - timedelta(seconds=65), False, "what was planned for may have been another one"),
    ("while statistics may be older", NOW - timedelta(seconds=6), False, "may have been another one"),
    ("since", NOW + timedelta(hours=1), False, "what was planned for may have been another one"),
    ("not told", None, False, f"when {PARTED} was made is not known"),
)
def test_a_topic_made_anew_is_not_the_one_that_was_planned(
    created: datetime | None, *, passed: bool, words: str
) -> None:
    """A topic of the same name and number counts only if it is older than the plan, however late it was seen again."""
    found = topic(created=created)
    result = TopicAsPlanned().check(more(), *a_look(PERMITS, partitioned_topic=found, seen_at=NOW + timedelta(days=2)))
    assert (result.passed, words in result.reason) == (passed, True)


def test_that_a_topic_is_the_same_is_asked_at_the_call() -> None:
    """No snapshot tells when a topic was made."""
    assert TopicAsPlanned().check(more(), *a_look(PERMITS, partitioned_topic=topic(), planning=True)).passed


def test_of_several_partitions_the_strictest_type_counts() -> None:
    """A subscription whose types differ by partition counts as the one that keeps most order."""
    assert ordering("Shared", "Key_Shared", "None") == "Key_Shared"
    assert ordering("Shared", "Shared") == "Shared"


RAISE = RaiseCoordinators(before=2, after=5)
TO_FIVE = a_policy(guards={"most_coordinators": 5, "coordinators_rest_minutes": 60})
REST_KEY = "policy key guards.coordinators_rest_minutes"
LOW, HIGH = f"{TC_NAMESPACE}/0x00000000_0x80000000", f"{TC_NAMESPACE}/0x80000000_0xffffffff"


@row_by_row(
    "change, policy, reason",
    (RAISE, a_policy(), "the policy permits no raise of their number (guards.most_coordinators)"),
    (RAISE, a_policy(guards={"most_coordinators": 4}), "5 of at most 4 (policy key guards.most_coordinators)"),
    (RaiseCoordinators(before=5, after=5), TO_FIVE, "5 are not more than 5"),
    (RaiseCoordinators(before=5, after=2), TO_FIVE, "2 are not more than 5"),
)
def test_what_is_too_much_or_no_raise_is_vetoed(change: RaiseCoordinators, policy: Policy, reason: str) -> None:
    facts, _ = a_look()
    result = CoordinatorLimit().check(a_step(change), facts, policy)
    assert (result.passed, result.reason) == (False, reason)


def test_as_many_as_the_policy_permits_pass() -> None:
    result = CoordinatorLimit().check(a_step(RAISE), *a_look(TO_FIVE))
    assert (result.passed, result.reason) == (True, "5 of at most 5 (policy key guards.most_coordinators)")


@row_by_row(
    "restless, minutes, passed, reason",
    ((), None, True, "every coordinator is served, and their number was not raised lately"),
    ((), 60, True, f"raised at 2026-03-01 11:00:00, rested until 2026-03-01 12:00:00 UTC ({REST_KEY})"),
    ((), 59, False, f"raised at 2026-03-01 11:01:00, rests until 2026-03-01 12:01:00 UTC ({REST_KEY})"),
    (("a", "b", "c"), None, False, "a, b, c"),
    (("a", "b", "c", "d"), None, False, "a, b, c and 1 coordinator more"),
    (("a",), 60, False, "a"),
)
def test_coordinators_rest(restless: tuple[str, ...], minutes: int | None, passed: bool, reason: str) -> None:
    raised_at = None if minutes is None else NOW - timedelta(minutes=minutes)
    result = CoordinatorsRest().check(
        a_step(RAISE), *a_look(TO_FIVE, restless_coordinators=restless, raised_at=raised_at)
    )
    assert (result.passed, result.reason) == (passed, reason)


def test_they_look_at_raises_alone() -> None:
    of_raise = {guard.name for guard in guards_of(a_step(RAISE))}
    both = {"coordinator_limit", "coordinators_rest"}
    assert both | {"whole_cluster", "version_tried", "protected"} <= of_raise
    assert not {"owner", "cooldown", "setting_as_planned"} & of_raise
    assert not both & {guard.name for guard in guards_of(a_step(a_move()))}
    with pytest.raises(TypeError):
        CoordinatorLimit().check(a_step(a_move()), *a_look())


class States:
    """A reader of coordinators whose states are as a test says; one that is not told of is used by nobody."""

    def __init__(self, number: int, states: dict[int, str]) -> None:
        self._number = number
        self._states = states
        self.asked: list[tuple[str, list[int]]] = []

    def coordinators(self) -> int:
        """Returns the number of coordinators."""
        return self._number

    def coordinator_states(self, broker: str, numbers: Collection[int]) -> dict[int, str]:
        """Returns the states that the test set, and remembers who was asked for which."""
        self.asked.append((broker, list(numbers)))
        return {number: self._states[number] for number in numbers if number in self._states}


def found(reader: States, owners: dict[str, set[str]]) -> tuple[str, ...]:
    """Guard result about the coordinators."""
    as_reader: LiveReader = reader  # type: ignore[assignment]  # of which only these two methods are used
    return restless_coordinators(as_reader, owners)


def test_owners_are_asked_for_the_states_of_their_own() -> None:
    reader = States(16, {0: "Ready", 3: "Initializing", 9: "Ready"})
    assert found(reader, {broker(0): {LOW}, broker(1): {HIGH}}) == ("transaction coordinator 3 is Initializing",)
    low = [number for number in range(16) if position_of(tc_topic(number)) < 0x80000000]
    high = [number for number in range(16) if number not in low]
    assert sorted(reader.asked) == [(broker(0), low), (broker(1), high)]


def test_a_coordinator_that_nobody_serves_is_told() -> None:
    reader = States(16, {0: "Closed", 1: "Closed"})
    low = [number for number in range(16) if position_of(tc_topic(number)) < 0x80000000]
    told = found(reader, {broker(1): {HIGH}})
    assert [words for words in told if "no broker serves" in words] == [
        f"no broker serves transaction coordinator {number}" for number in low
    ]
    numbers = [int(part) for words in told for part in words.split() if part.isdigit()]
    assert numbers == sorted({*low, 0, 1})
