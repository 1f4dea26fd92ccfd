"""Guards of settings: what somebody else set is left alone, and no quota acts the moment that it is set."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.facts.backlogs import NOTHING_TAKEN
from pulsar_steward.guards.evaluate import evaluate, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.builders import Seen, a_look, a_policy, a_step

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


def test_guards_of_settings_only_look_at_settings() -> None:
    assert [result.guard for result in evaluate(a_step(CHANGE), *view())] == [
        "same_cluster",
        "fresh_snapshot",
        "whole_cluster",
        "version_tried",
        "proved_first",
        "setting_as_planned",
        "one_cluster",
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


@pytest.mark.parametrize(
    ("seen", "objection", "words"),
    [
        (view(), None, ""),
        (view(backlog=9 * GIB), None, ""),
        (view(backlog=9 * GIB + 1), Objection.REFUSED, "producer_request_hold would act at once"),
        (view(backlog=None), Objection.REFUSED, "are not known"),
        (view(now=QUOTA), Objection.DRIFTED, "no longer not set"),
        (view(now=QUOTA, backlog=None), Objection.DRIFTED, "setting_as_planned"),
        (view(protected=("shop/orders",)), Objection.REFUSED, "is protected"),
    ],
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


@pytest.mark.parametrize(
    ("change", "inherited", "words"),
    [
        (REMOVED, None, ""),
        (REMOVED, SMALLER, "producer_request_hold would act at once"),
        (REMOVED, msgspec.UNSET, "which size quota applies to shop/orders once none is set there is not known"),
        (
            msgspec.structs.replace(REMOVED, name=SettingName.AGE_QUOTA, before=BY_AGE),
            msgspec.UNSET,
            "which age quota applies to shop/orders once none is set there is not known",
        ),
    ],
    ids=["nothing applies", "a smaller quota applies", "it is not known", "it is not known, of an age"],
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
        "setting_as_planned: where none is set on shop/orders, the size quota is not set, no longer 1 GiB, then"
        " producer_request_hold"
    )
    assert objection_to(a_step(change), changed, policy) == (Objection.DRIFTED, words)
