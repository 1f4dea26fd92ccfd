"""Namespaces and brokers whose settings do not fit each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog import TITLE, backlog_growing, brokers
from pulsar_steward.checks.backlog.brokers import CLOCK_SKEW, QUOTA_CHECK_DISABLED
from pulsar_steward.checks.backlog.quota_settings import LIMIT_ELSEWHERE, QUOTA_OVER_RETENTION, RATES, TTL_BEFORE_QUOTA
from pulsar_steward.checks.backlog.retention import RETENTION_TOO_LONG, RETENTION_TOO_SHORT, RETENTION_UNBOUNDED
from pulsar_steward.checks.registry import GROUPS
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.checks.backlog.conftest import Scene
from tests.checks.backlog.documents import EVICT, age, retention, size
from tests.checks.conftest import outcome, severity_of, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.golden import Golden

MIB, GIB = 1024**2, 1024**3
LARGEST = 2**63 - 1
INFO, WARNING = Severity.INFO, Severity.WARNING
OF_BACKLOG = next(group.checks for group in GROUPS if group.title == TITLE)
NEED_MORE = (brokers.CLOCK_SKEW, backlog_growing.CHECK)
"""What needs more than one snapshot's namespaces and topics to judge."""

# quotas, retention; found by quota-over-retention, by retention-too-short
RETENTIONS: dict[str, tuple[dict[str, Any], dict[str, int] | None, Severity | None, Severity | None]] = {
    "no retention": (size(GIB) | age(60), None, None, None),
    "a retention of nothing": (size(GIB) | age(60), retention(0, 0), None, None),
    "unlimited retention": (size(GIB) | age(60), retention(-1, -1), None, None),
    "a quota of less than 90 %": (size(9 * MIB - 1), retention(-1, 10), None, None),
    "a quota of 90 %": (size(9 * MIB), retention(-1, 10), None, INFO),
    "a quota of the same size": (size(10 * MIB), retention(-1, 10), WARNING, None),
    "the largest quota there is": (size(LARGEST), retention(-1, 10), WARNING, None),
    "the largest retention there is": (size(GIB), retention(-1, LARGEST), None, None),
    "the largest age there is": (age(LARGEST), retention(1, -1), WARNING, None),
    "an age of less than 90 %": (age(539), retention(10, -1), None, None),
    "an age of 90 %": (age(540), retention(10, -1), None, INFO),
    "an age that brokers do not compare": (age(600), retention(10, -1), WARNING, None),
}


def test_quotas_are_compared_with_the_retention(scene: Scene) -> None:
    """`quota-over-retention` finds a quota of at least the retention, `retention-too-short` one just below it."""
    for number, (quotas, retained, _, _) in enumerate(RETENTIONS.values()):
        policies = {"retention_policies": retained} if retained else {}
        scene.namespace(f"acme/n{number}", quotas, **policies)
    for check, column in ((QUOTA_OVER_RETENTION, 2), (RETENTION_TOO_SHORT, 3)):
        table = {f"acme/n{number}": case[column] for number, case in enumerate(RETENTIONS.values())}
        assert scene.found(check) == {subject: severity for subject, severity in table.items() if severity}


@pytest.mark.parametrize(
    ("own_retention", "subjects"),
    [({}, {"acme/orders"}), (retention(30, -1), {"acme/orders", "persistent://acme/orders/t"})],
    ids=["nothing of its own", "a retention of its own"],
)
def test_what_a_namespace_sets_is_told_once(scene: Scene, own_retention: dict[str, int], subjects: set[str]) -> None:
    """A topic has a finding beside its namespace's only with a retention of its own, and `{}` is none."""
    scene.namespace(quotas=age(7200, EVICT), retention_policies=retention(60, -1)).topic()
    own = json.dumps(own_retention)
    scene.add("drilled", quota_limit_seconds=7200, topic_quota_json="{}", topic_retention_json=own)
    assert set(scene.found(QUOTA_OVER_RETENTION)) == subjects


