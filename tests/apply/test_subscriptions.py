"""Deletion of an abandoned subscription: only where nobody came back to it, proved, and without a way back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import Answer, ClusterSpec, Drop, Fault, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.applied import applied_batches, what_was_done
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.apply.verify import verify
from pulsar_steward.errors import Refused
from pulsar_steward.model.loss import Loss, TopicLoss
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.test_crash import crash
from tests.apply.worksite import a_worksite, quick_policy, said
from tests.builders import CLUSTER, CURSOR, a_deletion, a_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.step import Step
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

NAMESPACE, TOPIC = "shop/events", "persistent://shop/events/orders"
PART = "persistent://shop/events/wide-partition-0"
HELD, MOST = 2_000, 2_500
ASKED = {"subscriptions": {"delete_abandoned": True}}
CALL = "DELETE /admin/v2/persistent/shop/events/orders/subscription/audit"
AUDIT = SubscriptionSpec("audit", backlog=HELD)
BILLING = SubscriptionSpec("billing", consumers=2, backlog=25)
SPEC = ClusterSpec(
    brokers=2,
    namespaces=(
        NamespaceSpec(
            NAMESPACE,
            bundles=4,
            topics=(
                TopicSpec("orders", producers=1, subscriptions=(BILLING, AUDIT)),
                TopicSpec("wide", partitions=3, subscriptions=(AUDIT,)),
            ),
        ),
    ),
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Worksite]:
    """Two brokers, and subscriptions `audit` that nobody uses, which the policy lets be deleted."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = quick_policy(**ASKED)
        yield site


def deletion(topic: str = TOPIC, subscription: str = "audit", step_id: str = "b1.s01", **fields: Any) -> Step:
    """The step that deletes a subscription, of which the plan permits a quarter more to be lost."""
    change = a_deletion(topic, subscription)
    of_topic = TopicLoss(topic=topic, messages=HELD, bytes=HELD * 100)
    loss = Loss(topics=(of_topic,), messages=MOST, bytes=MOST * 100)
    return a_step(change, step_id=step_id, loss=loss, **fields)


def subscriptions(site: Worksite, topic: str = TOPIC) -> set[str]:
    """The subscriptions that a topic has, asked behind the API's back."""
    index = site.simulator._state.topics[NAMESPACE].by_name
    return {each.name for each in site.simulator._loop.call(lambda: index[topic].spec.subscriptions)}


def changed(site: Worksite, topic: str = TOPIC, **figures: Any) -> None:
    """Gives the subscription other figures, as its clients would."""
    site.simulator.change_subscription(topic, "audit", **figures)


def test_what_was_approved_is_deleted_and_proved(site: Worksite) -> None:
    plan = site.approved(deletion())
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, outcome.reason) == ("done", f"there is no subscription audit of {TOPIC}")
    assert subscriptions(site) == {"billing"}
    (write,) = site.simulator.requests.writes()
    assert (f"{write.method} {write.path}", "force" in write.query) == (CALL, False)
    (intent,) = site.ledger.intents(plan.plan_id, "b1")
    assert intent.before == {"entries": HELD, "consumers": 0, "cursor": msgspec.to_builtins(CURSOR)}
    site.proved(plan)


def test_one_that_comes_back_later_is_no_proof(site: Worksite) -> None:
    plan = site.approved(deletion())
    site.carry_out(plan)
    with site.context() as context:
        context.writer._transport.send("PUT", CALL.partition(" ")[2], None, None, lambda: None)
        proof = verify(context, plan.plan_id, "b1")
    assert not proof.proved
    assert f"b1.s01 was done, but now: there is a subscription audit of {TOPIC}, with 0 entries" in proof.reason


@pytest.mark.parametrize(
    ("figures", "outcome", "words"),
    [
        ({"consumers": 1}, "drifted", "subscription_unused: 1 consumer is connected to subscription audit"),
        ({"consumed_ms": int(time.time() * 1000)}, "drifted", "was consumed, skipped or expired at"),
        ({"backlog": HELD - 1}, "drifted", "holds 1,999 entries, fewer than the 2,000 of the snapshot"),
        ({"backlog": MOST + 1}, "refused", "loss_as_approved: 2,501 entries"),
        ({"replicated": True}, "refused", "subscription_expendable: the position of subscription audit"),
    ],
    ids=["a consumer", "consumed", "fewer entries", "too many entries", "replicated"],
)
def test_one_that_is_no_longer_as_it_was_approved_is_left_alone(
    site: Worksite, figures: dict[str, Any], outcome: str, words: str
) -> None:
    changed(site, **figures)
    (row,) = site.carry_out(site.approved(deletion()))
    assert (row.outcome, site.untouched(), subscriptions(site)) == (outcome, True, {"audit", "billing"})
    assert words in row.reason


def test_a_backlog_that_grew_as_foreseen_is_deleted(site: Worksite) -> None:
    changed(site, backlog=MOST)
    assert said(site.carry_out(site.approved(deletion()))) == ["done"]


def test_a_consumer_of_another_partition_keeps_all_of_them(site: Worksite) -> None:
    changed(site, "persistent://shop/events/wide-partition-2", consumers=1)
    assert_stopped(
        site, site.approved(deletion(PART)), "drifted", "1 consumer of this name is connected to other partitions"
    )
    changed(site, "persistent://shop/events/wide-partition-2", consumers=0)
    site.clock.advance(minutes=2)
    assert said(site.carry_out(site.approved(deletion(PART)))) == ["done"]
    assert subscriptions(site, "persistent://shop/events/wide-partition-1") == {"audit"}


