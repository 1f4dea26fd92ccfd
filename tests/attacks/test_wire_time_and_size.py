"""A broker that never ends its answer, or answers too much: a call is over in its time, and holds its measure."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import AdminError, BrokenAnswer, TimedOut, Unreachable
from pulsar_steward.pulsar.metrics import Exposition
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.transport import Transport
from tests.attacks.wire_parts import certificate, over_tls, settings
from tests.unit.pulsar.scripted import MEMBERS, Handler, ScriptedBroker, answer, dripping, redirect, silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.pulsar.scripted import Reply

pytestmark = pytest.mark.timeout(60)  # what is attacked here would wait without an end

PATH = "/admin/v2/tenants"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BRIEF: dict[str, Any] = {"total_timeout_seconds": 0.5, "read_attempts": 1}
PATIENCE_SECONDS = 10
"""Twenty times what a call is given: the machine may be busy."""


@contextmanager
def in_time() -> Iterator[None]:
    """A block that is over before anybody's patience is."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE_SECONDS


def failure(*urls: str, ca_file: Path | None = None, **limits: Any) -> AdminError:
    """Error of one call."""
    with Reader(settings(*urls, ca_file=ca_file, **limits)) as reader, pytest.raises(AdminError) as caught:
        reader.tenants()
    return caught.value


DRIPS = {
    "the status line": dripping(b"HTTP/1.1 200 ", b"O"),
    "a header": dripping(OK + b"X-Long: ", b"x"),
    "one header after the other": dripping(OK, b"X-Next: x\r\n", every_seconds=0.1),
    "one 100 Continue after the other": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the size of a chunk": dripping(CHUNKED, b"0"),
    "what follows the size of a chunk": dripping(CHUNKED + b"1;", b"x"),
    "a trailer": dripping(CHUNKED + b"0\r\nX-Long: ", b"x"),
    "one trailer after the other": dripping(CHUNKED + b"0\r\n", b"X-Next: x\r\n"),
    "chunks of nothing but compression": dripping(
        OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", b"14\r\n" + gzip.compress(b"") + b"\r\n"
    ),
}


@pytest.mark.parametrize("what", DRIPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_call_is_over_in_its_time_whatever_drips(
    what: str, scheme: str, broker: ScriptedBroker, tmp_path: Path
) -> None:
    """A call ends with `TimedOut` although the broker keeps sending small pieces without an end."""
    files = certificate(tmp_path) if scheme == "https" else None
    url = over_tls(broker, files) if files else broker.url
    broker.on(PATH, DRIPS[what])
    with in_time():
        error = failure(url, ca_file=files[0] if files else None, **BRIEF)
    assert isinstance(error, TimedOut)


@contextmanager
def taking_connections(then: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """A server that does something with the first connection in place of speaking; ``host:port``."""
    over = threading.Event()

    def serve() -> None:
        with server.accept()[0] as connection:
            try:
                then(connection, over)
            except OSError:  # the client went away
                over.wait()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def test_a_handshake_is_over_in_its_time() -> None:
    """A call ends in time although the server sends its TLS handshake byte by byte."""

    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"\x16\x03\x03\x40\x00")  # a handshake record of 16 KiB, of which a byte comes at a time
        while not over.wait(0.05):
            connection.sendall(b"\x02")

    with taking_connections(drip) as place, in_time():
        error = failure(f"https://{place}", connect_timeout_seconds=5, **BRIEF)
    assert isinstance(error, TimedOut | Unreachable)


def test_connecting_is_over_in_its_time_however_many_addresses_a_name_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting ends in time although the host's name has a hundred addresses that do not answer."""
    with ExitStack() as opened, socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        for _ in range(4):  # connections that nobody takes: from then on the kernel answers to no other
            waiting = opened.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())] * 100
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: found)
        with in_time():
            error = failure("http://localhost:1", connect_timeout_seconds=0.3, **BRIEF)
    assert "no connection" in str(error)


