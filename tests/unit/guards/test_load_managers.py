"""Guards that look at the brokers' own load manager, at other clusters, and at what a quota would do at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import MAX_NAMED, NOTHING_TAKEN, BacklogAges, Taken, backlog_of, evicted
from pulsar_steward.facts.load_manager import (
    NO_TRAFFIC,
    AntiAffinityGroup,
    BrokerUsage,
    LoadManager,
    Traffic,
    load_manager_of,
)
from pulsar_steward.facts.unknown import Unknown, owner_unknown
from pulsar_steward.guards.evaluate import guards_of, objection_to
from pulsar_steward.guards.in_flight import LossAsApproved
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.quotas import AgeRoom
from pulsar_steward.guards.targets import Shedding
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Step, UnloadBundle
from tests.builders import CALM, Seen, a_look, a_move, a_split, a_step, broker
from tests.cases import cases, row_by_row
from tests.unit.facts.test_load_manager import EXTENSIBLE, IMPL, MODULAR

MIB = 1 << 20
AVG = {"loadBalancerLoadSheddingStrategy": f"{IMPL}AvgShedder", "maxUnloadPercentage": "0.5"}
BUSINESS = a_move(namespace="shop/orders")


def shedding(**settings: str) -> LoadManager:
    found = load_manager_of(MODULAR | settings)
    assert isinstance(found, LoadManager)
    return found


def usages(*percents: float, messages: tuple[float, ...] = (0.0,) * 3) -> tuple[BrokerUsage, ...]:
    """Brokers 0, 1, 2 of these usages and messages a second, with a gigabyte a second each."""
    return tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=1000 * MIB, messages=messages[number])
        for number, percent in enumerate(percents)
    )


def full(*percents: float) -> tuple[BrokerUsage, ...]:
    """The same, and broker 0 has a resource used up."""
    first, *others = usages(*percents)
    return (msgspec.structs.replace(first, full=True), *others)


def traffic(mebibytes: float, messages: float = 0.0) -> Traffic:
    return Traffic(bytes=mebibytes * MIB, messages=messages)


APART = usages(10, 60, 30, messages=(0, 3000, 0))
LOOKS = {
    "shedding is off": (a_look(usages=None), None),
    "whether it is on is not known": (a_look(load_manager=None), "shedding: whether the brokers' own shedding is on"),
    "usages are not known": (
        a_look(load_manager=shedding(), traffic=NO_TRAFFIC),
        "shedding: the usage that the brokers' own shedding compares is not known",
    ),
    "the bundle's throughput is not known": (
        a_look(load_manager=shedding(), usages=usages(20, 20, 20)),
        "shedding: the bundle's throughput is not known",
    ),
    "it would stay": (a_look(load_manager=shedding(), usages=usages(40, 20, 30), traffic=traffic(200.0)), None),
    "it would be undone": (
        a_look(load_manager=shedding(), usages=usages(40, 35, 10), traffic=traffic(200.0)),
        "shedding: the brokers' own shedding would undo it: ThresholdShedder takes from a broker whose usage is 10.0",
    ),
    "near a limit": (
        a_look(load_manager=shedding(), usages=usages(40, 24, 10), traffic=traffic(200.0)),
        (
            "shedding: whether the brokers' own shedding would undo it is not known: by then usages may be 2 points and"
            " traffic 10% worse: ThresholdShedder takes from a broker whose usage is 10.0 points or more above the mean"
        ),
    ),
    "the source is full": (
        a_look(load_manager=shedding(), usages=full(98, 12, 80), traffic=traffic(200.0)),
        f"shedding: whether the brokers' own shedding would undo it is not known, as {broker(0)} has a resource used",
    ),
    "another bundle would be taken": (
        a_look(
            load_manager=shedding(**AVG), usages=usages(10, 60, 30, messages=(0, 3000, 0)), traffic=traffic(1, 9000)
        ),
        None,
    ),
    "it would be taken on": (
        a_look(
            load_manager=shedding(**AVG), usages=usages(10, 60, 30, messages=(0, 3000, 0)), traffic=traffic(1, 1400)
        ),
        "shedding: the brokers' own shedding would undo it: AvgShedder takes from the fuller of two brokers",
    ),
    "a strategy that is not known": (
        a_look(
            load_manager=shedding(loadBalancerLoadSheddingStrategy="org.acme.Shedder"),
            usages=usages(1, 1, 1),
            traffic=NO_TRAFFIC,
        ),
        "shedding: by which rule the brokers' own shedding (org.acme.Shedder) goes is not known",
    ),
}


@pytest.mark.parametrize(("seen", "words"), LOOKS.values(), ids=LOOKS)
def test_a_move_that_shedding_would_undo(seen: Seen, words: str | None) -> None:
    found = objection_to(a_step(BUSINESS), *seen)
    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[0] is Objection.REFUSED and found[1].startswith(words))


@row_by_row(
    "manager, change, passed, words",
    (None, BUSINESS, False, "whether the brokers' own shedding is on"),
    (CALM, BUSINESS, True, "the brokers' own shedding is off"),
    (shedding(), a_move(), True, "is judged right before the move"),
    (load_manager_of(EXTENSIBLE), a_move(), True, "(TransferShedder) leaves pulsar/system alone"),
    (shedding(), BUSINESS, True, "is judged right before the move"),
)
def test_before_a_split_shedding_is_judged_by_the_load_manager_alone(
    manager: LoadManager | None, change: UnloadBundle, passed: bool, words: str
) -> None:
    """A split cannot be undone: where the load manager is not known, it is not made for a move that must not follow."""
    seen, step = a_look(load_manager=manager), a_step(change, after=("plan/b1.s01",))
    told = Shedding().check_ahead(step, *seen)
    assert (told.passed, words in told.reason) == (passed, True)
    assert (objection_to(step, *seen, ahead=True) is None) is passed


def test_who_might_get_the_bundle_in_exchange_is_named() -> None:
    """A permitted move to the emptiest broker names the fullest one, to which `TransferShedder` may hand it on."""
    manager = load_manager_of(EXTENSIBLE)
    assert isinstance(manager, LoadManager)
    percents, flows = (80, 10, 30), (1000, 100, 500)
    there = tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=flow * MIB, messages=0.0)
        for number, (percent, flow) in enumerate(zip(percents, flows, strict=True))
    )
    facts, policy = a_look(load_manager=manager, usages=there, traffic=traffic(50.0))
    told = Shedding().check_change(BUSINESS, facts, policy)
    assert told.passed
    assert told.reason == (
        f"the brokers' own shedding (TransferShedder) would leave it on {BUSINESS.target},"
        f" unless it gives it to {broker(0)} for a larger one"
    )


def test_bundles_of_coordinators_come_last() -> None:
    """The shedding guard needs no usages for moves of coordinators, and none at all for splits and rollbacks."""
    seen = a_look(load_manager=shedding(), traffic=NO_TRAFFIC)
    told = Shedding().check_change(a_move(), *seen)
    assert told.passed
    assert told.reason == (
        "the brokers' own shedding (ThresholdShedder) begins with the bundle of most traffic, and this one has none, as"
        " coordinators make none"
    )
    assert objection_to(a_step(a_split(namespace="shop/orders")), *seen) is None
    back = a_step(BUSINESS, undoes="plan/b1.s01")
    assert "shedding" not in {guard.name for guard in guards_of(back)}


@row_by_row(
    "now, told, passed, words",
    (traffic(200.0), usages(40, 35, 10), False, "would undo it: ThresholdShedder takes from a broker whose usage"),
    (traffic(200.0), usages(40, 20, 30), True, "would leave it on"),
    (traffic(200.0), None, False, "the usage that the brokers' own shedding compares is not known"),
    (None, usages(40, 20, 30), False, "the bundle's throughput is not known"),
)
def test_a_bundle_of_pulsar_system_with_a_busy_topic_is_judged_like_all_others(
    now: Traffic | None, told: tuple[BrokerUsage, ...] | None, *, passed: bool, words: str
) -> None:
    """The modular manager moved such a one first (docs/pulsar-behaviour.md)."""
    result = Shedding().check_change(a_move(), *a_look(load_manager=shedding(), usages=told, traffic=now))
    assert (result.passed, words in result.reason) == (passed, True)


def test_coordinators_are_judged_where_bundles_without_traffic_are_shed() -> None:
    """`UniformLoadShedder` takes these as well, but from the busiest broker alone."""
    uniform = shedding(loadBalancerLoadSheddingStrategy=f"{IMPL}UniformLoadShedder", maxUnloadPercentage="0.2")
    for rates, undone in (((1, 9000, 1), True), ((9000, 1, 1), False)):
        seen = a_look(load_manager=uniform, usages=usages(1, 1, 1, messages=rates), traffic=NO_TRAFFIC)
        assert (objection_to(a_step(a_move()), *seen) is not None) is undone


def group(**others: int) -> AntiAffinityGroup:
    """A group whose other namespaces are on brokers 0, 1 and 2."""
    counts = [others.get(name, 0) for name in ("first", "second", "third")]
    return AntiAffinityGroup(group="apart", others={broker(number): count for number, count in enumerate(counts)})


GROUPS = {
    "none": (a_look(anti_affinity=None), None),
    "the target has none": (a_look(anti_affinity=group(first=1)), None),
    "the target has one, and another broker none": (
        a_look(anti_affinity=group(second=1)),
        (
            f"anti_affinity: {broker(1)} has bundles of 1 other namespace of the anti-affinity group apart, the broker"
            " with fewest 0"
        ),
    ),
    "all have one": (a_look(anti_affinity=group(first=1, second=1, third=1)), None),
    "emptier ones may not": (a_look(anti_affinity=group(second=1), allowed_brokers=frozenset({broker(1)})), None),
    "not known at planning": (a_look(anti_affinity=Unknown("not in a snapshot"), planning=True), None),
    "not known before the call": (a_look(anti_affinity=Unknown("nobody tells")), "anti_affinity: nobody tells"),
}


@pytest.mark.parametrize(("seen", "words"), GROUPS.values(), ids=GROUPS)
def test_a_group_is_kept_apart(seen: Seen, words: str | None) -> None:
    """A move is refused if its target has more namespaces of the anti-affinity group than another allowed broker."""
    found = objection_to(a_step(BUSINESS), *seen)
    assert (found and found[1]) == words
    assert objection_to(a_step(a_split(namespace="shop/orders")), *seen) is None


def test_a_bundle_that_may_be_on_its_way_is_nobodys_to_move() -> None:
    change = a_move()
    found = objection_to(a_step(change), *a_look(owner=owner_unknown(change)))
    assert found is not None
    assert found[0] is Objection.DRIFTED
    assert found[1].startswith(
        "owner: no broker says that it owns pulsar/system/0x00000000_0x10000000: nobody does, or"
    )


@row_by_row(
    "others, words",
    ((), None),
    (("east", "west"), "one_cluster: east, west would get it as well, as shop/orders is served there too"),
    (None, "one_cluster: which clusters serve shop/orders is not known"),
)
def test_a_setting_of_several_clusters_is_left_alone(others: tuple[str, ...] | None, words: str | None) -> None:
    kept = TimeToLive(seconds=60)
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=kept)
    seen = a_look(other_clusters=others, delayed_messages=0, clock_difference=0, taken=NOTHING_TAKEN)
    found = objection_to(a_step(change), *seen)
    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[1].startswith(words))
    topic = ChangeSetting(
        namespace="shop/orders", topic="persistent://shop/orders/t", name=SettingName.TTL, before=None, after=kept
    )
    assert objection_to(a_step(topic), *seen) is None


HOUR = 3600
TOPIC = "persistent://shop/orders/t"


def age_quota(hours: int | None = 10, policy: QuotaPolicy = QuotaPolicy.HOLD) -> Step:
    """A step that sets an age quota; None: that removes one, where brokers have no default."""
    after = None if hours is None else BacklogQuota(limit_seconds=hours * HOUR, policy=policy)
    before = None if after else BacklogQuota(limit_seconds=HOUR, policy=policy)
    return a_step(
        ChangeSetting(namespace="shop/orders", name=SettingName.AGE_QUOTA, before=before, after=after, inherited=None)
    )


def ages(seconds: int, **more: Any) -> BacklogAges:
    """Ages of backlogs where one topic has one, which is so many seconds old."""
    return msgspec.structs.replace(BacklogAges(oldest_seconds=seconds, topic=TOPIC, waiting=1), **more)


UNKNOWN = ages(0, topic=None, waiting=3, unknown=3, why_unknown="nobody tells")
NEAR, OVER = ages(9 * HOUR), ages(9 * HOUR + 1)
AT_ONCE = "would act at once"
EVICTS_OLD = age_quota(policy=QuotaPolicy.EVICT)
ESTIMATED = ages(10 * HOUR, estimated=True)
NOT_LOOKED = "how old the backlogs of shop/orders are is not known"
NOT_TOLD = "of 3 topics with a backlog its age is not known: nobody"


def retained(hours: int) -> dict[str, Any]:
    """No backlog, where topics retain messages for so long."""
    return {"backlog_ages": BacklogAges(), "retained_seconds": hours * HOUR}


@cases(
    "step, known, at_planning, before_call, words",
    ("no backlog", age_quota(), {"backlog_ages": BacklogAges()}, True, True, "no topic has a backlog"),
    ("nine tenths", age_quota(), {"backlog_ages": NEAR}, True, True, f"of {TOPIC}, is 9 h old, of 10 h less 10 %"),
    ("a second more", age_quota(), {"backlog_ages": OVER}, False, False, f"producer_request_hold {AT_ONCE}"),
    ("evicting", EVICTS_OLD, {"backlog_ages": OVER}, False, False, f"consumer_backlog_eviction {AT_ONCE}"),
    ("estimated", age_quota(), {"backlog_ages": ESTIMATED}, False, False, "is estimated, from its size"),
    ("not told", age_quota(), {"backlog_ages": UNKNOWN}, True, False, NOT_TOLD),
    ("not looked", age_quota(), {"backlog_ages": None}, False, False, NOT_LOOKED),
    ("at the retention", age_quota(), retained(10), False, False, "10 h is not below the retention of 10 h"),
    ("below the retention", age_quota(), retained(11), True, True, "no topic has a backlog, of 10 h less 10 %"),
    ("removed", age_quota(None), {"backlog_ages": None}, True, True, "no age quota is set"),
)
def test_no_topic_is_over_an_age_quota_at_once(
    step: Step, known: dict[str, Any], *, at_planning: bool, before_call: bool, words: str
) -> None:
    """An age quota passes if a tenth of it is free and it is below the retention. Unknown ages pass at planning."""
    planned, called = (AgeRoom().check(step, *a_look(planning=each, **known)) for each in (True, False))

    assert (planned.passed, called.passed) == (at_planning, before_call)
    assert words in called.reason


@pytest.mark.parametrize(("held", "lost"), [(899, 0), (900, 900), (2000, 2000)])
def test_only_what_is_near_its_limit_loses_anything(held: int, lost: int) -> None:
    """A topic loses messages only from nine tenths of the quota's limit on, and all that waits then."""
    assert evicted([backlog_of(TOPIC, held, {"s": held}, {})], 1000).loss.bytes == lost


