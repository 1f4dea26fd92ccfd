"""Every kind of change answers everything that is asked of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec
import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.coordinators import BeforeRaise
from pulsar_steward.changes.kind import ChangeKind
from pulsar_steward.changes.partitions import BeforePartitions
from pulsar_steward.changes.setting import BeforeSetting
from pulsar_steward.changes.split import BeforeSplit
from pulsar_steward.changes.subscription import BeforeDeletion
from pulsar_steward.changes.unload import BeforeUnload
from pulsar_steward.guards.evaluate import GUARDS
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import AddPartitions, Change, ChangeSetting, RaiseCoordinators
from tests.builders import BUNDLE, CURSOR, a_deletion, a_move, a_split, broker

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import Before

HOLD = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.HOLD)
TTL = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
RAISE = RaiseCoordinators(before=2, after=5)
AUDIT = a_deletion("persistent://shop/orders/t")
MORE = AddPartitions(namespace="shop/orders", topic="persistent://shop/orders/t", before=2, after=4)
EXAMPLES: tuple[Change, ...] = (a_move(), a_split(), TTL, RAISE, MORE, AUDIT)


class UnknownChange(msgspec.Struct, frozen=True):
    """A change of no known kind."""

    namespace: str


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(change) for change in EXAMPLES} == set(get_args(Change))


def test_a_change_of_no_known_kind_is_taken_for_none() -> None:
    with pytest.raises(AssertionError, match="unreachable"):
        kind_of(UnknownChange("shop/orders"))  # type: ignore[arg-type]  # that is what is tried


@pytest.mark.parametrize(
    ("change", "before", "document"),
    [
        (
            a_move(),
            BeforeUnload(owner="a:1", topic="persistent://t/n/x"),
            '{"owner":"a:1","topic":"persistent://t/n/x"}',
        ),
        (a_split(), BeforeSplit(owner="a:1", bundles=[BUNDLE]), f'{{"bundles":["{BUNDLE}"],"owner":"a:1"}}'),
        (TTL, BeforeSetting(value=None), '{"value":null}'),
        (TTL, BeforeSetting(value=TimeToLive(seconds=5)), '{"value":{"is":"ttl","seconds":5}}'),
        (RAISE, BeforeRaise(coordinators=2), '{"coordinators":2}'),
        (MORE, BeforePartitions(partitions=2), '{"partitions":2}'),
        (
            AUDIT,
            BeforeDeletion(entries=5, consumers=0, cursor=CURSOR),
            f'{{"consumers":0,"cursor":{msgspec.json.encode(CURSOR).decode()},"entries":5}}',
        ),
    ],
    ids=["move", "split", "not set", "set", "raise", "partitions", "deletion"],
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


def test_a_raise_says_that_there_is_no_way_back() -> None:
    kind = kind_of(RAISE)
    assert kind.describe() == ("raise the number of transaction coordinators from 2 to 5, which cannot be undone")
    assert str(kind.call()) == "POST /admin/v3/transactions/transactionCoordinator/replicas 5"
    assert (kind.undoable, kind.loses_messages, RAISE.namespace) == (False, False, "pulsar/system")


def test_more_partitions_say_what_becomes_of_keys() -> None:
    """A raise of the partitions says that it cannot be undone, and warns of keys that go to other partitions."""
    kind, warning = kind_of(MORE), kind_of(MORE).warning(None)
    assert kind.describe() == (
        "raise the number of partitions of persistent://shop/orders/t from 2 to 4, which cannot be undone"
    )
    assert str(kind.call()) == "POST /admin/v2/persistent/shop/orders/t/partitions 4"
    assert (kind.undoable, kind.loses_messages) == (False, False)
    assert warning is not None
    assert "consumed out of order" in str(warning.words)


@pytest.mark.parametrize("name", [SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA])
def test_the_guard_that_a_warning_quotes_exists(name: SettingName) -> None:
    change = ChangeSetting(namespace="shop/orders", name=name, before=None, after=HOLD)
    warning = kind_of(change).warning(None)
    assert warning is not None
    assert warning.guard in {guard.name for guard in GUARDS}


def test_a_kind_that_leaves_something_out_cannot_be_used() -> None:
    """A kind of change that lacks methods cannot be instantiated, as they have no defaults."""

    class Half(ChangeKind[ChangeSetting, BeforeSetting]):
        """A kind that says nothing."""

    with pytest.raises(TypeError, match="abstract"):
        Half(TTL)  # type: ignore[abstract]  # that is what is tried


@pytest.mark.parametrize(
    ("before", "after", "warned"),
    [(10, 20, False), (20, 10, True), (None, 20, True), (-1, 20, True)],
    ids=["more room", "less room", "the first", "instead of none"],
)
def test_a_quota_with_more_room_stops_nobody_anew(before: int | None, after: int, warned: bool) -> None:
    quotas = [
        None if limit is None else BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.HOLD) for limit in (before, after)
    ]
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=quotas[0], after=quotas[1], inherited=None
    )
    assert (kind_of(change).warning(None) is not None) is warned
