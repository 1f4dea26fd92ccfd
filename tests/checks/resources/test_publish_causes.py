"""The order of causes of slow publishing, of whatever other checks found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.check import JudgedRows, Judgement, QueryRows
from pulsar_steward.checks.clients import ack_holes
from pulsar_steward.checks.placement import bundle_load
from pulsar_steward.checks.resources import heap, io_threads_stuck, processors, zookeeper_slow
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

DEBUG, STUCK = processors.LOGGING_DEBUG.check_id, io_threads_stuck.CHECK.check_id
HEAP, PROCESSORS = heap.HEAP_PRESSURE.check_id, processors.CPU_BUSY.check_id
ZOOKEEPER = zookeeper_slow.CHECK.check_id
HOLES, BUNDLE = ack_holes.CHECK.check_id, bundle_load.HOT_BUNDLE.check_id
INFO, WARNING, CRITICAL = Severity

Seen = tuple[str, str, Severity]
"""A finding: its check, its subject, its severity."""

KINDS = {"k:1": "bookie", "z:1": "zookeeper"}


def causes(
    *seen: Seen,
    rows: Mapping[str, Sequence[Row]] | None = None,
    read_only: Sequence[str] = (),
    over_at: Sequence[str] = (),
) -> CausesOfSlowness:
    """Causes in a cluster of two brokers, a and b, that are both published to; at some, collections are over."""
    results = {}
    for check in RESTS_ON:
        findings = tuple(
            Finding(
                check_id=check_id,
                severity=severity,
                subject=subject,
                evidence=f"{subject} it is.",
                figures={heap.LATELY: int(subject not in over_at)} if check_id == COLLECTIONS else {},
            )
            for check_id, subject, severity in seen
            if check_id == check
        )
        told = tuple((rows or {}).get(check, ()))
        unknown = None if findings else "Nothing is known."
        results[check] = JudgedRows(
            Judgement(findings=findings, cannot_tell=unknown), {"found": QueryRows(told, len(told))}
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
    "ZooKeeper's do not": ([(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "z:1", WARNING)], [BOOKIES, COLLECTIONS]),
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


OVER: dict[str, tuple[list[Seen], list[str], list[str]]] = {
    "however bad they were": (
        [(METADATA, "a:1", WARNING), (COLLECTIONS, "a:1", CRITICAL)],
        ["a:1"],
        [METADATA, COLLECTIONS],
    ),
    "and explain nothing": (
        [(SWITCHES, "a:1", CRITICAL), (BOOKIES, "a:1", WARNING), (COLLECTIONS, "a:1", CRITICAL)],
        ["a:1"],
        [SWITCHES, BOOKIES, COLLECTIONS],
    ),
    "those of a bookie neither": (
        [(BOOKIES, "a:1", WARNING), (COLLECTIONS, "k:1", CRITICAL)],
        ["k:1"],
        [BOOKIES, COLLECTIONS],
    ),
    "another broker's do not count against those that go on": (
        [(BOOKIES, "a:1", CRITICAL), (COLLECTIONS, "a:1", WARNING), (COLLECTIONS, "b:1", CRITICAL)],
        ["b:1"],
        [COLLECTIONS, BOOKIES],
    ),
    "nor against a full heap": (
        [(COLLECTIONS, "a:1", CRITICAL), (HEAP, "a:1", WARNING), (COLLECTIONS, "b:1", CRITICAL)],
        ["b:1"],
        [HEAP, COLLECTIONS],
    ),
}


@pytest.mark.parametrize(("seen", "over_at", "wanted"), OVER.values(), ids=OVER)
def test_collections_that_are_over_come_last(seen: list[Seen], over_at: list[str], wanted: list[str]) -> None:
    """Full collections before the snapshot before come after all other causes, and explain none of them."""
    assert order(causes(*seen, over_at=over_at)) == wanted


def test_collections_that_are_over_are_named_besides() -> None:
    """The sentence has the cause that is there now, or says that no other check names one."""
    past: Seen = (COLLECTIONS, "a:1", CRITICAL)
    besides = "Besides: garbage collection (gc-pressure, critical)."
    assert causes(past, (METADATA, "a:1", WARNING), over_at=["a:1"]).in_words("a:1") == (
        f"Most likely cause: the metadata store (metadata-latency, warning): a:1 it is. {besides}"
    )
    alone = causes(past, over_at=["a:1"]).in_words("a:1")
    assert (alone.startswith("No other check names a cause of most of it"), alone.endswith(besides)) == (True, True)


OF_A_BOOKIE: dict[str, tuple[list[Seen], list[str]]] = {
    "a read-only one": ([], ["k:1"]),
    "one that collects": ([(COLLECTIONS, "k:1", CRITICAL)], []),
    "one with a full heap": ([(HEAP, "k:1", CRITICAL)], []),
    "one with a busy thread": ([(BOOKIES, "k:1", CRITICAL)], []),
}


@pytest.mark.parametrize(("seen", "read_only"), OF_A_BOOKIE.values(), ids=OF_A_BOOKIE)
def test_a_bookie_s_trouble_is_no_cause_where_writes_are_quick(seen: list[Seen], read_only: list[str]) -> None:
    """A bookie slows writes alone: where these are quick, its trouble is named after any other cause, and besides."""
    found = causes(*seen, (STUCK, "a:1", INFO), read_only=read_only)
    for quick, first in ((False, "k:1"), (True, "a:1")):
        assert next(iter(found.of("a:1", writes_are_quick=quick))).finding.subject == first
    assert causes(*seen, read_only=read_only).in_words("a:1", writes_are_quick=True).startswith("No other check")


def test_zookeeper_s_trouble_is_a_cause_where_writes_are_quick() -> None:
    """Publishing waits for ZooKeeper where a ledger is switched, which is in no write."""
    found = causes((COLLECTIONS, "z:1", WARNING), (STUCK, "a:1", INFO))
    assert [each.finding.subject for each in found.of("a:1", writes_are_quick=True)] == ["z:1", "a:1"]


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
