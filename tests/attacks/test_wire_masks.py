"""A broker or proxy that repeats the token: nothing of it is kept, and nothing else is changed."""

from __future__ import annotations

import gzip
import json
import logging
import time
from base64 import b64encode, urlsafe_b64encode
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from lab.simulator import Answer, Fault
from pulsar_steward.errors import BrokenAnswer, StatusError
from pulsar_steward.pulsar import mask
from pulsar_steward.pulsar.mask import BLOCK_BYTES, FULL, MASK, Mask, looks_random
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.transport import Transport
from tests.apply.worksite import a_worksite, said
from tests.attacks.wire_parts import TOKEN, said_of_a_failure, settings
from tests.unit.pulsar.scripted import ScriptedBroker, answer, raw, redirect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.model.notice import Event
    from tests.unit.pulsar.scripted import Reply

PATH = "/admin/v2/tenants"
HEAD, CLAIMS, SIGNATURE = TOKEN.split(".")
OPAQUE = "Zm9v+Yjk/3wL0qQ8xT=vN2d&7uKp'R4s<1aB6eG9h"
HEXADECIMAL = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def leaked(text: str) -> list[str]:
    """Parts of 16 characters of the token that a text holds."""
    return [part for at in range(len(TOKEN) - 15) if (part := TOKEN[at : at + 16]) in text]


def everything_said(url: str, caplog: pytest.LogCaptureFixture, token: str = TOKEN) -> str:
    """All that could be kept of a call that fails with a token."""
    return said_of_a_failure(settings(url, token=token, read_attempts=2), caplog)


