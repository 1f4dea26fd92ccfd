"""An abandoned subscription on real brokers: found, asked about, deleted and proved; and kept where anybody came back.

Days pass by the times that snapshots say they were taken at; brokers, clients and calls are real.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from benchmarks.observing import observe
from lab.faults.clients.publishing import publish
from lab.faults.real.operator import operator_of
from lab.waiting import wait_until
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.model.plan import SUBSCRIPTION_DELETION
from pulsar_steward.orchestration.question_form import LOSS
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy
from tests.live.healing import Healer, found
from tests.live.plots import plot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.snapshots.read import Snapshot
    from tests.live.care import Care

pytestmark = [
    pytest.mark.live,
    pytest.mark.extended("tests/apply/test_subscriptions.py", "tests/unit/planners/test_subscriptions.py"),
]

CHECK = "subscription-abandoned"
POLICY: dict[str, Any] = {
    "subscriptions": {"delete_abandoned": True, "minimum_days": 1},
    "subscription_abandoned": {"warning_hours": 24, "minimum_entries": 10},
}
HOURS_AGO = (50, 25)
"""Of the observations before that of now; a day of absence is proved where they are no further apart than 26 hours."""
EACH_TIME = 50
CONNECTED_WITHIN_S = 20.0
ASKED_WITHIN_S = 240.0


@contextmanager
def left_alone(lab: Lab, name: str, *topics: str) -> Iterator[Ground]:
    """A namespace with topics of which nobody reads the subscription `audit`, though `billing` is read."""
    with plot(lab, name, 4) as here:
        for topic in map(here.topic, topics):
            here.subscription(topic, "audit")
            here.shared(topic, "billing")
        yield here


def more_comes(here: Ground, *topics: str) -> None:
    """Publishes to topics, until the statistics of which snapshots are made show it."""
    for topic in map(here.topic, topics):
        least = EACH_TIME + held_by_audit(operator_of(here.lab).statistics(topic))
        producer = here.producer(topic, batched=False)
        publish(producer, EACH_TIME)
        producer.close()
        here.until(topic, partial(holds, least=least), "the backlog is shown")


def held_by_audit(shown: dict[str, Any]) -> int:
    """Entries of the subscription `audit` of a topic."""
    return int(shown["subscriptions"]["audit"]["msgBacklog"])


def holds(shown: dict[str, Any], *, least: int) -> bool:
    return held_by_audit(shown) >= least


def days_pass(here: Ground, healer: Healer, *topics: str) -> Snapshot:
    """The last of three observations, between which the backlogs grew."""
    for hours in HOURS_AGO:
        more_comes(here, *topics)
        observed(here.lab, healer.home / "snapshots", healer.cluster, hours)
    more_comes(here, *topics)
    return healer.observe()


def observed(lab: Lab, out: Path, cluster: str, hours_ago: int) -> Snapshot:
    """An observation that counts as one of so many hours ago."""
    taken_at = datetime.now(UTC) - timedelta(hours=hours_ago)
    uri = observe(lab, a_policy(**POLICY), cluster=cluster, out=out, taken_at=taken_at, checks=[CHECK])
    return open_snapshot(uri)


def subscriptions(here: Ground, topic: str) -> set[str]:
    return set(operator_of(here.lab).statistics(here.topic(topic))["subscriptions"])


def abandoned(here: Ground, topic: str) -> tuple[str, str]:
    """The trouble with a topic's subscription."""
    return CHECK, f"{here.topic(topic)} subscription audit"


def planned(healer: Healer, snapshot: Snapshot) -> Plan:
    """The plan, whose only batch deletes."""
    plan = healer.plan(snapshot)
    assert [batch.kind for batch in plan.batches] == [SUBSCRIPTION_DELETION], plan.notes
    return plan


def test_an_abandoned_subscription_is_deleted_and_that_is_all(lab: Lab, tmp_path: Path) -> None:
    with (
        left_alone(lab, "abandoned", "events", "carts") as here,
        Healer.on(lab, tmp_path, POLICY, checks=(CHECK,)) as healer,
    ):
        snapshot = days_pass(here, healer, "events", "carts")
        troubles = {abandoned(here, "events"), abandoned(here, "carts")}
        assert troubles <= found(snapshot)
        plan = planned(healer, snapshot)
        (batch,) = plan.batches
        plain = healer.approval_text(plan, batch).replace("\\", "")
        for topic in ("events", "carts"):
            assert f"{here.topic(topic)}: delete subscription “audit”" in plain
            assert f"{here.topic(topic)}: {len(HOURS_AGO) * EACH_TIME + EACH_TIME} entries" in plain
        assert "cannot be undone" in plain

        healer.heal(plan)
        assert [subscriptions(here, topic) for topic in ("events", "carts")] == [{"billing"}] * 2
        intents = healer.ledger.intents(plan.plan_id, batch.batch_id)
        assert [(each.before["entries"], each.before["consumers"]) for each in intents] == [(150, 0)] * 2
        planned_cursors = [msgspec.to_builtins(step.change)["cursor"] for step in batch.steps]
        assert [each.before["cursor"] for each in intents] == planned_cursors
        healer.until_gone(*troubles)
        with pytest.raises(Refused, match="would not get the 150 entries"):
            healer.rollback_plan(plan, batch)


