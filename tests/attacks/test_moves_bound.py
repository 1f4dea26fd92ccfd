"""A move says at most how much it delivers again, loses or shuts out, and is made for no more; so is a way back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import NamespaceSpec, SubscriptionSpec, TopicSpec
from lab.simulator.spec import ReplicatorSpec
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.plan import Placement
from pulsar_steward.model.step import Touched
from tests.apply.refusals import outcome_on
from tests.apply.worksite import SKEWED, Worksite, quick_policy, said
from tests.builders import a_batch, a_move, a_plan, a_step
from tests.questions import question

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.policy.schema import Policy

NAMESPACE, WHOLE = "shop/orders", "0x00000000_0xffffffff"
STRICT = quick_policy(guards={"most_redelivered_messages": 0})
LENIENT = quick_policy(guards={"most_redelivered_messages": 10**12})
BY_BATCH = {"acknowledgmentAtBatchIndexLevelEnabled": "true"}
AS_ARRAY = {"managedLedgerPersistIndividualAckAsLongArray": "true"}


def moved(
    folder: Path,
    spec: TopicSpec,
    policy: Policy,
    configuration: dict[str, str] | None = None,
    policies: dict[str, object] | None = None,
    approved: InFlight | None = None,
) -> StepOutcome:
    """Outcome of an approved move of a bundle with one topic."""
    namespace = NamespaceSpec(NAMESPACE, bundles=1, owner=0, topics=(spec,), policies=policies or {})
    cluster = replace(SKEWED, namespaces=(namespace,), configuration=configuration or {})
    in_flight = approved or msgspec.UNSET
    return outcome_on(
        folder,
        cluster,
        lambda site: a_step(site.move(WHOLE, namespace=NAMESPACE), step_id="b1.s01", in_flight=in_flight),
        policy=policy,
    )


def read_by(kind: Any = "Shared", **figures: Any) -> TopicSpec:
    """A topic with a subscription that one consumer reads in batches of 100; figures are as real brokers told them."""
    usual = {"backlog": 50, "spans": 51, "unacked": 5_000, "consumers": 1, "messages_per_entry": 100}
    return TopicSpec("t", producers=1, subscriptions=(SubscriptionSpec("s", kind, **{**usual, **figures}),))


PARTLY: dict[str, tuple[TopicSpec, dict[str, str]]] = {
    "acknowledged in part": (read_by(), {}),
    "by an exclusive consumer": (read_by("Exclusive"), {}),
    "by a failover consumer": (read_by("Failover"), {}),
    "by index, counted below 0": (read_by(unacked=-470_346), BY_BATCH),
    "by index, the consumer gone": (read_by(unacked=0, consumers=0, spans=1), BY_BATCH),
    "by index, all but one of each": (read_by("Key_Shared", unacked=50), BY_BATCH),
}


@pytest.mark.parametrize(("spec", "configuration"), PARTLY.values(), ids=PARTLY)
def test_no_acknowledged_message_of_a_batch_comes_again_where_none_may(
    tmp_path: Path, spec: TopicSpec, configuration: dict[str, str]
) -> None:
    """A move is refused where batches may be acknowledged in part: 4,950 of 4,950 messages came again so."""
    outcome = moved(tmp_path, spec, STRICT, configuration, approved=InFlight(again=10**9))
    assert outcome.outcome == "refused"
    assert outcome.reason.startswith("ack_holes: up to ")


def test_no_more_comes_again_than_somebody_agreed_to(tmp_path: Path) -> None:
    """A move is refused once more may be delivered again than its approval said, whatever the policy lets pass."""
    outcome = moved(tmp_path, read_by(), LENIENT, approved=InFlight(again=4_999))
    assert outcome.reason.startswith("ack_holes: up to 5,000 acknowledged messages")
    assert outcome.reason.endswith("more than the 4,999 that were approved")


def test_as_much_as_was_agreed_to_is_moved(tmp_path: Path) -> None:
    """A move is made where no more may come again than its approval said."""
    assert moved(tmp_path, read_by(), LENIENT, approved=InFlight(again=5_000)).outcome == "done"


FORGOTTEN: dict[str, tuple[TopicSpec, dict[str, str]]] = {
    "with much unread behind them": (read_by(backlog=1_000_000, ack_holes=12_000, spans=40_000), {}),
    "after the consumer left": (read_by(backlog=10, ack_holes=12_000, spans=1, consumers=0), {}),
    "written as arrays, and fewer than the limit": (read_by(backlog=16, ack_holes=1_500, spans=80_000), AS_ARRAY),
}


@pytest.mark.parametrize(("spec", "configuration"), FORGOTTEN.values(), ids=FORGOTTEN)
def test_acknowledgements_that_are_forgotten_are_never_counted_as_none(
    tmp_path: Path, spec: TopicSpec, configuration: dict[str, str]
) -> None:
    """A move is refused where a broker may forget acknowledgements of which nobody can tell how many they are."""
    outcome = moved(tmp_path, spec, LENIENT, configuration, approved=InFlight(again=10**12))
    assert outcome.outcome == "refused"
    assert outcome.reason.startswith("ack_holes: how many acknowledged messages would be delivered again is not known")


def test_a_batch_that_is_larger_than_said_is_no_bound(tmp_path: Path) -> None:
    """A move is refused where consumers got larger batches than the policy says that there are."""
    outcome = moved(tmp_path, read_by("Exclusive", messages_per_entry=2_000), LENIENT, approved=InFlight(again=10**12))
    assert "2,000 messages a batch, more than 1,000 (policy key guards.largest_batch_messages)" in outcome.reason


def over(percent: int, **spec: Any) -> TopicSpec:
    """A topic without a subscription that is over a quota of 100,000 bytes by so much."""
    return TopicSpec("t", producers=1, backlog_bytes=percent * 1_000, **spec)


SHUT_OUT = {
    "a replicator": over(221, replicators=(ReplicatorSpec("away", backlog=221, connected=False),)),
    "compaction or deduplication": over(221),
    "a replicator beside a subscription that has read all": over(
        221,
        replicators=(ReplicatorSpec("away", backlog=221, connected=False),),
        subscriptions=(SubscriptionSpec("s", consumers=1),),
    ),
}


@pytest.mark.parametrize("told", [True, False], ids=["told in metrics", "asked by topic"])
@pytest.mark.parametrize("spec", SHUT_OUT.values(), ids=SHUT_OUT)
def test_producers_come_back_whoever_holds_the_backlog(tmp_path: Path, spec: TopicSpec, *, told: bool) -> None:
    """A topic that is over its quota for any durable cursor is not moved: its broker takes no producer."""
    quota = {"limitSize": 100_000, "limitTime": -1, "policy": "producer_request_hold"}
    outcome = moved(
        tmp_path,
        spec,
        LENIENT,
        {"exposeTopicLevelMetricsInPrometheus": str(told).lower()},
        {"backlog_quota_map": {"destination_storage": quota}},
    )
    assert outcome.reason.startswith("producers_return: PRODUCERS COULD NOT COME BACK to 1 of its topics")
    assert "uses 221 % of its quota" in outcome.reason


TICKS = TopicSpec("ticks", producers=2, rate_in=100.0, persistent=False, subscriptions=(SubscriptionSpec("s"),))


@pytest.mark.parametrize(
    ("approved", "outcome"),
    [
        (None, "refused"),
        (InFlight(volatile_topics=1, lost=2_999), "refused"),
        (InFlight(volatile_topics=1, lost=3_000), "done"),
    ],
    ids=["nothing was said", "less was said", "as much was said"],
)
def test_what_nothing_stores_is_lost_only_as_far_as_it_was_said(
    tmp_path: Path, approved: InFlight | None, outcome: str
) -> None:
    """A topic that is not persistent is moved only where its approval said how many messages that may cost."""
    found = moved(tmp_path, TICKS, quick_policy(health={"return_seconds": 30}), approved=approved)
    assert found.outcome == outcome
    assert outcome == "done" or found.reason.startswith("volatile_topics: 1 topic that is not persistent loses up to")


def test_a_question_says_what_is_in_flight() -> None:
    """The question of a move says at most how much comes again and is lost, and its risk is of the same figures."""
    step = a_step(
        a_move(namespace=NAMESPACE), step_id="b1.s01", in_flight=InFlight(again=120_000, volatile_topics=2, lost=13_000)
    )
    plan = a_plan(a_batch(step))
    words = question(plan, plan.batches[0], quick_policy())
    assert "At most 120,000 acknowledged messages are delivered again" in words
    assert "2 topics that are not persistent lose what is published until clients are back" in words
    reasons = {(reason.level, reason.words) for reason in risk_of(plan, plan.batches[0]).reasons}
    assert ("medium", "up to about 13,000 messages of 2 topics that are not persistent may be lost") in reasons
    assert any(level == "medium" and said.startswith("up to 120,000 acknowledged") for level, said in reasons)


def test_a_way_back_is_as_dangerous_as_the_way_there(site: Worksite) -> None:
    """A rollback of moves has at least their risk, and says which findings come back and what rests afterwards."""
    bundles = site.tc_bundles
    touched = Touched(producers=0, consumers=0, topics=0, coordinators=4)
    steps = tuple(
        a_step(site.move(number), step_id=f"b1.s{number + 1:02}", touched=touched) for number in range(len(bundles))
    )
    skew = Finding(
        check_id="tc-skew", severity=Severity.CRITICAL, subject="local", evidence="16 of 16", snapshots_in_a_row=2
    )
    first, second, third = site.brokers
    planned = site.proposed(*steps)
    batch = msgspec.structs.replace(
        planned.batches[0],
        findings=(skew,),
        before=(Placement(first, 16), Placement(second, 0), Placement(third, 0)),
        after=(Placement(first, 0), Placement(second, 16), Placement(third, 0)),
    )
    there = site.approve(site.record(msgspec.structs.replace(planned, batches=(batch,))))
    assert set(said(site.carry_out(there))) == {"done"}
    with LiveReader(site.settings) as look:
        back = rollback_plan(
            site.ledger, look, site.policy, what_was_done(site.ledger, there.plan_id, "b1"), site.clock()
        )

    (way_back,) = back.batches
    assert risk_of(back, way_back).level.rank >= risk_of(there, batch).level.rank
    assert (way_back.before, way_back.after) == (batch.after, batch.before)
    words = question(back, way_back, site.policy)
    assert "1 critical finding comes back: tc-skew" in words
    assert f"nothing is moved or split in {TC_NAMESPACE} for 12 h (policy key guards.circle_minutes)" in words
