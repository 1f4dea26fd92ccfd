"""The last subscription: whoever approves a deletion reads how many others stay, and as many do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.step import DeleteSubscription
from tests.apply.test_subscriptions import AUDIT, HELD, NAMESPACE, TOPIC, deletion, subscriptions
from tests.apply.worksite import a_worksite, quick_policy, said
from tests.builders import a_deletion
from tests.unit.planners.test_subscriptions import a_fact, proposed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite

READER = SubscriptionSpec("reader-0a1b2c3d4e", durable=False)
UNNAMED_READER = SubscriptionSpec("tail", durable=False)
COMPACTION = SubscriptionSpec("__compaction")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """A topic with two subscriptions that nobody uses, beside cursors that hold nothing for an application."""
    abandoned = (AUDIT, SubscriptionSpec("audit2", backlog=HELD))
    topic = TopicSpec("orders", subscriptions=(*abandoned, READER, UNNAMED_READER, COMPACTION))
    spec = ClusterSpec(brokers=1, namespaces=(NamespaceSpec(NAMESPACE, bundles=1, topics=(topic,)),))
    with a_worksite(tmp_path, spec) as site:
        site.policy = quick_policy(subscriptions={"delete_abandoned": True})
        yield site


def keeping(stay: int, subscription: str = "audit", step_id: str = "b1.s01") -> Step:
    """A deletion after which so many other subscriptions are said to stay."""
    change = a_deletion(TOPIC, subscription, stay=stay)
    return msgspec.structs.replace(deletion(), change=change, step_id=step_id)


def deleted_by_hand(site: Worksite, subscription: str) -> None:
    """Somebody deletes a subscription behind the plan's back."""
    path = f"/admin/v2/{TOPIC.replace('://', '/')}/subscription/{subscription}"
    with site.context() as context:
        context.writer._transport.send("DELETE", path, None, None, lambda: None)


def test_the_last_one_is_not_deleted_where_another_was_said_to_stay(site: Worksite) -> None:
    """A deletion drifts if the subscription that was said to stay went away after the approval."""
    plan = site.approved(keeping(1))
    deleted_by_hand(site, "audit2")
    (row,) = site.carry_out(plan)
    assert (row.outcome, "audit" in subscriptions(site)) == ("drifted", True)
    assert (
        f"subscription_unused: {TOPIC} has 0 other subscriptions by now, fewer than the 1 that the plan says"
        in row.reason
    )


def test_a_batch_does_not_delete_what_it_says_stays(site: Worksite) -> None:
    """The second deletion of a topic drifts if each of the two was said to leave the other."""
    assert said(site.carry_out(site.approved(keeping(1), keeping(1, "audit2", "b1.s02")))) == ["done", "drifted"]
    assert "audit2" in subscriptions(site)


def test_all_are_deleted_where_none_was_said_to_stay(site: Worksite) -> None:
    """Both subscriptions of a topic are deleted if the approval says that none stays."""
    assert said(site.carry_out(site.approved(keeping(0), keeping(0, "audit2", "b1.s02")))) == ["done", "done"]


def test_one_more_that_came_is_no_reason(site: Worksite) -> None:
    """A deletion is made if more other subscriptions stay than its approver read."""
    assert said(site.carry_out(site.approved(keeping(0)))) == ["done"]


@pytest.mark.parametrize(("others", "stay"), [(1, 0), (2, 1)], ids=["none stays", "one stays"])
def test_a_question_counts_what_its_batch_deletes_besides(others: int, stay: int) -> None:
    """Each deletion of a batch says how many others stay once all of the batch are done, and what follows from none."""
    first = a_fact(others=others)
    second = msgspec.structs.replace(first, subject=f"{first.topic} subscription audit2", subscription="audit2")
    (batch,) = proposed(first, second).batches
    assert len(batch.steps) == 2
    for step in batch.steps:
        assert isinstance(step.change, DeleteSubscription)
        assert step.change.stay == stay
        assert "once the batch has deleted 1 more of it" in step.effect
        assert ("1 other subscription stays" in step.effect) == bool(stay)
        assert ("kept only as long as its retention says" in step.effect) == (not stay)
        assert ("`brokerDeleteInactiveTopicsEnabled`" in step.effect) == (not stay)
