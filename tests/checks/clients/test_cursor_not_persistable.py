"""Cursors whose ack state comes near the largest entry of BookKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients.cursors import CURSOR_NOT_PERSISTABLE, LONG_BYTES, LONG_ENTRIES
from pulsar_steward.model.finding import Severity
from tests.checks.clients.conftest import by_name
from tests.checks.conftest import as_text

if TYPE_CHECKING:
    from tests.golden import Golden

FRAME = 5 * 1024 * 1024 + 10 * 1024
# Entries whose long array fills the frame, and half of it.
FULL, HALF = 30_563_648, 15_281_856
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"

CASES: dict[str, tuple[int | None, int | None, Severity | None]] = {
    "few-entries": (1200, None, None),
    "measured-just-below-half": (HALF, FRAME // 2 - 1, None),
    "measured-half": (HALF, FRAME // 2, Severity.WARNING),
    "measured-just-below-the-frame": (FULL, FRAME - 1, Severity.WARNING),
    "measured-the-frame": (FULL, FRAME, Severity.CRITICAL),
    "measured-though-the-span-is-not-told": (None, FRAME, Severity.CRITICAL),
    "estimate-just-below-half": (HALF - 64, None, None),
    "estimate-half": (HALF, None, Severity.INFO),
    "estimate-just-below-the-frame": (FULL - 64, None, Severity.INFO),
    "estimate-the-frame": (FULL, None, Severity.WARNING),
    "estimate-the-frame-but-little-measured": (FULL, 90_000, Severity.INFO),
    "estimate-half-but-little-measured": (HALF, 90_000, None),
    "persistent://t/n/__change_events": (FULL, FRAME, None),
}


def test_severity_follows_from_the_measured_size_or_else_the_span(scene: Any) -> None:
    """A measured ack state decides the severity, and an estimated one gives one step less."""
    scene.configured()
    for name, (entries, measured, _) in CASES.items():
        scene.subscription(name, entries_since_first_gap=entries)
        if measured is not None:
            scene.drilled(name, ack_state_bytes=measured)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert by_name(judgement) == {name: severity for name, (_, _, severity) in CASES.items() if severity}
    assert next(iter(judgement.findings)).severity is Severity.CRITICAL


def test_thirty_million_entries_fill_a_frame() -> None:
    """The constants reproduce what was observed: near 30 million entries the state no longer fits."""
    most = FRAME * LONG_ENTRIES // LONG_BYTES
    assert 30_000_000 < most < 31_000_000


def test_a_cursor_without_holes_has_no_state_however_long_its_backlog_is(scene: Any) -> None:
    """A cursor without ack holes gives no finding, however long its backlog is."""
    scene.configured().subscription("t", ack_holes=0, entries_since_first_gap=FULL)
    assert not scene.judged(CURSOR_NOT_PERSISTABLE).findings


@pytest.mark.parametrize(
    ("holes", "limit", "severity"),
    [(90_000, "10000", None), (90_000, "1000000", Severity.INFO), (200_000, "1000000", Severity.WARNING)],
)
def test_persisted_as_ranges_the_holes_count(scene: Any, holes: int, limit: str, severity: Severity | None) -> None:
    """An ack state that is persisted as ranges is judged by its holes up to the broker's limit, not its span."""
    scene.configured(**{LONG_ARRAY: "false", "managedLedgerMaxUnackedRangesToPersist": limit})
    scene.subscription("t", ack_holes=holes, entries_since_first_gap=FULL)
    assert by_name(scene.judged(CURSOR_NOT_PERSISTABLE)) == ({"t": severity} if severity else {})


def test_the_frame_follows_from_the_largest_message(scene: Any) -> None:
    """The most that an ack state may take follows from `maxMessageSize`, or from 5 MiB where it is not read."""
    for broker, message_bytes in (("large:1", "20971520"), ("silent:1", None)):
        scene.add("brokers", broker=broker, read=True).configured(broker, maxMessageSize=message_bytes)
        topic = f"persistent://t/n/{broker.partition(':')[0]}"
        scene.add("topics", topic=topic, broker=broker)
        scene.add("subscriptions", topic=topic, subscription="s", ack_holes=9, entries_since_first_gap=FULL)
    assert by_name(scene.judged(CURSOR_NOT_PERSISTABLE)) == {"silent": Severity.WARNING}


EVIDENCE = {
    "measured": (FRAME, "its ack state has 5.0 MiB of the 5.0 MiB that one entry of a cursor ledger holds"),
    "unasked": (None, "its ack state may take up to 5.0 MiB (an estimate: its topic was not asked) of the 5.0 MiB"),
    "small": (2048, "may take up to 5.0 MiB (an estimate; what was persisted last has 2.0 KiB) of the 5.0 MiB"),
}