def test_whoever_comes_back_keeps_the_subscription(lab: Lab, tmp_path: Path) -> None:
    topics = ("connected", "consumed", "deleted", "anew", "reset")
    with ExitStack() as open_now:
        here = open_now.enter_context(left_alone(lab, "came-back", *topics))
        healer = open_now.enter_context(Healer.on(lab, tmp_path, POLICY, checks=(CHECK,)))
        snapshot = days_pass(here, healer, *topics)
        plan = planned(healer, snapshot)
        by_topic = {step.change.topic: step for batch in plan.batches for step in batch.steps}  # type: ignore[union-attr]  # all of them delete
        assert set(by_topic) == set(map(here.topic, topics))

        here.shared(here.topic("connected"), "audit", receiver_queue_size=1)
        consumer = here.shared(here.topic("consumed"), "audit")
        for _ in range(5):
            consumer.acknowledge(consumer.receive(timeout_millis=20_000))
        consumer.close()
        more_comes(here, "consumed")  # so that its backlog is no smaller
        for topic in ("deleted", "anew"):
            operator_of(lab).delete_subscription(here.topic(topic), "audit")
        # From the beginning, with the same backlog and position as before; a reset leaves these as well.
        operator_of(lab).create_subscription(here.topic("anew"), "audit", from_first=True)
        operator_of(lab).reset_subscription(here.topic("reset"), "audit")

        def settled() -> bool:
            statistics = operator_of(lab).statistics(here.topic("consumed"))["subscriptions"]["audit"]
            return not statistics["consumers"]

        wait_until(settled, "the consumer is gone", CONNECTED_WITHIN_S)
        (batch,) = plan.batches
        healer.approve(plan, batch)
        outcomes = {row.step_id: row for row in healer.apply(plan, batch)}
        said = {topic: outcomes[by_topic[here.topic(topic)].step_id] for topic in topics}
        assert {row.outcome for row in said.values()} == {Outcome.DRIFTED}
        assert "is connected to subscription audit" in said["connected"].reason
        assert "was consumed, skipped or expired at" in said["consumed"].reason
        assert "somebody deleted it, or its topic" in said["deleted"].reason
        assert "was made anew at" in said["anew"].reason
        assert "was written since, without another position" in said["reset"].reason
        stay = {topic for topic in topics if "audit" in subscriptions(here, topic)}
        assert stay == {*topics} - {"deleted"}


@pytest.mark.airflow
@pytest.mark.spark
def test_a_person_approves_it_in_airflow(care: Care) -> None:
    with left_alone(care.lab, "abandoned-in-airflow", "events") as here:
        care.write_policy(POLICY)
        for hours in HOURS_AGO:
            more_comes(here, "events")
            observed(care.lab, care.airflow.spec.steward_home / "snapshots", care.cluster, hours)
        more_comes(here, "events")
        care.observe()
        wait_until(lambda: bool(asked(care)), "a deletion waits for an answer", ASKED_WITHIN_S)
        (detail,) = asked(care)
        assert "critical risk" in detail["subject"]
        assert "It cannot be undone" in detail["body"]
        form: dict[str, Any] = {LOSS: True}
        care.approve(detail, **form)
        assert care.ended(detail) == "success"
        assert subscriptions(here, "events") == {"billing"}
        plan = care.ledger.plan(care.ledger.plans(care.cluster)[0].plan_id)
        (batch,) = (each for each in plan.batches if each.kind == SUBSCRIPTION_DELETION)
        (outcome,) = care.ledger.outcomes(plan.plan_id, batch.batch_id)
        assert outcome.outcome is Outcome.DONE
        assert [each.proved for each in care.ledger.proofs(plan.plan_id) if each.batch_id == batch.batch_id] == [True]


def asked(care: Care) -> list[dict[str, Any]]:
    """The questions about deletions that wait; others may wait beside them."""
    return [each for each in care.waiting() if "Deletes 1 subscription" in each["subject"]]