def test_a_consumer_that_is_quicker_than_the_call_keeps_it(site: Worksite) -> None:
    plan = site.approved(deletion())

    def comes(_: Call) -> None:
        changed(site, consumers=1)

    (row,) = site.carry_out(plan, before=comes)
    assert (row.outcome, subscriptions(site)) == ("drifted", {"audit", "billing"})
    assert "Subscription has active connected consumers" in row.reason


def test_one_that_somebody_deleted_meanwhile_is_noted(site: Worksite) -> None:
    gone = deletion(subscription="gone")
    assert_stopped(
        site, site.approved(gone), "drifted", f"there is no subscription gone of {TOPIC} any more: somebody deleted it"
    )

    def deletes_it(_: Call) -> None:
        with site.context() as context:
            context.writer._transport.send("DELETE", CALL.partition(" ")[2], None, None, lambda: None)

    (row,) = site.carry_out(site.approved(msgspec.structs.replace(deletion(), why="again")), before=deletes_it)
    assert (row.outcome, subscriptions(site)) == ("drifted", {"billing"})
    assert f"Subscription audit not found for topic {TOPIC}" in row.reason


def test_a_crash_between_the_call_and_its_proof_is_found_done(site: Worksite) -> None:
    plan = site.approved(deletion())
    crash(site, plan, after="DELETE")
    (row,) = site.carry_out(plan)
    assert (row.outcome, row.reason) == ("done", f"interrupted; there is no subscription audit of {TOPIC}")
    assert len(site.simulator.requests.writes()) == 1


@pytest.mark.parametrize("consumers", [0, 1])
def test_a_crash_before_the_call_leaves_it_there(site: Worksite, consumers: int) -> None:
    plan = site.approved(deletion())
    crash(site, plan, before="DELETE")
    changed(site, consumers=consumers)
    (row,) = site.carry_out(plan)
    assert row.outcome == "unknown"
    held = f"there is a subscription audit of {TOPIC}, with 2,000 entries and {consumers} consumer"
    assert row.reason.startswith(f"interrupted; {held}")
    assert "no further call" in row.reason
    assert site.untouched()


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Drop(work_done=True), "done"),
        (Drop(work_done=False), "unknown"),
        (Answer(500), "unknown"),
        (Answer(403), "failed"),
    ],
    ids=["done without an answer", "not done without an answer", "failed", "not allowed"],
)
def test_what_is_not_answered_is_looked_at(site: Worksite, fault: Drop | Answer, outcome: str) -> None:
    site.simulator.faults.add(Fault(fault, path="/subscription/", method="DELETE", times=None))
    (row,) = site.carry_out(site.approved(deletion()))
    assert row.outcome == outcome, row.reason
    assert ("audit" in subscriptions(site)) == (outcome != "done")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"delete_abandoned": False}, "the policy lets none be deleted (policy key subscriptions.delete_abandoned)"),
        ({"protected_topics": [TOPIC]}, "its topic is protected"),
    ],
    ids=["turned off", "topic"],
)
def test_what_the_policy_keeps_by_now_stays(site: Worksite, limits: dict[str, Any], words: str) -> None:
    plan = site.approved(deletion())
    site.policy = quick_policy(subscriptions={**ASKED["subscriptions"], **limits})
    assert_stopped(site, plan, "refused", words)


def test_a_policy_that_lets_delete_only_now_permits_nothing(site: Worksite) -> None:
    site.policy = quick_policy()
    plan = site.approved(deletion())
    site.policy = quick_policy(**ASKED)
    assert_refused(site, plan, r"subscriptions\.delete_abandoned")


def test_a_bundle_that_nobody_owns_is_not_loaded_to_look(site: Worksite) -> None:
    bundle = site.simulator._state.bundle_of(TOPIC)
    site.simulator._loop.call(site.simulator._state.unload, bundle)
    assert_stopped(
        site, site.approved(deletion()), "refused", "nobody owns the topic's bundle, and asking would load it"
    )
    assert site.simulator._loop.call(site.simulator._state.owner, bundle) is None


def test_a_dry_run_prints_what_is_called(site: Worksite) -> None:
    plan = site.plan(deletion(undo_note="It cannot be undone."))
    with site.context() as context:
        lines = [line.strip() for line in rehearse(context, plan, plan.batch("b1")).splitlines()]
    before = f"before: entries=2000, consumers=0, cursor={msgspec.to_builtins(CURSOR)}"
    assert lines[2:] == [before, CALL, "undo: It cannot be undone."]
    assert site.untouched()


def test_there_is_no_way_back_and_that_is_said(site: Worksite) -> None:
    plan = site.approved(deletion())
    site.carry_out(plan)
    with LiveReader(site.settings) as reader:
        applied = what_was_done(site.ledger, plan.plan_id, "b1")
        with pytest.raises(Refused, match="cannot be undone: a new one of this name would not get the 2,000 entries"):
            rollback_plan(site.ledger, reader, site.policy, applied, site.clock())
    (listed,) = applied_batches(site.ledger, CLUSTER)
    assert not listed.can_be_rolled_back
    assert "1 cannot be undone, nothing left to take back" in listed.words
