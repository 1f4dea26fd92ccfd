"""Text from outside as a person reads it: as it is, and what cannot be seen in it spelled out.

Names of topics and people, brokers' reasons, comments and file names may hold anything: characters that turn the order
of letters round, that have no width, that steer a terminal or end a line. Whatever puts such text before a person's
eyes does so by `shown`, and adds what its own form asks for (escapes of Markdown or HTML). What machines keep, compare
and send stays the text itself.
"""

from __future__ import annotations

import json
import logging
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_MARKS = 6
"""Marks above and below one letter that are shown. Hebrew with its accents needs five; a heap covers other lines."""


def _characters(*ranges: tuple[int, int]) -> frozenset[str]:
    return frozenset(chr(code) for first, last in ranges for code in range(first, last + 1))


_UNSEEN = _characters(
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x2800, 0x2800),  # Braille without a dot
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # Hangul filler of half a width
    (0x16FE4, 0x16FE4),  # Khitan filler
    (0x1D159, 0x1D159),  # a musical note without a head
    (0xE0100, 0xE01EF),  # further variation selectors
)
"""What cannot be seen although Unicode counts it among letters, marks or symbols."""


def shown(words: object) -> str:
    r"""Words as a person reads them, on one line.

    Letters of every script stay as they are, with the marks that belong to them. Spelled out with a backslash, as
    Python does (``\n``, ``\x1b``, ``\u202e``, ``\U000e0061``), are control characters and whatever ends a line;
    characters that set the direction; characters without width or shape, variation selectors among them; every blank
    other than the space; halves of characters (lone surrogates); characters of no or of private meaning; and marks
    that have no letter to stand on, such as one at the beginning of a name.

    A backslash stays as it is, so showing what was shown already changes nothing; and two names that look alike need
    not be the same: what tells names apart is the record, not the look.
    """
    line = str(words)
    return line if line.isascii() and line.isprintable() else _spelled(line, _as_python)


def shown_json(document: bytes) -> bytes:
    r"""JSON with the same characters as JSON's own escapes (``\u202e``): whoever decodes it gets what was encoded.

    Args:
        document: JSON, encoded; line breaks between its parts stay.
    """
    return (
        document if document.isascii() and b"\x7f" not in document else _spelled(document.decode(), _as_json).encode()
    )


def shown_trace(error: BaseException) -> str:
    """An error with its causes: a line for each call that led there, and one for what each error says.

    What an error of some library says may quote anything.
    """
    parts = traceback.TracebackException.from_exception(error).format()
    return "\n".join(
        shown(line) for part in parts for line in (part.splitlines() if part.startswith("  File ") else [part.strip()])
    )


def _spelled(line: str, spelling: Callable[[str], str]) -> str:
    told, marks = [], MAX_MARKS  # as if a letter before had all that it may have: nothing stands on what is not there
    for each in line:
        kind, seen = category(each)[0], each.isprintable() and each not in _UNSEEN
        marks = MAX_MARKS if not seen or kind not in "LM" else marks + 1 if kind == "M" else 0
        told.append(each if seen and (kind != "M" or marks <= MAX_MARKS) else spelling(each))
    return "".join(told)


def _as_python(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _as_json(character: str) -> str:
    return character if character in " \t\r\n" else json.dumps(character)[1:-1]


LOGGERS = frozenset({"pulsar_steward", "steward_spark"})
"""The packages whose loggers say nothing but what is `shown`."""


class ShownRecords:
    """Makes log records, those of Steward's own loggers with their words as `shown`.

    A filter of a logger does not see what its children say, and one of a handler only holds where that handler is; each
    record is made here, whoever writes it down.

    Args:
        make: What made records before.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        """A record; the arguments are those of `logging.LogRecord`."""
        record = self._make(*arguments, **named)
        if str(record.name).partition(".")[0] not in LOGGERS:
            return record
        with suppress(Exception):  # words that do not fit their arguments: the handler tells so, as always
            told = record.getMessage()
            if (line := shown(told)) != told:
                record.msg, record.args = line, ()
        if record.exc_info and record.exc_info[1]:
            record.exc_text = shown_trace(record.exc_info[1])  # formatters take this before they make it themselves
        return record


def show_logs() -> None:
    """From now on nothing in what Steward logs makes a line of its own or steers a terminal; again is harmless."""
    before = logging.getLogRecordFactory()
    if not isinstance(before, ShownRecords):
        logging.setLogRecordFactory(ShownRecords(before))