def test_redirects_share_the_time_of_one_call(broker: ScriptedBroker) -> None:
    """All redirects of one call share its total time limit."""

    def late(reply: Reply) -> Reply:
        def after_a_while(handler: Handler) -> None:
            handler.broker.stopping.wait(0.4)
            reply(handler)

        return after_a_while

    sent = [late(redirect(f"{PATH}?authoritative={value}")) for value in ("true", "false")]
    broker.on(PATH, *sent, late(answer([])))
    assert isinstance(failure(broker.url, total_timeout_seconds=0.7, read_attempts=1), TimedOut)


def test_each_call_has_its_own_time(broker: ScriptedBroker) -> None:
    """Each call on a shared connection has the full time limit for itself."""

    def after_a_while(handler: Handler) -> None:
        handler.broker.stopping.wait(0.8)
        answer(["public"])(handler)

    broker.on(PATH, after_a_while)
    with Reader(settings(broker.url, total_timeout_seconds=1.2, read_attempts=1)) as reader:
        assert [reader.tenants() for _ in range(3)] == [("public",)] * 3
    assert len(broker.connections) == 1


def flooding(head: bytes, piece: bytes) -> Reply:
    """A head, and then as much as the client takes."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(head)
        while not handler.broker.stopping.is_set():
            handler.wfile.write(piece)

    return reply


FLOODS = {
    "a body": flooding(OK + b"\r\n", b" " * 65536),
    "chunks": flooding(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "interim answers": flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    "trailers": flooding(CHUNKED + b"0\r\n", b"X-Next: x\r\n" * 5000),
    "an unpacked body": answer(gzip.compress(b" " * (3 << 20)), headers={"Content-Encoding": "gzip"}),
    "an explanation": answer(b" " * (3 << 20), status=500),
}


@pytest.mark.parametrize("what", FLOODS)
def test_an_answer_without_measure_is_none(what: str, broker: ScriptedBroker) -> None:
    """An answer beyond `most_answer_megabytes` in any part, or once unpacked, is refused with this limit named."""
    broker.on(PATH, FLOODS[what])
    with in_time():
        error = failure(broker.url, most_answer_megabytes=1, read_attempts=1)
    assert isinstance(error, BrokenAnswer)
    assert "admin.most_answer_megabytes" in str(error)


def test_pieces_hold_the_same_measure(broker: ScriptedBroker) -> None:
    """An answer that is read in pieces is refused as well when it exceeds the limit of size."""
    broker.on("/metrics/", flooding(OK + b"\r\n", b"# nothing\n" * 5000))
    taken: list[bytes] = []
    with (
        Transport(settings(broker.url, most_answer_megabytes=2), frozenset({"GET"})) as transport,
        pytest.raises(BrokenAnswer, match=r"admin\.most_answer_megabytes"),
    ):
        taken.extend(transport.pieces("/metrics/"))
    assert sum(len(piece) for piece in taken) <= 2 << 20


def test_an_answer_within_measure_is_read(broker: ScriptedBroker) -> None:
    """An answer just below the size limit is read completely, compressed or not."""
    names = ["x" * 1000] * 900
    body = str(names).replace("'", '"').encode()
    broker.on(PATH, answer(body), answer(gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    with Reader(settings(broker.url, most_answer_megabytes=1)) as reader:
        assert [reader.tenants(), reader.tenants()] == [tuple(names)] * 2


def twice(body: bytes) -> bytes:
    """Packed and packed again: three gigabytes become five kilobytes."""
    return gzip.compress(gzip.compress(body))


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Encoding: gzip, gzip\r\n",
        b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
        b"Content-Encoding: x-gzip,GZIP\r\n",
        b"Content-Encoding: deflate, gzip\r\n",
        b"Content-Encoding: gzip, identity, gzip\r\n",
        b"Content-Encoding: br\r\n",
    ],
)
@pytest.mark.parametrize("status", [b"200 OK", b"307 Temporary Redirect", b"500 Internal Server Error"])
def test_what_is_packed_more_than_once_is_not_unpacked(headers: bytes, status: bytes, broker: ScriptedBroker) -> None:
    """An answer that is compressed more than once, or in an unsupported way, is refused."""
    body = twice(b'["public"]')
    head = b"HTTP/1.1 " + status + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body)
    broker.on(PATH, flooding_once(head + body))
    error = failure(broker.url, read_attempts=1)
    assert isinstance(error, BrokenAnswer)
    assert "packed" in str(error)


def flooding_once(sent: bytes) -> Reply:
    """Exactly these bytes, after which the connection is closed."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(sent)

    return reply


