"""Namespaces and brokers whose settings do not fit each other, and clocks that do not either."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.tables import BROKERS
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.backlog import CHECKS
from steward_spark.checks.backlog.backlog_growing import CHECK as BACKLOG_GROWING
from steward_spark.checks.backlog.clock_skew import CHECK as CLOCK_SKEW
from steward_spark.checks.backlog.quota_check_disabled import CHECK as QUOTA_CHECK_DISABLED
from steward_spark.checks.backlog.quota_over_retention import CHECK as QUOTA_OVER_RETENTION
from steward_spark.checks.backlog.retention_too_short import CHECK as RETENTION_TOO_SHORT
from steward_spark.checks.backlog.retention_unbounded import CHECK as RETENTION_UNBOUNDED
from steward_spark.checks.backlog.ttl_before_quota import CHECK as TTL_BEFORE_QUOTA
from steward_spark.frames import Frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table
    from steward_spark.checks.check import Check
    from tests.spark.checks.backlog.conftest import Scene

pytestmark = pytest.mark.spark

TAKEN_AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
MIB, GIB = 1024**2, 1024**3
INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
NEED_MORE = (CLOCK_SKEW, BACKLOG_GROWING)
"""What needs more than one snapshot's namespaces and topics to judge."""

HOLD, EVICT = "producer_request_hold", "consumer_backlog_eviction"


def size(limit: int, policy: str = HOLD) -> dict[str, Any]:
    """A size quota."""
    return {"destination_storage": {"limit": limit, "limitSize": limit, "limitTime": -1, "policy": policy}}


def age(limit: int, policy: str = HOLD) -> dict[str, Any]:
    """An age quota."""
    return {"message_age": {"limit": -1, "limitSize": -1, "limitTime": limit, "policy": policy}}


def retention(minutes: int, megabytes: int) -> dict[str, int]:
    """A retention as a broker writes it."""
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def found(check: Check, scene: Scene) -> dict[str, Severity]:
    """What a check finds with the default policy, by subject."""
    return {each.subject: each.severity for each in check.judge(scene.frames, Policy()).findings}


# quotas, retention; found by quota-over-retention, by retention-too-short
RETENTIONS: dict[str, tuple[dict[str, Any], dict[str, int] | None, Severity | None, Severity | None]] = {
    "no retention": (size(GIB) | age(60), None, None, None),
    "a retention of nothing": (size(GIB) | age(60), retention(0, 0), None, None),
    "unlimited retention": (size(GIB) | age(60), retention(-1, -1), None, None),
    "a quota of less than 90 %": (size(9 * MIB - 1), retention(-1, 10), None, None),
    "a quota of 90 %": (size(9 * MIB), retention(-1, 10), None, INFO),
    "a quota of the same size": (size(10 * MIB), retention(-1, 10), WARNING, None),
    "an age of less than 90 %": (age(539), retention(10, -1), None, None),
    "an age of 90 %": (age(540), retention(10, -1), None, INFO),
    "an age that brokers do not compare": (age(600), retention(10, -1), WARNING, None),
}


def test_quotas_are_compared_with_the_retention(scene: Scene) -> None:
    """A quota has to be below the retention in size and in time, and a little room is better."""
    for number, (quotas, retained, _, _) in enumerate(RETENTIONS.values()):
        policies = {"retention_policies": retained} if retained else {}
        scene.namespace(f"acme/n{number}", quotas, **policies)

    for check, column in ((QUOTA_OVER_RETENTION, 2), (RETENTION_TOO_SHORT, 3)):
        table = {f"acme/n{number}": case[column] for number, case in enumerate(RETENTIONS.values())}
        assert found(check, scene) == {subject: severity for subject, severity in table.items() if severity}


