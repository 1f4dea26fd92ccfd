"""Guards that look at the whole cluster, at time, at versions, and at what a move would set off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import PolicyError
from pulsar_steward.facts.backlogs import NOTHING_TAKEN, Backlog, BacklogAges, PulsarsHold
from pulsar_steward.facts.protocol import versions_in
from pulsar_steward.facts.risks import HeldTopic, HoleySubscription, MoveRisks, OpenBatches, UnsentReplication
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import objection_to
from pulsar_steward.guards.every_change import VersionTried
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.window_times import closing, good_until, next_opening, windows_for
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import Change, ChangeSetting, Step
from pulsar_steward.model.subscription import Holder
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from pulsar_steward.policy.guards import MaintenanceWindow
from pulsar_steward.policy.load import load_policy
from tests.builders import (
    NOW,
    PULSAR,
    Seen,
    a_batch,
    a_finding,
    a_look,
    a_move,
    a_policy,
    a_split,
    a_step,
    broker,
    hashed_tc_bundles,
    planning_facts_with,
)
from tests.cases import cases, row_by_row

if TYPE_CHECKING:
    from pathlib import Path

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


VOUCHED_LATER = a_policy(guards={"versions_tried_here": ["4.3"]})
NOT_KNOWN = Unknown("which version of Pulsar broker-00:8080 runs is not known")


@row_by_row(
    "change, look, reason",
    (a_move(), a_look(), "move transaction coordinators to a broker: tried on Pulsar 4.0.7"),
    (a_move(namespace="shop/orders"), a_look(), "move a bundle to a broker: tried on Pulsar 4.0.7"),
    (a_split(), a_look(versions=("4.0.7", "4.2.5")), "tried on Pulsar 4.0.7 and Pulsar 4.2.4, of the same line as"),
    (EXPIRE.change, a_look(versions=("2.10.4",)), "time to live of a namespace: tried on Pulsar 2.10.4"),
    (
        a_move(),
        a_look(VOUCHED_LATER, versions=("4.3.2",)),
        "tried on Pulsar 4.3.2, as the policy says (policy key guards",
    ),
)
def test_what_was_tried_passes(change: Change, look: Any, reason: str) -> None:
    result = VersionTried().check(a_step(change), *look)
    assert result.passed
    assert reason in result.reason


@row_by_row(
    "change, look, reason",
    (a_move(), a_look(versions=("2.10.4",)), "Pulsar 2.10.4 has no `destinationBroker`"),
    (a_move(), a_look(versions=("2.10.4", "3.0.7")), "Pulsar 2.10.4 has no `destinationBroker`"),
    (a_split(), a_look(versions=("2.10.4",)), "Pulsar 2.10.4 has no `topicHashPositions`"),
    (a_move(), a_look(versions=("4.2.4", "5.1.0")), "Pulsar 5.1.0 was never tried: it is newer than 5.0.1"),
    (EXPIRE.change, a_look(versions=("3.1.0", "9.0.0")), "Pulsar 3.1.0 was never tried"),
    (EXPIRE.change, a_look(versions=("3.1.0", "9.0.0")), "Pulsar 9.0.0 was never tried: it is newer"),
    (EXPIRE.change, a_look(VOUCHED_LATER, versions=("4.3.0", "4.4.0")), "Pulsar 4.4.0 was never tried"),
    (EXPIRE.change, a_look(versions=NOT_KNOWN), NOT_KNOWN.reason),
)
def test_the_least_able_broker_counts(change: Change, look: Any, reason: str) -> None:
    found = objection_to(a_step(change), *look)
    assert found is not None
    assert found[0] is Objection.REFUSED
    assert "version_tried: " in found[1]
    assert reason in found[1]


@row_by_row(
    "told, versions",
    ({"b": "4.2.4", "a": "4.0.7", "c": "4.2.4"}, ("4.0.7", "4.2.4")),
    ({"b": "4.2.4", "a": None}, Unknown("which version of Pulsar a runs is not known")),
    ({"b": "4.2.4", "a": ""}, Unknown("which version of Pulsar a runs is not known")),
    ({"b": "<html>\n", "a": "4.0.7"}, Unknown("which version of Pulsar b runs is not known")),
    ({}, Unknown("which version of Pulsar brokers run is not known")),
)
def test_a_broker_that_does_not_tell(told: dict[str, str | None], versions: object) -> None:
    assert versions_in(told) == versions


@row_by_row(
    "versions, reason",
    (("2.10.4", "2.10.4", "2.10.4"), "has no `destinationBroker`"),
    ((PULSAR, PULSAR, "2.10.4"), "has no `destinationBroker`"),
    ((PULSAR, PULSAR, "5.4.0"), "was never tried: it is newer than 5.0.1, the newest that was ("),
    ((PULSAR, PULSAR, None), f"which version of Pulsar {broker(2)} runs is not known"),
)
def test_a_step_is_refused_before_it_is_proposed(versions: tuple[str | None, ...], reason: str) -> None:
    told = versions_in({broker(number): version for number, version in enumerate(versions)})
    planning = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16), findings=(a_finding(),), versions=told)
    proposal = PLANNER.proposal(planning)
    assert not proposal.batches
    assert any("version_tried" in note and reason in note for note in proposal.notes), proposal.notes


@pytest.mark.parametrize(("text", "named"), [('"4.3"', True), ('"4.0.7-acme"', True), ("4.3", False), ('"4 3"', False)])
def test_versions_in_a_policy(tmp_path: Path, text: str, named: bool) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"guards: {{versions_tried_here: [{text}]}}\n", encoding="utf-8")
    if named:
        assert load_policy(file).guards.versions_tried_here == (text.strip('"'),)
    else:
        with pytest.raises(PolicyError, match="versions_tried_here"):
            load_policy(file)


NIGHT = MaintenanceWindow(opens="0 22 * * *", minutes=120)
WEEKEND = MaintenanceWindow(opens="0 6 * * 6", minutes=600, time_zone="Europe/Berlin")
SUNDAY_NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = 24 * 60


def hours(number: float) -> datetime:
    """Returns the time this many hours after Sunday noon."""
    return SUNDAY_NOON + timedelta(hours=number)


@row_by_row(
    "windows, at, opens",
    ((), 0, None),
    ((NIGHT,), 0, 10),
    ((NIGHT,), 9.999, 10),
    ((NIGHT,), 10, None),
    ((NIGHT,), 11.999, None),
    ((NIGHT,), 12, 34),
    ((WEEKEND,), 0, 5 * 24 + 17),
    ((NIGHT, WEEKEND), 0, 10),
)
def test_the_next_opening(windows: tuple[MaintenanceWindow, ...], at: float, opens: float | None) -> None:
    assert next_opening(windows, hours(at)) == (None if opens is None else hours(opens))
    assert (closing(windows, hours(at)) is None) is (not windows or opens is not None)


@row_by_row(
    "windows, wait_minutes, until",
    ((), DAY, 1),
    ((MaintenanceWindow(opens="0 12 * * *", minutes=5),), DAY, 1),
    ((NIGHT,), DAY, 11),
    ((NIGHT,), 600, 11),
    ((NIGHT,), 599, 1),
    ((NIGHT,), 0, 1),
    ((WEEKEND,), DAY, 1),
    ((WEEKEND,), 7 * DAY, 5 * 24 + 18),
)
def test_an_approval_counts_from_the_opening_that_it_waits_for(
    windows: tuple[MaintenanceWindow, ...], wait_minutes: int, until: float
) -> None:
    assert good_until(SUNDAY_NOON, 60, wait_minutes, windows, None) == hours(until)


@pytest.mark.parametrize(
    ("windows", "most", "until"), [((NIGHT,), 10.5, 10.5), ((NIGHT,), 12, 11), ((), 0.5, 0.5), ((), 2, 1)]
)
def test_no_window_lengthens_what_the_risk_bounds(
    windows: tuple[MaintenanceWindow, ...], most: float, until: float
) -> None:
    """An approval counts from the answer no longer than its risk lets it, whatever window it waits for."""
    assert good_until(SUNDAY_NOON, 60, DAY, windows, int(most * 60)) == hours(until)


def test_a_way_back_waits_for_no_window() -> None:
    policy = a_policy(guards={"windows": [NIGHT.model_dump()]})
    assert windows_for(a_batch(), policy) == (NIGHT,)
    assert windows_for(a_batch(kind=ROLLBACK), policy) == ()


@cases(
    "window, at, closes",
    ("back", {"opens": "0 22 * * *", "minutes": 480}, "2026-10-25T00:00", "2026-10-25T04:00"),
    (
        "back, in the hour that comes twice",
        {"opens": "30 2 * * *", "minutes": 60},
        "2026-10-25T01:00",
        "2026-10-25T01:30",
    ),
    ("forward", {"opens": "0 22 * * *", "minutes": 480}, "2026-03-29T00:00", "2026-03-29T05:00"),
)
def test_a_window_lasts_its_minutes_in_the_nights_when_clocks_change(
    window: dict[str, Any], at: str, closes: str
) -> None:
    zoned = MaintenanceWindow(**window, time_zone="Europe/Berlin")
    now, end = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (at, closes))
    assert closing((zoned,), now) == end
