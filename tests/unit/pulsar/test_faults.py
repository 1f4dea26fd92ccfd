"""Faults between Steward and a broker come out as one of our errors; looking may be tried again, changing may not."""

from __future__ import annotations

import gzip
import inspect
import pickle
import traceback
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

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
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.body import BrokerAnswer
from pulsar_steward.pulsar.faults import in_our_words
from pulsar_steward.pulsar.transport import Transport
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import permitted
from tests.unit.pulsar.conftest import TOKEN, MakeBroker, MakeSettings, MakeTransport
from tests.unit.pulsar.scripted import Reply, ScriptedBroker, answer, dripping, raw, redirect, silence

if TYPE_CHECKING:
    from pulsar_steward.pulsar.calls import Call

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
    status: int, expected: type[StatusError], broker: ScriptedBroker, transport: MakeTransport
) -> None:
    """Each error status raises its class of error, which carries the status, the call and the broker's reason."""
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
    body: bytes, broker: ScriptedBroker, transport: MakeTransport
) -> None:
    broker.on(PATH, answer(body, status=404))
    assert fault(transport(broker.url)).reason == "Not Found"


def test_a_long_reason_is_cut(broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A reason that is longer than the limit is cut, and no part of the error holds more of it."""
    broker.on(PATH, answer({"reason": "x" * 10_000}, status=404))
    error = fault(transport(broker.url))
    assert len(error.reason) == REASON_LIMIT
    assert error.reason.endswith("…")
    assert "x" * (REASON_LIMIT + 1) not in said(error)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_becomes_our_error(kind: str, broker: ScriptedBroker, transport: MakeTransport) -> None:
    """Every fault on the wire raises one of Steward's own errors, which names the broker and not the token."""
    reply, expected = FAULTS[kind]
    broker.on(PATH, reply)
    slow = {"read_timeout_seconds": BRIEF_SECONDS, "total_timeout_seconds": BRIEF_SECONDS}
    error = fault(transport(broker.url, read_attempts=1, **(slow if expected is TimedOut else {})))
    assert type(error) is expected
    assert error.broker == broker.id
    assert TOKEN not in said(error)


def test_a_refused_connection_is_unreachable(refusing: str, transport: MakeTransport) -> None:
    """A refused connection raises `Unreachable`, which names the call and the broker."""
    error = fault(transport(f"http://{refusing}", read_attempts=1))
    assert isinstance(error, Unreachable)
    assert str(error) == f"GET {PATH} at {refusing}: no connection: refused"


def test_a_name_that_does_not_resolve_is_unreachable(transport: MakeTransport) -> None:
    """A host name that does not resolve raises `Unreachable`, which names the host and the port."""
    error = fault(transport("http://no-such-broker.invalid:8080", read_attempts=1))
    assert isinstance(error, Unreachable)
    assert error.broker == "no-such-broker.invalid:8080"
    assert str(error).endswith("no connection: the name does not resolve")


def test_https_towards_plain_http_says_that_tls_failed(broker: ScriptedBroker, transport: MakeTransport) -> None:
    error = fault(transport(f"https://{broker.id}", read_attempts=1))
    assert isinstance(error, TlsFailed)
    assert "TLS failed" in error.reason


def test_a_packed_answer_is_unpacked(broker: ScriptedBroker, transport: MakeTransport) -> None:
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


def test_errors_survive_pickling(broker: ScriptedBroker, transport: MakeTransport) -> None:
    """An error that crosses a process boundary keeps what it says."""
    broker.on(PATH, answer({"reason": "no"}, status=409))
    error = fault(transport(broker.url))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), vars(again)) == (Conflict, str(error), vars(error))


def test_settings_hide_the_token(settings: MakeSettings) -> None:
    """Settings do not show the token when they are printed or logged."""
    made = settings("http://broker:8080")
    assert TOKEN not in f"{made} {made!r} {vars(made)}"


TENANTS = "/admin/v2/tenants"
BUNDLE = "0x00000000_0x80000000"
CHANGES = [
    calls.unload("t/n", BUNDLE, "127.0.0.1:8080"),
    calls.split("t/n", BUNDLE, "range_equally_divide"),
    calls.look_up("persistent://t/n/topic"),
]
changes = pytest.mark.parametrize("change", CHANGES, ids=["unload", "split", "look up"])

PASSING: dict[str, tuple[Reply, type[AdminError]]] = {
    "429": (answer(status=429), AdminError),
    "500": (answer(status=500), ServerError),
    "503": (answer(status=503), ServerError),
    "hangs up": (raw(b""), Unreachable),
    "cut short": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1"), BrokenAnswer),
    "no answer": (silence(), TimedOut),
}


