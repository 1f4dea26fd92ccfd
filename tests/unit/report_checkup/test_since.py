"""Troubles since an earlier look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.finding import Severity
from pulsar_steward.report.checkup.compose import check_reports, trouble_report, troubles_found
from pulsar_steward.report.since import Look, compared, since_look, span_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW, a_finding
from tests.cases import row_by_row
from tests.unit.report_checkup import snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.report.checkup.document import SinceLook, TroubleReport

EIGHT = timedelta(hours=8)
QUOTA = "backlog-near-quota"


def troubles(*findings: Finding) -> list[TroubleReport]:
    """Troubles of these findings."""
    return [trouble_report(each, ()) for each in troubles_found(check_reports(findings, ()))]


def look(troubles: list[TroubleReport], *, judged: bool = True) -> Look:
    """A look with these troubles; one that judged nothing was partial."""
    every = frozenset(each for trouble in troubles for each in trouble.check_ids) | {"subscription-stalled", QUOTA}
    known = every if judged else frozenset()
    return Look(snapshot_id="s", taken_at=NOW, troubles=tuple(troubles), counted=known, judged=known)


def change(then: list[TroubleReport], now: list[TroubleReport]) -> SinceLook:
    """The difference between two looks that judged everything."""
    return compared(look(now), look(then))


def stalled(*names: str, severity: Severity = Severity.WARNING) -> list[TroubleReport]:
    """Subscriptions that stand still, of these topics."""
    return troubles(
        *(
            a_finding(severity, check_id="subscription-stalled", subject=f"persistent://shop/a/{each} subscription app")
            for each in names
        )
    )


def behind(tebibytes: float) -> list[TroubleReport]:
    """A topic near its quota, with a backlog of so many TiB."""
    figures = {"backlog_bytes": round(tebibytes * 2**40), "bytes_percent": 85}
    return troubles(a_finding(check_id=QUOTA, subject="persistent://shop/a/t", figures=figures))


@row_by_row(
    "then, now, words",
    ([], stalled("t"), "+1 trouble"),
    (stalled("t"), [], "1 gone"),
    (stalled("t"), stalled("t"), "nothing new, worse or gone"),
    (stalled("t"), stalled("t", "u"), "1 worse"),
    (stalled("t"), stalled("t", severity=Severity.CRITICAL), "1 worse"),
    (stalled("t", "u"), stalled("t"), "nothing new, worse or gone"),
    (behind(12), behind(12.9), "nothing new, worse or gone"),
    (behind(12), behind(17.8), "1 worse"),
    (behind(17.8), behind(12), "nothing new, worse or gone"),
    (troubles(a_finding(Severity.INFO)), [], "nothing new, worse or gone"),
)
def test_what_came_grew_or_went_is_told(then: list[TroubleReport], now: list[TroubleReport], words: str) -> None:
    """Information is no trouble, and fewer of a trouble is none that is gone."""
    assert change(then, now).words == f"Since 2026-03-01 12:00 UTC: {words}"


def test_a_worse_trouble_says_how() -> None:
    """The number of subjects or their bytes, from old to new; of several new ones, three are named."""
    (line,) = change(stalled("t"), stalled("t", "u")).lines
    assert line.startswith("Worse: ")
    assert line.endswith("(1 → 2)")
    assert change(behind(12), behind(17.8)).lines[0].endswith("(12.0 TiB → 17.8 TiB)")
    assert change(near("t"), near("t", "u")).lines[0].endswith("(1.0 TiB → 2.0 TiB, 1 → 2)")
    many = troubles(*(a_finding(check_id=each) for each in ("tc-skew", "bundle-topic-skew", "a", "b", "c")))
    assert change([], many).lines[-1] == "New: and 2 more"


def test_a_trouble_that_stands_is_not_taken_for_its_worse_twin() -> None:
    """Of one cause, a second trouble that does worse harm is new; the first one stands as before."""
    soon = a_finding(check_id=QUOTA, subject="persistent://shop/a/t", figures={"bytes_percent": 85})
    full = {"bytes_percent": 120, "holds_producers": 1}
    cut_off = a_finding(Severity.CRITICAL, check_id=soon.check_id, subject="persistent://shop/a/u", figures=full)
    assert change(troubles(soon), troubles(soon, cut_off)).words.endswith(": +1 trouble")
    assert change(troubles(soon), troubles(cut_off)).words.endswith(": +1 trouble, 1 gone")


def near(*names: str, percent: int = 85, critical: bool = False, tebibytes: int = 1) -> list[TroubleReport]:
    """Topics near their quota or over it; critical: their producers are shut out."""
    figures = {"bytes_percent": percent, "holds_producers": 1, "backlog_bytes": tebibytes * 2**40}
    severity = Severity.CRITICAL if critical else Severity.WARNING
    named = (f"persistent://shop/a/{each}" for each in names)
    return troubles(*(a_finding(severity, check_id=QUOTA, subject=each, figures=figures) for each in named))


def full(*names: str) -> list[TroubleReport]:
    """Topics whose producers are shut out."""
    return near(*names, percent=120, critical=True)


@row_by_row(
    "then, now, words",
    (full("t"), full("u"), "+1 trouble, 1 gone"),
    (stalled("t"), stalled("u"), "+1 trouble, 1 gone"),
    (full("t", "u"), full("t", "v"), "1 worse"),
    (stalled("t", "u"), stalled("t", "v"), "nothing new, worse or gone"),
    (near("t", "u"), near("t", tebibytes=20), "1 worse"),
    (full("t"), near("t", "u"), "nothing new, worse or gone"),
    (full("t") + near("u"), full("t", "u"), "1 worse"),
)
def test_subjects_tell_troubles_of_one_cause_apart(
    then: list[TroubleReport], now: list[TroubleReport], words: str
) -> None:
    """Another topic that is cut off is new, not the same; what does less harm by now is neither worse nor gone."""
    assert change(then, now).words.endswith(f"UTC: {words}")


def test_a_partial_look_proves_nothing_absent() -> None:
    """What it did not find is not seen; what stood before it is not new after it, and its numbers are no growth."""
    partial = compared(look([], judged=False), look(full("t")))
    assert partial.words.endswith(": 1 not seen this time")
    assert partial.lines[0].startswith("Not seen this time: ")
    assert partial.lines[0].endswith(" (the snapshot is partial)")
    blind = Look(
        snapshot_id="s", taken_at=NOW, troubles=(), counted=frozenset(), judged=frozenset(), why_not={QUOTA: "It fell."}
    )
    assert compared(blind, look(full("t"))).lines[0].endswith(" (It fell.)")
    (standing,) = full("t", "u")
    standing = msgspec.structs.replace(standing, since=NOW - EIGHT)
    for then in ([], full("t")):
        assert compared(look([standing]), look(then, judged=False)).words.endswith("nothing new, worse or gone")
        assert not compared(look([standing]), look(then)).words.endswith("nothing new, worse or gone")


def test_the_snapshot_of_that_time_is_compared(tmp_path: Path) -> None:
    """The newest one by then, or else the oldest; one that was not diagnosed, or another cluster's, is none."""
    at = {hours: NOW.astimezone(UTC) - timedelta(hours=hours) for hours in (0, 2, 9, 30)}
    for hours, taken in at.items():
        rows = snapshots.skewed() if hours in {0, 9} else {}
        _written(tmp_path, taken, **rows)
    newest = open_snapshot(str(tmp_path / f"taken_at={at[0]:%Y%m%dT%H%M%SZ}"))
    (tmp_path / f"taken_at={at[9] + timedelta(minutes=30):%Y%m%dT%H%M%SZ}").mkdir()

    def compared_with(hours: int) -> datetime | None:
        found = since_look(newest, timedelta(hours=hours))
        return found.taken_at if found else None

    assert [compared_with(hours) for hours in (1, 8, 24, 48)] == [at[2], at[9], at[30], at[30]]
    alone = open_snapshot(str(tmp_path / f"taken_at={at[30]:%Y%m%dT%H%M%SZ}"))
    assert since_look(alone, EIGHT) is None


