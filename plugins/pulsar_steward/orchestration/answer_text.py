"""Text of a person's answer, which may contain anything, made safe for the ledger and for reasons that quote it."""

from __future__ import annotations

import reprlib

from pulsar_steward.outside_text import shown

MAX_QUOTED_CHARACTERS = 200
"""Characters of an invalid value that a reason quotes."""

_NEVER_KEPT = frozenset({"\0", *map(chr, range(0xD800, 0xE000))})


def kept(words: str) -> str:
    """Text that every database accepts: NUL and unpaired surrogates are spelled out, as some databases refuse them."""
    return "".join(shown(each) if each in _NEVER_KEPT else each for each in words)


def quoted(thing: object) -> str:
    """Short form of an invalid value, which may be of any size and depth."""
    if isinstance(thing, str):
        return kept(cut(thing, MAX_QUOTED_CHARACTERS))
    try:
        return kept(cut(reprlib.repr(thing), MAX_QUOTED_CHARACTERS))
    except (ValueError, RecursionError):  # an integer with too many digits to print
        return f"of the type {type(thing).__name__}"


def cut(words: str, most: int) -> str:
    """At most the first `most` characters of a text; a cut text ends with an ellipsis, which counts."""
    return words if len(words) <= most else f"{words[: most - 1]}…"
