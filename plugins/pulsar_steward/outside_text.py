"""Display of text from outside: shown as it is, with invisible characters spelled out.

Names of topics and people, brokers' reasons, comments and file names may contain anything: characters that reverse the
order of letters, that have no width, that control a terminal or end a line. All code that displays such text to a
person passes it through `shown`, and adds the escapes of its own format (Markdown or HTML). What machines store,
compare and send stays the text itself.
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
"""Most marks above and below one letter that are shown. Hebrew with its accents needs five; more cover other lines."""


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
"""Characters that are invisible although Unicode counts them among letters, marks or symbols."""


def shown(words: object) -> str:
    r"""Text as a person can read it, on one line.

    Letters of every script stay as they are, with the marks that belong to them. Spelled out with a backslash, as
    Python does (``\n``, ``\x1b``, ``\u202e``, ``\U000e0061``), are control characters and line ends; characters that
    set the direction; characters without width or shape, variation selectors among them; every blank other than the
    space; halves of characters (lone surrogates); unassigned and private-use characters; and marks without a letter
    to belong to, such as one at the beginning of a name.

    A backslash stays as it is, so a second application changes nothing. Two names may look alike and still differ:
    names are told apart by the record, not by how they look.
    """
    line = str(words)
    return line if line.isascii() and line.isprintable() else _spelled(line, _as_python)


def visible(text: str) -> str:
    """What a person can see of a text: without characters that have no width or shape, control a line, or are blank."""
    return "".join(each for each in text if _is_seen(each) and not each.isspace())


def shown_json(document: bytes) -> bytes:
    r"""JSON with the same characters escaped as JSON does it (``\u202e``): decoding it gives what was encoded.

    Args:
        document: JSON, encoded; line breaks between its parts stay.
    """
    return (
        document if document.isascii() and b"\x7f" not in document else _spelled(document.decode(), _as_json).encode()
    )


def shown_trace(error: BaseException) -> str:
    """Traceback of an error with its causes: one line for each call, and one for each error's message.

    An error of another library may quote anything.
    """
    parts = traceback.TracebackException.from_exception(error).format()
    return "\n".join(
        shown(line) for part in parts for line in (part.splitlines() if part.startswith("  File ") else [part.strip()])
    )


def _spelled(line: str, spelling: Callable[[str], str]) -> str:
    told, marks = [], MAX_MARKS  # as if the preceding letter had all its marks: a mark without a letter is spelled out
    for each in line:
        kind, seen = category(each)[0], _is_seen(each)
        marks = MAX_MARKS if not seen or kind not in "LM" else marks + 1 if kind == "M" else 0
        told.append(each if seen and (kind != "M" or marks <= MAX_MARKS) else spelling(each))
    return "".join(told)


def _is_seen(character: str) -> bool:
    return character.isprintable() and character not in _UNSEEN


def _as_python(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _as_json(character: str) -> str:
    return character if character in " \t\r\n" else json.dumps(character)[1:-1]


LOGGERS = frozenset({"pulsar_steward", "steward_spark"})
"""Packages whose log messages pass through `shown`."""


class ShownRecords:
    """Log record factory that passes the messages of Steward's own loggers through `shown`.

    A filter of a logger does not see its children's records, and one of a handler works only where that handler is;
    each record is made here, whichever handler writes it.

    Args:
        make: The previous record factory.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        """Makes a record; the arguments are those of `logging.LogRecord`."""
        record = self._make(*arguments, **named)
        if str(record.name).partition(".")[0] not in LOGGERS:
            return record
        with suppress(Exception):  # arguments that do not match the message: the handler reports it, as always
            told = record.getMessage()
            if (line := shown(told)) != told:
                record.msg, record.args = line, ()
        if record.exc_info and record.exc_info[1]:
            record.exc_text = shown_trace(record.exc_info[1])  # formatters use this instead of making it themselves
        return record


def show_logs() -> None:
    """Installs `ShownRecords`: no log message can add a line or control a terminal. Repeating it is harmless."""
    before = logging.getLogRecordFactory()
    if not isinstance(before, ShownRecords):
        logging.setLogRecordFactory(ShownRecords(before))