def test_a_backlog_that_outgrew_the_retention_is_found(scene: Scene) -> None:
    """A backlog over its retention is found from a size of 1 GiB or an age of one hour on."""
    scene.namespace("acme/big", retention_policies=retention(-1, 1024))
    scene.namespace("acme/old", retention_policies=retention(60, -1))
    scene.namespace("acme/young", retention_policies=retention(1, 1))
    scene.topic("acme/big/t", GIB).topic("acme/big/u", GIB - 1)
    for name, seconds in (("t", 3600), ("u", 3599)):
        scene.topic(f"acme/old/{name}", 9)
        scene.add("drilled", f"acme/old/{name}", oldest_backlog_age_seconds=seconds, slowest_subscription="s")
    scene.topic("acme/young/t", 10 * MIB).add("drilled", "acme/young/t", oldest_backlog_age_seconds=300)
    assert scene.found(RETENTION_TOO_SHORT) == {"persistent://acme/big/t": WARNING, "persistent://acme/old/t": WARNING}


def test_backlogs_are_listed_before_quotas_and_the_rest_is_counted(scene: Scene) -> None:
    """Backlogs over the retention are listed before tight quotas, the worst first, and the rest is counted."""
    scene.namespace("acme/big", retention_policies=retention(-1, 1024))
    for number in range(99):
        scene.topic(f"acme/big/t{number}", (number + 1) * GIB)
    for number in range(4):
        scene.namespace(f"acme/tight{number}", size((91 + number) * MIB), retention_policies=retention(-1, 100))
    judgement = scene.judged(RETENTION_TOO_SHORT)
    subjects = [finding.subject for finding in judgement.findings]
    assert (len(subjects), judgement.more) == (100, 3)
    assert (subjects[0], subjects[98:]) == ("persistent://acme/big/t98", ["persistent://acme/big/t0", "acme/tight3"])


def test_a_tight_quota_is_left_to_the_other_check_by_each_namespaces_own_values(scene: Scene) -> None:
    """`retention-too-short` leaves out quotas that `quota-over-retention` finds by a namespace's own policy."""
    for name in ("acme/strict", "acme/usual", "other/strict"):
        scene.namespace(name, size(95 * MIB), retention_policies=retention(-1, 100))
    own = {"quota_over_retention": {"warning_percent": 95}}
    policy = parse_policy({"tenants": {"other": own}, "namespaces": {"acme/strict": own}}, name="p")
    assert scene.found(RETENTION_TOO_SHORT, policy) == {"acme/usual": INFO}
    assert scene.found(QUOTA_OVER_RETENTION, policy) == {"acme/strict": WARNING, "other/strict": WARNING}


def test_retention_without_any_limit_matters_by_what_is_stored(scene: Scene) -> None:
    """Retention without any limit is a warning from 100 GiB of storage on, and else or offloaded information."""
    unbounded = retention(-1, -1)
    scene.namespace("acme/small", retention_policies=unbounded).topic("acme/small/t", storage_bytes=100 * GIB - 1)
    scene.namespace("acme/large", retention_policies=unbounded).topic("acme/large/t", storage_bytes=100 * GIB)
    for name, offloaded in (("moved", 1), ("meant", 0)):
        scene.namespace(f"acme/{name}", retention_policies=unbounded, offload_threshold=0)
        scene.topic(f"acme/{name}/t", storage_bytes=100 * GIB).add(
            "drilled", f"acme/{name}/t", offloaded_bytes=offloaded
        )
    scene.namespace("acme/empty", retention_policies=unbounded)
    scene.namespace("acme/timed", retention_policies=retention(60, -1)).topic("acme/timed/t", storage_bytes=10**13)
    scene.namespace("acme/sized", retention_policies=retention(-1, 60)).topic("acme/sized/t", storage_bytes=10**13)
    scene.namespace("acme/apart").topic("acme/apart/t", storage_bytes=9)
    scene.add("drilled", "acme/apart/t", topic_retention_json=json.dumps(unbounded))
    assert scene.found(RETENTION_UNBOUNDED) == {
        "acme/large": WARNING,
        "acme/moved": INFO,
        "acme/meant": WARNING,
        "acme/small": INFO,
        "acme/apart": INFO,
        "acme/empty": INFO,
    }


