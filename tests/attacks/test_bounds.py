"""A bound that bounds: what can be lost is said at most, forward and back, and compared right before the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.apply.applied import what_was_done
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.errors import Refused
from pulsar_steward.facts.backlogs import backlog_of, evicted
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.apply.refusals import assert_done_unless, outcome_on
from tests.apply.worksite import a_worksite, quick_policy, said
from tests.builders import a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.step import Step
    from tests.apply.worksite import Worksite

NAMESPACE, TOPIC = "shop/orders", "persistent://shop/orders/t"
MIB, GIB, HOUR = 1 << 20, 1 << 30, 3600
FOR_EVER, FOR_AN_HOUR = Retention(minutes=-1, megabytes=-1), Retention(minutes=60, megabytes=-1)
EVICT = BacklogQuota(limit_bytes=100_000, policy=QuotaPolicy.EVICT)


def cluster(*topics: TopicSpec, loaded: bool = True, **fields: Any) -> ClusterSpec:
    """A broker with a namespace of these topics, which keeps all for ever and expires nothing for a day."""
    policies = {
        "retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
        "message_ttl_in_seconds": 24 * HOUR,
    }
    namespace = NamespaceSpec(NAMESPACE, bundles=1, topics=topics, policies=policies, loaded=loaded)
    return ClusterSpec(brokers=1, namespaces=(namespace,), **fields)


def setting(
    name: SettingName, before: Setting | None, after: Setting, agreed: Loss = NOTHING_LOST, **fields: Any
) -> Step:
    """A step that changes a setting of the namespace, and the loss that is approved with it."""
    change = ChangeSetting(namespace=NAMESPACE, name=name, before=before, after=after, inherited=None)
    return a_step(change, loss=agreed, **fields)


def kept(after: Retention, size: int) -> Step:
    """A step that keeps less, for which so many bytes are approved."""
    return setting(SettingName.RETENTION, FOR_EVER, after, Loss(messages=0, bytes=size))


def expiring(seconds: int, messages: int) -> Step:
    """A step that shortens the time to live, for which so many messages are approved."""
    agreed = Loss(messages=messages, bytes=10**18)
    return setting(SettingName.TTL, TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=seconds), agreed)


def archive(name: str, size: int, days: int) -> TopicSpec:
    """A topic that stores what is consumed, in a ledger that was closed so many days ago."""
    return TopicSpec(name, storage_bytes=size, message_bytes=1000, stored_ago_s=days * 24 * HOUR)


@pytest.mark.parametrize(
    ("loaded", "size", "agreed", "words"),
    [
        (False, 21 * MIB, 2 * MIB, "0 entries (21 MiB) would be lost at once, more than the 0 entries (2 MiB)"),
        (False, 21 * MIB, 21 * MIB, None),
        (True, 500 * GIB, GIB, "0 entries (500 GiB) would be lost at once, more than the 0 entries (1 GiB)"),
        (True, 500 * GIB, 500 * GIB, None),
    ],
    ids=["an archive that is not loaded", "as approved", "more than when it was planned", "as approved, loaded"],
)
def test_a_lower_retention_deletes_no_more_than_was_approved(
    tmp_path: Path, size: int, agreed: int, words: str | None, *, loaded: bool
) -> None:
    """A lower retention is refused if it deletes a byte more than was approved, of topics that are loaded or not."""
    spec = cluster(archive("t", size, days=10), loaded=loaded)
    assert_done_unless(outcome_on(tmp_path, spec, kept(FOR_AN_HOUR, agreed)), words and f"loss_as_approved: {words}")


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "not loaded"])
def test_what_a_lower_retention_keeps_is_not_lost(tmp_path: Path, *, loaded: bool) -> None:
    """A retention is lowered with nothing approved where all that is stored is younger than it."""
    spec = cluster(archive("t", 500 * GIB, days=0), loaded=loaded)
    assert outcome_on(tmp_path, spec, kept(FOR_AN_HOUR, 0)).outcome == "done"


def test_what_cannot_be_known_is_refused(tmp_path: Path) -> None:
    """A retention that keeps nothing is refused while a topic is not loaded, as its last ledger has no size."""
    spec = cluster(archive("t", MIB, days=10), loaded=False)
    outcome = outcome_on(tmp_path, spec, kept(Retention(minutes=0, megabytes=0), GIB))
    assert_done_unless(outcome, "loss_as_approved: 1 topic of shop/orders is not loaded (")
    assert "run `pulsar-admin topics stats` on each, which loads it" in outcome.reason


def waiting(seconds: int, messages: int = 5_000_000) -> TopicSpec:
    """A topic with so many unread messages, the oldest of which is so old."""
    return TopicSpec("t", backlog_age_s=seconds, subscriptions=(SubscriptionSpec("app", backlog=messages),))


@pytest.mark.parametrize(
    ("age", "agreed", "words"),
    [
        (2 * HOUR, 4_999_999, "5,000,000 entries (476.84 MiB) would be lost at once, more than the 4,999,999 entries"),
        (2 * HOUR, 5_000_000, None),
        (HOUR - 540, 4_999_999, "5,000,000 entries"),
        (HOUR // 2, 0, None),
    ],
    ids=["a message more", "as approved", "too old when brokers look next", "nothing is too old"],
)
def test_a_shorter_time_to_live_takes_no_more_than_was_approved(
    tmp_path: Path, age: int, agreed: int, words: str | None
) -> None:
    """A shorter time to live is refused if it takes a message more than was approved, of topics with older ones."""
    outcome = outcome_on(tmp_path, cluster(waiting(age)), expiring(HOUR, agreed))
    assert_done_unless(outcome, words and f"loss_as_approved: {words}")


def test_unread_messages_of_a_topic_that_is_not_loaded_do_not_expire_unsaid(tmp_path: Path) -> None:
    """A shorter time to live is refused while a topic with a subscription is not loaded."""
    assert_done_unless(
        outcome_on(tmp_path, cluster(waiting(0, 1), loaded=False), expiring(HOUR, 10**9)),
        "loss_as_approved: 1 topic of shop/orders is not loaded (",
    )


def test_a_way_back_says_what_it_loses_and_is_as_critical_as_that(tmp_path: Path) -> None:
    """A rollback that shortens a time to live over unread messages is critical, and needs whom the policy demands."""
    with a_worksite(tmp_path, cluster(waiting(48 * HOUR))) as site:
        site.policy = quick_policy(approval={"by_risk": {"critical": {"people": 2}}})
        longer = setting(SettingName.TTL, TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=96 * HOUR))
        plan = site.approved(msgspec.structs.replace(longer, undo=longer.change, loss=msgspec.UNSET))
        assert said(site.carry_out(plan)) == ["done"]
        with LiveReader(site.settings) as look:
            applied = what_was_done(site.ledger, plan.plan_id, "b1")
            back = rollback_plan(site.ledger, look, site.policy, applied, site.clock())
        (step,) = back.batches[0].steps
        assert (step.loss.messages, step.loss.bytes) == (5_000_000, 500_000_000)  # type: ignore[union-attr]  # it is set
        risk = risk_of(back, back.batches[0])
        assert risk.level is Risk.CRITICAL
        assert "up to 5,000,000 entries that nobody has read are deleted at once" in risk.reasons[0].words
        site.writes.record_plan(back, site.clock(), policy=site.policy)
        site.approve(back, run="pulsar_rollback/manual/0")
        with pytest.raises(Refused, match="needs the approval of a second person"):
            site.carry_out(back, "pulsar_rollback/manual/0")


NOT_LOADED = {
    "in a closed ledger": TopicSpec(
        "t", backlog_age_s=100 * HOUR, subscriptions=(SubscriptionSpec("app", backlog=10),)
    ),
    "in the last ledger": TopicSpec(
        "t", just_made=True, backlog_age_s=100 * HOUR, subscriptions=(SubscriptionSpec("app", backlog=10),)
    ),
    "of a cursor whose position the store has not": TopicSpec(
        "t", stored_ago_s=100 * HOUR, subscriptions=(SubscriptionSpec("app", backlog=10, cursor_ledger=7),)
    ),
    "closed half an hour ago, and published before": TopicSpec(
        "t", backlog_age_s=100 * HOUR, stored_ago_s=HOUR // 2, subscriptions=(SubscriptionSpec("app", backlog=10),)
    ),
}


@pytest.mark.parametrize("topic", NOT_LOADED.values(), ids=NOT_LOADED)
@pytest.mark.parametrize(
    ("name", "limits", "guard"),
    [
        (SettingName.SIZE_QUOTA, {"limit_bytes": GIB}, "quota_room"),
        (SettingName.AGE_QUOTA, {"limit_seconds": HOUR}, "age_room"),
    ],
)
def test_no_producer_is_stopped_by_what_nobody_knows(
    tmp_path: Path, topic: TopicSpec, name: SettingName, limits: dict[str, int], guard: str
) -> None:
    """A quota that holds producers is refused while a topic with a cursor is not loaded, wherever its messages are."""
    quota = BacklogQuota(policy=QuotaPolicy.HOLD, **limits)
    assert_done_unless(
        outcome_on(tmp_path, cluster(topic, loaded=False), setting(name, None, quota)),
        f"{guard}: 1 topic of shop/orders is not loaded ({TOPIC})",
    )


def test_a_topic_that_is_named_like_a_transaction_log_loses_nothing_unsaid(tmp_path: Path) -> None:
    """A shorter time to live counts a user's topic whose name begins like those of Pulsar's transaction logs."""
    topic = TopicSpec(
        "__transaction_log_mine", backlog_age_s=100 * HOUR, subscriptions=(SubscriptionSpec("app", backlog=9),)
    )
    assert_done_unless(outcome_on(tmp_path, cluster(topic), expiring(HOUR, 0)), "loss_as_approved: 9 entries (900 B)")


CLOCKS_AHEAD = TopicSpec(
    "t", backlog_age_s=0, stored_ago_s=240 * HOUR, producers=1, subscriptions=(SubscriptionSpec("app", backlog=9),)
)
"""A topic whose unread messages say that they are of now; the ledger that they are in was closed ten days ago."""


@pytest.mark.parametrize(
    ("agreed", "outcome"), [(9, "done"), (8, "refused"), (0, "refused")], ids=["as approved", "a message more", "none"]
)
def test_what_is_in_a_ledger_that_was_closed_long_ago_expires(tmp_path: Path, agreed: int, outcome: str) -> None:
    """A shorter time to live takes what is in ledgers that were closed longer ago, whatever producers' clocks said."""
    came_to = outcome_on(tmp_path, cluster(CLOCKS_AHEAD), expiring(HOUR, agreed))
    assert came_to.outcome == outcome
    assert outcome == "done" or "loss_as_approved: 9 entries (900 B)" in came_to.reason


