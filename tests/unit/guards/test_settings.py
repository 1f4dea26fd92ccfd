"""Guards of settings: what somebody else set is left alone, and nothing acts the moment that it is set."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import NOTHING_TAKEN, BacklogAges
from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.facts.unknown import BOOKIES_UNKNOWN, scalable_unknown
from pulsar_steward.guards.evaluate import evaluate, guards_of, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.settings import BookiesEnough, CopiesKept, LongestDelay, ScalableTopics
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
)
from pulsar_steward.model.step import ChangeSetting, Step
from tests.builders import Seen, a_look, a_policy, a_step
from tests.cases import cases, row_by_row

GIB = 1 << 30
QUOTA = BacklogQuota(limit_bytes=10 * GIB, policy=QuotaPolicy.HOLD)
CHANGE = ChangeSetting(namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=None, after=QUOTA)
TTL = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))


def view(now: BacklogQuota | None = None, backlog: int | None = 0, protected: tuple[str, ...] = ()) -> Seen:
    """A namespace's quota as it stands."""
    return a_look(
        a_policy(apply={"protected_namespaces": protected}),
        active=frozenset(),
        setting=now,
        largest_backlog=backlog,
        quotas_are_checked=True,
        clock_difference=0,
        delayed_messages=0,
        taken=NOTHING_TAKEN,
    )


EVICT = QuotaPolicy.EVICT
DAY, KEPT_A_DAY = TimeToLive(seconds=86_400), Retention(minutes=1440, megabytes=-1)
OBEY = "their segments would obey it too"


def a_quota(limit_bytes: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_bytes=limit_bytes, policy=policy)


def a_change(before: Setting | None, after: Setting | None) -> ChangeSetting:
    """A change of the namespace's own value, where no value is inherited."""
    names: dict[type, SettingName] = {
        BacklogQuota: SettingName.SIZE_QUOTA,
        Persistence: SettingName.PERSISTENCE,
        Retention: SettingName.RETENTION,
        TimeToLive: SettingName.TTL,
    }
    name = names[type(before or after)]
    return ChangeSetting(namespace="shop/orders", name=name, before=before, after=after, inherited=None)


SCALED = ("topic://shop/orders/a", "topic://shop/orders/b")


@row_by_row(
    "change, told, planning, words",
    (TTL, (), False, None),
    (TTL, SCALED, False, "shop/orders has 2 scalable topics, such as topic://shop/orders/a: their segments would obey"),
    (CHANGE, SCALED, True, "shop/orders has 2 scalable topics"),
    (TTL, scalable_unknown("shop/orders"), False, "which scalable topics shop/orders has is not known"),
    (TTL, scalable_unknown("shop/orders"), True, None),  # brokers are asked right before the call
    (msgspec.structs.replace(TTL, topic="persistent://shop/orders/t"), SCALED, False, None),
    (a_change(Persistence(ensemble=3, write_quorum=3, ack_quorum=2, rate="0"), None), SCALED, False, None),
    (a_change(DAY, None), SCALED, False, None),
    (a_change(DAY, TimeToLive(seconds=60)), SCALED, False, OBEY),
    (a_change(TimeToLive(seconds=60), DAY), SCALED, False, None),
    (TTL.inverse, SCALED, False, OBEY),  # nobody knows which one applies then
    (CHANGE.inverse, SCALED, False, OBEY),
    (a_change(QUOTA, None), SCALED, False, None),
    (a_change(QUOTA, None), scalable_unknown("shop/orders"), False, None),
    (a_change(QUOTA, a_quota(11 * GIB)), SCALED, False, None),
    (a_change(QUOTA, a_quota(-1)), SCALED, False, None),
    (a_change(QUOTA, a_quota(10 * GIB, QuotaPolicy.REFUSE)), SCALED, False, None),
    (a_change(a_quota(11 * GIB), QUOTA), SCALED, False, OBEY),
    (a_change(QUOTA, a_quota(0)), SCALED, False, OBEY),  # full without a message
    (a_change(a_quota(-1), QUOTA), SCALED, False, OBEY),
    (a_change(a_quota(10 * GIB, EVICT), QUOTA), SCALED, False, OBEY),
    (a_change(QUOTA, a_quota(20 * GIB, EVICT)), SCALED, False, OBEY),
    (a_change(a_quota(10 * GIB, EVICT), a_quota(9 * GIB, EVICT)), SCALED, False, OBEY),
    (a_change(a_quota(10 * GIB, EVICT), a_quota(0, EVICT)), SCALED, False, OBEY),
    (a_change(a_quota(9 * GIB, EVICT), a_quota(10 * GIB, EVICT)), SCALED, False, None),
    (a_change(KEPT_A_DAY, None), SCALED, False, OBEY),
    (a_change(None, KEPT_A_DAY), SCALED, False, None),
)
def test_scalable_topics_lose_nothing_and_keep_their_producers(
    change: ChangeSetting, told: object, words: str | None, *, planning: bool
) -> None:
    """What takes messages or stops producers is refused; what takes less, or lets more in, passes, rollbacks too."""
    result = ScalableTopics().check(a_step(change), *a_look(scalable_topics=told, planning=planning))
    assert result.passed is (words is None)
    assert (words or "") in result.reason


