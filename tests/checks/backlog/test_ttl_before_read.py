"""A TTL that deletes what a slow subscription has not read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.ttl_before_read import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.checks.backlog.conftest import TAKEN_AT, Scene
from tests.checks.conftest import as_text

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from tests.golden import Golden

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
TOPIC = "persistent://acme/orders/t"
MB = 1_000_000
HOUR = 3600


def scene(
    megabytes: int,
    *,
    minutes_ago: float = 0,
    ttl: int | None = 4 * HOUR,
    expired: float | None = 0.0,
    consumers: int = 2,
    megabytes_a_second: float | None = 1.0,
    messages_a_second: float | None = None,
    **more: Any,
) -> Scene:
    """A topic whose entries have a kilobyte each, under that TTL."""
    policies: dict[str, Any] = {} if ttl is None else {"message_ttl_in_seconds": ttl}
    made = Scene().configured().namespace(**policies)
    made.rows["snapshot"][0]["taken_at"] = TAKEN_AT - timedelta(minutes=minutes_ago)
    size = None if megabytes_a_second is None else megabytes_a_second * MB
    throughput: dict[str, Any] = {"throughput_in_bytes": size, "message_rate_in": messages_a_second}
    made.topic(backlog_bytes=megabytes * MB, **throughput)
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
    megabytes: int, then: int, more: dict[str, Any], found: Severity | None
) -> None:
    """A backlog that reaches its TTL soon, or of which entries expire now, is found."""
    before = scene(then, minutes_ago=30, **{key: more[key] for key in more.keys() & {"subscription"}})
    judgement = judged(scene(megabytes, **more), before)
    assert {each.subject: each.severity for each in judgement.findings} == ({TOPIC: found} if found else {})
    assert judgement.cannot_tell is None


def test_the_forecast_can_be_worked_out_by_hand(golden: Golden) -> None:
    """The forecast equals one by hand: 450 MB of growth in 30 minutes is a quarter of what is published."""
    (finding,) = judged(scene(10_800), scene(10_350, minutes_ago=30)).findings
    golden(finding.evidence)
    golden(as_text(finding.figures))


def test_what_expired_in_some_snapshots_is_lost_on_average() -> None:
    """Messages that expired in only one of several snapshots are averaged over all of them."""
    earlier = [scene(14_000, minutes_ago=10 * n, expired=400.0 * (n == 2)) for n in (1, 2, 3)]
    (finding,) = judged(scene(14_000, consumers=1), *earlier).findings
    assert finding.severity is CRITICAL
    assert "The TTL deletes 100 entries/s unread (the mean of 4 snapshots)" in finding.evidence
    assert "1 consumer is connected to it, and too slow." in finding.evidence
    assert finding.figures["lost_entries_in_24_hours"] == 100 * 24 * HOUR


@pytest.mark.parametrize("looks", [1, 3])
def test_no_more_expires_than_waits_for_it(looks: int) -> None:
    """The rate that brokers tell of the minute in which they delete is bounded by a TTL's share of what waits."""
    now, *earlier = [scene(14_400, minutes_ago=15 * number, expired=1250.0) for number in range(looks)]
    (finding,) = judged(now, *earlier).findings
    of_all = "this snapshot" if looks == 1 else "the mean of 3 snapshots"
    assert (
        f"The TTL deletes 1,000 entries/s unread ({of_all}, where brokers tell 1,250 of single minutes): at this rate"
        " 86,400,000 entries are lost in the next 24 h."
    ) in finding.evidence
    assert finding.figures["lost_entries_per_hour"] == 1000 * HOUR


