"""Reads Prometheus's text as it comes, and of it only the series that somebody wants.

A broker of 10,000 topics answers a hundred megabytes, of which less than a hundredth is wanted: a line is looked at no
further than its name, and only what is wanted is parsed, by Prometheus's own library (docs/decisions/0007).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from pulsar_steward.admin.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.admin.settings import AdminSettings


LONGEST_LINE_BYTES = 1 << 20
"""A line that goes on for longer is passed over, like any that cannot be read."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One line: the series' name, its labels, and its value, which may be NaN or infinite."""

    series: str
    labels: dict[str, str]
    value: float


def endpoint(settings: AdminSettings, base: str) -> Transport:
    """How to ask who is no broker (``http://host:port``), under the cluster's limits: the token is never sent there."""
    return Transport(dataclasses.replace(settings, urls=(base,), token=None), frozenset({"GET"}))


class Exposition:
    """One endpoint's answer while it is read.

    Args:
        pieces: The body as it comes.
        most_bytes: How much of it is read at most; it may be exceeded by one piece.

    Attributes:
        cut: Whether more was there than was read.
    """

    def __init__(self, pieces: Iterable[bytes], most_bytes: int) -> None:
        self._pieces = pieces
        self._most_bytes = most_bytes
        self.cut = False

    def samples(self, wanted: Mapping[str, float | None], endings: Sequence[str] = ()) -> Iterator[Sample]:
        """The wanted series' samples; a line that cannot be read is passed over.

        Args:
            wanted: Series by name. One with a resting value (such as 0 for a count of what should not be) yields its
                first sample whatever it is, as that shows that the series is told at all, and then only the others.
            endings: A series whose name ends in one of these is wanted too, as where names hold those of threads.
        """
        resting = {name.encode(): value for name, value in wanted.items()}
        ends = tuple(ending.encode() for ending in endings)
        told: set[bytes] = set()
        for lines in self._lines():
            for line in lines:
                end = line.find(b"{")
                name = line[:end] if end > 0 else line.partition(b" ")[0]
                if name in resting:
                    if name in told and _rests(line, resting[name]):
                        continue
                    told.add(name)
                elif not name.endswith(ends):
                    continue
                sample = _sample(line)
                if sample is not None:
                    yield sample

    def _lines(self) -> Iterator[list[bytes]]:
        taken, rest, passing = 0, b"", False
        for piece in self._pieces:
            if taken >= self._most_bytes:
                self.cut = True
                return
            taken += len(piece)
            if passing:  # the rest of a line that is too long
                _, ended, piece = piece.partition(b"\n")  # noqa: PLW2901 - what is left of it
                passing = not ended
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > LONGEST_LINE_BYTES:
                rest, passing = b"", True
            yield lines
        yield [rest]


def _rests(line: bytes, value: float | None) -> bool:
    if value is None:
        return False
    try:
        return float(line[line.rfind(b" ") :]) == value
    except ValueError:
        return False


def _sample(line: bytes) -> Sample | None:
    try:
        families = list(text_string_to_metric_families(line.decode(errors="replace")))
    except ValueError:
        return None
    told = next((sample for family in families for sample in family.samples), None)
    return None if told is None else Sample(told.name, dict(told.labels), float(told.value))