TTLS: dict[str, tuple[int | None, dict[str, Any], Severity | None]] = {
    "no age quota": (60, size(GIB), None),
    "no time to live": (None, age(60), None),
    "a time to live of 0 is none": (0, age(60), None),
    # On a quiet topic it acts when its ledger was closed and is as old as that: up to four hours later.
    "expiry on quiet topics": (61, age(60), INFO),
    "expiry when a ledger is closed": (4 * 3600 + 60, age(60), INFO),
    "expiry after the quota": (4 * 3600 + 61, age(60), None),
    "expiry at the quota": (60, age(60), WARNING),
    "the largest quota there is": (60, age(LARGEST), WARNING),
    "expiry before eviction": (60, age(61, EVICT), INFO),
}


def test_messages_that_expire_before_the_age_quota_are_found(scene: Scene) -> None:
    """A TTL up to the age quota is a warning; one up to 4 h longer, or under an evicting quota, is information."""
    for number, (ttl, quotas, _) in enumerate(TTLS.values()):
        policies = {} if ttl is None else {"message_ttl_in_seconds": ttl}
        scene.namespace(f"acme/n{number}", quotas, **policies)
    table = {f"acme/n{number}": severity for number, (*_, severity) in enumerate(TTLS.values())}
    assert scene.found(TTL_BEFORE_QUOTA) == {subject: severity for subject, severity in table.items() if severity}


PRECISE, ROLLOVER = "preciseTimeBasedBacklogQuotaCheck", "managedLedgerMaxLedgerRolloverTimeMinutes"


def test_a_time_to_live_is_compared_as_most_brokers_have_it(golden: Golden) -> None:
    """An age quota counts from when a ledger was closed, unless brokers read the message itself."""

    def of_most(*values: str) -> Scene:
        scene = Scene().configured(ttlDurationDefaultInSeconds=None, **{PRECISE: "true"}).namespace(quotas=age(60))
        scene.rows["configuration"] += [
            {"broker": f"{number}:8080", "key": "ttlDurationDefaultInSeconds", "value": value}
            for number, value in enumerate(values)
        ]
        return scene

    def closing(precise: str | None, rollover: str | None) -> Scene:
        scene = Scene().configured(**{PRECISE: precise, ROLLOVER: rollover})
        return scene.namespace(quotas=age(3600), message_ttl_in_seconds=7200)

    cases = {
        "messages of most expire": of_most("3600", "60", "60"),
        "those of most do not": of_most("60", "3600", "3600"),
        "of as many the lowest text": of_most("60", "3600"),
        "written in two ways": of_most("60", "60.0"),
        "one makes no sense": of_most("soon", "60", "60"),
        "ledgers are closed late": closing("false", "240"),
        "they are closed soon": closing("false", "1"),
        "the message itself is read": closing("true", "240"),
        "nobody tells when they are closed": closing("false", None),
        "nobody tells what is read": closing(None, "240"),
    }
    golden(told({rule: each.judged(TTL_BEFORE_QUOTA) for rule, each in cases.items()}))


@pytest.mark.parametrize(
    ("key", "values", "own", "unknown"),
    [
        ("defaultRetentionTimeInMinutes", ("0", "60"), {}, "retention_minutes"),
        ("defaultRetentionTimeInMinutes", ("0", "0.0"), {}, None),
        ("defaultRetentionTimeInMinutes", ("0", None), {}, None),
        ("defaultRetentionTimeInMinutes", ("0", "60"), {"retention_policies": retention(0, 0)}, None),
        ("backlogQuotaDefaultLimitBytes", ("-1", "100"), {}, "limit_bytes"),
        ("backlogQuotaDefaultLimitBytes", ("-1", "-2"), {}, None),
        ("ttlDurationDefaultInSeconds", ("0", "60"), {}, None),
    ],
    ids=["differ", "the same", "one is silent", "nobody rests on it", "sizes", "none is none", "not looked at"],
)
def test_where_brokers_differ_silence_is_unknown(
    scene: Scene, key: str, values: tuple[str | None, ...], own: dict[str, Any], unknown: str | None
) -> None:
    """The check cannot tell when brokers differ in a default that is in force for a namespace."""
    scene.configured(**{key: None}).namespace(**own).topic()
    scene.rows["configuration"] += [
        {"broker": broker, "key": key, "value": value}
        for broker, value in zip(("a:8080", "b:8080"), values, strict=True)
    ]
    cannot_tell = scene.judged(QUOTA_OVER_RETENTION).cannot_tell
    assert cannot_tell is None if unknown is None else f"({unknown})" in str(cannot_tell)


