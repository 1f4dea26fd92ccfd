"""Canonical JSON: one byte sequence for one value, so that a digest means "exactly this content".

RFC 8785 (JSON canonicalisation) requires sorted keys, no white space, shortest escapes and a fixed form of numbers.
msgspec does the first three. Floats are refused here, as writers differ only in their form. Keys are field names
(ASCII), for which sorting by code point and by UTF-16 unit is the same.
"""

from __future__ import annotations

import hashlib

import msgspec


def canonical_json(value: object) -> bytes:
    """Canonical JSON of a frozen model value.

    Raises:
        TypeError: If the value contains a float, or anything that JSON cannot represent.
    """
    plain = msgspec.to_builtins(value, order="sorted")  # sets get one order, too
    _refuse_floats(plain)
    return msgspec.json.encode(plain, order="sorted")


def digest(value: object) -> str:
    """SHA-256 over `canonical_json`, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _refuse_floats(plain: object) -> None:
    waiting = [plain]
    for each in waiting:  # grows by what each holds: a ledger is digested by the million values
        kind = type(each)
        if kind is str or kind is int:
            continue
        if isinstance(each, dict):
            waiting += each
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, float):
            raise TypeError(f"{each!r} is a float: canonical values hold integers, in small units")
