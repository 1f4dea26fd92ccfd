"""Each kind of change: what it records before its call, what it does to whom, and how risky it is."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.coordinators import BeforeRaise
from pulsar_steward.changes.isolation import BeforeIsolation
from pulsar_steward.changes.kind import Before, ChangeKind
from pulsar_steward.changes.partitions import BeforePartitions
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.changes.setting import BeforeSetting
from pulsar_steward.changes.split import BeforeSplit
from pulsar_steward.changes.subscription import BeforeDeletion
from pulsar_steward.changes.unload import BeforeUnload
from pulsar_steward.guards.evaluate import GUARDS
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy, Reach
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.plan import ROLLBACK, Batch, Placement
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import (
    AddPartitions,
    Change,
    ChangeSetting,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    Touched,
)
from tests.builders import BUNDLE, CURSOR, a_batch, a_deletion, a_finding, a_move, a_plan, a_split, a_step, broker
from tests.cases import cases, row_by_row

HOLD = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.HOLD)
TTL = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
RAISE = RaiseCoordinators(before=2, after=5)
AUDIT = a_deletion("persistent://shop/orders/t")
MORE = AddPartitions(namespace="shop/orders", topic="persistent://shop/orders/t", before=2, after=4)
LIMITS = FailoverLimits("2", "80")
GROUP = IsolationPolicy(("shop/.*",), ("10.0.1.*",), (), Failover(LIMITS))
ISOLATION = SetIsolation(pulsar_cluster="local", policy="shop", before=None, after=GROUP)
EXAMPLES: tuple[Change, ...] = (a_move(), a_split(), TTL, RAISE, MORE, AUDIT, ISOLATION)


class UnknownChange(msgspec.Struct, frozen=True):
    """A change of no known kind."""

    namespace: str


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(change) for change in EXAMPLES} == set(get_args(Change))


def test_a_change_of_no_known_kind_is_taken_for_none() -> None:
    with pytest.raises(AssertionError, match="unreachable"):
        kind_of(UnknownChange("shop/orders"))  # type: ignore[arg-type]  # that is what is tried


@cases(
    "change, before, document",
    (
        "move",
        a_move(),
        BeforeUnload(owner="a:1", topic="persistent://t/n/x"),
        '{"owner":"a:1","topic":"persistent://t/n/x"}',
    ),
    ("split", a_split(), BeforeSplit(owner="a:1", bundles=[BUNDLE]), f'{{"bundles":["{BUNDLE}"],"owner":"a:1"}}'),
    ("not set", TTL, BeforeSetting(value=None), '{"value":null}'),
    ("set", TTL, BeforeSetting(value=TimeToLive(seconds=5)), '{"value":{"is":"ttl","seconds":5}}'),
    ("raise", RAISE, BeforeRaise(coordinators=2), '{"coordinators":2}'),
    ("partitions", MORE, BeforePartitions(partitions=2), '{"partitions":2}'),
    ("no policy", ISOLATION, BeforeIsolation(policy=None), '{"others":{},"policy":null}'),
    (
        "a policy",
        ISOLATION,
        BeforeIsolation(policy=None, others={"news": GROUP}),
        f'{{"others":{{"news":{msgspec.json.encode(GROUP, order="sorted").decode()}}},"policy":null}}',
    ),
    (
        "deletion",
        AUDIT,
        BeforeDeletion(entries=5, consumers=0, cursor=CURSOR),
        f'{{"consumers":0,"cursor":{msgspec.json.encode(CURSOR).decode()},"entries":5}}',
    ),
)
def test_what_is_recorded_before_a_change_can_be_read_back(change: Change, before: Before, document: str) -> None:
    assert msgspec.json.encode(msgspec.to_builtins(before), order="sorted").decode() == document
    assert kind_of(change).recorded(msgspec.json.decode(document)) == before


def test_who_reconnects_for_it() -> None:
    """A move makes a bundle's clients go to another broker, a split does not, and other changes disturb no bundle."""
    moved, split = kind_of(a_move()).disturbs, kind_of(a_split()).disturbs
    assert moved is not None
    assert split is not None
    assert (moved.owner_before, moved.owner_after, moved.moves) == (broker(0), broker(1), True)
    assert (split.owner_before, split.owner_after, split.moves) == (broker(0), broker(0), False)
    assert kind_of(TTL).disturbs is kind_of(RAISE).disturbs is kind_of(MORE).disturbs is kind_of(AUDIT).disturbs is None
    assert kind_of(ISOLATION).disturbs is None