@pytest.mark.parametrize("document", ["", "not JSON", "null", "[]", '{"message_ttl_in_seconds": "soon"}'])
def test_a_document_that_makes_no_sense_leaves_the_others_alone(scene: Scene, document: str) -> None:
    """A policies document that cannot be understood leads to no finding and does not disturb other namespaces."""
    scene.namespace(quotas=age(60), message_ttl_in_seconds=60)
    scene.rows["namespaces"].append({"namespace": "acme/odd", "policies_json": document})
    assert scene.found(TTL_BEFORE_QUOTA) == {"acme/orders": WARNING}


@pytest.mark.parametrize(
    "check",
    [QUOTA_OVER_RETENTION, RETENTION_UNBOUNDED, RETENTION_TOO_SHORT, TTL_BEFORE_QUOTA],
    ids=lambda check: check.check_id,
)
def test_without_the_brokers_settings_silence_is_unknown(scene: Scene, check: Check) -> None:
    """The checks cannot tell about a namespace without settings if the brokers' configuration was not read."""
    scene.rows["configuration"] = []
    assert "were not read" in (scene.namespace().judged(check).cannot_tell or "")


def test_what_it_says(golden: Golden) -> None:
    """A quota is compared with the retention in force, whatever set it; an age that was not read is named."""
    levels, unread, kept = (Scene().configured() for _ in range(3))
    levels.configured(backlogQuotaDefaultLimitSecond="7200").namespace(retention_policies=retention(60, 10))
    levels.add("drilled", quota_limit_bytes=20 * MIB, topic_quota_json=json.dumps(size(20 * MIB)))
    levels.add("drilled", "acme/orders/as-its-namespace", quota_limit_seconds=7200)
    unread.namespace(retention_policies=retention(60, -1)).topic(backlog_bytes=9).topic("acme/orders/u", 9)
    kept.namespace(retention_policies=retention(-1, -1))
    for name, stored in (("a", 40), ("b", 60), ("c", 60), ("unknown", None)):
        kept.topic(f"acme/orders/{name}", storage_bytes=stored and stored * GIB)
    cases = {
        "a topic's own quota, and the brokers' default": levels.judged(QUOTA_OVER_RETENTION),
        "the age of a backlog was not read": unread.judged(RETENTION_TOO_SHORT),
        "what is kept for ever on several brokers": kept.judged(RETENTION_UNBOUNDED),
    }
    golden(told(cases))


def test_what_is_said_of_quotas_that_nobody_checks(golden: Golden) -> None:
    """A warning where a quota is set, and information elsewhere; 15 minutes between two checks are as good as off."""

    def scene(enabled: str = "true", seconds: str = "60", **quotas: Any) -> Scene:
        settings = {"backlogQuotaCheckEnabled": enabled, "backlogQuotaCheckIntervalInSeconds": seconds}
        return Scene().configured(**settings).namespace(**quotas)

    silent, silent_and_off = scene(), scene("false")
    for each in (silent, silent_and_off):
        each.rows["configuration"] = [row for row in each.rows["configuration"] if row["broker"] == "a:8080"]
    cases = {
        "on": scene(quotas=size(1)),
        "off, and no quota": scene("false"),
        "off under a size quota": scene("false", quotas=size(1)),
        "off under an age quota": scene("false", quotas=age(1)),
        "off under a topic's own quota": scene("false").topic().add("drilled", quota_limit_bytes=1000),
        "off, whatever the time between checks": scene("false", "86400", quotas=size(1)),
        "just below 15 minutes": scene(seconds="899", quotas=size(1)),
        "15 minutes under a size quota": scene(seconds="900", quotas=size(1)),
        "a day under an age quota": scene(seconds="86400", quotas=age(1)),
        "a day, and no quota": scene(seconds="86400"),
        "no number": scene(seconds="nonsense", quotas=size(1)),
        "one broker did not tell": silent,
        "one did not tell, and the other is off": silent_and_off,
    }
    golden(told({rule: each.judged(QUOTA_CHECK_DISABLED) for rule, each in cases.items()}))


