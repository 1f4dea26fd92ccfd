"""Masks secrets in responses: whole, cut short, or in another encoding.

A broker, a proxy or an error page may repeat the ``Authorization`` header. A token that looks random (JSON Web Token,
hexadecimal, base64) is recognised by any 16 characters of it, also in percent-encoding, JSON's escapes and base64: no
name or number of a cluster contains such a run. Any other token may be an ordinary word in documents. So it is masked
only in headers and error messages, and only as a whole.

A document of 100 MB normally contains no token, so the search has to be fast if there is no match. Every run of 15
bytes contains eight bytes that begin at a multiple of eight: so it is enough to compare at these positions.
"""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from pulsar_steward.pulsar.faults import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

MASK = b"***"
RUN = 16
"""Length of a part of a token that cannot be a coincidence, in characters."""

SHORTEST = 8
"""Length of the shortest token that is searched for."""

MAX_RUNS = 1000
"""Maximum number of parts of a token in one body; a body with more is rejected."""

BLOCK_BYTES = 1 << 18
"""Smallest block that is searched at once."""

FULL = "it is full of the token"

_WORD = 8
_SMALL_BYTES = 1 << 16
"""Size up to which Python's sets are faster than pyarrow, which has to be loaded first."""

_HELD_BYTES = 4 << 20
"""Maximum of bytes that wait for the next piece, as overlapping parts of a token could continue endlessly."""

_MAX_HITS = 100_000
"""Maximum number of matches of eight bytes of a token in one block."""

_FEWEST_DIFFERENT = 6
"""Minimum number of different characters in a run: sixteen equal ones identify nothing."""

_HEXADECIMAL = re.compile(r"[0-9a-f-]{24,}", re.IGNORECASE)
_KINDS = re.compile(r"(?P<small>[a-z]+)|(?P<capital>[A-Z]+)|(?P<digit>[0-9]+)|[^a-zA-Z0-9]+")
_CHANGES_OF_KIND = 0.45
"""Share of neighbouring characters of different kinds; only random text reaches it."""


