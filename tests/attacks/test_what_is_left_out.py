"""What a broker leaves out of its answer, or counts below 0, is not known: it is never 0, and nothing is called."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import ClusterSpec, Fault, NamespaceSpec, SubscriptionSpec, TopicSpec, Without
from lab.simulator.spec import ReplicatorSpec
from pulsar_steward.apply import rollback
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.errors import Refused
from pulsar_steward.model.loss import NOTHING_LOST, InFlight, Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.refusals import assert_stopped
from tests.apply.worksite import a_worksite, quick_policy
from tests.builders import PULSAR, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.step import Step

NAMESPACE, WHOLE, HOUR, MIB = "shop/orders", "0x00000000_0xffffffff", 3600, 1 << 20
SETTINGS = {
    "retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
    "message_ttl_in_seconds": 24 * HOUR,
}
FOR_EVER, FOR_AN_HOUR = Retention(minutes=-1, megabytes=-1), Retention(minutes=60, megabytes=-1)
A_DAY, AN_HOUR = TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=HOUR)
EVICT = BacklogQuota(limit_bytes=100_000, policy=QuotaPolicy.EVICT)
HOLD = BacklogQuota(limit_bytes=100_000, policy=QuotaPolicy.HOLD)

ARCHIVE = TopicSpec("t", storage_bytes=286 * MIB, message_bytes=1000, stored_ago_s=240 * HOUR)
UNREAD = TopicSpec(
    "t", message_bytes=1000, backlog_age_s=100 * HOUR, subscriptions=(SubscriptionSpec("app", backlog=300_000),)
)
BEHIND = TopicSpec("t", message_bytes=1000, replicators=(ReplicatorSpec("away", backlog=9_000, connected=False),))


def lowered(name: SettingName, before: Any, after: Any) -> Step:
    """A step for which it is approved that nothing is lost."""
    change = ChangeSetting(namespace=NAMESPACE, name=name, before=before, after=after, inherited=None)
    return a_step(change, loss=Loss(messages=0, bytes=0) if name is SettingName.RETENTION else NOTHING_LOST)


RETENTION = lowered(SettingName.RETENTION, FOR_EVER, FOR_AN_HOUR)
TTL = lowered(SettingName.TTL, A_DAY, AN_HOUR)
EVICTING = lowered(SettingName.SIZE_QUOTA, None, EVICT)
HOLDING = lowered(SettingName.SIZE_QUOTA, None, HOLD)

OF_SETTINGS = [
    (ARCHIVE, RETENTION, "storageSize"),
    (ARCHIVE, RETENTION, "backlogSize"),
    (ARCHIVE, RETENTION, "ledgers"),
    (ARCHIVE, RETENTION, "size"),
    (UNREAD, TTL, "msgBacklog"),
    (UNREAD, TTL, "subscriptions"),
    (UNREAD, EVICTING, "backlogSize"),
    (UNREAD, HOLDING, "backlogSize"),
    (BEHIND, HOLDING, "backlogSize"),
    (BEHIND, HOLDING, "replicationBacklog"),
]
COUNTED = {"storageSize", "backlogSize", "size", "msgBacklog", "replicationBacklog"}


def left_out(rows: list[tuple[Any, ...]]) -> list[Any]:
    """Cases of these rows, whose last item is a member: without it, and with it below 0 if it is a figure."""
    return [
        pytest.param(*row[:-1], Without(row[-1], instead), id=f"{row[-1]}{'' if instead is None else ' below 0'}")
        for row in rows
        for instead in (None, -5)
        if instead is None or row[-1] in COUNTED
    ]


@pytest.mark.parametrize("budget", [1, 1_000], ids=["by statistics of all", "asked one by one"])
@pytest.mark.parametrize(("topic", "step", "effect"), left_out(OF_SETTINGS))
def test_a_setting_is_left_where_a_broker_does_not_tell_what_it_would_delete_or_stop(
    tmp_path: Path, topic: TopicSpec, step: Step, effect: Without, budget: int
) -> None:
    """A setting is not changed where a figure is left out by which it was harmless, or is below 0."""
    topics = (topic, replace(topic, name="u"))
    namespace = NamespaceSpec(NAMESPACE, bundles=1, topics=topics, policies=SETTINGS)
    with a_worksite(tmp_path, ClusterSpec(brokers=1, namespaces=(namespace,))) as site:
        site.policy = quick_policy(backlog_quota_remedy={"most_topics_asked": budget})
        plan = site.approved(step)
        site.simulator.faults.add(Fault(effect, "stats|/internal-info", times=None))
        assert_stopped(site, plan, "refused")


def moved(
    folder: Path, topic: TopicSpec, effect: Without | None = None, told: str = "true", **policies: Any
) -> StepOutcome:
    """Outcome of a move of a bundle with one topic, approved for nothing in flight; metrics may tell of topics."""
    scalable = (f"topic://{NAMESPACE}/one",) if topic.segment else ()
    topics = (topic, TopicSpec("t")) if scalable else (topic,)  # a lookup loads no segment
    namespace = NamespaceSpec(NAMESPACE, bundles=1, owner=0, topics=topics, policies=policies, scalable=scalable)
    configuration = {"exposeTopicLevelMetricsInPrometheus": told, "statsUpdateFrequencyInSecs": "0"}
    with a_worksite(
        folder,
        ClusterSpec(namespaces=(namespace,), configuration=configuration, version="5.0.1" if scalable else PULSAR),
        policy=quick_policy(guards={"most_redelivered_messages": 0}),
    ) as site:
        plan = site.approved(a_step(site.move(WHOLE, namespace=NAMESPACE), step_id="b1.s01", in_flight=InFlight()))
        if effect is not None:
            site.simulator.faults.add(Fault(effect, "broker-stats/topics", times=None))
        (outcome,) = site.carry_out(plan)
        assert site.untouched() is (outcome.outcome == "refused")
    return outcome


READING = SubscriptionSpec("s", "Shared", backlog=50, spans=51, unacked=5_000, consumers=1, messages_per_entry=100)
BY_BATCHES = TopicSpec("t", producers=1, subscriptions=(READING,))
HOLES = TopicSpec("t", subscriptions=(SubscriptionSpec("s", backlog=50, ack_holes=20_000),))
OVER = TopicSpec("t", producers=1, backlog_bytes=221_000)
QUOTA = {"destination_storage": {"limitSize": 100_000, "limitTime": -1, "policy": "producer_request_hold"}}
OF_MOVES = [
    (BY_BATCHES, "consumers"),
    (BY_BATCHES, "subscriptions"),
    (BY_BATCHES, "msgBacklog"),
    (BY_BATCHES, "numberOfEntriesSinceFirstNotAckedMessage"),
    (BY_BATCHES, "unackedMessages"),
    (HOLES, "totalNonContiguousDeletedMessagesRange"),
    (OVER, "backlogSize"),
    (OVER, "persistent"),
    (OVER, NAMESPACE),
]
COUNTED |= {"numberOfEntriesSinceFirstNotAckedMessage", "totalNonContiguousDeletedMessagesRange", "unackedMessages"}


@pytest.mark.parametrize(("topic", "effect"), left_out(OF_MOVES))
def test_a_bundle_stays_where_its_owner_does_not_tell_what_is_in_flight(
    tmp_path: Path, topic: TopicSpec, effect: Without
) -> None:
    """A bundle is not moved where a figure is left out by which the move was harmless, or is below 0."""
    outcome = moved(tmp_path, topic, effect, backlog_quota_map=QUOTA)
    assert outcome.outcome == "refused", outcome.reason


NEW = {
    "with batches": TopicSpec("t", producers=1, subscriptions=(READING,), just_made=True),
    "not persistent": TopicSpec("t", producers=2, rate_in=100.0, persistent=False, just_made=True),
    "over its quota": TopicSpec("t", producers=1, backlog_bytes=221_000, just_made=True),
    "with many clients": TopicSpec("t", producers=50_000, just_made=True),
    "a segment": TopicSpec("one/0000-ffff-0", producers=1, subscriptions=(READING,), segment=True, just_made=True),
}


@pytest.mark.parametrize("told", ["true", "false"], ids=["named in metrics", "counted in metrics"])
@pytest.mark.parametrize("topic", NEW.values(), ids=NEW)
def test_a_topic_that_statistics_do_not_show_yet_is_no_empty_bundle(
    tmp_path: Path, topic: TopicSpec, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle is not moved while a topic of it is too new for its owner's statistics; those are waited for first."""
    monkeypatch.setattr("pulsar_steward.apply.live_cluster.SPARE_SECONDS", 0.1)
    outcome = moved(tmp_path, topic, told=told, backlog_quota_map=QUOTA)
    assert outcome.outcome == "refused"
    assert "in its statistics yet" in outcome.reason
    assert "try again in a minute" in outcome.reason