def test_a_quota_of_one_level_is_compared_with_the_retention_of_another(scene: Scene) -> None:
    """A topic's quota may be over its namespace's retention, and the brokers' default over both."""
    scene.configured(backlogQuotaDefaultLimitSecond="7200").namespace(retention_policies=retention(60, 10))
    scene.add("drilled", quota_limit_bytes=20 * MIB, topic_quota_json=json.dumps(size(20 * MIB)))
    scene.add("drilled", "acme/orders/as-its-namespace", quota_limit_seconds=7200)

    findings = QUOTA_OVER_RETENTION.judge(scene.frames, Policy()).findings

    evidence = {each.subject: each.evidence for each in findings}
    assert set(evidence) == {"persistent://acme/orders/t", "acme/orders"}
    assert evidence["persistent://acme/orders/t"].startswith(
        "The size quota of 20.0 MiB (set by the topic) is 200 % of the 10.0 MiB that are retained (set by"
        " the namespace)"
    )
    assert "age quota of 2.0 h (the brokers' default)" in evidence["acme/orders"]


def test_a_backlog_that_outgrew_the_retention_is_found(scene: Scene) -> None:
    """Large and old backlogs count, from a gibibyte and an hour on."""
    scene.namespace("acme/big", retention_policies=retention(-1, 1024))
    scene.namespace("acme/old", retention_policies=retention(60, -1))
    scene.namespace("acme/young", retention_policies=retention(1, 1))
    scene.topic("acme/big/t", GIB).topic("acme/big/u", GIB - 1)
    for name, seconds in (("t", 3600), ("u", 3599)):
        scene.topic(f"acme/old/{name}", 9)
        scene.add("drilled", f"acme/old/{name}", oldest_backlog_age_seconds=seconds, slowest_subscription="s")
    scene.topic("acme/young/t", 10 * MIB).add("drilled", "acme/young/t", oldest_backlog_age_seconds=300)

    assert found(RETENTION_TOO_SHORT, scene) == {
        "persistent://acme/big/t": WARNING,
        "persistent://acme/old/t": WARNING,
    }


def test_the_age_of_a_backlog_under_retention_has_to_be_read(scene: Scene) -> None:
    """Without it nothing can be said of a retention in time."""
    scene.namespace(retention_policies=retention(60, -1)).topic(backlog_bytes=9)

    assert "age was not read" in (RETENTION_TOO_SHORT.judge(scene.frames, Policy()).cannot_tell or "")


def test_retention_without_any_limit_matters_by_what_is_stored(scene: Scene) -> None:
    """Both limits have to be absent; a topic may be set apart, and offloading explains it."""
    unbounded = retention(-1, -1)
    scene.namespace("acme/small", retention_policies=unbounded).topic("acme/small/t", storage_bytes=100 * GIB - 1)
    scene.namespace("acme/large", retention_policies=unbounded).topic("acme/large/t", storage_bytes=100 * GIB)
    scene.namespace("acme/moved", retention_policies=unbounded, offload_threshold=0)
    scene.topic("acme/moved/t", storage_bytes=100 * GIB)
    scene.namespace("acme/empty", retention_policies=unbounded)
    scene.namespace("acme/timed", retention_policies=retention(60, -1)).topic("acme/timed/t", storage_bytes=10**13)
    scene.namespace("acme/sized", retention_policies=retention(-1, 60)).topic("acme/sized/t", storage_bytes=10**13)
    scene.namespace("acme/apart").topic("acme/apart/t", storage_bytes=9)
    scene.add("drilled", "acme/apart/t", topic_retention_json=json.dumps(unbounded))

    assert found(RETENTION_UNBOUNDED, scene) == {
        "acme/large": WARNING,
        "acme/moved": INFO,
        "acme/small": INFO,
        "acme/apart": INFO,
        "acme/empty": INFO,
    }


TTLS: dict[str, tuple[int | None, dict[str, Any], Severity | None]] = {
    "no age quota": (60, size(GIB), None),
    "no time to live": (None, age(60), None),
    "a time to live of 0 is none": (0, age(60), None),
    "expiry after the quota": (61, age(60), None),
    "expiry at the quota": (60, age(60), WARNING),
    "expiry before eviction": (60, age(61, EVICT), INFO),
}


def test_messages_that_expire_before_the_age_quota_are_found(scene: Scene) -> None:
    """It matters most where the quota was to stop producers so that nothing is lost."""
    for number, (ttl, quotas, _) in enumerate(TTLS.values()):
        policies = {} if ttl is None else {"message_ttl_in_seconds": ttl}
        scene.namespace(f"acme/n{number}", quotas, **policies)

    table = {f"acme/n{number}": severity for number, (*_, severity) in enumerate(TTLS.values())}
    assert found(TTL_BEFORE_QUOTA, scene) == {subject: severity for subject, severity in table.items() if severity}