class Mask:
    """Masks tokens, passwords and other secrets, if there are any."""

    def __init__(self, *tokens: str | None) -> None:
        random = [_Runs(token) for token in tokens if token is not None and looks_random(token)]
        others = [token for token in tokens if token is not None and not looks_random(token)]
        self._anywhere: list[_Search] = [*random]
        self._in_failures = [*random, *(_Whole(token) for token in others if len(token) >= SHORTEST)]

    def text(self, text: str) -> str:
        """Masks a header, a phrase or an error message; text without the token is unchanged.

        Raises:
            Unusable: If it contains the token too often.
        """
        written = text.encode("utf-8", "surrogatepass")
        masked = b"".join(self.failure([written]))
        return text if masked == written else masked.decode("utf-8", "replace")

    def failure(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Masks the body of an error response.

        Raises:
            Unusable: If it contains the token too often.
        """
        return _masked(self._in_failures, pieces)

    def document(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Masks any other body; its pieces may change in size.

        Raises:
            Unusable: If it contains the token too often.
        """
        return _masked(self._anywhere, pieces)


@lru_cache(maxsize=16)
def mask_of(*tokens: str | None) -> Mask:
    """Mask of some secrets; cached, as each secret has about a thousand search words."""
    return Mask(*tokens)


def _masked(searches: Iterable[_Search], pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, masked by one search after the other."""
    for search in searches:
        pieces = search.masked(pieces)
    return iter(pieces)


def looks_random(token: str) -> bool:
    """True if the token looks so random that 16 characters of it would not occur in a document by chance."""
    if len(token) < RUN:
        return False
    if _HEXADECIMAL.fullmatch(token) and len(set(token)) > _FEWEST_DIFFERENT:
        return True
    kinds = [match.lastgroup for match in _KINDS.finditer(token)]
    mixed = {"small", "capital", "digit"} <= set(kinds) and len(kinds) > _CHANGES_OF_KIND * len(token)
    return mixed or _is_jwt(token)


def _is_jwt(token: str) -> bool:
    """True if the token's first part names an algorithm, as in a JSON Web Token (RFC 7519)."""
    head, dot, _ = token.partition(".")
    try:
        told = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    return bool(dot) and isinstance(told, dict) and "alg" in told


class _Form(NamedTuple):
    """One encoding of a token, and the length of a part of it that cannot be a coincidence, in bytes."""

    text: bytes
    least: int


def _forms(token: str) -> list[_Form]:
    plain, quoted = token.encode(), quote(token, safe="")
    lower = re.sub("%..", lambda match: match[0].lower(), quoted)
    escaped = json.dumps(token)[1:-1]
    for_html = "".join(f"\\u{ord(each):04x}" if each in "<>&='+" else each for each in escaped)  # as Gson does
    forms = {text.encode(): RUN for text in (token, quoted, lower, escaped, escaped.replace("/", "\\/"), for_html)}
    for write in ("%{:02x}", "%{:02X}", "\\u{:04x}", "\\u{:04X}"):
        written = [write.format(byte).encode() for byte in plain]
        forms.setdefault(b"".join(written), RUN * len(written[0]))
    for before in range(3):
        # Base64 has three forms of a text, depending on its position within three bytes. In each form, only the
        # characters count that do not depend on the text before or after.
        first, last = -(-8 * before // 6), 8 * (before + len(plain)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            forms.setdefault(encode(bytes(before) + plain)[first:last], -(-8 * RUN // 6))
    return [_Form(text, least) for text, least in forms.items()]


class _Run(NamedTuple):
    """Position of a part of a token: from `start` to before `end`."""

    start: int
    end: int


class _Search:
    """Masks the parts that `runs` finds, in a body that arrives in pieces."""

    def __init__(self, forms: list[_Form]) -> None:
        self._forms = forms
        self._longest = max(len(form.text) for form in forms)

    def runs(self, block: bytes) -> list[_Run]:
        """Parts of a token in the block, in any order; they may overlap."""
        raise NotImplementedError

    def masked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the pieces with each part of a token replaced, also a part across two pieces."""
        left, held, clean = MAX_RUNS, b"", True
        for block in _blocks(pieces):
            seam = held[-self._longest :] + block[: self._longest] if held else b""
            clean = not (self.runs(block) or self.runs(seam))
            if clean:  # the normal case: the block is neither copied nor searched again
                if held:
                    yield held
                held = block
                continue
            runs = _joined(self.runs(held + block))
            left -= len(runs)
            done, held = self._cut(held + block, runs, last=False)
            if left < 0 or len(held) > _HELD_BYTES:
                raise Unusable(FULL)
            if done:
                yield done
        rest = held if clean else self._cut(held, _joined(self.runs(held)), last=True)[0]
        if rest:
            yield rest

    def _cut(self, block: bytes, runs: list[_Run], *, last: bool) -> tuple[bytes, bytes]:
        """Splits a block in two: the masked beginning, and the rest, which is searched again with the next piece."""
        end = len(block) if last else max(0, len(block) - self._longest)
        done: list[bytes] = []
        at = 0
        for run in runs:
            if run.start >= end:
                break
            if run.end == len(block) and not last:
                end = run.start
                break
            done += [block[at : run.start], MASK]
            at = run.end
        end = max(end, at)
        rest = block[at:end]
        return (b"".join([*done, rest]) if done else rest), block[end:]


class _Whole(_Search):
    """Finds a token only as a whole."""

    def __init__(self, token: str) -> None:
        super().__init__(_forms(token))

    def runs(self, block: bytes) -> list[_Run]:
        found = []
        for text, _ in self._forms:
            at = block.find(text)
            while at >= 0:
                found.append(_Run(at, at + len(text)))
                at = block.find(text, at + len(text))
        return found


class _Runs(_Search):
    """Finds every sufficiently long part of a token, by eight bytes that it must contain."""

    def __init__(self, token: str) -> None:
        super().__init__(_forms(token))
        self._places: dict[int, list[tuple[_Form, int]]] = defaultdict(list)
        for form in self._forms:
            # The shortest run contains this many words in a row: one of them is enough.
            each = max(1, (form.least - _WORD + 1) // _WORD)
            for offset in range(len(form.text) - _WORD + 1):
                if offset // _WORD % each == 0:
                    self._places[_number(form.text, offset)].append((form, offset))

    def runs(self, block: bytes) -> list[_Run]:
        found: list[_Run] = []
        known = 0
        for at in self._hits(block):
            if at + _WORD <= known:
                continue
            for form, offset in self._places[_number(block, at)]:
                run = _matching(block, at, form.text, offset)
                if run.end - run.start >= form.least and len(set(block[slice(*run)])) >= _FEWEST_DIFFERENT:
                    found.append(run)
                    known = max(known, run.end)
        return found

    def _hits(self, block: bytes) -> list[int]:
        """Positions of the token's words, at multiples of eight."""
        count = len(block) // _WORD
        if len(block) <= _SMALL_BYTES:
            words = memoryview(block)[: count * _WORD].cast("Q")
            if self._places.keys().isdisjoint(words):
                return []
            return [_WORD * number for number, word in enumerate(words) if word in self._places]
        import pyarrow as pa  # noqa: PLC0415 - takes a while, and most bodies are small
        import pyarrow.compute as pc  # noqa: PLC0415 - as above

        words = pa.Array.from_buffers(pa.uint64(), count, [None, pa.py_buffer(block)])
        known = pc.is_in(words, value_set=self._known)
        if known.true_count > _MAX_HITS:
            raise Unusable(FULL)
        return [_WORD * number for number in pc.indices_nonzero(known).to_pylist()] if known.true_count else []

    @cached_property
    def _known(self) -> pa.Array:
        import pyarrow as pa  # noqa: PLC0415 - as above

        return pa.array(self._places, pa.uint64())


def _number(text: bytes, at: int) -> int:
    """Eight bytes as a number in this machine's byte order."""
    return int.from_bytes(text[at : at + _WORD], sys.byteorder)


def _matching(block: bytes, at: int, text: bytes, offset: int) -> _Run:
    """Longest equal part of a block and a text around a common word."""
    start, end = at, at + _WORD
    shift = at - offset
    while start > max(0, shift) and block[start - 1] == text[start - 1 - shift]:
        start -= 1
    most = min(len(block), shift + len(text))
    while end < most and block[end] == text[end - shift]:
        end += 1
    return _Run(start, end)


def _joined(runs: list[_Run]) -> list[_Run]:
    """Sorts the parts and merges those that overlap."""
    joined: list[_Run] = []
    for run in sorted(runs):
        if joined and run.start < joined[-1].end:
            joined[-1] = _Run(joined[-1].start, max(run.end, joined[-1].end))
        else:
            joined.append(run)
    return joined


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Joins small pieces into blocks."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
