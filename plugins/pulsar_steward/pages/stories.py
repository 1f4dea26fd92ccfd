"""The ledger as a file: JSON, and comma-separated values without text that spreadsheets read as formulas."""

from __future__ import annotations

import csv
import io
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.history import whole_story
from pulsar_steward.ledger.verify import IntegrityReport, verify_ledger
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.events import LedgerEvent
    from pulsar_steward.ledger.history import Filter
    from pulsar_steward.pages.sources import Sources

MAX_EVENTS = 20_000
"""Maximum number of events in a file; `steward ledger export` has all rows."""

COLUMNS = ("sequence", "at", "what", "cluster", "plan_id", "batch_id", "step_id", "kind", "person", "run", "words")

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula in spreadsheets, full-width ones included; spaces before them do not help."""


def story_csv(sources: Sources, chosen: Filter) -> Iterator[str]:
    """Lines of a file with the matching events, newest first.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return _lines(whole_story(sources.engine, chosen, MAX_EVENTS))


def _lines(events: Iterable[LedgerEvent]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for event in events:
        row = {**msgspec.structs.asdict(event), "at": event.at.isoformat(), "what": event.what.value}
        writer.writerow([cell_of(row[name]) for name in COLUMNS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def cell_of(value: object) -> str:
    """A value as a cell; an apostrophe is put before text that a spreadsheet would read as a formula."""
    text = "" if value is None else shown(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


class Verification:
    """Comparison of the ledger's rows with its chain: one at a time; the last result is cached."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lock = Lock()
        self._last: IntegrityReport | None = None

    def report(self) -> IntegrityReport:
        """Compares every row with its link in the chain, and every link with the link before it.

        Raises:
            LedgerError: If the ledger cannot be read.
        """
        with self._lock:
            self._last = verify_ledger(self._sources.engine, noted=self._sources.noted())
            return self._last

    def known(self, head: Head) -> IntegrityReport | None:
        """The last comparison, if it reached this end of the chain."""
        last = self._last
        return last if last is not None and last.head == head else None