def test_a_fresh_cluster_is_quiet(scene: Scene) -> None:
    scene.namespace().topic()
    judgements = {check.check_id: scene.judged(check) for check in OF_BACKLOG if check not in NEED_MORE}
    assert not [check_id for check_id, each in judgements.items() if each.findings or each.cannot_tell]


TIB = 1024**4
DAY = 24 * 60
MONTH = retention(30 * DAY, -1)

# retention, quotas, storage, backlog, further columns of the topic; what is found
NAMESPACES: dict[str, tuple[dict[str, int] | None, dict[str, Any], int, int, dict[str, Any], Severity | None]] = {
    "much and long": (MONTH, {}, TIB, 0, {}, WARNING),
    "a byte less": (MONTH, {}, TIB - 1, 0, {}, None),
    "not all is consumed": (MONTH, {}, TIB, 1, {}, None),
    "a backlog larger than what is stored": (MONTH, {}, TIB, 2 * TIB, {}, None),
    "ten times an outage": (retention(15 * DAY, -1), {}, TIB, 0, {}, WARNING),
    "a minute less": (retention(15 * DAY - 1, -1), {}, TIB, 0, {}, None),
    "an age quota of a week": (MONTH, age(7 * 86_400), TIB, 0, {}, None),
    "unbounded": (retention(-1, -1), {}, TIB, 0, {}, None),
    "nothing is retained": (retention(0, 0), {}, TIB, 0, {}, None),
    "not set": (None, {}, TIB, 0, {}, None),
    "ten times the quota": (retention(-1, 102_400), size(10 * GIB), TIB, 0, {}, WARNING),
    "nearly": (retention(-1, 102_399), size(10 * GIB), TIB, 0, {}, None),
    "ten times the least": (retention(-1, 10_240), {}, TIB, 0, {}, WARNING),
    "busy": (retention(-1, 102_400), {}, TIB, 0, {"throughput_in_bytes": 0.2 * MIB}, None),
    "long, and not large": (retention(30 * DAY, 20_480), size(10 * GIB), TIB, 0, {}, None),
    "large, and not long": (retention(2 * DAY, 102_400), size(10 * GIB), TIB, 0, {}, None),
    "large and long": (retention(30 * DAY, 102_400), size(10 * GIB), TIB, 0, {}, WARNING),
    "offloaded": (MONTH, {"offload": {"offloaded_bytes": 1}}, TIB, 0, {}, INFO),
    "to be offloaded": (MONTH, {"offload": {"offloaded_bytes": 0}}, TIB, 0, {}, WARNING),
    "offloaded no more": (
        MONTH,
        {"offload": {"offloaded_bytes": 1, "offloaded_milliseconds": 1, "offload_failed_milliseconds": 2}},
        TIB,
        0,
        {},
        WARNING,
    ),
}


def test_only_much_for_long_is_found(scene: Scene) -> None:
    """Retention is found when it keeps much and for long, by its tighter limit, and less severe if offloaded."""
    for number, (kept, quotas, storage, backlog, more, _) in enumerate(NAMESPACES.values()):
        policies: dict[str, Any] = {"retention_policies": kept} if kept else {}
        if "offload" in quotas:
            policies["offload_threshold"] = 0
            scene.add("drilled", f"acme/n{number}/t", **quotas["offload"])
        limits = {name: quota for name, quota in quotas.items() if name != "offload"}
        scene.namespace(f"acme/n{number}", limits, **policies)
        scene.topic(f"acme/n{number}/t", backlog, storage_bytes=storage, **more)
    expected = {f"acme/n{number}": case[-1] for number, case in enumerate(NAMESPACES.values())}
    assert scene.found(RETENTION_TOO_LONG) == {subject: severity for subject, severity in expected.items() if severity}


