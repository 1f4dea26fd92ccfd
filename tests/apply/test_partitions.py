"""More partitions for a topic: observed, proposed, approved, raised once, proved, and never taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import (
    Answer,
    ClusterSpec,
    Drop,
    Fault,
    LoadSpec,
    NamespaceSpec,
    SubscriptionSpec,
    TopicSpec,
    Without,
)
from pulsar_steward.errors import Refused
from pulsar_steward.model.plan import TOPIC_PARTITIONS
from pulsar_steward.model.step import AddPartitions
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.seeing import Seeing
from tests.apply.test_rollback import back_of
from tests.apply.worksite import a_worksite, permitted, quick_policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite

NAMESPACE, TOPIC = "shop/firehose", "persistent://shop/firehose/events"
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec(
            NAMESPACE,
            bundles=16,
            topics=(
                TopicSpec(
                    "events",
                    partitions=2,
                    producers=4,
                    subscriptions=(SubscriptionSpec("sink", consumers=4, rate_out=10_000.0),),
                    message_bytes=10_000,
                    rate_in=10_000.0,
                ),
            ),
        ),
        NamespaceSpec("shop/carts", bundles=32, topics=(TopicSpec("t", partitions=60, producers=1, rate_in=1.0),)),
    ),
    loads=(LoadSpec(cpu_percent=180.0),) * 3,
)
"""Two partitions of 200 MB/s, in and out, many that are next to idle, and brokers with 90 % of their CPU in use."""
MORE = AddPartitions(namespace=NAMESPACE, topic=TOPIC, before=2, after=4)
CALL = "partitions events"
PERMITS = {"most_partitions": 8}


@pytest.fixture
def seeing(tmp_path: Path) -> Iterator[Seeing]:
    """The cluster under a policy that permits up to eight partitions."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = quick_policy(guards=PERMITS)
        yield Seeing(site, tmp_path / "snapshots", ("bundle_split", TOPIC_PARTITIONS))


@pytest.fixture
def site(seeing: Seeing) -> Worksite:
    """The same, without eyes."""
    return seeing.site


def partitions(site: Worksite) -> int:
    """Number of partitions, as the brokers tell it."""
    with site.context() as context:
        return context.reader.partitions(TOPIC)


def somebody_raises(site: Worksite, number: int) -> None:
    """Raises it as another tool would, with nothing in the ledger."""
    with Writer(site.settings) as writer:
        writer.send(calls.add_partitions(TOPIC, number), permitted)


def the_plan(seeing: Seeing) -> Plan:
    """What is proposed for the cluster."""
    plan, _ = seeing.observe()
    (batch,) = plan.batches
    assert [step.change for step in batch.steps] == [MORE]
    return plan


def test_it_is_proposed_raised_and_proved(seeing: Seeing) -> None:
    """A topic that is too much for its partitions is proposed, gets more with its subscription, and is proved."""
    plan = the_plan(seeing)
    assert seeing.carry_out(plan) == ["done"]
    assert partitions(seeing.site) == 4
    with seeing.site.context() as context:
        for index in range(4):
            assert context.reader.stored_subscriptions(f"{TOPIC}-partition-{index}") == frozenset({"sink"})
    (intent,) = seeing.site.ledger.intents(plan.plan_id, "b1")
    assert intent.before == {"partitions": 2}
    with pytest.raises(Refused, match="cannot be undone: brokers refuse a lower number"):
        back_of(seeing.site, plan)


@pytest.mark.parametrize("number", [3, 4, 6])
def test_what_somebody_raised_meanwhile_is_left_as_it_is(site: Worksite, number: int) -> None:
    """A raise drifts without a call if the number of partitions changed after the plan was made."""
    plan = site.approved(MORE)
    somebody_raises(site, number)
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome in {"drifted", "refused"}
    assert partitions(site) == number
    assert site.changes() == []


def test_without_a_policy_that_permits_it_nothing_is_raised(site: Worksite) -> None:
    """A raise that was approved is refused where the policy in force permits none."""
    plan = site.approved(MORE)
    site.policy = quick_policy(guards={**PERMITS, "most_partitions": 0})
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "refused"
    assert "the policy permits no raise" in outcome.reason
    assert site.untouched()


