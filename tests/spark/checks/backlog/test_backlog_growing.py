"""Backlogs that keep growing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.finding import Severity
from steward_spark.checks.backlog.backlog_growing import CHECK
from tests.builders import a_policy
from tests.spark.checks.backlog.conftest import TAKEN_AT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from steward_spark.checks.check import Judgement
    from steward_spark.frames import Frames

pytestmark = pytest.mark.spark

GIB = 1024**3
MIB = 1024**2
STEP = timedelta(minutes=15)
WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL
QUOTAS = {
    "destination_storage": {
        "limit": 100 * GIB,
        "limitSize": 100 * GIB,
        "limitTime": -1,
        "policy": "producer_request_hold",
    }
}


def scenes(
    frames_of: Callable[..., Frames], backlogs: Mapping[str, Sequence[int | None]], step: timedelta = STEP
) -> list[Scene]:
    """A scene for each backlog, the last one now; None: the topic was not loaded."""
    count = max(map(len, backlogs.values()))
    made = []
    for number in range(count):
        scene = Scene(frames_of).configured().namespace("acme/bound", QUOTAS).namespace("acme/free")
        scene.rows["snapshot"][0]["taken_at"] = TAKEN_AT - (count - 1 - number) * step
        for name, history in backlogs.items():
            value = ([None] * (count - len(history)) + list(history))[number]
            if value is not None:
                scene.topic(f"acme/{name}", value)
        made.append(scene)
    return made


def frames_over(made: Sequence[Scene]) -> Frames:
    """The frames of the last scene, which knows the earlier ones."""
    *earlier, now = (scene.frames for scene in made)
    now.earlier = earlier[::-1]
    return now


def judged(made: Sequence[Scene], **policy: int) -> Judgement:
    """What the check says with the default policy, changed so."""
    return CHECK.judge(frames_over(made), a_policy(backlog_growing=policy))


def by_name(judgement: Judgement) -> dict[str, Severity]:
    """Severities by the topics' names without the tenant, in the findings' order."""
    return {each.subject.removeprefix("persistent://acme/"): each.severity for each in judgement.findings}


# Backlogs in GiB, 15 minutes apart; the quota, where there is one, is 100 GiB.
HISTORIES: dict[str, tuple[list[int | None], Severity | None]] = {
    "bound/critical": ([67, 70, 73, 76], CRITICAL),  # 24 GiB left at 12 GiB/h: 2 h
    "bound/warning": ([66, 69, 72, 75], WARNING),
    "bound/slow": ([24, 25, 26, 27, 28], None),  # 72 GiB left at 4 GiB/h: 18 h
    "bound/within-12-h": ([49, 50, 51, 52], WARNING),  # 48 GiB left at 4 GiB/h: 12 h
    "bound/longer": ([48, 49, 50, 51], None),
    "bound/over-already": ([97, 99, 101, 103], None),
    "bound/rose-at-once": ([10, 10, 10, 60, 60, 60], None),
    "bound/rises-then-rests": ([10, 40, 70, 70, 70, 70], None),
    "bound/shrank-again": ([60, 65, 70, 10, 20, 30, 40], None),
    "bound/to-and-fro": ([10, 50, 10, 50, 10, 50], None),
    "bound/sinks": ([80, 70, 60, 50], None),
    "bound/unloaded-for-a-while": ([60, 60, None, None, 60, 60, 60], None),
    "bound/empty-while-loading": ([60, 60, 60, 0, 60, 60, 60], None),
    "bound/grows-past-a-gap": ([60, None, 66, 69, 72, 75], WARNING),
    "bound/began-late": ([10, 10, 10, 10, 10, 25, 40, 55, 70], CRITICAL),
    "bound/new": ([10, 20, 30], None),
    "bound/hardly-shrank": ([60, 66, 65, 71, 77, 83], CRITICAL),
    "bound/__change_events": ([66, 69, 72, 75], None),
    "free/fast": ([0, 1, 2, 3], WARNING),  # 1.1 MiB/s
    "free/huge": ([10, 40, 70, 100], WARNING),
    "free/rests": ([300, 300, 300, 300], None),
}


def test_growth_is_judged_by_when_it_reaches_the_quota(frames_of: Callable[..., Frames]) -> None:
    """Steady growth only; without a quota by its rate, and after those that have one."""
    backlogs = {name: [each and each * GIB for each in history] for name, (history, _) in HISTORIES.items()}
    backlogs["free/slow"] = [0, 943_000_000, 1_886_000_000, 2_829_000_000]  # just under 1 MiB/s

    judgement = judged(scenes(frames_of, backlogs))

    found = by_name(judgement)
    assert found == {name: severity for name, (_, severity) in HISTORIES.items() if severity}
    assert list(found)[:2] == ["bound/began-late", "bound/hardly-shrank"]
    assert list(found)[-2:] == ["free/huge", "free/fast"]


def test_one_burst_makes_no_forecast(frames_of: Callable[..., Frames]) -> None:
    """At the median of its steps it is slow, though it rose in all of them."""
    burst = [1000, 1001, 40_000, 40_001, 40_002]

    assert judged(scenes(frames_of, {"bound/t": [each * MIB for each in burst]})).findings == ()


def found(made: Sequence[Scene]) -> Finding:
    """The only finding."""
    (finding,) = judged(made).findings
    return finding


def test_the_evidence_says_since_when_how_fast_and_until_when(frames_of: Callable[..., Frames]) -> None:
    """And whose backlog it is, with the worst consumer."""
    made = scenes(frames_of, {"bound/t": [66 * GIB, 66 * GIB, 69 * GIB, 72 * GIB, 75 * GIB]})
    made[-1].add("subscriptions", "acme/bound/t", backlog_messages=900, consumers=2)
    made[-1].add("clients", "acme/bound/t", consumer="c", address="10.0.0.7:5", unacked_messages=50)

    finding = found(made)

    assert finding.evidence == (
        "Since 2026-11-21 08:15 UTC the backlog has grown from 66.0 GiB to 75.0 GiB, in 3 of 3 steps between"
        " snapshots, by 3.4 MiB/s at least; so it reaches the size quota of 100.0 GiB at 2026-11-21 11:05 UTC, in"
        " 2.1 h; then (producer_request_hold) all producers are cut off and new ones are refused until the backlog is"
        " below it. Slowest is subscription s with 900 messages; of its 2 consumers, c at 10.0.0.7:5 holds 50"
        " unacknowledged."
    )
    assert finding.figures == {
        "backlog_bytes": 75 * GIB,
        "growth_bytes_per_second": 3 * GIB // 900,
        "growth_seconds": 2700,
        "limit_bytes": 100 * GIB,
        "low_backlog_bytes": 66 * GIB,
        "rising_steps": 3,
        "seconds_to_quota": 7500,
        "snapshots": 4,
    }


RETENTIONS: dict[str, tuple[dict[str, int] | None, str]] = {
    "larger": (
        {"retentionTimeInMinutes": -1, "retentionSizeInMB": 50 * 1024},
        "no size quota is in force; it outgrows the 50.0 GiB that are retained at 2026-11-21 09:15 UTC, in 15.0 min.",
    ),
    "smaller": (
        {"retentionTimeInMinutes": 60, "retentionSizeInMB": 1024},
        "no size quota is in force, and it is over the 1.0 GiB that are retained already.",
    ),
    "none": (None, "no size quota is in force, and no retained size to compare with."),
}


@pytest.mark.parametrize(("retention", "words"), RETENTIONS.values(), ids=RETENTIONS)
def test_without_a_quota_the_retention_is_the_measure(
    frames_of: Callable[..., Frames], retention: dict[str, int] | None, words: str
) -> None:
    """What is not retained is deleted once it is consumed."""
    made = scenes(frames_of, {"other/t": [10 * GIB, 20 * GIB, 30 * GIB, 40 * GIB]})
    for scene in made:
        scene.namespace("acme/other", **({"retention_policies": retention} if retention else {}))

    finding = found(made)

    assert finding.severity is WARNING
    assert finding.evidence.endswith(f"; {words}")


@pytest.mark.parametrize(
    ("snapshots", "minutes", "policy", "words"),
    [
        (1, 15, {}, "at least 4 snapshots within 360 minutes, this one included, the first"),
        (3, 15, {}, "; there are 3."),
        (6, 1, {}, "the first of them at least 10 minutes before it; there are 6."),
        (4, 15, {"window_minutes": 30}, "within 30 minutes, this one included"),
        (4, 15, {}, None),
    ],
)
def test_too_few_snapshots_cannot_tell(
    frames_of: Callable[..., Frames], snapshots: int, minutes: int, policy: dict[str, int], words: str | None
) -> None:
    """A first look has nothing to compare with."""
    made = scenes(frames_of, {"free/t": [GIB] * snapshots}, timedelta(minutes=minutes))

    judgement = judged(made, **policy)

    assert judgement.cannot_tell is None if words is None else words in str(judgement.cannot_tell)


def unread(made: list[Scene]) -> None:
    """The snapshot to compare with lacks a broker."""
    made[0].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]


def unset(made: list[Scene]) -> None:
    """Nobody knows the default quota."""
    made[-1].configured(backlogQuotaDefaultLimitBytes=None, backlogQuotaDefaultLimitGB=None)


@pytest.mark.parametrize(("change", "words"), [(unread, "2026-11-21 08:15 UTC, with which"), (unset, "limit_bytes")])
def test_silence_is_open_where_something_was_not_read(
    frames_of: Callable[..., Frames], change: Callable[[list[Scene]], Any], words: str
) -> None:
    """It says what."""
    made = scenes(frames_of, {"free/t": [GIB] * 4})
    change(made)

    assert words in str(judged(made).cannot_tell)


def test_only_the_worst_hundred_are_listed(frames_of: Callable[..., Frames]) -> None:
    """The soonest first, and the rest is counted."""
    backlogs = {f"bound/t{number:03}": [(50 + 2 * step) * GIB + number for step in range(4)] for number in range(102)}

    judgement = judged(scenes(frames_of, backlogs))

    assert (len(judgement.findings), judgement.more) == (100, 2)
    assert judgement.findings[0].subject == "persistent://acme/bound/t101"