def test_what_it_says_of_long_retentions(golden: Golden) -> None:
    """In bytes over the cluster, without topics that retain otherwise; else the brokers' default counts."""
    default = {"defaultRetentionTimeInMinutes": str(30 * DAY), "defaultRetentionSizeInMB": "-1"}
    summed = Scene().configured().namespace(retention_policies=MONTH)
    for name, stored in (("a", TIB), ("b", 3 * TIB), ("apart", 9 * TIB)):
        summed.topic(f"acme/orders/{name}", TIB // 4, storage_bytes=stored)
    cases = {
        "three topics, one of which retains otherwise": summed.add(
            "drilled", "acme/orders/apart", topic_retention_json=json.dumps(retention(60, -1))
        ),
        "the brokers' default": Scene().configured(**default).namespace().topic(storage_bytes=TIB),
        "a default that was not read": Scene()
        .configured(**default | {"defaultRetentionTimeInMinutes": None})
        .namespace()
        .topic(storage_bytes=TIB),
        "an idle cluster": Scene().configured().namespace(retention_policies=MONTH).topic(),
    }
    golden(told({rule: scene.judged(RETENTION_TOO_LONG) for rule, scene in cases.items()}))


LIMIT = {"publishThrottlingRateInMsg": 1}
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    **{name: ({name: {"foo": LIMIT}}, True) for name in RATES},
    "this cluster": ({"publishMaxMessageRate": {"lab": LIMIT}}, False),
    "one that it is replicated to": (
        {"publishMaxMessageRate": {"west": LIMIT}, "replication_clusters": ["lab", "west"]},
        False,
    ),
    "a replicator's, by both": ({"replicatorDispatchRate": {"lab->west": LIMIT}}, False),
    "none": ({"publishMaxMessageRate": {}, "topicDispatchRate": None}, False),
}


@pytest.mark.parametrize(("policies", "found"), CASES.values(), ids=CASES)
def test_a_limit_under_another_name_limits_nobody(scene: Scene, policies: dict[str, Any], *, found: bool) -> None:
    """The namespace, the limit and the name that it stands under are told."""
    scene.rows["snapshot"][0]["pulsar_cluster"] = "lab"
    findings = scene.namespace("acme/orders", **policies).judged(LIMIT_ELSEWHERE).findings
    assert [each.subject for each in findings] == ["acme/orders"] * found
    assert all("under foo, and it is served by lab" in each.evidence for each in findings)


def test_without_the_clusters_own_name_it_cannot_be_told(scene: Scene) -> None:
    """Every name may be the cluster's own then."""
    scene.namespace("acme/orders", publishMaxMessageRate={"foo": LIMIT}).rows["snapshot"][0]["pulsar_cluster"] = None
    judgement = scene.judged(LIMIT_ELSEWHERE)
    assert (judgement.findings, judgement.cannot_tell is not None) == ((), True)


CRITICAL = Severity.CRITICAL

Clocks = list[int | None]

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
    scene: Scene, skews: Clocks, severity: Severity | None, *, whole: bool
) -> None:
    """Brokers' clocks are compared with each other only, and health is not claimed with an unread clock."""
    scene.rows["brokers"] = [
        {"broker": f"b{number}", "read": True, "clock_skew_milliseconds": skew} for number, skew in enumerate(skews)
    ]
    judgement = scene.judged(CLOCK_SKEW)
    assert severity_of(judgement) is severity
    assert (judgement.cannot_tell is None) == whole


def test_what_was_not_read_is_left_alone() -> None:
    """Though its clock seems to be far off; without any clock the check cannot tell."""
    clocks = (("a:8080", True, 0), ("b:8080", True, 0), ("c:8080", False, 90_000))
    scene = Scene()
    scene.rows["brokers"] = [
        {"broker": broker, "read": read, "clock_skew_milliseconds": skew} for broker, read, skew in clocks
    ]
    assert outcome(scene.judged(CLOCK_SKEW)) == (None, False)
    assert Scene().judged(CLOCK_SKEW).cannot_tell == "No broker's clock was read."