def test_guards_of_settings_only_look_at_settings() -> None:
    assert [result.guard for result in evaluate(a_step(CHANGE), *view())] == [
        "same_cluster",
        "fresh_snapshot",
        "whole_cluster",
        "version_tried",
        "proved_first",
        "setting_as_planned",
        "one_cluster",
        "scalable_topics",
        "quota_room",
        "age_room",
        "own_cursors",
        "quota_held",
        "loss_as_approved",
        "quotas_checked",
        "clocks",
        "delayed_kept",
        "longest_delay",
        "copies_kept",
        "bookies_enough",
        "window",
        "limits",
        "protected",
    ]


@row_by_row(
    "seen, objection, words",
    (view(), None, ""),
    (view(backlog=9 * GIB), None, ""),
    (view(backlog=9 * GIB + 1), Objection.REFUSED, "producer_request_hold would act at once"),
    (view(backlog=None), Objection.REFUSED, "are not known"),
    (view(now=QUOTA), Objection.DRIFTED, "no longer not set"),
    (view(now=QUOTA, backlog=None), Objection.DRIFTED, "setting_as_planned"),
    (view(protected=("shop/orders",)), Objection.REFUSED, "is protected"),
)
def test_what_is_said_of_a_new_quota(seen: Seen, objection: Objection | None, words: str) -> None:
    said = objection_to(a_step(CHANGE), *seen)

    assert (said and said[0]) == objection
    assert words in (said[1] if said else "")


@pytest.mark.parametrize("limit", [0, 1])
def test_a_quota_of_nothing_is_full_without_a_message(limit: int) -> None:
    """A broker stops producers from the limit itself on: a limit of 0 does so at once, one of a byte does not."""
    change = msgspec.structs.replace(CHANGE, after=BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.HOLD))

    assert (objection_to(a_step(change), *view()) is not None) == (limit == 0)


def test_other_settings_need_no_room() -> None:
    """A time to live passes although the sizes of backlogs are unknown."""
    assert objection_to(a_step(TTL), *view(backlog=None)) is None


REMOVED = ChangeSetting(
    namespace="shop/orders", name=SettingName.SIZE_QUOTA, before=QUOTA, after=None, inherited=msgspec.UNSET
)
SMALLER = msgspec.structs.replace(QUOTA, limit_bytes=GIB)
BY_AGE = BacklogQuota(limit_seconds=3600, policy=QuotaPolicy.HOLD)


