"""Findings of one cause are one trouble, whatever found them; none is told twice, and the worst harm comes first."""

from __future__ import annotations

import random
from collections import Counter
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Finding, QuotaFigures, Severity
from pulsar_steward.model.trouble import BySeverityAndNamespace, Harm, harm_of, troubles_of
from tests.builders import a_finding
from tests.cases import cases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.trouble import Trouble

TOPIC = "persistent://shop/orders/placed"
FULL = QuotaFigures(bytes_percent=120, holds_producers=1)
EVICTING = QuotaFigures(seconds_percent=120, holds_producers=0)


def found(
    check_id: str,
    subject: str,
    severity: Severity = Severity.CRITICAL,
    figures: QuotaFigures | dict[str, int] | None = None,
    evidence: str = "…",
) -> Finding:
    """A finding."""
    by_name = figures.by_name if isinstance(figures, QuotaFigures) else figures or {}
    return Finding(check_id=check_id, severity=severity, subject=subject, evidence=evidence, figures=by_name)


def troubles(*findings: Finding, more: Mapping[str, BySeverityAndNamespace] | None = None) -> tuple[Trouble, ...]:
    """The troubles of these findings."""
    return troubles_of(findings, more or {}, BY_ID)


def test_a_topic_that_stands_still_is_full_and_cannot_restart_is_one_trouble() -> None:
    """The cause leads, the worst harm ranks it, and says whom it meets; the other subscription holds nothing."""
    held = "Slowest is subscription app with 9 entries."
    (trouble, soon, slow) = troubles(
        found("backlog-near-quota", f"{TOPIC}-partition-1", figures=FULL, evidence=held),
        found("producer-hold-restart-risk", f"{TOPIC}-partition-1", evidence=held),
        found("subscription-stalled", f"{TOPIC}-partition-1 subscription app", Severity.WARNING),
        found("subscription-stalled", f"{TOPIC}-partition-1 subscription app-2", Severity.WARNING),
        found("backlog-near-quota", f"{TOPIC}-partition-2", Severity.WARNING, QuotaFigures(bytes_percent=85)),
    )
    assert (trouble.root, trouble.harm, trouble.harmful) == ("subscription-stalled", Harm.CUT_OFF, "backlog-near-quota")
    assert (trouble.severity, trouble.count, trouble.affected) == (Severity.CRITICAL, 3, 1)
    assert (trouble.where, trouble.causes) == (f"{TOPIC}-partition-1", (f"{TOPIC}-partition-1 subscription app",))
    assert (soon.root, soon.harm, slow.root) == ("backlog-near-quota", Harm.SOON, "subscription-stalled")


def test_of_a_namespaces_cause_each_topic_has_its_own_harm() -> None:
    """Replication that stands still cuts off the topics that it fills, not those that it does not hold."""
    held = "It is held by the replication to west (pulsar.repl.west)."
    (cut_off, own, soon) = troubles(
        found("replication-stopped", "shop/orders to west"),
        found("backlog-near-quota", f"{TOPIC}-1", figures=FULL, evidence=held),
        found("backlog-near-quota", f"{TOPIC}-2", figures=QuotaFigures(bytes_percent=81), evidence=held),
        found("backlog-near-quota", f"{TOPIC}-3", figures=QuotaFigures(bytes_percent=99), evidence="Slowest is app."),
    )
    assert (cut_off.root, cut_off.where, cut_off.count) == ("replication-stopped", f"{TOPIC}-1", 2)
    assert (soon.root, soon.harm, soon.where) == ("replication-stopped", Harm.SOON, f"{TOPIC}-2")
    assert (own.root, own.where) == ("backlog-near-quota", f"{TOPIC}-3")


@cases(
    "figures, harm",
    ("shuts out", FULL, Harm.CUT_OFF),
    ("deletes", EVICTING, Harm.LOSING),
    ("nobody checks", QuotaFigures(bytes_percent=120, holds_producers=1, unchecked=1), Harm.AT_RESTART),
    ("nobody checks what is deleted", QuotaFigures(bytes_percent=120, holds_producers=0, unchecked=1), Harm.SOON),
    ("nobody knows the policy", QuotaFigures(bytes_percent=120), Harm.SOON),
    ("not full", QuotaFigures(bytes_percent=99, holds_producers=1), Harm.SOON),
)
def test_a_quota_does_what_brokers_do_with_it(figures: QuotaFigures, harm: Harm) -> None:
    (trouble,) = troubles(found("backlog-near-quota", TOPIC, figures=figures))
    assert trouble.harm is harm