def test_a_raise_says_that_there_is_no_way_back() -> None:
    kind = kind_of(RAISE)
    assert kind.describe() == ("raise the number of transaction coordinators from 2 to 5, which cannot be undone")
    assert str(kind.call()) == "POST /admin/v3/transactions/transactionCoordinator/replicas 5"
    assert (kind.undoable, kind.loses_messages, RAISE.namespace) == (False, False, "pulsar/system")


def test_more_partitions_say_what_becomes_of_keys() -> None:
    """A raise of the partitions says that it cannot be undone, and warns of keys that go to other partitions."""
    kind, warning = kind_of(MORE), kind_of(MORE).warning(a_step(MORE))
    assert kind.describe() == (
        "raise the number of partitions of persistent://shop/orders/t from 2 to 4, which cannot be undone"
    )
    assert str(kind.call()) == "POST /admin/v2/persistent/shop/orders/t/partitions 4"
    assert (kind.undoable, kind.loses_messages) == (False, False)
    assert warning is not None
    assert "consumed out of order" in str(warning.words)


def test_a_policy_is_set_and_deleted_so_that_bundles_stay() -> None:
    """Setting a policy needs the scope that unloads nothing; deleting it, which never unloads, needs no version."""
    kind, back = kind_of(ISOLATION), kind_of(ISOLATION.inverse)
    assert kind.describe() == ("isolation policy shop: none → shop/.* on 10.0.1.* (2 at least)")
    call = kind.call()
    assert isinstance(call.body, dict)
    assert call.path == "/admin/v2/clusters/local/namespaceIsolationPolicies/shop"
    assert (call.method, call.body["unload_scope"]) == ("POST", "none")
    assert (back.call().method, back.call().path) == ("DELETE", call.path)
    assert (kind.operation, back.operation) == (Operation.SET_ISOLATION, None)


def group(least: str = "2", usage: str = "80", **fields: tuple[str, ...]) -> IsolationPolicy:
    """The usual group with other fields."""
    return msgspec.structs.replace(GROUP, auto_failover_policy=Failover(FailoverLimits(least, usage)), **fields)


HELPED = group(secondary=("10.0.2.*",))
REACH = Reach(
    ("shop/carts", "shop/orders", "store/all"), ("10.0.1.1:8080", "10.0.1.2:8080", "10.0.2.1:8080", "10.0.3.1:8080")
)


@cases(
    "before, after, headline, words",
    ("set", None, GROUP, "keeps other namespaces from the group's brokers", "on 10.0.1.1:8080, 10.0.1.2:8080 any"),
    (
        "deleted",
        GROUP,
        None,
        "gives the group's brokers to all",
        "bundles of shop/carts, shop/orders may be",
    ),
    (
        "more brokers",
        GROUP,
        group(primary=("10.0.[13].*",)),
        "keeps other namespaces from",
        "on 10.0.3.1:8080 any",
    ),
    ("fewer brokers", GROUP, group(primary=("10.0.1.1",)), "takes brokers from the group", "on 10.0.1.2:8080 any more"),
    ("wider", GROUP, group(namespaces=("s.*/.*",)), "keeps 1 more namespace to the group's", "store/all may be on no"),
    (
        "narrower",
        GROUP,
        group(namespaces=("shop/o.*",)),
        "takes the group's brokers from 1 namespace",
        "shop/carts are",
    ),
    ("no secondary", HELPED, GROUP, "drops secondary brokers", "no broker of 10.0.2.* helps shop/carts, shop/orders"),
    (
        "later help",
        HELPED,
        group("1", secondary=HELPED.secondary),
        "help later",
        "fewer than 1 of the primary brokers run",
    ),
)
def test_a_policy_warns_of_what_somebody_loses(
    before: IsolationPolicy | None, after: IsolationPolicy | None, headline: str, words: str
) -> None:
    change = msgspec.structs.replace(ISOLATION, before=before, after=after)
    warning = kind_of(change).warning(a_step(change, reach=REACH))
    assert warning is not None
    assert headline in warning.headline
    assert words in str(warning.words)


@row_by_row(
    "before, after",
    (GROUP, HELPED),
    (GROUP, group("3")),
    (GROUP, group(usage="90")),
)
def test_a_policy_that_takes_nothing_from_anybody_warns_of_nothing(
    before: IsolationPolicy, after: IsolationPolicy
) -> None:
    change = msgspec.structs.replace(ISOLATION, before=before, after=after)
    assert kind_of(change).warning(a_step(change, reach=REACH)) is None


