"""Types of figures and names in brokers' documents; a value out of bounds makes the response unreadable.

Decoding enforces these bounds because later stages have 64-bit numbers (Arrow, SQL, Spark), in which sums and a hundred
times a figure have to fit too.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pulsar_steward.model.bundles import FULL_RANGE

_EXACT = 1 << 53
_LONG = 1 << 63

Figure = Annotated[int, Meta(ge=-_EXACT, le=_EXACT)]
"""A count, a size in bytes or a time in milliseconds: up to nine petabytes, as exact as a double.

Brokers report negative figures too, such as overdrawn permits.
"""

Amount = Annotated[int, Meta(ge=0, le=_EXACT)]
"""A figure that is used for upper bounds; a negative one was miscounted and is not valid."""

Long = Annotated[int, Meta(ge=-_LONG, le=_LONG - 1)]
"""A limit; "no limit" may be Java's largest number."""

MOST_RATE = 1e18

Rate = Annotated[float, Meta(ge=-MOST_RATE, le=MOST_RATE)] | None
"""Messages or bytes per second; None: the broker told no number (`pulsar_steward.pulsar.body.decoded`)."""

Count = Annotated[int, Meta(ge=0, le=1_000_000)]
"""Number of single items, such as the partitions of a topic."""

Position = Annotated[int, Meta(ge=0, le=FULL_RANGE)]
"""A position in a namespace's hash space."""

Boundary = Annotated[str, Meta(pattern=r"^0x[0-9a-f]{8}\Z")]
"""A boundary of a bundle in the brokers' notation."""

Broker = Annotated[str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}\Z")]
"""A broker's id, ``host:webport``. Calls are sent there, so no other character with a meaning in URLs is allowed."""
