"""The number of a topic's partitions: never above a limit, and never where somebody relies on an order."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.partitions import PartitionedTopic, ordering
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.partitions import PartitionLimit, PartitionOrder, TopicAsPlanned
from pulsar_steward.model.step import AddPartitions
from tests.builders import NOW, a_look, a_policy, a_step

if TYPE_CHECKING:
    from datetime import datetime

TOPIC = "persistent://shop/orders/t"
PERMITS = a_policy(guards={"most_partitions": 16})


def more(after: int = 4) -> Any:
    """A raise of two partitions."""
    return a_step(AddPartitions(namespace="shop/orders", topic=TOPIC, before=2, after=after))


def topic(**fields: Any) -> PartitionedTopic:
    """Two partitions with a shared subscription."""
    return PartitionedTopic(**{"partitions": 2, "subscriptions": {"app": "Shared"}, **fields})


@pytest.mark.parametrize(
    ("after", "found", "words"),
    [
        (17, topic(), "17 of at most 16"),
        (2, topic(), "2 are not more than 2"),
        (4, topic(most_partitions=3), "brokers permit 3 in a topic, not 4"),
        (4, topic(most_topics=10, topics=9), "shop/orders would have 11 topics, and may have 10"),
        (4, Unknown("who knows"), "who knows"),
    ],
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
    """The default policy permits no raise."""
    result = PartitionLimit().check(more(), *a_look())
    assert (result.passed, result.reason) == (
        False,
        "the policy permits no raise of their number (guards.most_partitions)",
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"subscriptions": {"app": "Key_Shared"}}, "subscription app (Key_Shared) keeps the order of keys"),
        ({"subscriptions": {"app": "Shared", "b": "Failover"}}, "subscription b (Failover) keeps the order"),
        ({"subscriptions": {"app": "Exclusive"}}, "subscription app (Exclusive) keeps the order"),
        ({"subscriptions": {"app": "None"}}, "has no consumer"),
        ({"subscriptions": {"reader-1a2b": "Exclusive"}}, "reader reader-1a2b may not look"),
        ({"compacted": True}, "it is compacted"),
        ({"clusters": ("west",)}, "it is shared with west"),
    ],
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


@pytest.mark.parametrize(
    ("created", "passed", "words"),
    [
        (NOW - timedelta(seconds=6), True, "before it was planned for"),
        (NOW - timedelta(seconds=5), False, "what was planned for was another one"),
        (NOW + timedelta(hours=1), False, "what was planned for was another one"),
        (None, False, "when persistent://shop/orders/t was made is not known"),
    ],
    ids=["before", "while clocks may differ", "since", "not told"],
)
def test_a_topic_made_anew_is_not_the_one_that_was_planned(
    created: datetime | None, *, passed: bool, words: str
) -> None:
    """A topic of the same name and number counts only if it is older than the plan, however late it was seen again."""
    found = topic(created=created)
    seen = NOW + timedelta(days=2)
    result = TopicAsPlanned().check(more(), *a_look(PERMITS, partitioned_topic=found, seen_at=seen))
    assert (result.passed, words in result.reason) == (passed, True)


def test_that_a_topic_is_the_same_is_asked_at_the_call() -> None:
    """No snapshot tells when a topic was made."""
    assert TopicAsPlanned().check(more(), *a_look(PERMITS, partitioned_topic=topic(), planning=True)).passed


def test_of_several_partitions_the_strictest_type_counts() -> None:
    """A subscription whose types differ by partition counts as the one that keeps most order."""
    assert ordering("Shared", "Key_Shared", "None") == "Key_Shared"
    assert ordering("Shared", "Shared") == "Shared"