@pytest.mark.parametrize("kind", PASSING)
def test_looking_is_repeated_until_it_works(kind: str, broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A read that fails for a passing reason is tried again, and the second answer is returned."""
    broker.on(TENANTS, PASSING[kind][0], answer(["public"]))
    limit = BRIEF_SECONDS if kind == "no answer" else 30
    assert transport(broker.url, read_timeout_seconds=limit).get(TENANTS).decoded(list[str]) == ["public"]
    assert len(broker.asked) == 2


@pytest.mark.parametrize("attempts", [1, 3])
def test_looking_ends_after_the_tries_of_the_policy(
    attempts: int, broker: ScriptedBroker, transport: MakeTransport
) -> None:
    broker.on(TENANTS, answer({"reason": "busy"}, status=503))
    with pytest.raises(ServerError, match="busy"):
        transport(broker.url, read_attempts=attempts).get(TENANTS)
    assert len(broker.asked) == attempts


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412])
def test_a_clear_no_is_not_asked_again(status: int, broker: ScriptedBroker, transport: MakeTransport) -> None:
    """A call is sent once if the answer is a clear refusal, which a repetition cannot change."""
    broker.on(TENANTS, answer(status=status))
    with pytest.raises(AdminError):
        transport(broker.url).get(TENANTS)
    assert len(broker.asked) == 1


def test_the_next_try_asks_the_next_base(make_broker: MakeBroker, transport: MakeTransport) -> None:
    """The second try of a read goes to the next address of the settings if the first one does not answer."""
    hung, well = make_broker(), make_broker()
    hung.on(TENANTS, silence())
    well.on(TENANTS, answer(["public"]))
    assert (
        transport(hung.url, well.url, read_attempts=2, read_timeout_seconds=BRIEF_SECONDS).get(TENANTS).broker
        == well.id
    )
    assert (len(hung.asked), len(well.asked)) == (1, 1)


@changes
@pytest.mark.parametrize("kind", PASSING)
def test_a_change_is_sent_once(kind: str, change: Call, make_broker: MakeBroker, settings: MakeSettings) -> None:
    """A change that failed is sent once, and is repeated neither at the same broker nor at another."""
    reply, expected = PASSING[kind]
    first, second = make_broker(), make_broker()
    first.on(change.path, reply)
    limit = BRIEF_SECONDS if expected is TimedOut else 30
    given = settings(first.url, second.url, read_timeout_seconds=limit)
    with Writer(given) as writer, pytest.raises(expected):
        writer.send(change, permitted)
    assert [asked.method for asked in first.asked] == [change.method]
    assert second.asked == []


@changes
def test_a_change_that_was_never_sent_goes_to_another_base(
    change: Call, refusing: str, broker: ScriptedBroker, settings: MakeSettings
) -> None:
    """A change goes to the next address, once, if the connection to the first one was refused."""
    broker.on(change.path, answer(status=204))
    with Writer(settings(f"http://{refusing}", broker.url)) as writer:
        writer.send(change, permitted)
    assert len(broker.asked) == 1


@changes
def test_a_change_that_was_redirected_into_the_void_is_not_sent_again(
    change: Call, refusing: str, make_broker: MakeBroker, settings: MakeSettings
) -> None:
    first, second = make_broker(), make_broker()
    first.on("/admin/v2/brokers", answer([first.id, refusing]))
    first.on(change.path, redirect(f"http://{refusing}{change.path}?{urlencode(change.query)}"))
    with Writer(settings(first.url, second.url)) as writer, pytest.raises(Unreachable):
        writer.send(change, permitted)
    assert len(first.asked_for(change.path)) == 1
    assert second.asked == []


def test_where_every_base_refuses_the_last_refusal_is_raised(refusing: str, transport: MakeTransport) -> None:
    with pytest.raises(Unreachable) as caught:
        transport("http://127.0.0.1:1", f"http://{refusing}").send("PUT", TENANTS)
    assert caught.value.broker == refusing


@changes
def test_a_change_carries_what_it_says(change: Call, broker: ScriptedBroker, settings: MakeSettings) -> None:
    """The request that the writer sends for a change is the one that a dry run prints."""
    broker.on(change.path, answer(status=204))
    with Writer(settings(broker.url)) as writer:
        writer.send(change, permitted)
    (asked,) = broker.asked
    assert f"{asked.method} {asked.target}".replace("%3A8080", ":8080") == str(change)


@pytest.mark.parametrize(("status", "expected"), [(404, NotFound), (409, Conflict)])
def test_a_refused_change_says_why(
    status: int, expected: type[AdminError], broker: ScriptedBroker, settings: MakeSettings
) -> None:
    """The error about a refused change carries the broker's reason."""
    broker.on(CHANGES[0].path, answer({"reason": "Not allowed unload namespace bundle"}, status=status))
    with Writer(settings(broker.url)) as writer, pytest.raises(expected, match="Not allowed unload namespace bundle"):
        writer.send(CHANGES[0], permitted)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_transport_that_looks_sends_nothing_else(method: Any, broker: ScriptedBroker, settings: MakeSettings) -> None:
    """A transport for reading raises `PermissionError` for methods that write, and sends no request."""
    with Transport(settings(broker.url), frozenset({"GET"})) as looking, pytest.raises(PermissionError, match=method):
        looking.send(method, TENANTS)
    assert broker.asked == []
