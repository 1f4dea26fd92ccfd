"""A retention that is far too long: lowered above every quota, after the quotas, and never silently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting
from tests.builders import a_policy
from tests.cases import cases
from tests.unit.planners.proposals import changes
from tests.unit.planners.test_settings import DAY, GIB, MIB, NAMESPACE, proposed, size

if TYPE_CHECKING:
    from tests.golden import Golden

FOUND = "retention-too-long"


def kept(minutes: int, megabytes: int) -> Retention:
    """A retention."""
    return Retention(minutes=minutes, megabytes=megabytes)


def with_quotas(retention: Retention, gibibytes: int = 0, hours: int = 0) -> dict[SettingName, Setting]:
    """A namespace's own settings."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: retention}
    if gibibytes:
        own[SettingName.SIZE_QUOTA] = size(gibibytes * GIB)
    if hours:
        own[SettingName.AGE_QUOTA] = BacklogQuota(limit_seconds=hours * 3600, policy=QuotaPolicy.HOLD)
    return own


@cases(
    "own, known, expected",
    ("time", with_quotas(kept(30 * DAY, -1)), {}, kept(3 * DAY, -1)),
    ("age quota", with_quotas(kept(30 * DAY, -1), hours=90), {}, kept(100 * 60, -1)),
    ("topic's age", with_quotas(kept(30 * DAY, -1)), {"topic_quotas": (0, 90 * 3600)}, kept(100 * 60, -1)),
    ("size quota", with_quotas(kept(-1, 102_400), 9), {}, kept(-1, 10_240)),
    ("topic's size", with_quotas(kept(-1, 102_400)), {"topic_quotas": (9 * GIB, 0)}, kept(-1, 10_240)),
    ("backlog", with_quotas(kept(-1, 102_400)), {"backlog": 6 * GIB}, kept(-1, 10_240)),
    ("outage", with_quotas(kept(-1, 409_600)), {"rate": float(MIB)}, kept(-1, 96_000)),
    ("both", with_quotas(kept(30 * DAY, 102_400), 9), {}, kept(3 * DAY, 10_240)),
    ("short already", with_quotas(kept(2 * DAY, 102_400), 9), {}, kept(2 * DAY, 10_240)),
)
def test_it_is_lowered_to_what_quota_and_outage_need(
    own: dict[SettingName, Setting], known: dict[str, Any], expected: Retention
) -> None:
    proposal = proposed(own, FOUND, consumed_bytes=GIB, **known)

    assert changes(proposal) == [(SettingName.RETENTION, expected)]


def test_what_it_deletes_is_said_and_has_to_be_confirmed(golden: Golden) -> None:
    """A step that lowers a retention counts as losing messages, and states the largest loss and that it is final."""
    (batch,) = proposed(with_quotas(kept(30 * DAY, -1)), FOUND, consumed_bytes=5 * GIB).batches
    (step,) = batch.steps

    assert isinstance(step.change, ChangeSetting)
    assert step.change.loses_messages
    assert step.loss == Loss(messages=0, bytes=5 * GIB)
    golden(step.why)
    golden(step.undo_note)
    assert batch.kind == "retention"


def test_it_comes_after_the_quotas() -> None:
    """The retention is lowered after the size quota is set, and the age quota is a share of the lower retention."""
    proposal = proposed(with_quotas(kept(30 * DAY, 409_600)), FOUND, "backlog-quota-missing", backlog=6 * GIB)

    assert changes(proposal) == [
        (SettingName.SIZE_QUOTA, size(9 * GIB)),
        (SettingName.RETENTION, kept(3 * DAY, 10_240)),
        (SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=54 * 3600, policy=QuotaPolicy.HOLD)),
    ]


@cases(
    "own, checks, known",
    ("a quota needs it", with_quotas(kept(30 * DAY, -1), hours=27 * 24), (FOUND,), {}),
    (
        "a backlog needs more",
        with_quotas(kept(30 * DAY, 10)),
        (FOUND, "retention-too-short"),
        {"outgrown": (40 * MIB, 60)},
    ),
    (
        "the policy keeps it",
        with_quotas(kept(30 * DAY, -1)),
        (FOUND,),
        {"policy": a_policy(retention_remedy={"keep_hours": 30 * 24})},
    ),
)
def test_what_is_needed_is_kept(
    own: dict[SettingName, Setting], checks: tuple[str, ...], known: dict[str, Any]
) -> None:
    """A retention that a quota, a backlog or the policy needs is not lowered, and a note says so."""
    proposal = proposed(own, *checks, **known)

    lowered = [value for name, value in changes(proposal) if isinstance(value, Retention) and value.minutes < 30 * DAY]
    assert not lowered
    assert f"{NAMESPACE}: its retention is not lowered" in " ".join(proposal.notes)


def test_a_size_stays_where_it_is_not_known_how_much_comes_in() -> None:
    """What is retained outlasts an outage by the busiest topic's throughput: one that is no number is not 0."""
    own = with_quotas(kept(-1, 409_600))
    assert changes(proposed(own, FOUND, consumed_bytes=GIB))
    assert changes(proposed(own, FOUND, consumed_bytes=GIB, rate=None)) == []