@cases(
    "change, inherited, words",
    ("nothing applies", REMOVED, None, ""),
    ("a smaller quota applies", REMOVED, SMALLER, "producer_request_hold would act at once"),
    (
        "it is not known",
        REMOVED,
        msgspec.UNSET,
        "which size quota shop/orders would inherit is not known",
    ),
    (
        "it is not known, of an age",
        msgspec.structs.replace(REMOVED, name=SettingName.AGE_QUOTA, before=BY_AGE),
        msgspec.UNSET,
        "which age quota shop/orders would inherit is not known",
    ),
)
def test_a_quota_that_is_removed_is_judged_by_what_applies_then(
    change: ChangeSetting, inherited: BacklogQuota | msgspec.UnsetType | None, words: str
) -> None:
    step = a_step(msgspec.structs.replace(change, inherited=inherited))
    (facts, policy) = view(now=change.before, backlog=2 * GIB)  # type: ignore[arg-type]  # quotas, as above

    said = objection_to(step, facts, policy)

    assert words in (said[1] if said else "")
    assert (said is None) is (words == "")


def test_another_inherited_value_than_planned_is_drift() -> None:
    change = msgspec.structs.replace(CHANGE, inherited=SMALLER)
    facts, policy = view()
    assert objection_to(a_step(change), facts, policy) is None

    changed, policy = a_look(
        active=frozenset(),
        inherited=None,
        largest_backlog=0,
        quotas_are_checked=True,
        clock_difference=0,
        delayed_messages=0,
    )

    words = (
        "setting_as_planned: where none is set on shop/orders, the size quota is not set, no longer 1 GiB;"
        " when exceeded, hold producers"
    )
    assert objection_to(a_step(change), changed, policy) == (Objection.DRIFTED, words)


TOPIC = "persistent://shop/orders/t"
ANY = DelayedDelivery(active=True, tick_milliseconds=1000)
HOUR, TWO = (DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=n * 3_600_000) for n in (1, 2))
NOT_TOLD = BacklogAges(waiting=3, unknown=3, why_unknown="nobody tells")


def step(after: Setting | None, before: Setting | None = None, **fields: Any) -> Step:
    """A step that sets delayed delivery."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.DELAYED_DELIVERY, before=before, after=after)
    return a_step(change, **fields)


def oldest(seconds: int) -> BacklogAges:
    return BacklogAges(oldest_seconds=seconds, topic=TOPIC, waiting=1)


@cases(
    "made, told, passed, words",
    ("room", step(HOUR), {"backlog_ages": oldest(3600)}, True, "no message is known to wait for longer than 1 h"),
    ("too old", step(HOUR), {"backlog_ages": oldest(7200)}, False, "waits for 2 h already: longer delays than 1 h may"),
    ("tighter", step(HOUR, TWO), {"backlog_ages": oldest(7200)}, False, "may be in use"),
    ("first", step(HOUR, ANY), {"backlog_ages": oldest(7200)}, False, "may be in use"),
    ("looser", step(TWO, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
    ("none", step(ANY, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
    ("removed", step(None, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
    ("live", step(HOUR), {"backlog_ages": NOT_TOLD}, False, "of 3 topics with a backlog its age is not known: nobody"),
    ("at planning", step(HOUR), {"backlog_ages": NOT_TOLD, "planning": True}, True, "no message is known"),
    ("unknown", step(HOUR), {"backlog_ages": None}, False, "is not known"),
)
def test_what_waits_for_longer_stops_it(made: Step, told: dict[str, Any], *, passed: bool, words: str) -> None:
    result = LongestDelay().check(made, *a_look(**told))

    assert (result.passed, result.guard) == (passed, "longest_delay")
    assert words in result.reason


def test_a_rollback_is_held_against_it_as_well() -> None:
    for undoes in (None, "older/b1.s01"):
        assert "longest_delay" in {guard.name for guard in guards_of(step(HOUR, undoes=undoes))}


THREE = Persistence.of((3, 2, 2), 1.0)


def quorums(*numbers: int) -> Persistence:
    """A persistence with these E, Qw and Qa."""
    ensemble, write, ack = numbers
    return Persistence.of((ensemble, write, ack), 1.0)


def persisting(after: Persistence | None, before: Persistence | None = THREE, **fields: Any) -> Step:
    """A persisting that sets persistence; `inherited` is what the brokers' default is."""
    inherited = fields.pop("inherited", msgspec.UNSET)
    name = SettingName.PERSISTENCE
    change = ChangeSetting(namespace="shop/orders", name=name, before=before, after=after, inherited=inherited)
    return a_step(change, **fields)