def test_nothing_is_said_of_a_time_without_a_look(tmp_path: Path) -> None:
    """The span counts from now: a snapshot from before it tells nothing of what changed since."""
    at = NOW.astimezone(UTC)
    for hours in (0, 2, 9):
        _written(tmp_path, at - timedelta(hours=hours), **snapshots.skewed())
    newest = open_snapshot(str(tmp_path / f"taken_at={at:%Y%m%dT%H%M%SZ}"))
    late = at + timedelta(hours=7)

    hour, eight = (since_look(newest, timedelta(hours=hours), now=late) for hours in (1, 8))

    assert hour is not None
    assert hour.words == "No look since 2026-03-01 12:00 UTC: what changed is not known"
    assert eight is not None
    assert eight.taken_at == at - timedelta(hours=2)


def _written(folder: Path, taken_at: datetime, **rows: snapshots.Rows) -> None:
    meta = snapshots.meta(taken_at=taken_at)
    snapshots.written(folder / f"taken_at={taken_at:%Y%m%dT%H%M%SZ}", snapshot=meta, **rows)


@row_by_row("text, span", ("30min", timedelta(minutes=30)), ("8h", EIGHT), ("2d", timedelta(days=2)))
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert span_of(text) == span


@pytest.mark.parametrize("text", ["", "8", "h", "-8h", "8 h", "8h30min", "0h", "8weeks", "999999d"])
def test_any_other_text_is_no_span(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no span of time"):
        span_of(text)