@pytest.mark.parametrize(
    "check",
    [QUOTA_OVER_RETENTION, RETENTION_UNBOUNDED, RETENTION_TOO_SHORT, TTL_BEFORE_QUOTA],
    ids=lambda check: check.info.check_id,
)
def test_without_the_brokers_settings_silence_is_unknown(scene: Scene, check: Check) -> None:
    """What stands in a namespace that sets nothing is in the brokers' configuration."""
    scene.rows["configuration"] = []

    assert "was not read" in (check.judge(scene.namespace().frames, Policy()).cannot_tell or "")


@pytest.mark.parametrize(
    ("told", "quotas", "severity"),
    [("true", size(1), None), ("false", {}, INFO), ("false", size(1), WARNING), ("false", age(1), WARNING)],
)
def test_a_check_that_is_off_matters_under_a_quota(
    scene: Scene, told: str, quotas: dict[str, Any], severity: Severity | None
) -> None:
    """Without any quota there is nothing to check."""
    scene.configured(backlogQuotaCheckEnabled=told).namespace(quotas=quotas)

    assert found(QUOTA_CHECK_DISABLED, scene) == ({"lab": severity} if severity else {})


def test_a_broker_that_did_not_tell_is_unknown(scene: Scene) -> None:
    """The setting of one broker says nothing of another."""
    scene.rows["configuration"] = [row for row in scene.rows["configuration"] if row["broker"] == "a:8080"]

    assert QUOTA_CHECK_DISABLED.judge(scene.frames, Policy()).cannot_tell == (
        "backlogQuotaCheckEnabled was not read of b:8080."
    )


Clocks = list[int | None]


@pytest.fixture
def clocks(frame_of: Callable[[Table, list[dict[str, Any]]], DataFrame], spark: SparkSession) -> Callable[..., Frames]:
    """Makes a snapshot of brokers with those clocks; without any there is no column."""

    def make(skews: Clocks, *, column: bool = True) -> Frames:
        about = {"cluster": "lab", "taken_at": TAKEN_AT, "unread_brokers": [], "unread_namespaces": []}
        brokers = [(f"b{number}", True, skew) for number, skew in enumerate(skews)]
        frame = spark.createDataFrame(brokers, "broker string, read boolean, clock_skew_milliseconds bigint")
        shown = frame if column else frame.select("broker", F.col("read"))
        return Frames(lambda table: shown if table is BROKERS else frame_of(table, [about]))

    return make


CLOCKS: dict[str, tuple[Clocks, Severity | None, bool]] = {
    "all the same, far from the collector's": ([90_000, 90_900, 90_100], None, True),
    "just not apart": ([-2500, 0, 2499], None, True),
    "apart": ([-2500, 0, 2500], WARNING, True),
    "a minute apart": ([0, 60_000, None], CRITICAL, True),
    "one that was not read": ([0, 0, None], None, False),
    "none that was read": ([None, None], None, False),
}


@pytest.mark.parametrize(("skews", "severity", "whole"), CLOCKS.values(), ids=CLOCKS)
def test_clocks_are_compared_with_each_other(
    clocks: Callable[..., Frames], skews: Clocks, severity: Severity | None, *, whole: bool
) -> None:
    """The collector's own clock does not matter, and a clock that was not read is no health."""
    judgement = CLOCK_SKEW.judge(clocks(skews), Policy())

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is None) == whole


def test_a_snapshot_without_clocks_cannot_tell(clocks: Callable[..., Frames]) -> None:
    """A snapshot of an earlier version has no such column."""
    assert CLOCK_SKEW.judge(clocks([0, 0], column=False), Policy()).cannot_tell == "No broker's clock was read."


def test_a_fresh_cluster_is_quiet(scene: Scene) -> None:
    """With the defaults of 4.0.7 and idle topics there is nothing to say, and it can be said."""
    scene.namespace().topic()

    judgements = {
        check.info.check_id: check.judge(scene.frames, Policy()) for check in CHECKS if check not in NEED_MORE
    }

    assert not [check_id for check_id, each in judgements.items() if each.findings or each.cannot_tell]
