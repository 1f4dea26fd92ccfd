"""Text from outside as a person reads it, and as JSON."""

from __future__ import annotations

import json
import logging
import unicodedata

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.outside_text import MAX_MARKS, ShownRecords, show_logs, shown, shown_json
from tests.cases import row_by_row


@row_by_row(
    "words, read",
    ("public/default", "public/default"),
    ("a  b ", "a  b "),
    ("caf\u00e9 \u4e2d", "caf\u00e9 \u4e2d"),
    ("cafe\u0301", "cafe\u0301"),
    ("two\nlines\r\n", r"two\nlines\r\n"),
    ("\x00\x1b[0m\x7f\x9b", r"\x00\x1b[0m\x7f\x9b"),
    ("a\u2028b", r"a\u2028b"),
    ("\U000e0061", r"\U000e0061"),
    ("\u20dda", r"\u20dda"),
    ("back\\slash", r"back\slash"),
    ("a" + "\u0301" * (MAX_MARKS + 1), "a" + "\u0301" * MAX_MARKS + r"\u0301"),
    ("\u3164\u0301", r"\u3164\u0301"),
    ("", ""),
    (12, "12"),
)
def test_what_cannot_be_seen_is_spelled_out(words: object, read: str) -> None:
    """Invisible characters are spelled out as escapes, and other text stays as it is, spaces included."""
    assert shown(words) == read


@given(st.text())
def test_nothing_that_is_shown_is_hidden(words: str) -> None:
    """Any text is shown as one line of printable characters, without control characters."""
    line = shown(words)

    assert line.isprintable()
    assert not any(unicodedata.category(each).startswith(("C", "Z")) and each != " " for each in line)


@given(st.text())
def test_showing_again_changes_nothing(words: str) -> None:
    assert shown(shown(words)) == shown(words)


@given(st.text(st.characters(codec="utf-8")))
def test_json_means_the_same(words: str) -> None:
    """JSON that was made safe to show decodes to the same value, is printable, and keeps its line breaks."""
    document = msgspec.json.encode({"name": words, words: [1]})
    told = shown_json(document)

    assert json.loads(told) == msgspec.json.decode(told) == {"name": words, words: [1]}
    assert told.decode().isprintable()
    assert shown_json(msgspec.json.format(document, indent=2)).count(b"\n") == 5


class ForeignRecord(logging.LogRecord):
    """A log record as another library makes it."""


def test_logs_are_shown_once_however_often_that_is_asked_for() -> None:
    """Importing the library installs its factory of log records; installing it again wraps only that of others."""
    factory = logging.getLogRecordFactory()
    show_logs()

    assert isinstance(factory, ShownRecords)
    assert logging.getLogRecordFactory() is factory

    logging.setLogRecordFactory(ForeignRecord)
    try:
        show_logs()
        make = logging.getLogRecordFactory()
    finally:
        logging.setLogRecordFactory(factory)
    record = make("pulsar_steward.apply", logging.INFO, "file", 1, "a\nb", (), None)
    assert isinstance(record, ForeignRecord)
    assert record.getMessage() == r"a\nb"


def test_records_of_others_are_left_alone() -> None:
    """Log records of other libraries stay unchanged, and Steward's own change only where they would hide characters."""
    make = logging.getLogRecordFactory()

    def record(name: str | None, argument: str) -> logging.LogRecord:
        return make(name, logging.INFO, "file", 1, "said: %s", (argument,), None)

    assert record("pulsar", "a\nb").getMessage() == "said: a\nb"
    assert record(None, "a\nb").getMessage() == "said: a\nb"
    assert record("pulsar_steward.apply", "a b").args == ("a b",)
    assert record("pulsar_steward.apply", "a\nb%s").getMessage() == r"said: a\nb%s"