ECHOES: dict[str, Reply] = {
    "the reason": answer({"reason": f"Invalid token: Bearer {TOKEN}"}, 401),
    "the reason, cut short": answer({"reason": f"Invalid token: Bearer {TOKEN[:40]}..."}, 401),
    "the reason, its beginning lost": answer({"reason": f"...{TOKEN[-40:]} is expired"}, 403),
    "the reason, only the signature": answer({"reason": f"bad signature {SIGNATURE}"}, 401),
    "the reason, only the claims": answer({"reason": f"claims {CLAIMS}"}, 401),
    "the reason, only the head": answer({"reason": f"algorithm of {HEAD}"}, 401),
    "the reason, in the middle": answer({"reason": f"at ..{TOKEN[50:66]}.."}, 500),
    "a reason that is longer than what is kept": answer({"reason": "x" * 230 + TOKEN}, 500),
    "a reason of escapes": answer(b'{"reason": "' + "".join(f"\\u{ord(c):04x}" for c in TOKEN).encode() + b'"}', 500),
    "the phrase": raw(f"HTTP/1.1 401 Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n".encode()),
    "the line of the status": raw(f"{TOKEN}\r\n\r\n".encode()),
    "a status that is none": raw(f"HTTP/1.1 {TOKEN} OK\r\n\r\n".encode()),
    "a line that is no header": raw(f"HTTP/1.1 200 OK\r\nBearer {TOKEN}\r\n\r\n[]".encode()),
    "the length": raw(f"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: {TOKEN}\r\n\r\n[]".encode()),
    "the length of a chunk": raw(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{TOKEN}\r\n".encode()),
    "the way it is packed": answer(b"[]", headers={"Content-Encoding": TOKEN}),
    "where it redirects to": redirect(f"http://127.0.0.1:1/admin/v2/tenants?token={TOKEN}"),
    "the host that it redirects to": redirect(f"http://{TOKEN}/admin/v2/tenants"),
    "the user of what it redirects to": redirect(f"http://{TOKEN}@127.0.0.1:1/admin/v2/tenants"),
    "the scheme that it redirects to": redirect(f"x{HEAD}x{CLAIMS}://127.0.0.1:1/"),
    "a document of another shape": answer({"token": TOKEN}),
    "a key of a document of another shape": answer({TOKEN: 1}),
}


@pytest.mark.parametrize("where", ECHOES)
def test_no_failure_says_the_token(where: str, broker: ScriptedBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Errors, their causes and the log hold no part of a token that an answer repeats."""
    broker.on(PATH, ECHOES[where])
    assert leaked(everything_said(broker.url, caplog)) == []


@pytest.mark.parametrize("reason", ["token {} is invalid", "Bearer {}", "{}", "x{}x"])
@pytest.mark.parametrize("token", ["hunter2-hunter2", "eightchr", "a-made-up-token-of-words", OPAQUE, HEXADECIMAL])
def test_a_token_that_is_no_json_web_token_is_masked_in_failures(
    token: str, reason: str, broker: ScriptedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A short or word-like token is masked in the error and the log when a broker repeats it."""
    broker.on(PATH, answer({"reason": reason.format(token)}, 401))
    told = everything_said(broker.url, caplog, token)
    assert token not in told
    assert json.dumps(token)[1:-1] not in told
    assert "***" in told


def read(broker: ScriptedBroker, token: str = TOKEN) -> bytes:
    """The body of an answer as everybody gets it."""
    with Transport(settings(broker.url, token=token), frozenset({"GET"})) as transport:
        return bytes(transport.get(PATH).body)


@pytest.mark.parametrize("packed", [False, True])
def test_a_document_that_repeats_the_token_is_kept_without_it(packed: bool, broker: ScriptedBroker) -> None:
    """A document that repeats the token is read with the mask in the token's place, compressed or not."""
    document = {f"persistent://t/n/{TOKEN}": {"owner": f"Bearer {TOKEN}", "half": SIGNATURE[:20], "other": "x" * 40}}
    body = json.dumps(document).encode()
    headers = {"Content-Encoding": "gzip"} if packed else {}
    broker.on(PATH, answer(gzip.compress(body) if packed else body, headers=headers))
    assert json.loads(read(broker)) == {
        "persistent://t/n/***": {"owner": "Bearer ***", "half": "***", "other": "x" * 40}
    }


def test_the_clock_that_a_broker_shows_is_masked(broker: ScriptedBroker) -> None:
    """A `Date` header that holds the token is masked."""
    broker.on(PATH, raw(f"HTTP/1.1 200 OK\r\nDate: {TOKEN}\r\nContent-Length: 2\r\n\r\n[]".encode()))
    with Transport(settings(broker.url), frozenset({"GET"})) as transport:
        assert transport.get(PATH).date == "***"


def test_what_is_read_in_pieces_is_masked(broker: ScriptedBroker) -> None:
    """The token is masked in a Prometheus text that is read in pieces, also where it spans two of them."""
    line = f'pulsar_subscription_delayed{{topic="{TOKEN}"}} 1\n'.encode()
    text = b"".join(b"# " + b"x" * (61 * number % 997) + b"\n" + line for number in range(900))
    broker.on("/metrics/", answer(text))
    with Transport(settings(broker.url), frozenset({"GET"})) as transport:
        taken = b"".join(transport.pieces("/metrics/"))
    assert taken == text.replace(TOKEN.encode(), MASK)


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda token: quote(token, safe=""),
    "percent-encoded, small": lambda token: quote(token, safe="").replace("%2B", "%2b").replace("%2F", "%2f"),
    "percent-encoded, each character": lambda token: "".join(f"%{ord(each):02X}" for each in token),
    "as JSON": lambda token: json.dumps(token)[1:-1],
    "as JSON with escaped slashes": lambda token: json.dumps(token)[1:-1].replace("/", "\\/"),
    "as JSON of escapes": lambda token: "".join(f"\\u{ord(each):04x}" for each in token),
    "base64": lambda token: b64encode(token.encode()).decode(),
    "base64 behind one byte": lambda token: b64encode(b":" + token.encode()).decode(),
    "base64 behind a word": lambda token: b64encode(b"Bearer " + token.encode() + b"\n").decode(),
    "base64 behind a user": lambda token: b64encode(b"me:" + token.encode()).decode(),
    "base64 for URLs": lambda token: urlsafe_b64encode(token.encode()).decode(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("token", [TOKEN, OPAQUE, HEXADECIMAL], ids=["JWT", "opaque", "hexadecimal"])
def test_the_token_is_known_again_however_it_is_written(way: str, token: str) -> None:
    """Less than 16 characters are left of a token that is percent-encoded, escaped or in base64."""
    written = WAYS[way](token)
    for shown in (written, written[len(written) // 2 :], written[: len(written) * 2 // 3]):
        masked = b"".join(Mask(token).document([f'{{"a": "{shown}", "b": 1}}'.encode()]))
        assert MASK in masked
        assert max(len(each) for each in masked.split(b'"a": "')[1].rpartition(b'", "b"')[0].split(MASK)) < 16, masked


def masked_by_hand(body: bytes) -> bytes:
    """The body with the mask for each part of 16 or more characters of the token, and for those that overlap."""
    token, runs = TOKEN.encode(), list[tuple[int, int]]()
    for start in range(len(body) - 15):
        if body[start : start + 16] in token:
            begins = runs.pop()[0] if runs and start < runs[-1][1] else start
            runs.append((begins, start + 16))
    kept = [body[end:start] for (_, end), (start, _) in pairwise([(0, 0), *runs, (len(body), 0)])]
    return MASK.join(kept)


texts = st.one_of(st.binary(max_size=60), st.integers(0, 900).map(lambda count: b"x" * count))
fragments = st.tuples(st.integers(0, len(TOKEN)), st.integers(0, len(TOKEN))).map(
    lambda ends: TOKEN[min(ends) : max(ends)].encode()
)


@given(st.lists(st.one_of(texts, fragments), max_size=12), st.lists(st.integers(0, 4000), max_size=8))
def test_where_a_body_is_divided_changes_nothing(parts: list[bytes], cuts: list[int]) -> None:
    """However a body is divided, the mask stands for each part of 16 characters of the token, and all else is kept."""
    body = b"".join(parts)
    ends = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(ends)]
    expected = masked_by_hand(body)
    assert b"".join(Mask(TOKEN).document([body])) == expected
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mask, "BLOCK_BYTES", 1024)  # as so small a body would be one block however it is divided
        assert b"".join(Mask(TOKEN).document(pieces)) == expected


@pytest.mark.parametrize("before", range(0, 40, 3))
def test_a_token_in_two_large_pieces_is_masked(before: int) -> None:
    """A token is masked where it lies across two large pieces of a body."""
    half = len(TOKEN) * (before % 5) // 4
    first, second = (b" " * (BLOCK_BYTES + before)) + TOKEN[:half].encode(), TOKEN[half:].encode() + b" " * BLOCK_BYTES
    third = b" " * BLOCK_BYTES + TOKEN[-16:].encode()
    masked = b"".join(Mask(TOKEN).document([first, second, third]))
    assert masked == b" " * (BLOCK_BYTES + before) + MASK + b" " * (2 * BLOCK_BYTES) + MASK


ORDINARY = json.dumps(
    {
        "public/default": {
            "0x00000000_0xffffffff": {
                "persistent": {
                    "persistent://public/default/a-topic-of-orders-partition-0": {
                        "averageMsgSize": 0.0,
                        "publishers": [{"connectedSince": "2026-01-31T23:59:59.123456789Z", "address": "/10.1.2.3:1"}],
                        "storageSize": 1234567890123456,
                    }
                }
            }
        },
        "hash": "d41d8cd98f00b204e9800998ecf8427e",
        "other": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb21lYm9keSJ9.",
    }
).encode()


@pytest.mark.parametrize(
    "token",
    [
        "t",
        "0",
        "persistent",
        "public/default",
        "0x00000000_0xffffffff",
        "persistent://public/default/a-topic-of-orders-partition-0",
        "2026-01-31T23:59:59.123456789Z",
        "averageMsgSize",
        "connectedSince.connectedSince.connectedSince",
        "org.apache.pulsar.broker.loadbalance",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "00000000000000000000000000000000",
        '{"persistent":',
        TOKEN,
        OPAQUE,
        HEXADECIMAL,
    ],
)
def test_an_ordinary_document_stays_as_it_is_whatever_the_token(token: str) -> None:
    """An ordinary document stays unchanged, also when the token is short, a word or a name of the cluster."""
    assert b"".join(Mask(token).document([ORDINARY])) == ORDINARY


@given(st.binary(max_size=300))
def test_what_holds_no_token_stays_byte_by_byte(body: bytes) -> None:
    """The mask leaves a body without the token unchanged byte by byte."""
    assert b"".join(Mask(TOKEN).document([body])) == body


def test_no_token_is_no_mask() -> None:
    """The mask leaves bodies and failures unchanged if no token is sent."""
    body = [b"a", b"b"]
    assert list(Mask(None).document(body)) == list(Mask(None).failure(body)) == body


@pytest.mark.parametrize(
    ("token", "random"),
    [
        (TOKEN, True),
        (f"{HEAD}.made-up-and-secret", True),
        (OPAQUE, True),
        (HEXADECIMAL, True),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", True),
        ("PlaiGzJ-j_3878ziaD0zGcMWCwsFeFjAvvRQBGBgMD4hTzEH08nXWB3d8zR-6T6CzZzeR5kjy0k9L8EM", True),
        ("a-made-up-token-of-words-without-any-meaning", False),
        ("managedLedgerMaxUnackedRangesToPersistInZooKeeper2", False),
    ],
)
def test_which_tokens_are_known_by_their_parts(token: str, random: bool) -> None:
    """`looks_random` is true for tokens of random characters and false for tokens made of words."""
    assert looks_random(token) is random


@pytest.mark.parametrize(
    "body", [TOKEN.encode() * 20_000, (TOKEN[:12] + "   ").encode() * 200_000, TOKEN[:20].encode() * 100_000]
)
def test_a_body_full_of_the_token_is_no_answer(body: bytes, broker: ScriptedBroker) -> None:
    """An answer that repeats the token or parts of it very often is refused as broken."""
    broker.on(PATH, answer(body))
    with (
        Reader(settings(broker.url, read_attempts=1)) as reader,
        pytest.raises(BrokenAnswer, match=f"{FULL}|cannot be read"),
    ):
        reader.tenants()


def test_looking_for_a_token_takes_less_time_than_anything_else(broker: ScriptedBroker) -> None:
    """Looking for a token in a large document takes less than a quarter of the time of decoding it."""
    topics = {f"persistent://t/n/topic-{number}": {"msgRateIn": 0.5, "publishers": []} for number in range(40_000)}
    body = json.dumps(topics).encode()
    pieces = [body[at : at + (1 << 18)] for at in range(0, len(body), 1 << 18)]
    mask = Mask(TOKEN)
    list(mask.document(pieces))

    def seconds(work: Callable[[], Any]) -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began

    looking = min(seconds(lambda: list(mask.document(pieces))) for _ in range(5))
    assert looking < min(seconds(lambda: json.loads(body)) for _ in range(3)) / 4


def test_a_batch_that_meets_echoes_keeps_no_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The ledger, the log and the events of a batch hold no part of a token that the brokers repeat."""
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    with a_worksite(tmp_path, token=SecretStr(TOKEN)) as site:
        for number, reason in enumerate((f"Bearer {TOKEN}", f"{'x' * 200}{SIGNATURE}")):
            plan = site.approved(site.move(number))
            site.simulator.faults.add(Fault(Answer(403, reason), path=f"{site.tc_bundles[number]}/unload"))
            assert said(site.carry_out(plan, listener=events.append)) == ["failed"]
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir()).decode(errors="replace")
    assert "***" in kept
    assert events
    for place in (kept, caplog.text, repr(events)):
        assert leaked(place) == []


def test_the_words_of_a_failure_are_told_apart_from_its_mask(broker: ScriptedBroker) -> None:
    """The reason of a failure keeps its words around the masked token."""
    broker.on(PATH, answer({"reason": f"Token {TOKEN} expired at noon"}, 401))
    with Reader(settings(broker.url)) as reader, pytest.raises(StatusError) as caught:
        reader.tenants()
    assert caught.value.reason == "Token *** expired at noon"
