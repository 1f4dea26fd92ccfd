"""Lines of a log as entries: plain or compressed files, in the formats that Pulsar, BookKeeper and ZooKeeper write.

A file is read once, line by line, and never held: lines longer than `MAX_LINE` are cut, and the rest skipped.
"""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINE = 8 << 10
"""Maximum bytes of a line that are looked at."""

MAX_BYTES = 64 << 30
"""Maximum bytes of an unpacked file that are read: an archive of a few megabytes may contain any amount."""

UNREADABLE = (OSError, EOFError, zlib.error)
"""Errors raised for a file that cannot be read to its end, such as an incomplete archive."""

_GZIP = b"\x1f\x8b"
_TIME = r"(?P<at>(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_JSON_LEVELS = {
    **{name: name for name in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")},
    "WARNING": "WARN",
    "SEVERE": "ERROR",
    "CRITICAL": "FATAL",
}
"""Names of levels in JSON, in upper case; an object without one of these is no log entry."""
_ENTRY = re.compile(
    rf"{_TIME}\s+(?:\[[^\]]{{0,200}}\]\s+)?(?:-\s+)?{_LEVEL}\s+(?:-\s+)?"
    r"(?:\[[^\]]{0,200}?:(?P<inner>[\w.$]{1,200})(?:@\d+)?\]|(?P<logger>[\w.$]{1,200}))\s+(?:-\s+)?(?P<message>.*)"
)
_CONTAINER = re.compile(r"\S{20,40} (?:stdout|stderr) [FP] ")
_COLLECTION = re.compile(rf"\[?{_TIME}?\]?.{{0,80}}(?P<message>(?:GC\(\d+\) Pause|\[(?:Full )?GC) .*)")
# With dots as Elastic's common schema has them, in which Pulsar 5 writes JSON (`PULSAR_LOG_FORMAT=json`, PIP-467).
_KEYS = {
    "at": ("timestamp", "@timestamp", "time"),
    "level": ("level", "log.level", "severity"),
    "logger": ("logger", "log.logger", "loggerName", "logger_name"),
    "message": ("message", "msg"),
}
_GARBAGE_COLLECTOR = "gc"


class Entry(msgspec.Struct, frozen=True):
    """One entry of a log, or a later line that belongs to it.

    Attributes:
        at: Its time as written; empty if there is none.
        level: ``DEBUG``, ``INFO``, ``WARN``, ``ERROR`` and the like; empty for a later line of an entry.
        logger: Name of the class that wrote it, without its package; ``gc`` for the garbage collector.
        message: Its text.
    """

    at: str
    level: str
    logger: str
    message: str


def entry_of(line: str) -> Entry | None:
    """Entry that begins with a line; None if none does, as in a stack trace or an unknown format.

    Known formats are the patterns of Pulsar's, BookKeeper's and ZooKeeper's logging configurations, JSON with one
    object per line, and logs of the garbage collector. Each may have the prefix of a container runtime.
    """
    if line.startswith("{"):
        return _of_json(line)
    if found := _ENTRY.match(line):
        named = found["logger"] or found["inner"]
        return Entry(found["at"], found["level"], named.rpartition(".")[2], found["message"])
    if found := _COLLECTION.match(line):
        return Entry(found["at"] or "", "INFO", _GARBAGE_COLLECTOR, found["message"])
    return None


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a file without line ends and without the prefix of a container runtime.

    Raises:
        Exception: One of `UNREADABLE`, if the file cannot be read to its end.
    """
    left = MAX_BYTES
    with path.open("rb") as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        while left > 0 and (line := file.readline(MAX_LINE)):
            left -= len(line)
            rest = line
            while not rest.endswith(b"\n") and left > 0 and (rest := file.readline(MAX_LINE)):
                left -= len(rest)
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            head = _CONTAINER.match(text)
            yield text[head.end() :] if head else text
    if left <= 0:
        raise EOFError(f"it is longer than {MAX_BYTES >> 30} GiB")


def require_file(path: Path) -> None:
    """Checks that a file exists, is an ordinary one, and may be read.

    Raises:
        ConfigurationError: If not; a pipe or a device might have no end.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigurationError(f"--logs {path}: name a file")
        with path.open("rb"):
            pass
    except OSError as error:
        raise ConfigurationError(f"--logs {path}: {error.strerror or error}") from error


def _of_json(line: str) -> Entry | None:
    try:
        told: Any = decode(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    if isinstance(wrapped := told.get("log"), str) and not wrapped.startswith("{"):
        return entry_of(wrapped.rstrip("\n"))  # a container runtime wraps each line in this
    found = {name: next((told[key] for key in keys if key in told), "") for name, keys in _KEYS.items()}
    level, message = _JSON_LEVELS.get(str(found["level"]).upper()), found["message"]
    if level is None or not message or not isinstance(message, str):
        return None
    return Entry(str(found["at"]), level, str(found["logger"]).rpartition(".")[2], message.replace("\n", " "))