@pytest.mark.parametrize("policy", [QuotaPolicy.EVICT, QuotaPolicy.HOLD])
def test_a_ledger_that_was_closed_long_ago_is_too_old_for_an_age_quota(tmp_path: Path, policy: QuotaPolicy) -> None:
    """An age quota is refused over ledgers that were closed longer ago, whatever producers' clocks said."""
    quota = BacklogQuota(limit_seconds=24 * HOUR, policy=policy)
    outcome = outcome_on(tmp_path, cluster(CLOCKS_AHEAD), setting(SettingName.AGE_QUOTA, None, quota))
    assert_done_unless(outcome, "age_room: the oldest backlog known")
    assert f"{policy} would act at once" in outcome.reason


def test_a_way_back_counts_what_is_in_a_ledger_that_was_closed_long_ago(tmp_path: Path) -> None:
    """A rollback that shortens a time to live says what is in ledgers that were closed longer ago."""
    with a_worksite(tmp_path, cluster(CLOCKS_AHEAD)) as site:
        longer = setting(SettingName.TTL, TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=0))
        plan = site.approved(msgspec.structs.replace(longer, undo=longer.change, loss=msgspec.UNSET))
        assert said(site.carry_out(plan)) == ["done"]
        with LiveReader(site.settings) as look:
            applied = what_was_done(site.ledger, plan.plan_id, "b1")
            back = rollback_plan(site.ledger, look, site.policy, applied, site.clock())
    (step,) = back.batches[0].steps
    assert (step.loss.messages, step.loss.bytes) == (9, 900)  # type: ignore[union-attr]  # it is set


