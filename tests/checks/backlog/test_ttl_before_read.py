"""A TTL that deletes what a slow subscription has not read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.ttl_before_read import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.checks.backlog.conftest import TAKEN_AT, Scene

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from tests.checks.conftest import JudgeRows

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
TOPIC = "persistent://acme/orders/t"
MB = 1_000_000
HOUR = 3600


def scene(
    judge_rows: JudgeRows,
    megabytes: int,
    *,
    minutes_ago: int = 0,
    ttl: int | None = 4 * HOUR,
    expired: float = 0.0,
    consumers: int = 2,
    megabytes_a_second: float = 1.0,
    **more: Any,
) -> Scene:
    """A topic whose entries have a kilobyte each, under that TTL."""
    policies: dict[str, Any] = {} if ttl is None else {"message_ttl_in_seconds": ttl}
    made = Scene(judge_rows).configured().namespace(**policies)
    made.rows["snapshot"][0]["taken_at"] = TAKEN_AT - timedelta(minutes=minutes_ago)
    made.topic(backlog_bytes=megabytes * MB, throughput_in_bytes=megabytes_a_second * MB)
    entries = {"backlog_entries": megabytes * 1000, "expired_rate": expired, "consumers": consumers}
    return made.add("subscriptions", **{**entries, **more})


def judged(now: Scene, *earlier: Scene, **policy: int) -> Judgement:
    """Judgement of a scene, with earlier ones, the newest first."""
    limits = parse_policy({"ttl_before_read": policy}, name="p") if policy else None
    return now.judged(CHECK, limits, [each.rows for each in earlier])


@pytest.mark.parametrize(
    ("megabytes", "then", "more", "found"),
    [
        # 3 h of what is published, a quarter of which is not read: after another 4 h the TTL is reached.
        pytest.param(10_800, 10_350, {}, WARNING, id="a backlog that grows towards its TTL"),
        pytest.param(10_800, 10_650, {}, WARNING, id="12 h until then"),
        pytest.param(10_800, 10_660, {}, None, id="more than 12 h until then"),
        pytest.param(10_800, 10_800, {}, None, id="a backlog that stays"),
        pytest.param(10_800, 12_000, {}, None, id="a backlog that shrinks"),
        pytest.param(7_200, 6_900, {}, WARNING, id="half as old as the TTL"),
        pytest.param(7_199, 6_800, {}, None, id="less than half as old as the TTL"),
        pytest.param(10_800, 10_350, {"ttl": None}, None, id="no TTL"),
        pytest.param(10_800, 10_350, {"ttl": 0}, None, id="a TTL of 0 is none"),
        pytest.param(10_800, 10_350, {"consumers": 0}, INFO, id="nobody reads"),
        pytest.param(10_800, 10_800, {"expired": 250.0}, CRITICAL, id="entries expire now"),
        pytest.param(10_800, 10_800, {"expired": 250.0, "consumers": 0}, INFO, id="entries expire that nobody reads"),
        pytest.param(10_800, 10_350, {"backlog_entries": 99}, None, id="hardly any entries"),
        pytest.param(10_800, 10_350, {"subscription": "reader-0123abc"}, None, id="a reader's own subscription"),
    ],
)
def test_what_will_be_deleted_unread_is_found(
    judge_rows: JudgeRows, megabytes: int, then: int, more: dict[str, Any], found: Severity | None
) -> None:
    """A backlog that reaches its TTL soon, or of which entries expire now, is found."""
    before = scene(judge_rows, then, minutes_ago=30, **{key: more[key] for key in more.keys() & {"subscription"}})
    judgement = judged(scene(judge_rows, megabytes, **more), before)

    assert {each.subject: each.severity for each in judgement.findings} == ({TOPIC: found} if found else {})
    assert judgement.cannot_tell is None


def test_the_forecast_can_be_worked_out_by_hand(judge_rows: JudgeRows) -> None:
    """The forecast equals one by hand: 450 MB of growth in 30 minutes is a quarter of what is published."""
    (finding,) = judged(scene(judge_rows, 10_800), scene(judge_rows, 10_350, minutes_ago=30)).findings

    assert finding.evidence == (
        f"Subscription s of {TOPIC} on a:8080 has not read 10,800,000 entries (10.1 GiB), about 3.0 h of what is"
        " published now; messages expire after 4.0 h. Its backlog grows by 250 entries/s: in 4.0 h the TTL begins to"
        " delete as many unread, and 18,000,000 entries are lost in the next 24 h. 2 consumers are connected to it, and"
        " too slow."
    )
    assert finding.figures == {
        "backlog_bytes": 10_800 * MB,
        "backlog_entries": 10_800_000,
        "consumers": 2,
        "lost_entries_in_24_hours": 18_000_000,
        "lost_entries_per_hour": 900_000,
        "oldest_seconds": 3 * HOUR,
        "seconds_until_loss": 4 * HOUR,
        "ttl_seconds": 4 * HOUR,
    }
    assert {type(each) for each in finding.figures.values()} == {int}


def test_what_expired_in_some_snapshots_is_lost_on_average(judge_rows: JudgeRows) -> None:
    """Messages that expired in only one of several snapshots are averaged over all of them."""
    earlier = [scene(judge_rows, 14_000, minutes_ago=10 * n, expired=400.0 * (n == 2)) for n in (1, 2, 3)]
    (finding,) = judged(scene(judge_rows, 14_000, consumers=1), *earlier).findings

    assert finding.severity is CRITICAL
    assert "The TTL deletes 100 entries/s unread (the mean of 4 snapshots)" in finding.evidence
    assert "1 consumer is connected to it, and too slow." in finding.evidence
    assert finding.figures["lost_entries_in_24_hours"] == 100 * 24 * HOUR


def test_an_age_that_brokers_tell_counts(judge_rows: JudgeRows) -> None:
    """The backlog's age is taken from the topic's statistics, if these have it, in place of an estimate."""
    now, before = scene(judge_rows, 1_000), scene(judge_rows, 900, minutes_ago=30)
    assert judged(now, before).findings == ()

    now.add("drilled", oldest_backlog_age_seconds=4 * HOUR - 900, slowest_subscription="s")
    (finding,) = judged(now, before).findings
    assert "1,000,000 entries (953.7 MiB), the oldest 3.8 h old;" in finding.evidence


def test_delayed_messages_are_left_to_their_own_check(judge_rows: JudgeRows) -> None:
    """Subscriptions with delayed messages give no finding, as `delayed-past-ttl` looks at them."""
    now = scene(judge_rows, 10_800).add("drilled", delayed_messages=5)
    assert judged(now, scene(judge_rows, 10_350, minutes_ago=30)).findings == ()


def test_without_an_earlier_snapshot_nothing_is_known(judge_rows: JudgeRows) -> None:
    """The check cannot tell near the TTL without a snapshot that is at least `minimum_minutes` older."""
    now = scene(judge_rows, 10_800)
    words = "1 topic comes near the TTL, and there is no earlier snapshot that shows whether the backlog grows."
    assert judged(now).cannot_tell == words
    assert judged(now, scene(judge_rows, 10_350, minutes_ago=9)).cannot_tell == words
    assert judged(now, scene(judge_rows, 10_350, minutes_ago=9), minimum_minutes=9).findings


def test_quiet_says_by_which_limits(judge_rows: JudgeRows) -> None:
    """The text for a healthy cluster names the policy's limits with their units."""
    judgement = judged(scene(judge_rows, 1), warning_hours=1)
    assert judgement.quiet == "No TTL deletes within 1 hour what a subscription of 100 or more entries has not read."
