"""A TTL that deletes what a slow subscription has not read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.ttl_before_read import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.checks.backlog.conftest import TAKEN_AT, Scene
from tests.checks.conftest import told

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


def test_what_it_says(golden: Golden) -> None:
    """By hand: 450 MB in 30 minutes are a quarter of what is published; 400 a second once in four looks are 100.

    Of 2,000 messages a second, 500 are not read, in 250 entries.
    """
    flow: dict[str, Any] = {"messages_a_second": 2000.0}
    losing = [scene(14_000, minutes_ago=10 * n, expired=400.0 * (n == 2)) for n in (1, 2, 3)]
    old, before = scene(1_000), scene(10_350, minutes_ago=30)
    old.add("drilled", oldest_backlog_age_seconds=4 * HOUR - 900, slowest_subscription="s")
    standing = (
        scene(14_400, **flow, message_rate_out=1400.0),
        scene(14_400, minutes_ago=30, **flow, message_rate_out=1600.0),
    )
    cases = {
        "it grows": judged(scene(10_800), before),
        "some expired in one of four snapshots": judged(scene(14_000, consumers=1), *losing),
        "it hardly grows, and not all is read": judged(*standing),
        "it has come to its TTL": judged(scene(14_850), scene(14_400, minutes_ago=30)),
        "it is young by what comes in": judged(scene(1_000), scene(900, minutes_ago=30)),
        "and old by what its broker tells": judged(old, scene(900, minutes_ago=30)),
        "some are delayed, which is another check's": judged(scene(10_800).add("drilled", delayed_messages=5), before),
        "no earlier snapshot": judged(scene(10_800)),
        "one that is too near": judged(scene(10_800), scene(10_350, minutes_ago=9)),
        "one that is old enough for the policy": judged(scene(10_800), scene(10_350, minutes_ago=9), minimum_minutes=9),
        "one of the same minute hides no growth": judged(scene(10_800), scene(10_800, minutes_ago=0.5), before),
        "all is well": judged(scene(1), warning_hours=1),
    }
    golden(told(cases))


def test_what_it_says_of_rates_and_readers(golden: Golden) -> None:
    """No more expires than waits for it: 1,000 a second; a reader that has more left than half a TTL is moved on."""

    def of_reader(made: Scene, minutes: int = -1) -> Judgement:
        kept = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": -1}
        made.rows["namespaces"].clear()
        return judged(made.namespace(message_ttl_in_seconds=4 * HOUR, retention_policies=kept))

    def behind(**more: Any) -> Scene:
        return scene(7_200, **{"subscription": "reader-0123abc", "messages_a_second": 1_000.0, **more})

    def at_the_end(expired: int) -> Scene:
        made = scene(0, subscription="reader-0123abc", messages_a_second=0.0)
        return made.add("drilled", subscription="reader-0123abc", expired_messages=expired)

    expiring = [scene(14_400, minutes_ago=15 * number, expired=1250.0) for number in range(3)]
    cases = {
        "brokers tell the rate of one minute": judged(expiring[0]),
        "they tell it of three": judged(*expiring),
        "more is retained": of_reader(behind(), 10_080),
        "all is retained": of_reader(behind()),
        "no more is retained": of_reader(behind(), 240),
        "it is gone": of_reader(behind(consumers=0), 10_080),
        "it reads what is new": of_reader(behind(megabytes_a_second=2.0, messages_a_second=2_000.0), 10_080),
        "it has lost much already": of_reader(at_the_end(20_100)),
        "it has lost little": of_reader(at_the_end(99)),
    }
    golden(told(cases))


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