def test_information_is_no_cause() -> None:
    held = "Slowest is subscription app with 9 entries."
    (trouble, _) = troubles(
        found("backlog-near-quota", TOPIC, figures=FULL, evidence=held),
        found("subscription-stalled", f"{TOPIC} subscription app", Severity.INFO),
    )
    assert trouble.root == "backlog-near-quota"


def test_the_order_of_findings_changes_nothing_and_each_is_told_once() -> None:
    """Whatever the subjects look like, as they come from outside."""
    odd = ("pulsar://", "", "a b subscription c", f"{TOPIC} subscription a to b")
    subjects = (*odd, TOPIC, "shop/orders to west", "x")
    every = [found(check_id, subject) for check_id in (*BY_ID, "unknown") for subject in subjects]
    joined = troubles(*every)
    assert Counter(id(each) for trouble in joined for each in trouble.findings) == Counter(map(id, every))
    assert sum(trouble.count for trouble in joined) == len(every)
    random.Random(3).shuffle(every)
    assert troubles(*every) == joined


@pytest.mark.parametrize(
    ("subjects", "where"),
    [
        (["east"], "east"),
        ([TOPIC], TOPIC),
        ([f"{TOPIC}-partition-{number}" for number in range(3)], f"3 partitions of {TOPIC}"),
        ([f"{TOPIC} subscription {name}" for name in "ab"], f"2 subscriptions of {TOPIC}"),
        ([TOPIC, "persistent://shop/returns/sent"], "2 topics in 2 namespaces"),
        (["broker-1:8080", "broker-2:8080"], "broker-1:8080 and 1 more"),
    ],
)
def test_it_says_whom_it_meets(subjects: list[str], where: str) -> None:
    (trouble,) = troubles(*(found("quota-stuck", each) for each in subjects))
    assert trouble.where == where


def test_the_worst_harm_comes_first_and_information_is_a_setting() -> None:
    ranked = troubles(
        found("hot-bundle", "shop/orders/0x0_0x1", Severity.INFO),
        found("tc-count", "east"),
        found("consumer-fanout", TOPIC),
        found("backlog-near-quota", f"{TOPIC}s", figures=EVICTING),
        found("backlog-near-quota", TOPIC, figures=FULL),
    )
    assert [each.harm for each in ranked] == [Harm.CUT_OFF, Harm.LOSING, Harm.AT_RESTART, Harm.SLOW, Harm.SETTING]


def test_what_is_only_counted_is_counted_once() -> None:
    """Unlisted findings belong to the trouble with most listed ones of their severity; the sums are those of checks."""
    full = [found("backlog-near-quota", f"{TOPIC}-{number}", figures=FULL) for number in range(3)]
    elsewhere = {"shop/orders": 400, "shop/returns": 600}
    more = {"backlog-near-quota": {Severity.CRITICAL: elsewhere, Severity.WARNING: {"": 100}}}
    (trouble,) = troubles(*full, more=more)
    assert trouble.found == Counter({Severity.CRITICAL: 1_003, Severity.WARNING: 100})
    assert (trouble.affected, trouble.where) == (1_003, "up to 1,003 topics in 2 namespaces")
    (trouble,) = troubles(*full, more={"backlog-near-quota": {Severity.CRITICAL: {**elsewhere, "": 7}}})
    assert trouble.where == "up to 1,010 topics in at least 2 namespaces"


def test_what_a_full_topic_risks_at_a_restart_is_no_second_trouble() -> None:
    (trouble,) = troubles(found("backlog-near-quota", TOPIC, figures=FULL), found("producer-hold-restart-risk", TOPIC))
    assert (trouble.harm, trouble.harmful, trouble.count) == (Harm.CUT_OFF, "backlog-near-quota", 2)