@pytest.mark.parametrize(
    ("megabytes", "then", "more", "found"),
    [
        pytest.param(14_000, 14_000, {}, CRITICAL, id="three quarters are read"),
        pytest.param(14_000, 14_200, {}, CRITICAL, id="right after some was deleted"),
        pytest.param(14_000, 13_800, {}, CRITICAL, id="right before some is deleted"),
        pytest.param(12_960, 12_960, {}, CRITICAL, id="nine tenths of the TTL"),
        pytest.param(12_959, 12_959, {}, None, id="younger than that"),
        pytest.param(14_000, 13_600, {}, WARNING, id="it grows by what is not read"),
        pytest.param(14_000, 14_000, {"consumers": 0, "message_rate_out": 0.0}, INFO, id="nobody reads"),
        pytest.param(14_000, 14_000, {"message_rate_out": 950.0}, CRITICAL, id="hardly anything is lost"),
        pytest.param(14_000, 14_000, {"message_rate_out": 951.0}, None, id="all but what differs by chance is read"),
        pytest.param(14_000, 14_000, {"message_rate_out": 1200.0}, None, id="it catches up"),
        pytest.param(14_000, 14_000, {"messages_a_second": 0.0}, None, id="nothing is published"),
    ],
)
def test_what_is_neither_read_nor_added_is_deleted(
    megabytes: int, then: int, more: dict[str, Any], found: Severity | None
) -> None:
    """Of an old backlog, what is not read and does not make it grow is lost, though no broker tells that it expires."""
    rates: dict[str, Any] = {"messages_a_second": 1000.0, "message_rate_out": 750.0, **more}
    judgement = judged(scene(megabytes, **rates), scene(then, minutes_ago=30, **rates))
    assert {each.subject: each.severity for each in judgement.findings} == ({TOPIC: found} if found else {})
    assert judgement.cannot_tell is None


def test_what_is_deleted_between_two_looks_can_be_worked_out_by_hand() -> None:
    """The loss is the share of messages that is not read, over the snapshots, of the entries that are published."""
    now = scene(14_400, messages_a_second=2000.0, message_rate_out=1400.0)
    (finding,) = judged(now, scene(14_400, minutes_ago=30, messages_a_second=2000.0, message_rate_out=1600.0)).findings
    assert (
        "Of what is published, 25 % is not read, and the backlog hardly grows: the TTL deletes about 250 entries/s"
        " unread, and 21,600,000 entries are lost in the next 24 h."
    ) in finding.evidence
    assert (finding.figures["lost_entries_per_hour"], finding.figures["seconds_until_loss"]) == (250 * HOUR, 0)


def test_a_backlog_that_has_come_to_its_ttl_has_no_forecast() -> None:
    """A backlog that is as old as the TTL and still grows is said to lose entries, without a time until then."""
    (finding,) = judged(scene(14_850), scene(14_400, minutes_ago=30)).findings
    assert finding.severity is WARNING
    assert "Its backlog grows by 250 entries/s: the TTL deletes as many unread, and 21,600,000" in finding.evidence


def test_an_age_that_brokers_tell_counts() -> None:
    """The backlog's age is taken from the topic's statistics, if these have it, in place of an estimate."""
    now, before = scene(1_000), scene(900, minutes_ago=30)
    assert judged(now, before).findings == ()
    now.add("drilled", oldest_backlog_age_seconds=4 * HOUR - 900, slowest_subscription="s")
    (finding,) = judged(now, before).findings
    assert "1,000,000 entries (953.7 MiB), the oldest 3.8 h old;" in finding.evidence


def test_delayed_messages_are_left_to_their_own_check() -> None:
    """Subscriptions with delayed messages give no finding, as `delayed-past-ttl` looks at them."""
    assert judged(scene(10_800).add("drilled", delayed_messages=5), scene(10_350, minutes_ago=30)).findings == ()


def test_without_an_earlier_snapshot_nothing_is_known() -> None:
    """The check cannot tell near the TTL without a snapshot that is at least `minimum_minutes` older."""
    now = scene(10_800)
    words = "1 topic comes near the TTL, and there is no earlier snapshot that shows whether the backlog grows."
    assert judged(now).cannot_tell == words
    assert judged(now, scene(10_350, minutes_ago=9)).cannot_tell == words
    assert judged(now, scene(10_350, minutes_ago=9), minimum_minutes=9).findings


def test_a_snapshot_taken_moments_before_hides_no_growth() -> None:
    """A backlog that is the same in a snapshot of the same minute is still known to grow by an older one."""
    (finding,) = judged(scene(10_800), scene(10_800, minutes_ago=0.5), scene(10_350, minutes_ago=30)).findings
    assert "Its backlog grows by 250 entries/s" in finding.evidence


