"""Findings of one cause are one trouble, whatever found them; none is told twice, and the worst harm comes first."""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Finding, QuotaFigures, Severity
from pulsar_steward.model.trouble import Harm, troubles_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.trouble import Trouble

TOPIC = "persistent://shop/orders/placed"
FULL = QuotaFigures(bytes_percent=120, holds_producers=1)
EVICTING = QuotaFigures(seconds_percent=120, holds_producers=0)


def found(
    check_id: str, subject: str, severity: Severity = Severity.CRITICAL, figures: QuotaFigures | None = None
) -> Finding:
    """A finding."""
    by_name = figures.by_name if figures else {}
    return Finding(check_id=check_id, severity=severity, subject=subject, evidence="…", figures=by_name)


def troubles(*findings: Finding, more: Mapping[str, Mapping[Severity, int]] | None = None) -> tuple[Trouble, ...]:
    """The troubles of these findings."""
    return troubles_of(findings, more or {}, BY_ID)


def test_a_topic_that_stands_still_is_full_and_cannot_restart_is_one_trouble() -> None:
    """The cause leads, the worst harm ranks it, and a partition is explained by its own subscription alone."""
    (trouble, other) = troubles(
        found("backlog-near-quota", f"{TOPIC}-partition-1", figures=FULL),
        found("producer-hold-restart-risk", f"{TOPIC}-partition-1"),
        found("subscription-stalled", f"{TOPIC}-partition-1 subscription app", Severity.WARNING),
        found(
            "backlog-near-quota",
            f"{TOPIC}-partition-2",
            Severity.WARNING,
            QuotaFigures(bytes_percent=85, holds_producers=1),
        ),
    )
    assert (trouble.root, trouble.harm, trouble.harmful) == ("subscription-stalled", Harm.CUT_OFF, "backlog-near-quota")
    assert (trouble.severity, trouble.count, trouble.affected) == (Severity.CRITICAL, 3, 1)
    assert (other.root, other.harm) == ("backlog-near-quota", Harm.SOON)


@pytest.mark.parametrize(
    ("subjects", "where"),
    [
        (["east"], "east"),
        ([TOPIC], TOPIC),
        ([f"{TOPIC}-partition-{number}" for number in range(3)], f"3 partitions of {TOPIC}"),
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
        found("tc-skew", "east"),
        found("consumer-fanout", TOPIC),
        found("backlog-near-quota", f"{TOPIC}s", figures=EVICTING),
        found("backlog-near-quota", TOPIC, figures=FULL),
    )
    assert [each.harm for each in ranked] == [Harm.CUT_OFF, Harm.LOSING, Harm.AT_RESTART, Harm.SLOW, Harm.SETTING]


def test_what_is_only_counted_is_counted_once() -> None:
    """Unlisted findings belong to the trouble with most listed ones of their severity; the sums are those of checks."""
    full = [found("backlog-near-quota", f"{TOPIC}-{number}", figures=FULL) for number in range(3)]
    more = {"backlog-near-quota": {Severity.CRITICAL: 1_000, Severity.WARNING: 100}}
    (trouble,) = troubles(*full, more=more)
    assert trouble.found == Counter({Severity.CRITICAL: 1_003, Severity.WARNING: 100})
    assert (trouble.affected, trouble.where) == (1_003, "up to 1,003 topics in at least 1 namespace")


def test_causes_are_known_checks_and_go_round_in_no_circle() -> None:
    causes = {check_id: check.explained_by for check_id, check in BY_ID.items()}
    assert set().union(*causes.values()) <= set(BY_ID)
    assert len(tuple(TopologicalSorter(causes).static_order())) == len(BY_ID)
