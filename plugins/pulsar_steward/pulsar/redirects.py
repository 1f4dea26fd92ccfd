"""Check that a redirect changes only the host of a call, and nothing of the request itself.

Read in apache/pulsar (4.0, 4.2): brokers redirect to the requested address, with another host and port, and with
``authoritative`` set or replaced. The leader of the classic load managers removes ``destinationBroker`` from an unload
that it redirects to the bundle's owner, as it has already stored the destination. The extensible one keeps it
(`PulsarWebResource.validateBundleOwnershipAsync`, `NamespacesBase.validateLeaderBrokerAsync`). Lookups up to 4.0 encode
the topic's name anew with Java's `URLEncoder`, which turns a space into a plus (`TopicLookupBase`).
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from urllib.parse import SplitResult

ADDED = "authoritative"
DROPPED = "destinationBroker"

LOOKUP = "/lookup/v2/topic/"

_MEANINGLESS = frozenset(string.ascii_letters + string.digits + "-._~" + "!$&'()*,:@")
"""Characters without a special meaning in a path, escaped or not: they separate no segments or parameters."""

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_LONGEST_SHOWN = 60

Query = list[tuple[str, str]]


def difference(asked: SplitResult, target: SplitResult) -> str | None:
    """Difference between a redirect's target and the original request, as a phrase; None: it is the same call.

    Args:
        asked: Address of the original request, before any redirect.
        target: Address in the redirect.
    """
    now = _normal(target.path.replace("+", "%20") if target.path.startswith(LOOKUP) else target.path)
    if (was := _normal(asked.path)) != now:
        return f"redirected to another path, {_apart(now.split('/'), was.split('/'))}"
    wanted, told = _query(asked.query), _query(target.query)
    added = [value for name, value in told if name == ADDED]
    rest = [pair for pair in told if pair[0] != ADDED]
    if rest not in (wanted, [pair for pair in wanted if pair[0] != DROPPED]):
        return f"redirected with another query, {_written(rest)} in place of {_written(wanted)}"
    if added not in ([], ["true"], ["false"]):
        return f"redirected with {ADDED}={shown(' and '.join(added))}, which is neither true nor false"
    return None


def _normal(path: str) -> str:
    """Normalises a path (RFC 3986): unneeded escapes are removed, all others are in capitals.

    An escaped slash stays escaped: it is part of a name, and a plain slash separates names.
    """
    return _ESCAPE.sub(_unescaped, path)


def _unescaped(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return character if character in _MEANINGLESS else escape[0].upper()


def _query(text: str) -> Query:
    return sorted(parse_qsl(text, keep_blank_values=True, errors="surrogateescape"))


def _written(query: Query) -> str:
    return shown(urlencode(query, errors="surrogateescape")) or "none"


def _apart(now: Sequence[str], was: Sequence[str]) -> str:
    """Describes two paths, from the first different segment on."""
    same = 0
    while same < min(len(now), len(was)) - 1 and now[same] == was[same]:
        same += 1
    return f"{shown('/'.join(now[same:]))} in place of {shown('/'.join(was[same:]))}"


def shown(text: str) -> str:
    """Part of an address for a message: escaped, so that it contains no terminal commands, and shortened."""
    plain = quote(text, safe="%/=&:@,;+!$'()*", errors="replace")
    return plain if len(plain) <= _LONGEST_SHOWN else f"{plain[:_LONGEST_SHOWN]}…"