@pytest.mark.parametrize(
    ("held", "outcome"), [(999, "refused"), (900, "refused"), (899, "done")], ids=["a hair", "a tenth", "more"]
)
def test_what_is_nearly_over_an_evicting_quota_is_lost_as_well(tmp_path: Path, held: int, outcome: str) -> None:
    """An evicting quota with nothing approved is refused over a backlog that leaves less than a tenth of it free."""
    came_to = outcome_on(tmp_path, cluster(waiting(0, held)), setting(SettingName.SIZE_QUOTA, None, EVICT))
    assert came_to.outcome == outcome
    assert outcome == "done" or f"loss_as_approved: {held} entries" in came_to.reason


SIZES = {
    "old ones are large": [1_000_000] * 10 + [100] * 1_000,
    "new ones are large": [100] * 1_000 + [1_000_000] * 10,
    "all alike": [10_000] * 1_000,
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_no_more_is_evicted_than_was_said_whatever_the_sizes_of_entries(sizes: list[int]) -> None:
    """An evicting quota takes no more than it says, by Pulsar's own way to reckon, check after check."""
    limit, begin, told = 5_000_000, 0, sum(sizes)
    said = evicted([backlog_of(TOPIC, told, {"app": len(sizes)}, {})], limit).loss
    while (held := sum(sizes[begin:])) > limit:
        begin += int((held - 0.9 * limit) / held * (len(sizes) - begin))
        assert begin <= (said.messages or 0)
        assert told - sum(sizes[begin:]) <= (said.bytes or 0)
    assert begin


def two_steps(site: Worksite) -> tuple[StepOutcome, ...]:
    """Outcomes of a batch that keeps longer first and evicts then, while 40,000 messages come in at the first call."""
    longer = setting(SettingName.TTL, TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=48 * HOUR), step_id="b1.s01")
    evicting = setting(SettingName.SIZE_QUOTA, None, EVICT, step_id="b1.s02")

    def comes_in(_: object) -> None:
        site.simulator.change_subscription(TOPIC, "app", backlog=40_000)

    return site.carry_out(site.approved(longer, evicting), before=comes_in)


