"""More partitions for a topic: where they divide what is too much, how many, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.partitions import PartitionedTopic
from pulsar_steward.model.plan import TOPIC_PARTITIONS
from pulsar_steward.model.step import AddPartitions
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.planners.partitions.facts import Partition, PartitionedFact
from pulsar_steward.planners.partitions.raising import PLANNER
from tests.builders import a_policy, planning_facts_with
from tests.cases import row_by_row
from tests.unit.planners.bundles.scenes import finding

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

TOPIC, BUNDLE = "persistent://shop/orders/t", "shop/orders/0x00000000_0x40000000"
PERMITS = a_policy(guards={"most_partitions": 16})
HOT = finding("hot-bundle", BUNDLE)
CONSUMERS = finding("consumer-fanout", f"{TOPIC}-partition-0")
PRODUCERS = finding("producer-fanout", f"{TOPIC}-partition-0")


def even(number: int, **load: int) -> list[Partition]:
    usual = {"bytes": 100 * MEGABYTE, "producers": 10, "consumers": 20, **load}
    return [Partition(index=index, **usual) for index in range(number)]


def proposal(found: Finding, partitions: list[Partition], **fields: Any) -> Proposal:
    """What is proposed for a topic of these partitions; `fields` are those of its state and of the planning."""
    of_state = {name: fields.pop(name) for name in PartitionedTopic.__struct_fields__ if name in fields}
    state = PartitionedTopic(**{"partitions": partitions[-1].index + 1, "subscriptions": {"app": "Shared"}, **of_state})
    fact = PartitionedFact(
        topic=TOPIC,
        namespace="shop/orders",
        named_by={found.subject: f"{TOPIC}-partition-0"},
        partitions=tuple(partitions),
        state=state,
    )
    usual = {"findings": (found,), "partitioned": (fact,), "policy": PERMITS}
    return PLANNER.proposal(planning_facts_with(3, **{**usual, **fields}))


def test_load_is_divided_by_more_partitions(golden: Golden) -> None:
    """A topic that dominates a hot bundle, with even partitions, gets twice as many, and the load is foretold."""
    (batch,) = proposal(HOT, even(2)).batches
    (step,) = batch.steps
    assert (batch.kind, batch.findings) == (TOPIC_PARTITIONS, (HOT,))
    assert step.change == AddPartitions(namespace="shop/orders", topic=TOPIC, before=2, after=4)
    assert step.undo is None
    assert "cannot be undone" in step.undo_note
    assert all(result.passed for result in step.guards)
    for text in (batch.title, step.why, step.effect):
        golden(text)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (7, 14), (9, 16)])
def test_how_many_there_will_be(before: int, after: int) -> None:
    """One plan doubles the partitions, up to the most that the policy permits."""
    (batch,) = proposal(HOT, even(before)).batches
    change = batch.steps[0].change
    assert isinstance(change, AddPartitions)
    assert change.after == after


@pytest.mark.parametrize("found", [CONSUMERS, PRODUCERS])
def test_clients_that_choose_partitions_are_divided(found: Finding) -> None:
    crowded = [Partition(0, 0, 3000, 3000), Partition(1, 0, 1500, 1500)]
    alike = [Partition(0, 0, 3000, 3000), Partition(1, 0, 2900, 2900)]

    assert proposal(found, crowded).batches
    refused = proposal(found, alike)
    assert refused.batches == ()
    assert "each client connects to all of them" in refused.notes[0]


@row_by_row(
    "partitions, fields, words",
    ([*even(1), *(Partition(index, 0, 1, 1) for index in (1, 2, 3))], {}, "follows few keys or producers"),
    ([even(4)[0], even(4)[3]], {}, "2 of 4 partitions are loaded"),
    (even(16), {}, "has 16 partitions, and the policy permits 16"),
    (even(2), {"subscriptions": {"app": "Key_Shared"}}, "partition_order: "),
    (even(2), {"most_partitions": 3}, "partition_limit: brokers permit 3"),
    (even(2), {"policy": a_policy()}, "the policy does not allow it"),
    (even(2), {"findings": (HOT, finding("partition-ceiling", "broker-00:8080"))}, "too many already"),
    (even(2), {"policy": a_policy(plan={"standing_snapshots": 2}, guards={"most_partitions": 4})}, "have not stood"),
)
def test_why_nothing_is_proposed(partitions: list[Partition], fields: dict[str, Any], words: str) -> None:
    """Where more partitions do not help, may not be, or are not permitted, a note says so."""
    refused = proposal(HOT, partitions, **fields)
    assert refused.batches == ()
    (note,) = refused.notes
    assert words in note


def test_a_topic_without_partitions_is_named() -> None:
    """A crowded topic that is not partitioned gets a note: only a new topic can have partitions."""
    found = finding("consumer-fanout", TOPIC)
    refused = PLANNER.proposal(planning_facts_with(3, findings=(found,), policy=PERMITS))
    assert (refused.batches, refused.notes) == (
        (),
        (f"{TOPIC}: no raise is proposed, as it has no partitions: only a new topic can have some.",),
    )


def test_a_hot_bundle_of_many_topics_is_not_its_business() -> None:
    """A hot bundle that no partition dominates leads to neither a step nor a note here."""
    refused = PLANNER.proposal(planning_facts_with(3, findings=(HOT,), policy=PERMITS))
    assert (refused.batches, refused.notes) == ((), ())
