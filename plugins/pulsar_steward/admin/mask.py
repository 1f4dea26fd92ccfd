"""Takes a token out of whatever comes back, before anybody keeps it: whole, cut short, or written in another way.

A broker, a proxy or a page of errors may repeat the ``Authorization`` header. A token that looks random (a JSON Web
Token, hexadecimal, base64) is known again by any 16 characters of it, also within percent-encoding, JSON's escapes and
base64, as no name or number of a cluster holds such a run. Any other token may be a word that documents hold for good
reason: it is masked in headers and in what explains a failure only, and as a whole.

Documents of a hundred megabytes hold no token as a rule, so what counts is how fast that is known. A run of 15 bytes,
wherever it begins, covers eight that begin at a multiple of eight: one look at each eighth byte is enough.
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

from pulsar_steward.admin.faults import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

MASK = b"***"
RUN = 16
"""Characters of a token that stand together by no chance."""

SHORTEST = 8
"""Characters of a token that is looked for at all."""

MOST_RUNS = 1000
"""Parts of a token in one body: what holds more is no answer."""

BLOCK_BYTES = 1 << 18
"""What is looked through at once, at least."""

FULL = "it is full of the token"

_WORD = 8
_SMALL_BYTES = 1 << 16
"""Up to here Python's own sets are quicker than what has to be loaded first."""

_HELD_BYTES = 4 << 20
"""What may have to wait for what follows: parts of a token that overlap without an end."""

_MOST_HITS = 100_000
"""Eight bytes of a token at a time, in one block."""

_FEWEST_DIFFERENT = 6
"""Characters that differ within a run: sixteen equal ones tell nothing."""

_HEXADECIMAL = re.compile(r"[0-9a-f-]{24,}", re.IGNORECASE)
_KINDS = re.compile(r"(?P<small>[a-z]+)|(?P<capital>[A-Z]+)|(?P<digit>[0-9]+)|[^a-zA-Z0-9]+")
_CHANGES_OF_KIND = 0.45
"""The share of neighbours of different kinds that only random text reaches."""


class Mask:
    """Masks one token, or nothing where there is none."""

    def __init__(self, token: str | None) -> None:
        self._anywhere: _Search | None = None
        self._in_failures: _Search | None = None
        if token is not None and looks_random(token):
            self._anywhere = self._in_failures = _Runs(token)
        elif token is not None and len(token) >= SHORTEST:
            self._in_failures = _Whole(token)

    def text(self, text: str) -> str:
        """A header, a phrase or the words of an error, masked; what is no token stays as it is.

        Raises:
            Unusable: If it is full of the token.
        """
        written = text.encode("utf-8", "surrogatepass")
        masked = b"".join(self.failure([written]))
        return text if masked == written else masked.decode("utf-8", "replace")

    def failure(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The body of an answer that says why it is none, masked.

        Raises:
            Unusable: If it is full of the token.
        """
        return self._in_failures.masked(pieces) if self._in_failures else iter(pieces)

    def document(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Any other body, masked, in pieces of another size.

        Raises:
            Unusable: If it is full of the token.
        """
        return self._anywhere.masked(pieces) if self._anywhere else iter(pieces)


@lru_cache(maxsize=4)
def mask_of(token: str | None) -> Mask:
    """The mask of a token; made once, as it searches by a thousand words."""
    return Mask(token)


def looks_random(token: str) -> bool:
    """Whether no document holds 16 characters of it by chance, as far as its looks tell."""
    if len(token) < RUN:
        return False
    if _HEXADECIMAL.fullmatch(token) and len(set(token)) > _FEWEST_DIFFERENT:
        return True
    kinds = [match.lastgroup for match in _KINDS.finditer(token)]
    mixed = {"small", "capital", "digit"} <= set(kinds) and len(kinds) > _CHANGES_OF_KIND * len(token)
    return mixed or _is_jwt(token)


def _is_jwt(token: str) -> bool:
    """Whether its first part names an algorithm, as that of a JSON Web Token does (RFC 7519)."""
    head, dot, _ = token.partition(".")
    try:
        told = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    return bool(dot) and isinstance(told, dict) and "alg" in told


class _Form(NamedTuple):
    """One way to write a token, and how many bytes of that in a row are a part of it by no chance."""

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
        # Base64 writes a text in one of three ways, by where in three bytes it begins: of each, those characters count
        # that nothing before or behind the text changes.
        first, last = -(-8 * before // 6), 8 * (before + len(plain)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            forms.setdefault(encode(bytes(before) + plain)[first:last], -(-8 * RUN // 6))
    return [_Form(text, least) for text, least in forms.items()]


class _Run(NamedTuple):
    """Where a part of a token stands: from `start` to before `end`."""

    start: int
    end: int


class _Search:
    """Masks what `runs` finds, in a body as it comes."""

    def __init__(self, forms: list[_Form]) -> None:
        self._forms = forms
        self._longest = max(len(form.text) for form in forms)

    def runs(self, block: bytes) -> list[_Run]:
        """Parts of a token, in any order; they may overlap."""
        raise NotImplementedError

    def masked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces with each part of a token replaced, also where it lies in two of them."""
        left, held, clean = MOST_RUNS, b"", True
        for block in _blocks(pieces):
            seam = held[-self._longest :] + block[: self._longest] if held else b""
            clean = not (self.runs(block) or self.runs(seam))
            if clean:  # neither copied nor looked at again, as is nearly every block
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
        """What is done with, masked, and what has to be looked at again with what follows."""
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
    """Finds a token only where all of it stands."""

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
    """Finds every part of a token that is long enough, by some eight bytes that it has to hold."""

    def __init__(self, token: str) -> None:
        super().__init__(_forms(token))
        self._places: dict[int, list[tuple[_Form, int]]] = defaultdict(list)
        for form in self._forms:
            # So many words in a row lie within the shortest run: one of them is enough.
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
        """Where words stand that the token has, at multiples of eight."""
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
        if known.true_count > _MOST_HITS:
            raise Unusable(FULL)
        return [_WORD * number for number in pc.indices_nonzero(known).to_pylist()] if known.true_count else []

    @cached_property
    def _known(self) -> pa.Array:
        import pyarrow as pa  # noqa: PLC0415 - as above

        return pa.array(self._places, pa.uint64())


def _number(text: bytes, at: int) -> int:
    """Eight bytes as this machine reads them."""
    return int.from_bytes(text[at : at + _WORD], sys.byteorder)


def _matching(block: bytes, at: int, text: bytes, offset: int) -> _Run:
    """How far a block and a text are equal around a word that they have in common."""
    start, end = at, at + _WORD
    shift = at - offset
    while start > max(0, shift) and block[start - 1] == text[start - 1 - shift]:
        start -= 1
    most = min(len(block), shift + len(text))
    while end < most and block[end] == text[end - shift]:
        end += 1
    return _Run(start, end)


def _joined(runs: list[_Run]) -> list[_Run]:
    """The same parts in order, those that overlap as one."""
    joined: list[_Run] = []
    for run in sorted(runs):
        if joined and run.start < joined[-1].end:
            joined[-1] = _Run(joined[-1].start, max(run.end, joined[-1].end))
        else:
            joined.append(run)
    return joined


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, small ones put together."""
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
