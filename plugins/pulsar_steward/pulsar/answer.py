"""A broker's response, over any transport."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import BrokenAnswer
from pulsar_steward.pulsar.body import Body

T = TypeVar("T")


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
            return decode(self.body, expected)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BrokenAnswer(self.method, self.path, self.broker, f"the answer cannot be read: {error}") from error