def test_a_topic_that_may_have_been_made_anew_stops_it(site: Worksite) -> None:
    """Where the metadata store does not tell since when there is the topic, it may be another one of its name."""
    plan = site.approved(MORE)
    site.simulator.faults.add(Fault(Without("creationDate"), path="partition-0/internal-info"))
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "drifted"
    assert "topic_as_planned" in outcome.reason
    assert site.untouched()


def test_consumers_in_order_that_came_since_stop_it(site: Worksite) -> None:
    """A subscription that keeps an order is seen right before the call, and nothing is raised."""
    plan = site.approved(MORE)
    for index in range(2):
        site.simulator.change_subscription(f"{TOPIC}-partition-{index}", "sink", kind="Key_Shared")
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "refused"
    assert "partition_order" in outcome.reason
    assert site.untouched()


def test_a_subscription_that_one_partition_lacks_stops_it(site: Worksite) -> None:
    """New partitions get the subscriptions of the first one alone, so one that others lack may be missed there."""
    plan = site.approved(MORE)
    site.simulator.change_subscription(f"{TOPIC}-partition-1", "sink", consumers=0)
    with Writer(site.settings) as writer:
        writer.send(calls.delete_subscription(f"{TOPIC}-partition-1", "sink"), permitted)
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "refused"
    assert "subscription sink is not on every partition" in outcome.reason
    assert partitions(site) == 2


def test_an_answer_that_is_lost_is_no_second_call(site: Worksite) -> None:
    """Where the answer to the call is lost, the cluster tells that it is done, and it is sent once."""
    plan = site.approved(MORE)
    site.simulator.faults.add(Fault(Drop(work_done=True), path="/partitions", method="POST"))
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, partitions(site)) == ("done", 4)
    assert site.changes() == [CALL]


def test_what_brokers_broke_off_is_named(site: Worksite) -> None:
    """Where the number is raised and a subscription is lacking, the step is not done, and the reason names it."""
    plan = site.approved(MORE)

    def somebody_deletes(_: object) -> None:
        with Writer(site.settings) as writer:
            writer.send(calls.delete_subscription(f"{TOPIC}-partition-3", "sink"), permitted)

    (outcome,) = site.carry_out(plan, after=somebody_deletes)
    assert outcome.outcome != "done"
    assert "3 lacks sink" in outcome.reason


@pytest.mark.parametrize("number", [5, 8])
def test_what_somebody_raises_right_before_the_call_is_drifted(site: Worksite, number: int) -> None:
    """A raise drifts if the broker refuses it because there are more partitions already."""
    (outcome,) = site.carry_out(site.approved(MORE), before=lambda _: somebody_raises(site, number))
    assert outcome.outcome == "drifted"
    assert f"Desired partitions 4 can't be less than the current partitions {number}" in outcome.reason
    assert partitions(site) == number


def test_a_refusal_with_a_part_done_is_said_loudly(site: Worksite) -> None:
    """Where the call is refused, and the number is raised without a subscription, that is unknown and said."""

    def half(_: object) -> None:
        somebody_raises(site, 4)
        with Writer(site.settings) as writer:
            writer.send(calls.delete_subscription(f"{TOPIC}-partition-3", "sink"), permitted)
        site.simulator.faults.add(Fault(Answer(409), path="/partitions$", method="POST"))

    (outcome,) = site.carry_out(site.approved(MORE), before=half)
    assert outcome.outcome == "unknown"
    assert "3 lacks sink" in outcome.reason


def test_a_refusal_with_nothing_done_is_no_doubt(site: Worksite) -> None:
    """Where the call is refused and the number is as before, the outcome is what the answer means."""
    site.simulator.faults.add(Fault(Answer(409), path="/partitions$", method="POST"))
    (outcome,) = site.carry_out(site.approved(MORE))
    assert (outcome.outcome, partitions(site)) == ("drifted", 2)