def test_a_step_is_judged_by_a_look_after_the_call_before_it(tmp_path: Path) -> None:
    """The second step of a batch is refused for what came in since, though brokers' statistics do not show it yet."""
    with a_worksite(tmp_path, cluster(waiting(0, 10), steady=True)) as site:
        outcomes = two_steps(site)
    assert said(outcomes) == ["done", "refused"]
    assert "loss_as_approved: 40,000 entries" in outcomes[1].reason


def test_a_step_of_more_topics_than_may_be_asked_waits_for_what_brokers_tell_after_the_call(tmp_path: Path) -> None:
    """The second step of a batch about many topics waits until brokers' statistics are from after the first call."""
    spec = cluster(waiting(0, 10), TopicSpec("u"), configuration={"statsUpdateFrequencyInSecs": "1"})
    with a_worksite(tmp_path, spec) as site:
        site.policy = quick_policy(backlog_quota_remedy={"most_topics_asked": 1})
        outcomes = two_steps(site)
        (first, second) = (row.at for row in outcomes)
    assert said(outcomes) == ["done", "refused"]
    assert "loss_as_approved: 40,000 entries" in outcomes[1].reason
    assert (second - first).total_seconds() > 1


def test_a_way_back_is_not_judged_by_what_was_told_before_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback of what concerns more topics than may be asked is not proposed within a minute of Steward's call."""
    with a_worksite(tmp_path, cluster(waiting(0, 10), TopicSpec("u"))) as site:
        site.policy = quick_policy(backlog_quota_remedy={"most_topics_asked": 1})
        longer = setting(SettingName.TTL, TimeToLive(seconds=24 * HOUR), TimeToLive(seconds=96 * HOUR))
        plan = site.approved(msgspec.structs.replace(longer, undo=longer.change, loss=msgspec.UNSET))
        assert said(site.carry_out(plan)) == ["done"]
        applied, words = what_was_done(site.ledger, plan.plan_id, "b1"), "before Steward's last change: try again"
        monkeypatch.setattr("pulsar_steward.apply.rollback.sleep", lambda _: None)
        with LiveReader(site.settings) as look, pytest.raises(Refused, match=words):
            rollback_plan(site.ledger, look, site.policy, applied, site.clock())
