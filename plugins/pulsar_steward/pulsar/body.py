"""Response bodies: normally in memory; large ones in a memory-mapped temporary file.

A broker's statistics have about 1.6 KB per topic, and one broker may own a million topics. If memory runs short, the
kernel can free mapped pages, but not a body in memory.
"""

from __future__ import annotations

import mmap
import re
from abc import ABC, abstractmethod
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from pulsar_steward.decoding import decoder
from pulsar_steward.errors import BrokenAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from pulsar_steward.decoding import Decoder

Body = bytes | mmap.mmap

IN_MEMORY_BYTES = 32 << 20
"""Size up to which a body stays in memory: twice the topic statistics of a broker with 10,000 topics."""


def gathered(pieces: Iterable[bytes], most: int = IN_MEMORY_BYTES) -> Body:
    """Joins the pieces into one body.

    Args:
        pieces: The body's pieces, in the order in which they arrive.
        most: Bytes up to which the body stays in memory.
    """
    held: list[bytes] = []
    size, rest = 0, iter(pieces)
    for piece in rest:
        held.append(piece)
        size += len(piece)
        if size > most:
            return _mapped(held, rest)
    return b"".join(held)


def _mapped(held: list[bytes], rest: Iterable[bytes]) -> mmap.mmap:
    """Maps the body from a nameless temporary file; its disk space is freed with the last use of the map."""
    with TemporaryFile(prefix="steward-") as file:
        file.writelines(held)
        held.clear()
        file.writelines(rest)
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


T = TypeVar("T")

_NO_NUMBER = re.compile(
    rb"""([^\\]"\s*:\s*)(?:"(?:NaN|-?Infinity)"|NaN|-?Infinity|-?922337203685477580[78]\.[0-9]+)(?=\s*[,}])"""
)
"""Values of members that are no numbers.

Jackson writes them in quotation marks. Brokers' own writer of ``broker-stats/topics`` has the largest 64-bit number for
what is infinite (``SimpleTextOutputStream``).
"""


def decoded(document: Body | msgspec.Raw, by: Decoder[T]) -> T:
    """Decodes a broker's document; a figure that is NaN or infinite is null, instead of making all else unreadable.

    The document is searched for such figures only after it could not be decoded.

    Raises:
        msgspec.DecodeError: If it is not JSON or of another shape.
    """
    try:
        return by.decode(document)
    except msgspec.DecodeError:
        told, found = _NO_NUMBER.subn(lambda match: match[1] + b"null", document)
        if not found:
            raise
    return by.decode(told)


class BrokerAnswer(msgspec.Struct, frozen=True):
    """A 2xx response: the responding broker, the body as received, and the broker's clock (HTTP's ``Date``)."""

    method: str
    path: str
    broker: str
    body: Body
    date: str | None = None

    def decoded(self, expected: type[T]) -> T:
        """Decodes the JSON body as this type.

        Raises:
            BrokenAnswer: If the body is not JSON or of another shape.
        """
        try:
            return decoded(self.body, decoder(expected))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BrokenAnswer(self.method, self.path, self.broker, f"the answer cannot be read: {error}") from error


class Closing(ABC):
    """Object that is closed at the end of a ``with`` block, also after an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Closes the connections; may be called again."""