@cases(
    "after, words",
    ("its threshold", group(usage="90"), "usage_threshold 80 → shop/.* on 10.0.1.* (2 at least), usage_threshold 90"),
    ("no failover", group("0"), "(2 at least) → shop/.* on 10.0.1.* (0 at least)"),
    ("a number as text", msgspec.structs.replace(GROUP, auto_failover_policy=Failover(FailoverLimits(2, "80"))), ":2,"),
)
def test_policies_that_differ_never_read_alike(after: IsolationPolicy, words: str) -> None:
    """Whatever they differ in is shown."""
    told = kind_of(msgspec.structs.replace(ISOLATION, before=GROUP, after=after)).describe()
    before, _, then = told.partition(": ")[2].partition(" → ")
    assert before != then
    assert words in told


@pytest.mark.parametrize("name", [SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA])
def test_the_guard_that_a_warning_quotes_exists(name: SettingName) -> None:
    change = ChangeSetting(
        namespace="shop/orders", name=name, before=None, after=msgspec.structs.replace(HOLD, limit_seconds=60)
    )
    warning = kind_of(change).warning(a_step(change))
    assert warning is not None
    assert warning.guard in {guard.name for guard in GUARDS}


@pytest.mark.parametrize("left_out", sorted(ChangeKind.__abstractmethods__ | {"inverse", "record"}))
def test_a_kind_that_leaves_something_out_cannot_be_used(left_out: str) -> None:
    """A kind of change that lacks a method cannot be instantiated, as methods have no defaults."""
    half = type("Half", (ChangeKind,), dict.fromkeys(ChangeKind.__abstractmethods__ - {left_out}))
    with pytest.raises(TypeError, match=f"abstract method '?{left_out}"):
        half(TTL)


@cases(
    "before, after, warned",
    ("more room", 10, 20, False),
    ("less room", 20, 10, True),
    ("the first", None, 20, True),
    ("instead of none", -1, 20, True),
)
def test_a_quota_with_more_room_stops_nobody_anew(before: int | None, after: int, warned: bool) -> None:
    quotas = [
        None if limit is None else BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.HOLD) for limit in (before, after)
    ]
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=quotas[0], after=quotas[1], inherited=None
    )
    assert (kind_of(change).warning(a_step(change)) is not None) is warned


SEEN_TWICE = (msgspec.structs.replace(a_finding(), snapshots_in_a_row=2),)
BACK = ChangeSetting(namespace="shop/orders", name=SettingName.RETENTION, before=None, after=None)
NOBODY = Touched(producers=0, consumers=0, topics=0, coordinators=0)
FEW = Touched(producers=1, consumers=2, topics=3, coordinators=0)

LONGER = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.RETENTION,
    before=Retention(minutes=60, megabytes=-1),
    after=Retention(minutes=120, megabytes=-1),
)
SHORTER = LONGER.inverse
HOLDS = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.SIZE_QUOTA,
    before=None,
    after=BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.HOLD),
)
EVICTS = msgspec.structs.replace(HOLDS, after=BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.EVICT))
EXPIRES = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=3600))
SPLIT = SplitBundle(
    namespace="shop/orders",
    bundle="0x00000000_0x10000000",
    owner=broker(1),
    algorithm="range_equally_divide",
    halves=("0x00000000_0x08000000", "0x08000000_0x10000000"),
)


def a_settled_batch(change: Any = None, *, touched: Touched = FEW, undo: Any = BACK, **fields: Any) -> Batch:
    """A batch of one step, whose finding two snapshots show."""
    given = {name: fields.pop(name) for name in ("loss",) if name in fields}
    step = a_step(change, touched=touched, undo=undo, **given)
    return a_batch(step, **{"findings": SEEN_TWICE, **fields})


def level(batch: Batch, **of_plan: Any) -> Risk:
    """Level of a batch's risk."""
    return risk_of(a_plan(batch, **of_plan), batch).level


