"""Unevenly spread transaction coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.placement import tc_skew
from steward_spark.diagnosing import verdict_of
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from steward_spark.frames import Frames

pytestmark = pytest.mark.spark

Counts = dict[str, int | None]
"""Coordinators by broker; None: it could not be read."""


def rows(held: Counts, unowned: int = 0, bundle: str = "", **meta: Any) -> dict[str, list[dict[str, Any]]]:
    """A snapshot in which brokers hold that many coordinators, all in one bundle or each in its own."""
    holders = [broker for broker, count in held.items() for _ in range(count or 0)] + [None] * unowned
    unread = [broker for broker, count in held.items() if count is None]
    about = {
        "cluster": "lab",
        "taken_at": NOW,
        "coordinators": len(holders),
        "tcs_by_bundle": True,
        "unread_brokers": unread,
        "unread_namespaces": [],
    }
    return {
        "snapshot": [about | meta],
        "brokers": [{"broker": broker, "read": count is not None} for broker, count in held.items()],
        "transaction_coordinators": [
            {"coordinator": number, "broker": broker, "bundle": bundle or f"bundle of {number}"}
            for number, broker in enumerate(holders)
        ],
    }


CASES: dict[str, tuple[Counts, int, Severity | None, Outlook]] = {
    "a fresh cluster is fine": ({"a": 6, "b": 6, "c": 4}, 0, None, Outlook.CLEAR),
    "a spread of three is looked at": ({"a": 7, "b": 5, "c": 4}, 0, Severity.WARNING, Outlook.FOUND),
    "a new broker without any counts": ({"a": 5, "b": 5, "c": 6, "d": 0}, 0, Severity.WARNING, Outlook.FOUND),
    "all on one broker is critical": ({"a": 16, "b": 0, "c": 0}, 0, Severity.CRITICAL, Outlook.FOUND),
    "three quarters on one broker are critical": ({"a": 12, "b": 2, "c": 2}, 0, Severity.CRITICAL, Outlook.FOUND),
    "less than three quarters are not": ({"a": 11, "b": 3, "c": 2}, 0, Severity.WARNING, Outlook.FOUND),
    "the only broker has to hold all": ({"a": 16}, 0, None, Outlook.CLEAR),
    "shares are of all, unowned ones too": ({"a": 10, "b": 0}, 6, Severity.WARNING, Outlook.FOUND),
    "none that anybody owns are no skew": ({"a": 0, "b": 0}, 16, None, Outlook.CLEAR),
    "silence about an unread broker is not health": ({"a": 8, "b": None}, 8, None, Outlook.UNKNOWN),
    "a skew among those read stands": ({"a": 9, "b": 2, "c": None}, 5, Severity.WARNING, Outlook.FOUND),
    "a broker that holds nearly all stands": ({"a": 14, "b": None}, 2, Severity.CRITICAL, Outlook.FOUND),
}


@pytest.mark.parametrize(("held", "unowned", "severity", "outlook"), CASES.values(), ids=CASES)
def test_a_placement_is_judged(
    frames_of: Callable[..., Frames], held: Counts, unowned: int, severity: Severity | None, outlook: Outlook
) -> None:
    """What is found depends on the numbers, and what may be said on whether everything was read."""
    frames = frames_of(rows(held, unowned))

    judgement = tc_skew.CHECK.judge(frames, Policy())

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert verdict_of("tc-skew", judgement, frames.about).outlook is outlook


@pytest.mark.parametrize(
    ("most", "severity"),
    [(4, None), (5, Severity.WARNING), (12, Severity.CRITICAL)],
    ids=["few", "worth a split", "nearly all"],
)
def test_few_coordinators_in_one_bundle_are_left_there(
    frames_of: Callable[..., Frames], most: int, severity: Severity | None
) -> None:
    """A large cluster has more brokers than such bundles: no move would make the fullest broker's fewer."""
    held = rows({"a": most, "b": 0, "c": 0}, unowned=16 - most, bundle="0x00000000_0x10000000")

    judgement = tc_skew.CHECK.judge(frames_of(held), Policy())

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])


def test_a_broker_that_can_be_relieved_counts_beside_a_settled_one(frames_of: Callable[..., Frames]) -> None:
    """One settled broker says nothing for the others."""
    held = rows({"a": 4, "b": 0, "c": 0}, bundle="0x00000000_0x10000000", coordinators=16)
    two_bundles = rows({"b": 3})["transaction_coordinators"]
    held["transaction_coordinators"] += two_bundles

    (finding,) = tc_skew.CHECK.judge(frames_of(held), Policy()).findings

    assert finding.figures["spread_coordinators"] == 3


def test_the_evidence_has_the_numbers(frames_of: Callable[..., Frames]) -> None:
    """Who has most, who has fewest, and those that nobody holds."""
    judgement = tc_skew.CHECK.judge(frames_of(rows({"b": 9, "a": 0, "c": 9}, unowned=2)), Policy())

    (finding,) = judgement.findings
    assert finding.subject == "lab"
    assert finding.evidence == (
        "b holds 9 of 20 transaction coordinators (45 %), a holds 0; 2 are on no broker that was read."
    )
    assert finding.figures == {
        "brokers_read": 3,
        "coordinators": 20,
        "coordinators_elsewhere": 2,
        "fewest_coordinators": 0,
        "most_coordinators": 9,
        "share_percent": 45,
        "spread_coordinators": 9,
    }


@pytest.mark.parametrize(
    ("held", "found"),
    [({"a": 8, "b": 8, "c": 0}, False), ({"a": 8, "b": 2, "c": 6}, True)],
    ids=["empty", "holds some"],
)
@pytest.mark.parametrize("draining", [True, False], ids=["draining", "isolated"])
def test_a_broker_that_is_to_have_none_is_not_the_emptiest(
    frames_of: Callable[..., Frames], held: Counts, *, found: bool, draining: bool
) -> None:
    """Nothing can be moved to a broker that drains, or that isolation policies keep for others."""
    system = {"namespace": "pulsar/system", "allowed_brokers": None if draining else ["a", "b"]}
    policy = Policy.model_validate({"brokers": {"draining": ["c"] if draining else []}})

    judgement = tc_skew.CHECK.judge(frames_of(rows(held) | {"namespaces": [system]}), policy)

    assert bool(judgement.findings) is found


def test_thresholds_come_from_the_policy(frames_of: Callable[..., Frames]) -> None:
    """A looser policy lets more pass."""
    frames = frames_of(rows({"a": 12, "b": 2, "c": 2}))
    loose = Policy.model_validate({"tc_skew": {"warning_spread_coordinators": 11, "critical_share_percent": 90}})

    assert not tc_skew.CHECK.judge(frames, loose).findings


@pytest.mark.parametrize(
    ("meta", "outlook"),
    [({"tcs_by_bundle": False}, Outlook.UNKNOWN), ({"coordinators": 0}, Outlook.CLEAR)],
    ids=["Pulsar 5", "transactions off"],
)
def test_clusters_without_such_coordinators_are_not_judged(
    frames_of: Callable[..., Frames], meta: dict[str, Any], outlook: Outlook
) -> None:
    """Where bundles do not place them nothing is found, whatever the numbers."""
    frames = frames_of(rows({"a": 16, "b": 0}, **meta))

    judgement = tc_skew.CHECK.judge(frames, Policy())

    assert not judgement.findings
    assert verdict_of("tc-skew", judgement, frames.about).outlook is outlook
