"""Topics near their quota, over it, without any, and over it without a backlog."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.quota_settings import BACKLOG_QUOTA_MISSING
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK
from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.load import parse_policy
from tests.builders import a_policy
from tests.checks.backlog.conftest import Scene
from tests.checks.backlog.documents import EVICT, HOLD, age, size
from tests.checks.conftest import told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.golden import Golden

MIB, GIB = 1024**2, 1024**3
INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
ERROR = "producer_exception"


def named(check: Check) -> str:
    """Returns the id of a check as the name of a parametrised test."""
    return check.check_id


def expected(cases: list[Severity | None], subject: str = "persistent://acme/n{0}/t") -> dict[str, Severity]:
    """Expected findings of a table of cases, one a namespace, None: nothing."""
    return {subject.format(number): severity for number, severity in enumerate(cases) if severity}


SIZES: dict[str, tuple[dict[str, Any], int, Severity | None, Severity | None]] = {
    "no quota": ({}, 10**12, None, None),
    "under 80 %": (size(1000), 799, None, None),
    "80 %": (size(1000), 800, WARNING, None),
    "under 90 %": (size(1000), 899, WARNING, None),
    "90 %": (size(1000), 900, WARNING, WARNING),
    "95 %": (size(1000, ERROR), 950, CRITICAL, WARNING),
    "over it": (size(1000, ERROR), 1000, CRITICAL, CRITICAL),
    "eviction stops no producer": (size(1000, EVICT), 1500, CRITICAL, None),
    "an empty topic is over 0 bytes": (size(0), 0, CRITICAL, CRITICAL),
    "-1 is no limit": (size(-1), 10**12, None, None),
    "an old broker's limit": ({"destination_storage": {"limit": 1000, "policy": HOLD}}, 1000, CRITICAL, CRITICAL),
    "the size of an age quota counts for nothing": (
        {"message_age": {"limitSize": 10, "limitTime": 0, "policy": HOLD}},
        1000,
        None,
        None,
    ),
}


def test_a_size_quota_is_judged_by_its_share(scene: Scene) -> None:
    """Nearness to a quota is found for every policy, the restart risk only for those that shut producers out."""
    for number, (quotas, backlog, _, _) in enumerate(SIZES.values()):
        scene.namespace(f"acme/n{number}", quotas).topic(f"acme/n{number}/t", backlog)
    assert scene.found(BACKLOG_NEAR_QUOTA) == expected([case[2] for case in SIZES.values()])
    assert scene.found(PRODUCER_HOLD_RESTART_RISK) == expected([case[3] for case in SIZES.values()])


AGES: dict[str, tuple[int | None, Severity | None]] = {
    "not known to the broker": (None, None),
    "under 80 %": (2879, None),
    "80 %": (2880, WARNING),
    "all of it": (3600, CRITICAL),
}


def test_an_age_quota_is_judged_by_the_age_that_the_broker_told(scene: Scene) -> None:
    """An age quota is judged by the age in the topic's statistics, and an unknown age leads to no finding."""
    for number, (seconds, _) in enumerate(AGES.values()):
        scene.namespace(f"acme/n{number}", age(3600)).topic(f"acme/n{number}/t", 9)
        scene.add("drilled", f"acme/n{number}/t", quota_limit_seconds=3600, oldest_backlog_age_seconds=seconds)
    assert scene.found(BACKLOG_NEAR_QUOTA) == expected([severity for _, severity in AGES.values()])


def test_an_age_that_the_broker_does_not_know_is_not_unknown(scene: Scene) -> None:
    """A drilled topic for which the broker reports no age does not count as unknown."""
    scene.namespace(quotas=age(3600)).topic(backlog_bytes=9).add("drilled", quota_limit_seconds=3600)
    assert scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell is None


@pytest.mark.parametrize("check", [BACKLOG_NEAR_QUOTA, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK], ids=named)
def test_an_age_that_nobody_asked_for_is_unknown(scene: Scene, check: Check) -> None:
    """The checks cannot tell about topics under an age quota that were not drilled, and count them all."""
    scene.namespace(quotas=age(3600))
    for name in ("t", "u"):
        scene.topic(f"acme/orders/{name}", 9, producers=0)
    cannot_tell = scene.judged(check).cannot_tell or ""
    assert cannot_tell.startswith("2 topics")
    assert "age was not read" in cannot_tell


def test_an_age_matters_where_its_quota_shuts_producers_out(scene: Scene) -> None:
    """An unread age under an evicting quota makes only `backlog-near-quota` unable to tell."""
    scene.namespace(quotas=age(3600, EVICT)).topic(backlog_bytes=9, producers=0)
    assert scene.judged(BACKLOG_NEAR_QUOTA).cannot_tell
    assert scene.judged(PRODUCER_HOLD_RESTART_RISK).cannot_tell is None
    assert scene.judged(QUOTA_STUCK).cannot_tell is None


