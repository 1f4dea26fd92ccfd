"""The order of causes of slow publishing, of whatever other checks found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.check import CheckAnswer, JudgedAnswers, Judgement
from pulsar_steward.checks.clients import ack_holes
from pulsar_steward.checks.placement import hot_bundle
from pulsar_steward.checks.resources import cpu_busy, heap_pressure, io_threads_stuck, logging_debug, zookeeper_slow
from pulsar_steward.checks.resources.publish_causes import (
    BOOKIES,
    COLLECTIONS,
    METADATA,
    RESTS_ON,
    SWITCHES,
    CausesOfSlowness,
)
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Row

DEBUG, STUCK = logging_debug.CHECK.check_id, io_threads_stuck.CHECK.check_id
HEAP, PROCESSORS = heap_pressure.CHECK.check_id, cpu_busy.CHECK.check_id
ZOOKEEPER = zookeeper_slow.CHECK.check_id
HOLES, BUNDLE = ack_holes.CHECK.check_id, hot_bundle.CHECK.check_id
INFO, WARNING, CRITICAL = Severity

Seen = tuple[str, str, Severity]
"""A finding: its check, its subject, its severity."""

KINDS = {"k:1": "bookie", "z:1": "zookeeper"}


def causes(
    *seen: Seen, rows: Mapping[str, Sequence[Row]] | None = None, read_only: Sequence[str] = ()
) -> CausesOfSlowness:
    """Causes in a cluster of two brokers, a and b, that are both published to."""
    results = {}
    for check in RESTS_ON:
        findings = tuple(
            Finding(check_id=check_id, severity=severity, subject=subject, evidence=f"{subject} it is.")
            for check_id, subject, severity in seen
            if check_id == check.check_id
        )
        told = tuple((rows or {}).get(check.check_id, ()))
        unknown = None if findings else "Nothing is known."
        results[check.check_id] = JudgedAnswers(
            Judgement(findings=findings, cannot_tell=unknown), {"found": CheckAnswer(told, len(told))}
        )
    return CausesOfSlowness(results, ("a:1", "b:1"), KINDS, read_only)


def order(found: CausesOfSlowness, broker: str = "a:1") -> list[str]:
    """Ids of the checks, the best supported cause first."""
    return [each.finding.check_id for each in found.of(broker)]


ORDERS: dict[str, tuple[list[Seen], list[str]]] = {
    "nothing": ([], []),
    "another broker's": ([(COLLECTIONS, "b:1", CRITICAL)], []),
    "the metadata store is that of all brokers": ([(METADATA, "b:1", WARNING)], [METADATA]),
    "a ZooKeeper server is that of all brokers": ([(ZOOKEEPER, "z:1", WARNING)], [ZOOKEEPER]),
    "a slow ZooKeeper server explains the slow metadata store": (
        [(METADATA, "b:1", CRITICAL), (BOOKIES, "a:1", CRITICAL), (ZOOKEEPER, "z:1", WARNING)],
        [BOOKIES, ZOOKEEPER, METADATA],
    ),
    "what is worse comes first": (
        [(METADATA, "a:1", WARNING), (BOOKIES, "a:1", CRITICAL), (STUCK, "a:1", INFO)],
        [BOOKIES, METADATA, STUCK],
    ),
    "of equal weight, what acts on all else": (
        [(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "a:1", CRITICAL), (STUCK, "a:1", CRITICAL)],
        [COLLECTIONS, STUCK, BOOKIES],
    ),
    "collections explain what only that broker sees": (
        [(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "a:1", WARNING)],
        [COLLECTIONS, BOOKIES],
    ),
    "and not what another one sees as well": (
        [(BOOKIES, "a:1", CRITICAL), (BOOKIES, "b:1", WARNING), (COLLECTIONS, "a:1", WARNING)],
        [BOOKIES, COLLECTIONS],
    ),
    "of which information is no proof": (
        [(BOOKIES, "a:1", CRITICAL), (BOOKIES, "b:1", INFO), (COLLECTIONS, "a:1", WARNING)],
        [COLLECTIONS, BOOKIES],
    ),
    "what all brokers have in common sets none apart": (
        [
            *((BOOKIES, broker, CRITICAL) for broker in ("a:1", "b:1")),
            *((DEBUG, broker, WARNING) for broker in ("a:1", "b:1")),
        ],
        [BOOKIES, DEBUG],
    ),
    "DEBUG logging explains what only that broker sees": (
        [(BOOKIES, "a:1", CRITICAL), (DEBUG, "a:1", WARNING)],
        [DEBUG, BOOKIES],
    ),
    "a full heap explains collections, and so what that broker sees": (
        [(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "a:1", WARNING), (HEAP, "a:1", WARNING)],
        [HEAP, COLLECTIONS, BOOKIES],
    ),
    "busy processors explain what only that broker sees": (
        [(BOOKIES, "a:1", CRITICAL), (PROCESSORS, "a:1", WARNING)],
        [PROCESSORS, BOOKIES],
    ),
    "and not what all see that are busy": (
        [(BOOKIES, "a:1", CRITICAL), *((PROCESSORS, broker, WARNING) for broker in ("a:1", "b:1"))],
        [BOOKIES, PROCESSORS],
    ),
    "the metadata store explains switches everywhere": (
        [(SWITCHES, "a:1", CRITICAL), (SWITCHES, "b:1", CRITICAL), (METADATA, "a:1", INFO)],
        [METADATA, SWITCHES],
    ),
    "and no writes": ([(BOOKIES, "a:1", CRITICAL), (METADATA, "a:1", WARNING)], [BOOKIES, METADATA]),
    "collections explain the metadata store, and so the switches": (
        [(SWITCHES, "a:1", CRITICAL), (METADATA, "a:1", WARNING), (COLLECTIONS, "a:1", WARNING)],
        [COLLECTIONS, METADATA, SWITCHES],
    ),
    "a bookie's collections explain writes of all brokers": (
        [(BOOKIES, "a:1", CRITICAL), (BOOKIES, "b:1", CRITICAL), (COLLECTIONS, "k:1", WARNING)],
        [COLLECTIONS, BOOKIES],
    ),
    "ZooKeeper's do not": (
        [(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "z:1", WARNING)],
        [BOOKIES, COLLECTIONS],
    ),
    "they explain a slow metadata store": (
        [(METADATA, "a:1", CRITICAL), (COLLECTIONS, "z:1", WARNING)],
        [COLLECTIONS, METADATA],
    ),
}


@pytest.mark.parametrize(("seen", "wanted"), ORDERS.values(), ids=ORDERS)
def test_the_best_supported_cause_comes_first(seen: list[Seen], wanted: list[str]) -> None:
    """Causes are ordered by severity; one that explains another takes its severity and precedes it."""
    assert order(causes(*seen)) == wanted


def test_a_read_only_bookie_explains_slow_writes_of_all_brokers() -> None:
    """A read-only bookie precedes the slow writes that it explains; without slow writes it weighs as a warning."""
    slow = causes((BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "b:1", CRITICAL), read_only=["k:1"])
    assert [each.finding.subject for each in slow.of("a:1")] == ["k:1", "a:1"]
    assert [each.finding.subject for each in slow.of("b:1")] == ["b:1", "k:1"]


def test_subscriptions_and_bundles_are_put_to_their_broker() -> None:
    """A finding about a subscription or a bundle counts as a cause at the broker that its check's rows name."""
    topic, bundle = "persistent://acme/orders/t", "0x00000000_0x80000000"
    rows: dict[str, list[Row]] = {
        HOLES: [{"topic": topic, "subscription": "s", "broker": "a:1"}],
        BUNDLE: [{"namespace": "acme/orders", "bundle": bundle, "owner": "b:1"}],
    }
    found = causes((HOLES, f"{topic} subscription s", WARNING), (BUNDLE, f"acme/orders/{bundle}", WARNING), rows=rows)
    assert (order(found), order(found, "b:1")) == ([HOLES], [BUNDLE])


def test_a_check_that_found_much_on_a_broker_counts_once() -> None:
    """Several findings of one check on a broker count as one cause, by the worst of them."""
    first, second = "acme/orders/0x00000000_0x80000000", "acme/orders/0x80000000_0xffffffff"
    rows: dict[str, list[Row]] = {
        BUNDLE: [
            {"namespace": "acme/orders", "bundle": subject.rpartition("/")[2], "owner": "a:1"}
            for subject in (first, second)
        ]
    }
    found = causes((BUNDLE, first, INFO), (BUNDLE, second, CRITICAL), rows=rows)
    assert [each.finding.subject for each in found.of("a:1")] == [second]


def test_checks_that_cannot_tell_are_named() -> None:
    """Checks that cannot tell are listed as unknown, and checks with findings are not."""
    unknown = causes((BOOKIES, "a:1", WARNING)).unknown
    assert (BOOKIES in unknown, COLLECTIONS in unknown) == (False, True)