def test_a_bomb_needs_no_memory(broker: ScriptedBroker) -> None:
    """An answer that unpacks to more than the size limit is refused before it takes much memory."""
    broker.on(PATH, answer(gzip.compress(b" " * (128 << 20), compresslevel=1), headers={"Content-Encoding": "gzip"}))
    tracemalloc.start()
    try:
        error = failure(broker.url, most_answer_megabytes=8, read_attempts=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error, BrokenAnswer)
    assert peak < 40 << 20


def test_a_line_without_end_costs_no_more_than_its_bytes() -> None:
    """A Prometheus text without line ends is read without being gathered in memory."""
    pieces = [b"x" * (1 << 18)] * 64 + [b"\nwanted 1\n"]
    tracemalloc.start()
    try:
        samples = list(Exposition(iter(pieces), 1 << 30).samples({"wanted": None}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [sample.value for sample in samples] == [1.0]
    assert peak < 4 << 20


def test_a_head_that_is_none_is_not_read_on(broker: ScriptedBroker, caplog: pytest.LogCaptureFixture) -> None:
    """An answer with a line that is no header is refused, and the line is not written to the log."""
    broker.on(PATH, flooding_once(OK + b"X-One: 1\r\nthis is no header\r\n\r\n[]"))
    assert isinstance(failure(broker.url, read_attempts=1), BrokenAnswer)
    assert "this is no header" not in caplog.text


def test_an_interim_answer_is_not_taken_for_the_last_one(broker: ScriptedBroker) -> None:
    """An interim answer is refused, and the next call does not get the answer that follows it."""
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"

    def reply(handler: Handler) -> None:
        handler.wfile.write(interim)
        handler.broker.stopping.wait(0.2)
        answer(["of the first question"])(handler)

    broker.on(PATH, reply)
    broker.on("/admin/v2/namespaces/shop", answer(["of the second question"]))
    with Reader(settings(broker.url, read_attempts=1)) as reader:
        with pytest.raises(BrokenAnswer, match="103 is no last answer"):
            reader.tenants()
        assert reader.namespaces("shop") == ("of the second question",)


def test_an_answer_asks_nobody_to_repeat_anything(broker: ScriptedBroker) -> None:
    """The cookie of an answer is not sent with the next call."""
    sent: list[str | None] = []

    def cookie(handler: Handler) -> None:
        sent.append(handler.headers.get("Cookie"))
        answer([], headers={"Set-Cookie": "who=me; Path=/"})(handler)

    broker.on(PATH, cookie)
    with Reader(settings(broker.url)) as reader:
        reader.tenants()
        reader.tenants()
    assert sent == [None, None]


def test_a_list_of_brokers_that_drips_holds_no_redirect_up(broker: ScriptedBroker) -> None:
    """A redirected call times out if the list of brokers, which is needed to check the redirect, arrives too slowly."""
    broker.on(MEMBERS, dripping(CHUNKED, b"0"))
    broker.on(PATH, redirect(f"http://127.0.0.2:1{PATH}"))
    with in_time():
        assert isinstance(failure(broker.url, **BRIEF), TimedOut)


def test_silence_within_the_head_ends_with_the_time_of_a_wait(broker: ScriptedBroker) -> None:
    """A call ends by the time limit of one wait when the broker falls silent within the head."""
    broker.on(PATH, silence(OK + b"X-One: 1\r\n"))
    with in_time():
        error = failure(broker.url, read_timeout_seconds=0.3, read_attempts=1)
    assert isinstance(error, TimedOut)