@row_by_row(
    "change, fields, risk",
    (LONGER, {"touched": NOBODY}, Risk.LOW),
    (None, {}, Risk.LOW),
    (HOLDS, {"touched": NOBODY}, Risk.MEDIUM),
    (SPLIT, {}, Risk.MEDIUM),
    (RaiseCoordinators(before=2, after=5), {"touched": NOBODY}, Risk.MEDIUM),
    (SHORTER, {}, Risk.CRITICAL),
    (SHORTER, {"loss": Loss(messages=0, bytes=None)}, Risk.CRITICAL),
    (SHORTER, {"loss": Loss(messages=0, bytes=10**9)}, Risk.HIGH),
    (EXPIRES, {}, Risk.CRITICAL),
    (EXPIRES, {"loss": NOTHING_LOST}, Risk.HIGH),
    (EVICTS, {}, Risk.CRITICAL),
    (EVICTS, {"loss": NOTHING_LOST}, Risk.HIGH),
    (EVICTS, {"loss": Loss(messages=1, bytes=100)}, Risk.CRITICAL),
)
def test_the_level_is_of_what_is_lost_and_cannot_be_undone(change: Any, fields: dict[str, Any], risk: Risk) -> None:
    assert level(a_settled_batch(change, **fields)) is risk


@row_by_row(
    "touched, risk",
    (Touched(producers=500, consumers=499, topics=999, coordinators=0), Risk.LOW),
    (Touched(producers=500, consumers=500, topics=1, coordinators=0), Risk.MEDIUM),
    (Touched(producers=0, consumers=0, topics=1_000, coordinators=0), Risk.MEDIUM),
    (Touched(producers=10_000, consumers=0, topics=1, coordinators=0), Risk.HIGH),
    (Touched(producers=0, consumers=0, topics=10_000, coordinators=0), Risk.HIGH),
    (Touched(producers=0, consumers=0, topics=1, coordinators=500), Risk.LOW),
)
def test_the_level_is_of_whom_it_touches(touched: Touched, risk: Risk) -> None:
    """The risk grows with the clients that reconnect and with the partitions that are not served meanwhile."""
    assert level(a_settled_batch(touched=touched)) is risk


def test_steps_count_together() -> None:
    steps = [a_step(touched=Touched(producers=100, consumers=0, topics=1, coordinators=0), undo=BACK)] * 10
    assert level(a_batch(*steps, findings=SEEN_TWICE)) is Risk.MEDIUM


@pytest.mark.parametrize(("brokers", "risk"), [(2, Risk.MEDIUM), (4, Risk.MEDIUM), (5, Risk.LOW)])
def test_the_level_is_of_the_share_of_brokers(brokers: int, risk: Risk) -> None:
    listed = tuple(Placement(broker(number), 3) for number in range(1, brokers + 1))
    batch = a_settled_batch()
    move = batch.steps[0].change
    names = {getattr(move, "source", ""), getattr(move, "target", "")}
    others = tuple(each for each in listed if each.broker not in names)[: brokers - len(names)]
    before = (*(Placement(name, 3) for name in sorted(names)), *others)
    assert level(msgspec.structs.replace(batch, before=before)) is risk


@row_by_row(
    "fields, of_plan, calm, losing",
    ({}, {}, Risk.LOW, Risk.HIGH),
    ({"findings": (a_finding(),)}, {}, Risk.LOW, Risk.CRITICAL),
    ({"findings": ()}, {}, Risk.MEDIUM, Risk.CRITICAL),
    ({}, {"unread": ("broker-09:8080",)}, Risk.MEDIUM, Risk.CRITICAL),
    ({"findings": (), "kind": ROLLBACK}, {}, Risk.LOW, Risk.HIGH),
)
def test_thin_evidence_makes_what_loses_messages_critical(
    fields: dict[str, Any], of_plan: dict[str, Any], calm: Risk, losing: Risk
) -> None:
    assert level(a_settled_batch(LONGER, touched=NOBODY, **fields), **of_plan) is calm
    assert level(a_settled_batch(SHORTER, touched=NOBODY, loss=NOTHING_LOST, **fields), **of_plan) is losing


def test_the_gravest_reason_comes_first_and_none_is_left_out() -> None:
    batch = a_batch(a_step(EVICTS, loss=Loss(messages=7, bytes=100)), a_step(SPLIT), a_step(HOLDS, undo=BACK))
    reasons = risk_of(a_plan(batch), batch).reasons
    assert [reason.level for reason in reasons] == sorted((each.level for each in reasons), key=lambda each: -each.rank)
    assert len(reasons) == 9
    words = " ".join(reason.words for reason in reasons)
    for part in ("7 entries", "100 B", "cannot be undone", "stops producers", "9 clients", "one snapshot alone"):
        assert part in words


def test_a_batch_without_any_has_a_reason_too() -> None:
    batch = a_settled_batch(LONGER, touched=NOBODY)
    (reason,) = risk_of(a_plan(batch), batch).reasons
    assert (reason.level, "nothing is lost" in reason.words) == (Risk.LOW, True)