def test_a_count_of_topics_of_several_bundles_is_not_said_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without names in metrics, a segment may be in any of its broker's bundles: no wait would show it in this one."""
    monkeypatch.setattr("pulsar_steward.apply.live_cluster.SPARE_SECONDS", 0.1)
    told = {"exposeTopicLevelMetricsInPrometheus": "false", "statsUpdateFrequencyInSecs": "0"}
    topics = (NEW["a segment"], *(TopicSpec(f"t{number}") for number in range(8)))
    namespace = NamespaceSpec(NAMESPACE, bundles=2, owner=0, topics=topics, scalable=(f"topic://{NAMESPACE}/one",))
    spec = ClusterSpec(namespaces=(namespace,), configuration=told, version="5.0.1")
    with a_worksite(tmp_path, spec) as site:
        change = site.move("0x00000000_0x80000000", namespace=NAMESPACE)
        plan = site.approved(a_step(change, step_id="b1.s01", in_flight=InFlight()))
        assert_stopped(site, plan, "refused", "cannot be told, as its metrics name no topics")


@pytest.mark.parametrize("late", [1, 2], ids=["in time", "a time late"])
def test_a_move_waits_until_the_owner_tells_of_a_new_topic(
    tmp_path: Path, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle with a topic that was made a moment ago is moved once its owner's statistics show the topic."""
    namespace = NamespaceSpec(NAMESPACE, bundles=1, owner=0, topics=(TopicSpec("t", producers=1),))
    with a_worksite(tmp_path, ClusterSpec(namespaces=(namespace,))) as site:
        plan = site.approved(a_step(site.move(WHOLE, namespace=NAMESPACE), step_id="b1.s01", in_flight=InFlight()))
        hidden = site.simulator.faults.add(Fault(Without(NAMESPACE), "broker-stats/topics", times=None))
        waited: list[float] = []

        def rest(_: StopSwitch, seconds: float) -> None:
            waited.append(seconds)
            if waited.count(61) == late:
                site.simulator.faults.remove(hidden)

        monkeypatch.setattr(StopSwitch, "rest", rest)
        (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, waited.count(61)) == ("done", late), outcome.reason


def test_a_way_back_waits_until_the_new_owner_tells_what_it_disturbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after a move the new owner's statistics have none of its topics: a rollback waits for them."""
    namespace = NamespaceSpec(NAMESPACE, bundles=1, owner=0, topics=(BY_BATCHES,))
    with a_worksite(tmp_path, ClusterSpec(namespaces=(namespace,)), policy=quick_policy()) as site:
        plan = site.approved(
            a_step(site.move(WHOLE, namespace=NAMESPACE), step_id="b1.s01", in_flight=InFlight(again=10**6))
        )
        assert site.carry_out(plan)[0].outcome == "done"
        hidden = site.simulator.faults.add(Fault(Without(NAMESPACE), "broker-stats/topics", times=None))
        done = what_was_done(site.ledger, plan.plan_id, "b1")
        waited: list[float] = []

        def planned() -> Any:
            with LiveReader(site.settings) as look:
                return rollback.rollback_plan(site.ledger, look, site.policy, done, site.clock())

        monkeypatch.setattr(rollback, "sleep", waited.append)
        with pytest.raises(Refused, match="in its statistics yet"):
            planned()

        def shown(seconds: float) -> None:
            waited.append(seconds)
            site.simulator.faults.remove(hidden)

        monkeypatch.setattr(rollback, "sleep", shown)
        (step,) = planned().batches[0].steps
        assert (step.touched.producers, step.touched.consumers, waited) == (1, 1, [61, 61, 61])
        assert step.moving_messages.again > 0