def test_the_worst_topics_are_named_and_the_others_counted() -> None:
    backlogs = [backlog_of(f"t{number:02d}", 1000 + number // 2, {"s": 10}, {}) for number in range(MAX_NAMED + 5)]
    loss = evicted(backlogs, 1000).loss

    assert [each.topic for each in loss.topics][:3] == ["t14", "t12", "t13"]
    assert (len(loss.topics), loss.more) == (MAX_NAMED, 5)
    assert loss.bytes == sum(each.bytes for each in backlogs)
    assert loss == evicted(reversed(backlogs), 1000).loss


EVICT = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)


@pytest.mark.parametrize(
    ("agreed", "now", "words"),
    [
        (None, NOTHING_LOST, None),
        (Loss(messages=5, bytes=500), Loss(messages=5, bytes=500), None),
        (Loss(messages=5, bytes=500), Loss(messages=4, bytes=500), None),
        (Loss(messages=5, bytes=500), Loss(messages=6, bytes=500), "6 entries (500 B)"),
        (Loss(messages=5, bytes=500), Loss(messages=5, bytes=501), "than the 5 entries (500 B)"),
        (None, Loss(messages=1, bytes=1), "than the 0 entries (0 B)"),
        (Loss(messages=5, bytes=500), None, "is not known"),
        (Loss(messages=5, bytes=500), Loss(messages=None, bytes=500), "a number of entries that is not known"),
        (Loss(messages=None, bytes=None), Loss(messages=1, bytes=1), "than the 0 entries (0 B)"),
    ],
    ids=[
        *("nothing", "as much", "less", "a message more", "a byte more", "nothing was approved", "not known"),
        *("how many is not known", "an unknown number was approved"),
    ],
)
def test_no_more_is_evicted_than_was_approved(agreed: Loss | None, now: Loss | None, words: str | None) -> None:
    change = ChangeSetting(namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=None, after=EVICT)
    step = a_step(change, loss=agreed or msgspec.UNSET)
    said = LossAsApproved().check(step, *a_look(taken=now and Taken(loss=now)))

    assert said.passed is (words is None)
    assert (words or "") in said.reason


def kept(minutes: int, megabytes: int) -> Retention:
    return Retention(minutes=minutes, megabytes=megabytes)


@row_by_row(
    "before, after, deletes",
    (kept(60, 100), kept(60, 100), False),
    (kept(60, 100), kept(61, 100), False),
    (kept(60, 100), kept(59, 200), True),
    (kept(60, 100), kept(120, 99), True),
    (kept(-1, -1), kept(60, -1), True),
    (kept(60, -1), kept(-1, -1), False),
    (kept(0, 0), kept(60, 100), False),
    (kept(60, 100), kept(0, 0), True),
    (kept(60, 100), None, True),
    (None, kept(60, -1), True),
    (None, kept(-1, -1), False),
)
def test_a_lower_retention_deletes_what_is_stored(
    before: Setting | None, after: Setting | None, *, deletes: bool
) -> None:
    change = ChangeSetting(namespace="shop/orders", name=SettingName.RETENTION, before=before, after=after)

    assert (change.deletes_stored, change.loses_messages, change.takes_messages) == (deletes, deletes, False)
