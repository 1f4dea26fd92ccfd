"""Faults between Steward and a broker come out as one of our errors, and say nothing they should not."""

from __future__ import annotations

import gzip
import inspect
import pickle
import traceback
from typing import TYPE_CHECKING

import pytest
import requests
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.errors import (
    REASON_LIMIT,
    AdminError,
    BrokenAnswer,
    Conflict,
    NeverSent,
    NotAcceptable,
    NotAllowed,
    NotFound,
    Precondition,
    ServerError,
    StatusError,
    TimedOut,
    TlsFailed,
    TooManyRequests,
    Unreachable,
)
from pulsar_steward.pulsar.body import BrokerAnswer
from pulsar_steward.pulsar.faults import in_our_words
from tests.unit.pulsar.conftest import TOKEN
from tests.unit.pulsar.scripted import answer, dripping, raw, silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.pulsar.transport import Transport
    from tests.unit.pulsar.scripted import Reply, ScriptedBroker

PATH = "/admin/v2/tenants"
OK = b"HTTP/1.1 200 OK\r\n"
BRIEF_SECONDS = 0.3
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ZIPPED = OK + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n"

STATUSES: list[tuple[int, type[StatusError]]] = [
    (400, StatusError),
    (401, NotAllowed),
    (403, NotAllowed),
    (404, NotFound),
    (405, StatusError),
    (406, NotAcceptable),
    (409, Conflict),
    (412, Precondition),
    (418, StatusError),
    (429, TooManyRequests),
    (500, ServerError),
    (503, ServerError),
    (504, ServerError),
]

FAULTS: dict[str, tuple[Reply, type[AdminError]]] = {
    "hangs up": (raw(b""), Unreachable),
    "speaks no HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Unreachable),
    "hangs up within the head": (raw(b"HTTP/1.1 200 OK\r\nContent-Le"), BrokenAnswer),
    "never answers": (silence(), TimedOut),
    "stops within the body": (silence(OK + b"Content-Length: 9\r\n\r\n[1"), TimedOut),
    "stops within a chunk": (silence(CHUNKED + b"9\r\n[1"), TimedOut),
    "drips": (dripping(OK + b"Content-Length: 99999\r\n\r\n", b" "), TimedOut),
    "drips chunks": (dripping(CHUNKED, b"1\r\n \r\n"), TimedOut),
    "drips within a chunk": (dripping(CHUNKED + b"ffff\r\n", b" "), TimedOut),
    "cut short": (raw(OK + b"Content-Length: 9\r\n\r\n[1"), BrokenAnswer),
    "cut short between chunks": (raw(CHUNKED + b"2\r\n[1\r\n"), BrokenAnswer),
    "cut short within a chunk": (raw(CHUNKED + b"9\r\n[1"), BrokenAnswer),
    "chunks of no size": (raw(CHUNKED + b"zz\r\n[1\r\n"), BrokenAnswer),
    "not what it is packed as": (raw(ZIPPED + b"this is not gzip"), BrokenAnswer),
    "packed and cut short": (raw(ZIPPED + gzip.compress(b'["a", "b"]')[:-12]), BrokenAnswer),
    "not JSON": (answer(b"<html>busy</html>"), BrokenAnswer),
    "not UTF-8": (answer(b'["\xff\xfe"]'), BrokenAnswer),
    "JSON of another shape": (answer({"tenants": []}), BrokenAnswer),
    "JSON of other parts": (answer([1, 2]), BrokenAnswer),
    "JSON without end": (answer(b"[" * 200_000), BrokenAnswer),
    "no body": (answer(), BrokenAnswer),
}


def fault(transport: Transport) -> AdminError:
    """Error of reading a list of names over this transport."""
    with pytest.raises(AdminError) as caught:
        transport.get(PATH).decoded(list[str])
    return caught.value


def said(error: BaseException) -> str:
    """All that a log could hold of an error: its words, its parts, its causes and their traces."""
    return "".join([str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)])


