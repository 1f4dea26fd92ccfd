"""What a figure or a name in a broker's document may be: what is out of bounds is no answer, and breaks nothing later.

Decoding holds to them, as all that comes after has its own idea of a number: 64 bits in Arrow, SQL and Spark, where a
sum or a hundredfold of a figure has to fit as well.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pulsar_steward.model.bundles import FULL_RANGE

_EXACT = 1 << 53
_LONG = 1 << 63

Figure = Annotated[int, Meta(ge=-_EXACT, le=_EXACT)]
"""A count, a size in bytes or a time in milliseconds: up to nine petabytes, as exact as a double. Brokers tell negative
ones too, such as permits that are overdrawn."""

Long = Annotated[int, Meta(ge=-_LONG, le=_LONG - 1)]
"""A limit: whoever wants none may have set the largest number that Java has."""

Rate = Annotated[float, Meta(ge=-1e18, le=1e18)]
"""Messages or bytes a second; no infinity and nothing that is no number."""

Count = Annotated[int, Meta(ge=0, le=1_000_000)]
"""How many there are of what is counted one by one, such as the partitions of a topic."""

Position = Annotated[int, Meta(ge=0, le=FULL_RANGE)]
"""A position in a namespace's hash space."""

Boundary = Annotated[str, Meta(pattern=r"^0x[0-9a-f]{8}\Z")]
"""A boundary of a bundle, as brokers write it."""

Broker = Annotated[str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}\Z")]
"""A broker's id, ``host:webport``: calls go there, so that it holds nothing else that means something in a URL."""