@pytest.mark.parametrize(
    ("megabytes", "more", "age"),
    [
        (14_000, {"expired": None}, None),
        (14_000, {"message_rate_out": None}, None),
        (14_000, {"messages_a_second": None}, None),
        (14_000, {"megabytes_a_second": None}, 4 * HOUR - 900),
        (100, {"expired": None}, None),
        (7_200, {"subscription": "reader-0123abc", "messages_a_second": None}, None),
    ],
    ids=["what expires", "what is read", "what is published", "its bytes", "of a short backlog", "a reader"],
)
def test_a_rate_that_is_not_told_is_not_none(megabytes: int, more: dict[str, Any], age: int | None) -> None:
    """Where what is missing would decide, the check cannot tell (brokers report NaN of some topics)."""
    rates: dict[str, Any] = {"messages_a_second": 1000.0, "message_rate_out": 1000.0, **more}
    now, before = (scene(megabytes, minutes_ago=ago, **rates) for ago in (0, 30))
    now.rows["namespaces"].clear()
    kept = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    now.namespace(message_ttl_in_seconds=4 * HOUR, retention_policies=kept)
    if age is not None:
        now.add("drilled", oldest_backlog_age_seconds=age, slowest_subscription="s")
    judgement = judged(now, before)

    assert judgement.findings == ()
    assert judgement.cannot_tell == "Of 1 topic with a TTL, brokers do not tell what comes in, is read or expires."


def test_a_backlog_that_is_young_for_sure_loses_nothing() -> None:
    """Whatever its rates: nothing of it can have expired."""
    now = scene(100, expired=None).add("drilled", oldest_backlog_age_seconds=60, slowest_subscription="s")
    assert judged(now).cannot_tell is None


def test_what_expired_counts_in_the_snapshots_that_tell_it() -> None:
    """A rate that is missing is left out of the mean, not counted as 0."""
    earlier = scene(14_000, minutes_ago=10, expired=200.0)
    (finding,) = judged(scene(14_000, expired=None), earlier).findings

    assert "The TTL deletes 200 entries/s unread (an earlier snapshot)" in finding.evidence
    assert finding.figures["lost_entries_per_hour"] == 200 * HOUR


def test_quiet_says_by_which_limits() -> None:
    """The text for a healthy cluster names the policy's limits with their units."""
    judgement = judged(scene(1), warning_hours=1)
    assert judgement.quiet == "No TTL deletes within 1 hour what a subscription of 100 or more entries has not read."


@pytest.mark.parametrize(
    ("minutes", "more", "found"),
    [
        (10_080, {}, WARNING),
        (-1, {}, WARNING),
        (240, {}, None),
        (10_080, {"consumers": 0}, None),
        (10_080, {"megabytes_a_second": 2.0, "messages_a_second": 2_000.0}, None),
    ],
    ids=["more is retained", "all is retained", "no more is retained", "it is gone", "it reads what is new"],
)
def test_a_reader_of_old_messages_is_moved_on_as_well(
    golden: Golden, minutes: int, more: dict[str, Any], found: Severity | None
) -> None:
    """If more is retained than the TTL leaves, and a reader has more left than half a TTL brings."""
    made = scene(7_200, subscription="reader-0123abc", **{"messages_a_second": 1_000.0, **more})
    made.rows["namespaces"].clear()
    kept = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": -1}
    made.namespace(message_ttl_in_seconds=4 * HOUR, retention_policies=kept)
    findings = judged(made).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    for each in findings:
        golden(each.evidence)


@pytest.mark.parametrize(("expired", "found"), [(20_100, WARNING), (99, None)])
def test_what_a_reader_has_lost_already_is_told_by_its_topic(expired: int, found: Severity | None) -> None:
    """It is at the end by then, and the rate of what expired is 0 again."""
    made = scene(0, subscription="reader-0123abc", messages_a_second=0.0)
    made.rows["namespaces"].clear()
    kept = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    made.namespace(message_ttl_in_seconds=4 * HOUR, retention_policies=kept)
    made.add("drilled", subscription="reader-0123abc", expired_messages=expired)
    findings = judged(made).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    assert all("20,100 messages it was carried over unread" in each.evidence for each in findings)