def test_the_topics_own_quota_goes_first(scene: Scene) -> None:
    """A drilled topic is judged by the limit and policy in force for it instead of its namespace's."""
    own = json.dumps(size(10_000, EVICT))
    scene.namespace(quotas=size(1000))
    scene.topic("acme/orders/wide", 5000).add("drilled", "acme/orders/wide", quota_limit_bytes=10_000)
    scene.topic("acme/orders/full", 9900)
    scene.add("drilled", "acme/orders/full", quota_limit_bytes=10_000, topic_quota_json=own)
    scene.topic("acme/orders/free", 10**12).add("drilled", "acme/orders/free")
    (finding,) = scene.judged(BACKLOG_NEAR_QUOTA).findings
    assert finding.subject == "persistent://acme/orders/full"
    assert EVICT in finding.evidence
    assert not scene.found(PRODUCER_HOLD_RESTART_RISK)


def test_the_brokers_default_stands_where_nothing_is_set(scene: Scene) -> None:
    """A topic that nearly fills the brokers' default size quota is critical, though its namespace sets an age quota."""
    scene.configured(backlogQuotaDefaultLimitGB="1.0", backlogQuotaDefaultLimitBytes="7")
    scene.namespace(quotas=age(60)).topic(backlog_bytes=GIB - 1).topic("acme/orders/half", GIB // 2)
    assert list(scene.found(BACKLOG_NEAR_QUOTA).values()) == [CRITICAL]


@pytest.mark.parametrize(
    "check", [BACKLOG_NEAR_QUOTA, BACKLOG_QUOTA_MISSING, PRODUCER_HOLD_RESTART_RISK, QUOTA_STUCK], ids=named
)
def test_without_the_brokers_settings_silence_is_unknown(scene: Scene, check: Check) -> None:
    """The checks cannot tell about a namespace without a quota if the brokers' default quota was not read."""
    scene.configured(backlogQuotaDefaultLimitGB=None, backlogQuotaDefaultLimitBytes=None)
    scene.namespace().topic(backlog_bytes=10**12)
    judgement = scene.judged(check)
    assert not judgement.findings
    assert "limit_bytes" in (judgement.cannot_tell or "")


def test_pulsars_own_topics_are_left_alone(scene: Scene) -> None:
    for name in ("acme/orders", "pulsar/system", "pulsar/lab/a:8080"):
        scene.namespace(name, size(1000))
    for topic in ("pulsar/system/t", "pulsar/lab/a:8080/healthcheck", "acme/orders/__change_events"):
        scene.topic(topic, 10**9)
    assert not scene.found(BACKLOG_NEAR_QUOTA)


MADE = 1_767_312_000_000


@pytest.mark.parametrize(
    ("closed", "cursor", "said"),
    [
        (MADE - 1, "2026-01-02T00:00:00Z", True),
        (MADE, "2026-01-02T00:00:00Z", False),
        (None, "2026-01-02T00:00:00Z", False),
        (MADE - 1, None, False),
    ],
)
def test_a_subscription_that_began_in_what_was_kept_is_said_to(
    scene: Scene, closed: int | None, cursor: str | None, *, said: bool
) -> None:
    """Only where the ledger of its first unread message was closed before its cursor was made."""
    scene.namespace(quotas=size(1000)).topic(backlog_bytes=970)
    scene.add("subscriptions", subscription="new", backlog_entries=900, consumers=1)
    told = {"created": cursor, "position": "1:2", "written": "-1:-1"}
    scene.add(
        "drilled",
        subscription="new",
        quota_limit_bytes=1000,
        unread_closed_milliseconds=closed,
        cursor_json=json.dumps(told) if cursor else None,
    )
    (finding,) = scene.judged(BACKLOG_NEAR_QUOTA).findings
    began = " It was made 2026-01-02 00:00 UTC, after its first unread message was stored: it began in what was kept"
    assert (began in finding.evidence) is said


def test_the_worst_are_listed_and_the_rest_is_counted(scene: Scene) -> None:
    scene.namespace(quotas=size(1000))
    for number in range(MAX_FINDINGS + 3):
        scene.topic(f"acme/orders/t{number:03}", 900 if number < MAX_FINDINGS + 2 else 999)
    judgement = scene.judged(BACKLOG_NEAR_QUOTA)
    assert (len(judgement.findings), judgement.more) == (MAX_FINDINGS, 3)
    assert judgement.graded == {(Severity.WARNING, "acme/orders"): 3}
    assert [finding.subject[-4:] for finding in judgement.findings[:2]] == ["t102", "t000"]


def test_each_namespace_is_judged_by_its_own_values(scene: Scene) -> None:
    """Each namespace is judged by its own thresholds, and critical findings come before warnings."""
    for name in ("acme/early", "acme/usual", "other/late"):
        scene.namespace(name, size(1000))
    for name, backlog in (("acme/early", 700), ("acme/usual", 700), ("other/late", 990)):
        scene.topic(f"{name}/t", backlog)
    early, late = {"warning_percent": 50, "critical_percent": 60}, {"critical_percent": 100}
    policy = parse_policy(
        {
            "tenants": {"other": {"backlog_near_quota": late}},
            "namespaces": {"acme/early": {"backlog_near_quota": early}},
        },
        name="p",
    )
    assert list(scene.found(BACKLOG_NEAR_QUOTA, policy).items()) == [
        ("persistent://acme/early/t", CRITICAL),
        ("persistent://other/late/t", WARNING),
    ]


BACKLOGS: dict[str, tuple[int, Severity | None]] = {
    "none": (0, None),
    "some": (1, INFO),
    "nearly 10 GiB": (10 * GIB - 1, INFO),
    "10 GiB": (10 * GIB, WARNING),
}


def test_a_missing_quota_matters_by_the_backlog(scene: Scene) -> None:
    """A missing quota is information when there is a backlog, and a warning from 10 GiB on."""
    for number, (backlog, _) in enumerate(BACKLOGS.values()):
        scene.namespace(f"acme/n{number}").topic(f"acme/n{number}/t", backlog).topic(f"acme/n{number}/u", 0)
    scene.namespace("acme/bound", age(60)).topic("acme/bound/t", 10**12)
    assert scene.found(BACKLOG_QUOTA_MISSING) == expected([each for _, each in BACKLOGS.values()], "acme/n{0}")


STUCK: dict[str, tuple[dict[str, Any], dict[str, Any], Severity | None]] = {
    "a real backlog": ({}, {"backlog_entries": 2048}, None),
    "none left, producers gone": ({"producers": 0}, {"backlog_entries": 0}, CRITICAL),
    "none left, producers there": ({"producers": 1}, {"backlog_entries": 0}, WARNING),
    "1 MiB an entry": ({"producers": 0}, {"backlog_entries": 1024}, None),
    "more than 1 MiB": ({"producers": 0}, {"backlog_entries": 1023}, WARNING),
    "as large as a message may be": ({"producers": 0}, {"backlog_entries": 205}, WARNING),
    "larger than that": ({"producers": 0}, {"backlog_entries": 204}, CRITICAL),
    "holes may explain it": ({"producers": 0}, {"backlog_entries": 1, "ack_holes": 3}, WARNING),
    "under the quota": ({"producers": 0, "backlog_bytes": GIB - 1}, {"backlog_entries": 0}, None),
    # Messages of 3 MiB, whichever way they flow.
    "large messages come": ({"message_rate_in": 2.0, "throughput_in_bytes": 6.0 * MIB}, {"backlog_entries": 400}, None),
    "large messages go": (
        {"producers": 0, "message_rate_out": 2.0, "throughput_out_bytes": 6.0 * MIB},
        {"backlog_entries": 400, "messages_per_entry": 1},
        None,
    ),
    # Entries of 100 messages of 200 bytes, which makes 20 KB: that 5,000 of them take ten times as much is not likely.
    "small batches": (
        {"message_rate_out": 1.0, "throughput_out_bytes": 200.0},
        {"backlog_entries": 5000, "messages_per_entry": 100},
        WARNING,
    ),
    "enough small batches": (
        {"message_rate_out": 1.0, "throughput_out_bytes": 200.0},
        {"backlog_entries": 6000, "messages_per_entry": 100},
        None,
    ),
}


def test_a_quota_without_a_backlog_is_stuck(scene: Scene) -> None:
    """A topic over its quota is critical when its entries cannot explain it, without ack holes or producers."""
    for number, (topic, subscription, _) in enumerate(STUCK.values()):
        name = f"acme/n{number}/t"
        scene.namespace(f"acme/n{number}", size(GIB)).topic(name, **({"backlog_bytes": GIB} | topic))
        scene.add("subscriptions", name, **subscription)
    assert scene.found(QUOTA_STUCK) == expected([severity for *_, severity in STUCK.values()])


@pytest.mark.parametrize(("largest", "severity"), [("104857600", None), ("1048576", CRITICAL), ("nonsense", None)])
def test_no_entry_is_larger_than_a_message_may_be(scene: Scene, largest: str, severity: Severity | None) -> None:
    """The brokers' `maxMessageSize` limits the assumed size of an entry if it is below the policy's value."""
    scene.configured(maxMessageSize=largest).namespace(quotas=size(GIB)).topic(backlog_bytes=GIB, producers=0)
    scene.add("subscriptions", backlog_entries=1000)
    found = scene.found(QUOTA_STUCK, a_policy(quota_stuck={"most_bytes_per_entry": 2 * MIB}))
    assert list(found.values()) == ([severity] if severity else [])


@pytest.mark.parametrize(("messages", "severity"), [(0, WARNING), (1, None)])
def test_an_age_over_the_quota_needs_a_message(scene: Scene, messages: int, severity: Severity | None) -> None:
    """An age over the quota is a warning when no message is left, and the evidence calls it indirect."""
    scene.namespace(quotas=age(60, ERROR)).topic(producers=0)
    scene.add("drilled", quota_limit_seconds=60, oldest_backlog_age_seconds=90)
    scene.add("subscriptions", backlog_entries=messages)
    findings = scene.judged(QUOTA_STUCK).findings
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all("left over" in finding.evidence and "Indirect" in finding.evidence for finding in findings)


def test_more_over_their_quota_than_are_looked_at_leave_it_open(scene: Scene) -> None:
    """Only the fullest topics over their quota are looked at, and without a finding the check cannot tell."""
    over = replace(QUOTA_STUCK.shards["over_quota"], most=2)
    check = replace(QUOTA_STUCK, shards={**QUOTA_STUCK.shards, "over_quota": over})
    scene.namespace(quotas=size(GIB))
    for name, backlog, entries in (("t", GIB, 0), ("u", 2 * GIB, 10_000), ("v", 3 * GIB, 10_000)):
        scene.topic(f"acme/orders/{name}", backlog).add("subscriptions", f"acme/orders/{name}", backlog_entries=entries)
    assert "Of 3 topics over a quota" in str(scene.judged(check).cannot_tell)
    scene.topic("acme/orders/w", 4 * GIB).add("subscriptions", "acme/orders/w", backlog_entries=0)
    assert set(scene.found(check)) == {"persistent://acme/orders/w"}


def test_what_it_says(golden: Golden) -> None:
    """Who holds the backlog, and the worst consumer: by what the topic tells, else who has most left."""
    near, unasked, batch, spread, stuck, empty, single = (Scene().configured() for _ in range(7))
    near.namespace(quotas=size(1000)).topic(backlog_bytes=970)
    near.add("subscriptions", subscription="big", backlog_entries=900, consumers=0)
    near.add("subscriptions", subscription="slow", backlog_entries=90, consumers=2)
    near.add("clients", subscription="slow", consumer="c1", address="10.0.0.1:4711", unacked_messages=5)
    near.add("clients", subscription="slow", consumer="c2", address="10.0.0.2:4711", unacked_messages=50, blocked=True)
    near.add("drilled", quota_limit_bytes=1000, slowest_subscription="slow", delayed_messages=7)
    unasked.namespace(quotas=size(1000)).topic(backlog_bytes=1000, producers=0)
    unasked.add("subscriptions", subscription="a", backlog_entries=2, consumers=1)
    unasked.add("subscriptions", subscription="b", backlog_entries=3, consumers=0)
    batch.namespace(quotas=size(1000)).topic(backlog_bytes=1000)
    batch.add("subscriptions", backlog_entries=1, messages_per_entry=500, consumers=1)
    batch.add("clients", consumer="c", address="10.0.0.1:1", unacked_messages=500)
    spread.namespace()
    for name, backlog in (("a", 2 * GIB), ("b", 3 * GIB), ("c", 3 * GIB)):
        spread.topic(f"acme/orders/{name}", backlog)
    stuck.namespace(quotas=size(300 * GIB)).topic(backlog_bytes=350 * GIB, producers=1)
    stuck.add("subscriptions", backlog_entries=90_000)
    empty.namespace(quotas=size(GIB)).topic(backlog_bytes=GIB, producers=0)
    single.namespace(quotas=age(3600)).topic(backlog_bytes=9, producers=0)
    single.namespace("acme/free").topic("acme/free/t", 9).add("subscriptions", "acme/free/t", backlog_entries=1)
    cases = {
        "who holds it": near.judged(BACKLOG_NEAR_QUOTA),
        "its topic was not asked": unasked.judged(PRODUCER_HOLD_RESTART_RISK),
        "a batch is one entry": batch.judged(BACKLOG_NEAR_QUOTA),
        "topics on several brokers, without a quota": spread.judged(BACKLOG_QUOTA_MISSING),
        "how much entries explain": stuck.judged(QUOTA_STUCK),
        "no subscription, and no producer any more": empty.judged(QUOTA_STUCK),
        "the age of one topic is not known": single.judged(BACKLOG_NEAR_QUOTA),
        "nor is it for the quota that is stuck": single.judged(QUOTA_STUCK),
        "a single topic has no quota": single.judged(BACKLOG_QUOTA_MISSING),
    }
    golden(told(cases))