@pytest.mark.parametrize(("status", "expected"), STATUSES)
def test_a_status_becomes_its_error(
    status: int, expected: type[StatusError], broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    broker.on(PATH, answer({"reason": "Topic  is\n fenced"}, status=status))
    error = fault(transport(broker.url, read_attempts=1))
    assert type(error) is expected
    assert isinstance(error, StatusError)
    assert (error.status, error.method, error.path, error.broker) == (status, "GET", PATH, broker.id)
    assert error.reason == "Topic is fenced"
    assert str(error).partition(";")[0] == f"GET {PATH} at {broker.id}: {status} Topic is fenced"


@pytest.mark.parametrize(
    "body", [b"", b"<html>Not Found</html>", b'"a string"', b"[]", b"{}", b'{"reason": null}', b"\xff", b"[" * 200_000]
)
def test_without_a_reason_the_phrase_of_http_is_said(
    body: bytes, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    broker.on(PATH, answer(body, status=404))
    assert fault(transport(broker.url)).reason == "Not Found"


def test_a_long_reason_is_cut(broker: ScriptedBroker, transport: Callable[..., Transport]) -> None:
    """A reason that is longer than the limit is cut, and no part of the error holds more of it."""
    broker.on(PATH, answer({"reason": "x" * 10_000}, status=404))
    error = fault(transport(broker.url))
    assert len(error.reason) == REASON_LIMIT
    assert error.reason.endswith("…")
    assert "x" * (REASON_LIMIT + 1) not in said(error)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_becomes_our_error(kind: str, broker: ScriptedBroker, transport: Callable[..., Transport]) -> None:
    """Every fault on the wire raises one of Steward's own errors, which names the broker and not the token."""
    reply, expected = FAULTS[kind]
    broker.on(PATH, reply)
    slow = {"read_timeout_seconds": BRIEF_SECONDS, "total_timeout_seconds": BRIEF_SECONDS}
    error = fault(transport(broker.url, read_attempts=1, **(slow if expected is TimedOut else {})))
    assert type(error) is expected
    assert error.broker == broker.id
    assert TOKEN not in said(error)


def test_a_refused_connection_is_unreachable(refusing: str, transport: Callable[..., Transport]) -> None:
    error = fault(transport(f"http://{refusing}", read_attempts=1))
    assert isinstance(error, Unreachable)
    assert str(error) == f"GET {PATH} at {refusing}: no connection: refused"


def test_a_name_that_does_not_resolve_is_unreachable(transport: Callable[..., Transport]) -> None:
    error = fault(transport("http://no-such-broker.invalid:8080", read_attempts=1))
    assert isinstance(error, Unreachable)
    assert error.broker == "no-such-broker.invalid:8080"
    assert str(error).endswith("no connection: the name does not resolve")


def test_https_towards_plain_http_says_that_tls_failed(
    broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    error = fault(transport(f"https://{broker.id}", read_attempts=1))
    assert isinstance(error, TlsFailed)
    assert "TLS failed" in error.reason


def test_a_packed_answer_is_unpacked(broker: ScriptedBroker, transport: Callable[..., Transport]) -> None:
    """A compressed answer is decompressed, also if it is large and comes in many pieces."""
    names = [f"tenant-{number}" for number in range(200_000)]
    body = gzip.compress(str(names).replace("'", '"').encode(), compresslevel=1)
    broker.on(PATH, answer(body, headers={"Content-Encoding": "gzip"}))
    assert transport(broker.url).get(PATH).decoded(list[str]) == names


@pytest.mark.parametrize("decoded_as", [list[str], dict[str, int]])
def test_a_shape_is_checked_where_it_is_decoded(decoded_as: type) -> None:
    """An answer of another shape raises `BrokenAnswer`, which names the call and the broker."""
    with pytest.raises(BrokenAnswer, match="GET /p at b:1: the answer"):
        BrokerAnswer("GET", "/p", "b:1", b'{"a": "b"}').decoded(decoded_as)


def library_errors() -> list[type[Exception]]:
    """Every error class that the two HTTP libraries have."""
    modules = (requests.exceptions, urllib3_errors)
    found = {each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)}
    bases = (requests.RequestException, urllib3_errors.HTTPError)
    return sorted((each for each in found if issubclass(each, bases)), key=repr)


@pytest.mark.parametrize("theirs", library_errors(), ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_every_error_of_the_libraries_has_our_words(theirs: type[Exception]) -> None:
    error = theirs.__new__(theirs)
    ours = in_our_words(error, "GET", PATH, "b:1")
    assert isinstance(ours, Unreachable | TimedOut | BrokenAnswer)
    assert isinstance(ours, NeverSent) == issubclass(theirs, requests.ConnectTimeout)


def test_errors_survive_pickling(broker: ScriptedBroker, transport: Callable[..., Transport]) -> None:
    """An error that crosses a process boundary keeps what it says."""
    broker.on(PATH, answer({"reason": "no"}, status=409))
    error = fault(transport(broker.url))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), vars(again)) == (Conflict, str(error), vars(error))


def test_settings_hide_the_token(settings: Callable[..., AdminSettings]) -> None:
    made = settings("http://broker:8080")
    assert TOKEN not in f"{made} {made!r} {vars(made)}"
