"""Guards that look at the whole cluster, at time, and at what a move would set off: each just below and just above."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.backlogs import NOTHING_TAKEN, Backlog, BacklogAges, PulsarsHold
from pulsar_steward.facts.risks import HeldTopic, HoleySubscription, MoveRisks, OpenBatches, UnsentReplication
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Step
from pulsar_steward.model.subscription import Holder
from tests.builders import NOW, PULSAR, Seen, a_look, a_policy, a_step
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy

MIB = 1 << 20


def with_risks(policy: Policy | None = None, versions: tuple[str, ...] = (PULSAR,), **found: Any) -> Seen:
    """A bundle whose move would set something off."""
    return a_look(policy, move_risks=MoveRisks(**found), versions=versions)


HELD = HeldTopic(topic="persistent://a/b/c", used_percent=120, limit="1 bytes, producer_request_hold", producers=7)
HOLEY = HoleySubscription(topic="persistent://a/b/c", subscription="s", holes=10_001, kept=10_000)
OPEN = OpenBatches(topic="persistent://a/b/c", subscription="s", entries=5, may_come_again=500)
UNTOLD = OpenBatches(
    topic="persistent://a/b/c", subscription="s", entries=5, may_come_again=None, messages_per_entry=2_000
)
UNSENT = UnsentReplication(topic="persistent://a/b/c", cluster="west", entries=7)
APPROVED = InFlight(again=500, volatile_topics=1, lost=70)
VOUCHED = a_policy(guards={"versions_tried_here": ["v3.0.4"]})
STRICT = a_policy(guards={"most_redelivered_messages": 499, "most_delayed_index_megabytes": 0})

VIEWS = {
    "producers kept out": (with_risks(held=(HELD,), held_count=3), "producers_return: PRODUCERS COULD NOT COME BACK"),
    "risks unknown": (with_risks(unknown=("no metrics",)), "producers_return: not known: no metrics"),
    "acknowledgements forgotten": (with_risks(holey=(HOLEY,)), "ack_holes: how many acknowledged messages would be"),
    "batches of unknown size": (
        with_risks(open_batches=(UNTOLD,), may_come_again=None),
        "ack_holes: how many acknowledged messages would be delivered again is not known: s of persistent://a/b/c gets",
    ),
    "as many again as approved": (with_risks(open_batches=(OPEN,), may_come_again=500), None),
    "one more": (with_risks(open_batches=(OPEN,), may_come_again=501), "ack_holes: up to 501 acknowledged messages"),
    "more than the policy permits": (
        with_risks(STRICT, open_batches=(OPEN,), may_come_again=500),
        "ack_holes: up to 500 acknowledged messages",
    ),
    "as many lost as approved": (with_risks(volatile_topics=1, lost_messages=70), None),
    "one more lost": (with_risks(volatile_topics=1, lost_messages=71), "volatile_topics: 1 topic that is not persi"),
    "an unknown number lost": (
        with_risks(volatile_topics=1, lost_messages=None),
        "volatile_topics: how many messages 1 topic that is not persistent would lose is not known",
    ),
    "one more topic": (with_risks(volatile_topics=2, lost_messages=70), "volatile_topics: 2 topics that are not"),
    "a small index": (with_risks(delayed_index_bytes=64 * MIB), None),
    "a large index": (with_risks(delayed_index_bytes=64 * MIB + 1), "delayed_index: 64 MiB of delayed"),
    "replication that is dropped": (
        with_risks(versions=(PULSAR, "3.0.5"), unsent=(UNSENT,), unsent_count=2),
        "replication_kept: Pulsar 3.0.5 never sends what waits of 2 topics",
    ),
    "replication that an unknown release may drop": (
        with_risks(VOUCHED, versions=(PULSAR, "v3.0.4"), unsent=(UNSENT,), unsent_count=2),
        "replication_kept: Pulsar v3.0.4 perhaps never sends what waits of 2 topics",
    ),
    "replication that is kept": (with_risks(unsent=(UNSENT,), unsent_count=2), None),
    "a silent broker": (a_look(silent_brokers=("b:8080",)), "whole_cluster: no answer from b:8080"),
    "a read-only bookie": (a_look(read_only_bookies=("http://k:8000",)), "whole_cluster: read-only bookies: http://k"),
    "not proved": (a_look(unproved_batch="batch b1 was not proved"), "proved_first: batch b1 was not proved: observe"),
    "a circle": (a_look(circling=("0x00_0x10",)), "circles: 0x00_0x10 of pulsar/system was moved away"),
    "an old snapshot": (a_look(seen_at=NOW - timedelta(minutes=1501)), "fresh_snapshot: the cluster was seen at"),
    "one as old as may be": (a_look(seen_at=NOW - timedelta(minutes=1500)), None),
    "the last change of a run": (a_look(place_in_run=1000), None),
    "one more in a run": (a_look(place_in_run=1001), "limits: change 1,001 of its run, of 1,000"),
    "the last change of an hour": (a_look(changes_in_the_last_hour=1999), None),
    "one more in an hour": (a_look(changes_in_the_last_hour=2000), "limits: 2,000 changes in the last hour"),
}


@pytest.mark.parametrize(("seen", "words"), VIEWS.values(), ids=VIEWS)
def test_a_move_is_stopped(seen: Seen, words: str | None) -> None:
    """A move that is risky or beyond a limit is refused with the reason in words, and one at a limit passes.

    A move by an old snapshot has drifted.
    """
    found = objection_to(a_step(in_flight=APPROVED), *seen)

    drifted = words is not None and words.startswith("fresh_snapshot")
    objection = Objection.DRIFTED if drifted else Objection.REFUSED
    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[0] is objection and found[1].startswith(words))


def test_what_a_move_waits_for_counts_before_it_is_made() -> None:
    """Three splits are not made where the moves after them would be one too many; right before a call none is to come.

    A step that waits for nothing counts only what was called.
    """
    ten, after = a_policy(guards={"most_changes_per_hour": 10}), ("plan/b1.s03",)
    seen = a_look(ten, changes_in_the_last_hour=7, own_changes_to_come=3)
    found = objection_to(a_step(after=after), *seen, ahead=True)
    assert found is not None
    assert found[1].startswith("limits: 7 changes in the last hour and 3 of its run before it, of 10 (policy key guard")
    assert objection_to(a_step(), *seen) is None
    last = a_look(ten, changes_in_the_last_hour=7, own_changes_to_come=2)
    assert objection_to(a_step(after=after), *last, ahead=True) is None
    assert objection_to(a_step(after=after), *a_look(ten, changes_in_the_last_hour=9)) is None


@cases(
    "seen, passes",
    ("circle", a_look(circling=("0x00_0x10",)), True),
    ("cooldown", a_look(moved_at=NOW), True),
    ("limits", a_look(changes_in_the_last_hour=5000), True),
    ("silent broker", a_look(silent_brokers=("b:8080",)), False),
    ("producers kept out", with_risks(held=(HELD,), held_count=1), False),
)
def test_a_way_back_is_not_held_up_by_what_is_about_the_way_there(seen: Seen, *, passes: bool) -> None:
    assert (objection_to(a_step(undoes="plan/b1.s01"), *seen) is None) is passes


@cases(
    "seen, passes",
    ("nobody checks it", a_look(largest_backlog=0, quotas_are_checked=False), True),
    ("over it at once", a_look(largest_backlog=10**6, quotas_are_checked=True), False),
)
def test_a_former_quota_comes_back_unless_it_does_harm(seen: Seen, *, passes: bool) -> None:
    """A rollback may set a quota although brokers do not check quotas, but not one that stops producers at once."""
    former = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.HOLD)
    change = ChangeSetting(namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=None, after=former)

    found = objection_to(a_step(change, undoes="plan/b1.s01"), *seen)

    assert (found is None) is passes


def at(hour: int, minute: int = 0, *, planned: bool = False, **window: Any) -> Seen:
    """A cluster with a maintenance window, on a Monday in winter."""
    policy = a_policy(guards={"windows": [{"opens": "0 22 * * 1-5", "minutes": 240, **window}]})
    now = datetime(2026, 1, 5, hour, minute, tzinfo=UTC)
    return a_look(now=now, seen_at=now, policy=policy, planning=planned)


WINDOWS = {
    "before it opens": (
        at(21, 59),
        "window: no maintenance window is open; the next one opens at 2026-01-05 22:00 UTC",
    ),
    "as it opens": (at(22), None),
    "before it closes, a day on": (at(1, 59), "window: no maintenance window is open"),  # Sunday evening opens none
    "in another zone": (at(21, 30, time_zone="Europe/Berlin"), None),
    "in another zone, too early": (at(20, 59, time_zone="Europe/Berlin"), "window: no maintenance window is open"),
    "at planning": (at(12, planned=True), None),
}


@pytest.mark.parametrize(("seen", "words"), WINDOWS.values(), ids=WINDOWS)
def test_changes_wait_for_a_maintenance_window(seen: Seen, words: str | None) -> None:
    """A step is refused outside the maintenance windows, with the time of the next one, but not at planning."""
    found = objection_to(a_step(), *seen)

    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[1].startswith(words))


def quota(action: QuotaPolicy = QuotaPolicy.HOLD, size: int = -1, age: int = -1) -> BacklogQuota:
    return BacklogQuota(limit_bytes=size, limit_seconds=age, policy=action)


def a_change(name: SettingName, after: Setting | None, before: Setting | None = None) -> Step:
    return a_step(ChangeSetting(namespace="shop/orders", name=name, before=before, after=after))


def looked(before: Setting | None = None, **known: Any) -> Seen:
    """The setting, on a cluster where all is known and well besides what is given."""
    usual = {
        "largest_backlog": 0,
        "quotas_are_checked": True,
        "clock_difference": 0,
        "delayed_messages": 0,
        "backlog_ages": BacklogAges(),
        "taken": NOTHING_TAKEN,
    }
    return a_look(setting=before, **{**usual, **known})


AWAY = Holder(name="pulsar.repl.west", entries=9)


def away(size: int) -> PulsarsHold:
    """A replicator that holds so many bytes."""
    return PulsarsHold(backlog=Backlog(topic="t", bytes=size, holders=(AWAY,)))


HOLD = a_change(SettingName.SIZE_QUOTA, quota(size=1000))
EVICT = a_change(SettingName.SIZE_QUOTA, quota(QuotaPolicy.EVICT, size=1000))
BY_AGE = a_change(SettingName.AGE_QUOTA, quota(age=60))
EXPIRE = a_change(SettingName.TTL, TimeToLive(seconds=60))
LATER = a_change(SettingName.TTL, TimeToLive(seconds=120), TimeToLive(seconds=60))

SETTINGS = {
    "all is well": (HOLD, looked(), None),
    "no check": (HOLD, looked(quotas_are_checked=False), "quotas_checked: brokers do not check backlog quotas: set"),
    "check not known": (HOLD, looked(quotas_are_checked=None), "quotas_checked: whether brokers check"),
    "time to live needs no check": (EXPIRE, looked(quotas_are_checked=False), None),
    "clocks apart": (BY_AGE, looked(clock_difference=5001), "clocks: brokers' clocks are 5.0 s apart, more"),
    "clocks near": (BY_AGE, looked(clock_difference=5000), None),
    "clocks not known": (EXPIRE, looked(clock_difference=None), "clocks: how far brokers' clocks"),
    "a size goes by no clock": (HOLD, looked(clock_difference=None), None),
    "holding keeps delayed messages": (HOLD, looked(delayed_messages=9), None),
    "evicting takes them": (EVICT, looked(delayed_messages=9), "delayed_kept: 9 delayed messages of shop/orders could"),
    "expiring takes them": (EXPIRE, looked(delayed_messages=9), "delayed_kept: 9 delayed messages"),
    "not known whether there are any": (EXPIRE, looked(delayed_messages=None), "delayed_kept: whether shop/orders has"),
    "holding by age stops for them": (BY_AGE, looked(delayed_messages=9), "delayed_kept: 9 delayed messages of shop/"),
    "it is compacted after the quota is full": (
        HOLD,
        looked(held_by_pulsar=PulsarsHold(compaction_bytes=1000)),
        "quota_held: topics are compacted only from 1,000 B on",
    ),
    "it is compacted before": (HOLD, looked(held_by_pulsar=PulsarsHold(compaction_bytes=999)), None),
    "no age waits for a compaction": (
        BY_AGE,
        looked(held_by_pulsar=PulsarsHold(compaction_bytes=1)),
        "quota_held: topics are compacted only from 1 B on",
    ),
    "a replicator is away": (HOLD, looked(held_by_pulsar=away(101)), "quota_held: the replicator to west holds 101 B"),
    "a replicator lags a little": (HOLD, looked(held_by_pulsar=away(100)), None),
    "a replicator holds what is old": (
        BY_AGE,
        looked(backlog_ages=BacklogAges(oldest_seconds=7, topic="t", holder=AWAY.name)),
        "quota_held: the replicator to west holds messages of t",
    ),
    "who holds it is not known": (HOLD, looked(held_by_pulsar=Unknown("it is dark")), "quota_held: it is dark"),
    "expiring later takes none": (LATER, looked(TimeToLive(seconds=60), delayed_messages=9), None),
}


@pytest.mark.parametrize(("step", "seen", "words"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_is_stopped(step: Step, seen: Seen, words: str | None) -> None:
    """A quota without checks, an age limit with clocks apart and a limit that affects delayed messages are refused."""
    found = objection_to(step, *seen)

    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[0] is Objection.REFUSED and found[1].startswith(words))