def test_the_evidence_tells_a_measurement_from_an_estimate(golden: Golden, scene: Any) -> None:
    """The evidence says whether the size of the ack state was measured or estimated."""
    scene.configured()
    for name, (measured, _) in EVIDENCE.items():
        scene.subscription(name, entries_since_first_gap=FULL)
        if measured is not None:
            scene.drilled(name, ack_state_bytes=measured)
    found = {each.subject.split()[0].rpartition("/")[2]: each for each in scene.judged(CURSOR_NOT_PERSISTABLE).findings}
    assert {name: words in found[name].evidence for name, (_, words) in EVIDENCE.items()} == dict.fromkeys(
        EVIDENCE, True
    )
    golden(as_text(found["measured"].figures))


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    """The findings with the largest ack states come first, and those that do not fit are counted."""
    scene.configured()
    for number in range(MAX_FINDINGS + 1):
        scene.subscription(f"t{number}").drilled(f"t{number}", ack_state_bytes=FRAME + number)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert judgement.more == 1
    listed = [finding.figures["ack_state_bytes"] for finding in judgement.findings]
    assert listed == list(range(FRAME + MAX_FINDINGS, FRAME, -1))  # without the smallest


UNKNOWN: dict[str, tuple[dict[str, Any], str | None, int | None, bool]] = {
    "small, by arrays": ({}, "true", None, True),
    "small, however it is persisted": ({}, None, None, True),
    "large, if by arrays": ({"entries_since_first_gap": HALF}, None, None, False),
    "large, and measured to be small": ({"entries_since_first_gap": FULL}, None, 500, True),
    "a span that is not told": ({"entries_since_first_gap": None}, "true", None, False),
}


@pytest.mark.parametrize(("changes", "long_array", "measured", "known"), UNKNOWN.values(), ids=UNKNOWN)
def test_silence_means_health_only_where_no_cursor_may_be_too_large(
    scene: Any, changes: dict[str, Any], long_array: str | None, measured: int | None, known: bool
) -> None:
    """The check can tell that all is well only if each cursor is small by its measured size or by its span."""
    scene.configured(**{LONG_ARRAY: long_array}).subscription("t", **changes)
    if measured is not None:
        scene.drilled("t", ack_state_bytes=measured)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert (judgement.findings, judgement.cannot_tell is None) == ((), known)


def test_without_any_broker_nothing_is_known(scene: Any) -> None:
    """The check cannot tell if no broker was read."""
    scene.rows["brokers"] = []
    assert scene.judged(CURSOR_NOT_PERSISTABLE).cannot_tell == "No broker was read."


BATCH_ACKS, MAX_BATCHES = "acknowledgmentAtBatchIndexLevelEnabled", "managedLedgerMaxBatchDeletedIndexToPersist"
OF_BATCHES = {"messages_per_entry": 640, "unacked_messages": 50_000, "entries_since_first_gap": 1200}
# 30 bytes for its position and 110 for 640 bits, and so many of them that a third of the frame is left.
EACH = 140
MOST = FRAME // 3 // EACH

BATCHES: dict[str, tuple[dict[str, Any], dict[str, str], int, bool]] = {
    "off": ({}, {BATCH_ACKS: "false"}, FRAME * 2 // 5, False),
    "not known": ({}, {}, FRAME * 2 // 5, False),
    "on, and much is measured": ({}, {BATCH_ACKS: "true", MAX_BATCHES: str(MOST * 2)}, FRAME * 2 // 5, True),
    "on, and few are persisted": ({}, {BATCH_ACKS: "true", MAX_BATCHES: str(MOST)}, FRAME * 2 // 5, False),
    "on, but few are delivered": (
        {"unacked_messages": MOST},
        {BATCH_ACKS: "true", MAX_BATCHES: "100000"},
        FRAME * 2 // 5,
        False,
    ),
    "on, but without batches": ({"messages_per_entry": 1}, {BATCH_ACKS: "true"}, FRAME * 2 // 5, False),
    "on, but little is measured": ({}, {BATCH_ACKS: "true"}, 2000, False),
}


def test_batches_that_are_acknowledged_in_part_come_on_top(scene: Any, golden: Golden) -> None:
    """An ack state below the threshold is information when batches acknowledged in part may come on top."""
    for name, (changes, settings, measured, _) in BATCHES.items():
        topic = f"persistent://t/n/{name}"
        like = {"topic": topic, "subscription": "s", "ack_holes": 40, "backlog_entries": 50_000}
        scene.add("brokers", broker=name, read=True).configured(name, **settings).topic(name, broker=name)
        scene.add("subscriptions", **like | OF_BATCHES | changes).drilled(name, ack_state_bytes=measured)
    (finding,) = scene.judged(CURSOR_NOT_PERSISTABLE).findings
    assert [name for name, (*_, found) in BATCHES.items() if found] == [
        finding.subject.removeprefix("persistent://t/n/").removesuffix(" subscription s")
    ]
    assert finding.severity is Severity.INFO
    golden(finding.evidence)


def test_what_comes_on_top_is_told_of_a_large_state(scene: Any, golden: Golden) -> None:
    """The evidence about a large ack state names the batches that may come on top of it."""
    scene.configured(**{BATCH_ACKS: "true"}).subscription("t", **OF_BATCHES)
    scene.drilled("t", ack_state_bytes=FRAME // 2)
    (finding,) = scene.judged(CURSOR_NOT_PERSISTABLE).findings
    assert finding.severity is Severity.WARNING
    golden(finding.evidence)