def test_a_crowded_topic_and_its_broker_are_one_trouble() -> None:
    """Where the topic's clients are all that the broker carries more than the others, and no other load is."""
    crowd = found(
        "consumer-fanout", TOPIC, evidence=f"{TOPIC} on b-1:8080 has 9 consumers.", figures={"consumers": 9_000}
    )
    skew = {"clients": 10_000, "others_median_clients": 900}
    (trouble,) = troubles(crowd, found("broker-load-skew", "b-1:8080", figures=skew))
    assert (trouble.root, trouble.harm, trouble.where, trouble.count) == (
        "consumer-fanout",
        Harm.AT_RESTART,
        TOPIC,
        2,
    )
    apart = {
        "another broker": ("b-2:8080", skew),
        "more than the topic": ("b-1:8080", {**skew, "clients": 12_000}),
        "topics as well": ("b-1:8080", {**skew, "topics": 900, "others_median_topics": 9}),
    }
    for why, (broker, figures) in apart.items():
        joined = troubles(crowd, found("broker-load-skew", broker, figures=figures))
        assert [each.root for each in joined] == ["consumer-fanout", "broker-load-skew"], why


def test_what_a_crowded_topic_makes_hot_or_busy_belongs_to_it() -> None:
    """Its bundle, by the bundle's own evidence, and its broker's few threads, where it has most of the connections."""
    figures = {"consumers": 9_000}
    crowd = found("consumer-fanout", TOPIC, evidence=f"{TOPIC} on b-1:8080 has 9 consumers.", figures=figures)
    hot = f"Bundle 0x0_0x1 carries much. {TOPIC} has 99 % of its clients: a split cannot help, more partitions can."
    for evidence, roots in (
        (hot, ["consumer-fanout"]),
        (hot.replace(TOPIC, f"{TOPIC}-2"), ["consumer-fanout", "hot-bundle"]),
        (hot.replace("of its clients", "of its throughput"), ["consumer-fanout", "hot-bundle"]),
    ):
        joined = troubles(crowd, found("hot-bundle", "shop/orders/0x0_0x1", evidence=evidence))
        assert [each.root for each in joined] == roots
    for broker, figures, roots in (
        ("b-1:8080", {"connections": 10_000}, ["consumer-fanout"]),
        ("b-2:8080", {"connections": 10_000}, ["consumer-fanout", "entry-cache-size"]),
        ("b-1:8080", {"connections": 20_000}, ["consumer-fanout", "entry-cache-size"]),
        ("b-1:8080", {"topics": 10_000}, ["consumer-fanout", "entry-cache-size"]),
    ):
        joined = troubles(crowd, found("entry-cache-size", broker, figures=figures))
        assert [each.root for each in joined] == roots


def test_grave_harm_has_a_headline_of_its_own() -> None:
    """Whoever is cut off or loses data is told so in capitals, not by the title of a check."""
    worst = a_finding(Severity.CRITICAL, figures={"bytes_percent": 120, "holds_producers": 1, "evicts": 1})
    for check in BY_ID.values():
        harm = harm_of(msgspec.structs.replace(worst, check_id=check.check_id), BY_ID)
        if harm in {Harm.CUT_OFF, Harm.LOSING}:
            first = check.headlines[harm].split(" ")[0]
            assert first.isupper(), check.check_id


def test_of_lists_of_different_topics_the_cause_is_one() -> None:
    """Two checks list others of the same topics: the consequence belongs to its cause where both have more there."""
    full = [found("backlog-near-quota", f"{TOPIC}-{number}", figures=FULL) for number in range(3)]
    at_risk = [found("producer-hold-restart-risk", f"{TOPIC}-{number}") for number in range(5, 8)]
    more = {check: {Severity.CRITICAL: {"shop/orders": 90}} for check in ("backlog-near-quota", at_risk[0].check_id)}
    (trouble,) = troubles(*full, *at_risk, more=more)
    assert (trouble.root, trouble.harm, trouble.affected, trouble.count) == (full[0].check_id, Harm.CUT_OFF, 93, 186)
    elsewhere = {**more, "backlog-near-quota": {Severity.CRITICAL: {"shop/returns": 90}}}
    assert [each.harm for each in troubles(*full, *at_risk, more=elsewhere)] == [Harm.CUT_OFF, Harm.AT_RESTART]


def test_causes_are_known_checks_and_go_round_in_no_circle() -> None:
    causes = {check_id: check.explained_by for check_id, check in BY_ID.items()}
    assert set().union(*causes.values()) <= set(BY_ID)
    assert len(tuple(TopologicalSorter(causes).static_order())) == len(BY_ID)