@cases(
    "made, passed, words",
    ("rate", persisting(Persistence.of((3, 2, 2), 0.1)), True, "no fewer copies than now"),
    ("striping", persisting(quorums(2, 2, 2)), True, "no fewer copies"),
    ("more", persisting(quorums(3, 3, 2)), True, "no fewer copies"),
    ("Qw", persisting(quorums(3, 1, 1)), False, "fewer copies than E 3, Qw 2, Qa 2 (policy key guards.fewer_copies)"),
    ("Qa", persisting(quorums(3, 2, 1)), False, "fewer copies"),
    ("E<Qw", persisting(quorums(2, 3, 2)), False, "E has to be at least Qw"),
    ("Qw<Qa", persisting(quorums(3, 2, 3)), False, "Qw at least Qa"),
    ("to default", persisting(None, inherited=quorums(2, 2, 2)), True, "no fewer copies"),
    ("to fewer", persisting(None, inherited=quorums(1, 1, 1)), False, "fewer copies"),
    ("unknown", persisting(None), False, "is not known"),
    ("unknown before", persisting(quorums(9, 9, 9), None), False, "is not known"),
)
def test_copies_become_no_fewer(made: Step, *, passed: bool, words: str) -> None:
    """Neither Qw nor Qa is lowered; what applies before or after has to be known."""
    result = CopiesKept().check(made, *a_look())
    assert (result.passed, result.guard) == (passed, "copies_kept")
    assert words in result.reason


def test_fewer_copies_are_permitted_by_the_policy_alone() -> None:
    permitting = a_policy(guards={"fewer_copies": True})
    assert CopiesKept().check(persisting(quorums(3, 1, 1)), *a_look(permitting)).passed
    assert not CopiesKept().check(persisting(quorums(2, 3, 1)), *a_look(permitting)).passed


ONE_READ_ONLY = Bookies(listed=2, writable=1, read_only=1)


@cases(
    "made, bookies, passed, words",
    ("rate", persisting(Persistence.of((3, 2, 2), 0.1)), Bookies(listed=1), True, "E 3 and Qw 2 stay as they are"),
    ("lower", persisting(quorums(2, 2, 2)), Bookies(listed=2), True, "E 2 of 2 bookies that may take writes"),
    ("read-only", persisting(quorums(2, 2, 2)), ONE_READ_ONLY, False, "no ledger could be made"),
    ("too few", persisting(quorums(2, 2, 2)), Bookies(listed=1), False, "no ledger could be made"),
    ("raised", persisting(quorums(4, 2, 2)), Bookies(listed=4, writable=3), False, "only 3 of them are known to"),
    ("known", persisting(quorums(4, 2, 2)), Bookies(listed=4, writable=4), True, "E 4 of 4 bookies"),
    ("more copies", persisting(quorums(3, 3, 2)), Bookies(listed=4), False, "only 0 of them are known to"),
    ("unknown", persisting(None), Bookies(listed=4), False, "is not known"),
    ("not told", persisting(quorums(2, 2, 2)), BOOKIES_UNKNOWN, False, "how many bookies there are is not known"),
)
def test_no_more_bookies_than_take_writes(made: Step, bookies: object, *, passed: bool, words: str) -> None:
    """A lower E needs bookies that may be writable; a higher E or Qw needs bookies that are known to be."""
    result = BookiesEnough().check(made, *a_look(bookies=bookies))
    assert (result.passed, result.guard) == (passed, "bookies_enough")
    assert words in result.reason


def test_the_way_back_is_guarded_too_and_other_settings_pass() -> None:
    both = {"copies_kept", "bookies_enough"}
    assert both <= {guard.name for guard in guards_of(persisting(THREE, undoes="older/b1.s01"))}
    other = a_step(ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60)))
    assert all(guard().check(other, *a_look(bookies=None)).passed for guard in (CopiesKept, BookiesEnough))
