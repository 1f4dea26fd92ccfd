"""What is stored though nothing needs it, and compaction that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.stored import COMPACTION_FAILING, STORED_THOUGH_CONSUMED
from pulsar_steward.model.units import DAY, GIB, HOUR
from tests.checks.backlog.conftest import TAKEN_AT
from tests.checks.backlog.documents import retention

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden

KEPT = retention(120, -1)
STORED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], bool]] = {
    "a ledger that should be gone for days": ({}, {}, {"closed_ago": 3 * DAY}, True),
    "a ledger that should be gone since an hour": ({}, {}, {"closed_ago": 3 * HOUR}, False),
    "a ledger that is open": ({}, {}, {}, False),
    "little": ({"storage_bytes": 10 * GIB - 1}, {}, {"closed_ago": 3 * DAY}, False),
    "kept for ever": ({}, {"retention_policies": retention(-1, -1)}, {"closed_ago": 3 * DAY}, False),
    "beyond what is kept by size, of any age": (
        {},
        {"retention_policies": retention(-1, 1024)},
        {"closed_ago": 3 * DAY},
        True,
    ),
    "beyond what is kept by size, and not old": (
        {},
        {"retention_policies": retention(10080, 1024)},
        {"closed_ago": 3 * DAY},
        True,
    ),
    "a cursor of deduplication that was left behind": (
        {"backlog_bytes": 10 * GIB},
        {},
        {"deduplication_entries": 9},
        True,
    ),
    "one that has work to do": ({"backlog_bytes": 10 * GIB}, {"deduplicationEnabled": True}, {}, False),
}


@pytest.mark.parametrize("case", STORED.values(), ids=STORED)
def test_what_nothing_needs_is_found(scene: Scene, golden: Golden, case: Any) -> None:
    """By the age of the oldest ledger, beyond retention; or by a backlog that nobody holds, without deduplication."""
    topic, policies, told, found = case
    told = dict(told)
    ago = told.pop("closed_ago", None)
    if ago is not None:
        told["oldest_ledger_milliseconds"] = int(TAKEN_AT.timestamp() - ago) * 1000
    scene.namespace(**{"retention_policies": KEPT, **policies})
    scene.topic(**{"storage_bytes": 800 * GIB, **topic}).add("subscriptions", subscription="app", backlog_entries=0)
    scene.add("drilled", ledgers=7, **told)
    findings = scene.judged(STORED_THOUGH_CONSUMED).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)


@pytest.mark.parametrize(
    ("succeeded_ago", "failed_ago", "found"),
    [(None, HOUR, True), (2 * HOUR, HOUR, True), (HOUR, 2 * HOUR, False), (None, 2 * DAY, False), (None, None, False)],
    ids=["never succeeded", "succeeded before", "succeeded since", "long ago", "never failed"],
)
def test_a_compaction_that_failed_last_is_found(
    scene: Scene, golden: Golden, succeeded_ago: int | None, failed_ago: int | None, found: bool
) -> None:
    """If a topic's last compaction failed within a day."""

    def at(ago: int | None) -> int:
        return 0 if ago is None else int(TAKEN_AT.timestamp() - ago) * 1000

    scene.namespace().topic().add("subscriptions", subscription="__compaction", backlog_entries=2_600_000)
    scene.add("drilled", compacted_milliseconds=at(succeeded_ago), compaction_failed_milliseconds=at(failed_ago))
    findings = scene.judged(COMPACTION_FAILING).findings
    assert bool(findings) is found
    if findings:
        golden(findings[0].evidence)
