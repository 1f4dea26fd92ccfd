"""Repeats: looking may be tried again, and changing may not."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from pulsar_steward.errors import AdminError, BrokenAnswer, Conflict, NotFound, ServerError, TimedOut, Unreachable
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.transport import Transport
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import permitted
from tests.unit.pulsar.scripted import answer, raw, redirect, silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.pulsar.calls import Call
    from pulsar_steward.pulsar.settings import AdminSettings
    from tests.unit.pulsar.scripted import Reply, ScriptedBroker

PATH = "/admin/v2/tenants"
BUNDLE = "0x00000000_0x80000000"
CHANGES = [
    calls.unload("t/n", BUNDLE, "127.0.0.1:8080"),
    calls.split("t/n", BUNDLE, "range_equally_divide"),
    calls.look_up("persistent://t/n/topic"),
]
changes = pytest.mark.parametrize("change", CHANGES, ids=["unload", "split", "look up"])

BRIEF_SECONDS = 0.3
PASSING: dict[str, tuple[Reply, type[AdminError]]] = {
    "429": (answer(status=429), AdminError),
    "500": (answer(status=500), ServerError),
    "503": (answer(status=503), ServerError),
    "hangs up": (raw(b""), Unreachable),
    "cut short": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1"), BrokenAnswer),
    "no answer": (silence(), TimedOut),
}


@pytest.mark.parametrize("kind", PASSING)
def test_looking_is_repeated_until_it_works(
    kind: str, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    """A read that fails for a passing reason is tried again, and the second answer is returned."""
    broker.on(PATH, PASSING[kind][0], answer(["public"]))
    limit = BRIEF_SECONDS if kind == "no answer" else 30
    assert transport(broker.url, read_timeout_seconds=limit).get(PATH).decoded(list[str]) == ["public"]
    assert len(broker.asked) == 2


@pytest.mark.parametrize("attempts", [1, 3])
def test_looking_ends_after_the_tries_of_the_policy(
    attempts: int, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    broker.on(PATH, answer({"reason": "busy"}, status=503))
    with pytest.raises(ServerError, match="busy"):
        transport(broker.url, read_attempts=attempts).get(PATH)
    assert len(broker.asked) == attempts


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412])
def test_a_clear_no_is_not_asked_again(
    status: int, broker: ScriptedBroker, transport: Callable[..., Transport]
) -> None:
    """A call is sent once if the answer is a clear refusal, which a repetition cannot change."""
    broker.on(PATH, answer(status=status))
    with pytest.raises(AdminError):
        transport(broker.url).get(PATH)
    assert len(broker.asked) == 1


def test_the_next_try_asks_the_next_base(
    make_broker: Callable[[], ScriptedBroker], transport: Callable[..., Transport]
) -> None:
    """The second try of a read goes to the next address of the settings if the first one does not answer."""
    hung, well = make_broker(), make_broker()
    hung.on(PATH, silence())
    well.on(PATH, answer(["public"]))
    assert (
        transport(hung.url, well.url, read_attempts=2, read_timeout_seconds=BRIEF_SECONDS).get(PATH).broker == well.id
    )
    assert (len(hung.asked), len(well.asked)) == (1, 1)


@changes
@pytest.mark.parametrize("kind", PASSING)
def test_a_change_is_sent_once(
    kind: str, change: Call, make_broker: Callable[[], ScriptedBroker], settings: Callable[..., AdminSettings]
) -> None:
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
    change: Call, refusing: str, broker: ScriptedBroker, settings: Callable[..., AdminSettings]
) -> None:
    """A change goes to the next address, once, if the connection to the first one was refused."""
    broker.on(change.path, answer(status=204))
    with Writer(settings(f"http://{refusing}", broker.url)) as writer:
        writer.send(change, permitted)
    assert len(broker.asked) == 1


@changes
def test_a_change_that_was_redirected_into_the_void_is_not_sent_again(
    change: Call, refusing: str, make_broker: Callable[[], ScriptedBroker], settings: Callable[..., AdminSettings]
) -> None:
    first, second = make_broker(), make_broker()
    first.on("/admin/v2/brokers", answer([first.id, refusing]))
    first.on(change.path, redirect(f"http://{refusing}{change.path}?{urlencode(change.query)}"))
    with Writer(settings(first.url, second.url)) as writer, pytest.raises(Unreachable):
        writer.send(change, permitted)
    assert len(first.asked_for(change.path)) == 1
    assert second.asked == []


def test_where_every_base_refuses_the_last_refusal_is_raised(
    refusing: str, transport: Callable[..., Transport]
) -> None:
    with pytest.raises(Unreachable) as caught:
        transport("http://127.0.0.1:1", f"http://{refusing}").send("PUT", PATH)
    assert caught.value.broker == refusing


@changes
def test_a_change_carries_what_it_says(
    change: Call, broker: ScriptedBroker, settings: Callable[..., AdminSettings]
) -> None:
    """The request that the writer sends for a change is the one that a dry run prints."""
    broker.on(change.path, answer(status=204))
    with Writer(settings(broker.url)) as writer:
        writer.send(change, permitted)
    (asked,) = broker.asked
    assert f"{asked.method} {asked.target}".replace("%3A8080", ":8080") == str(change)


@pytest.mark.parametrize(("status", "expected"), [(404, NotFound), (409, Conflict)])
def test_a_refused_change_says_why(
    status: int, expected: type[AdminError], broker: ScriptedBroker, settings: Callable[..., AdminSettings]
) -> None:
    """The error about a refused change carries the broker's reason."""
    broker.on(CHANGES[0].path, answer({"reason": "Not allowed unload namespace bundle"}, status=status))
    with Writer(settings(broker.url)) as writer, pytest.raises(expected, match="Not allowed unload namespace bundle"):
        writer.send(CHANGES[0], permitted)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_transport_that_looks_sends_nothing_else(
    method: str, broker: ScriptedBroker, settings: Callable[..., AdminSettings]
) -> None:
    """A transport for reading raises `PermissionError` for methods that write, and sends no request."""
    with Transport(settings(broker.url), frozenset({"GET"})) as looking, pytest.raises(PermissionError, match=method):
        looking.send(method, PATH)  # type: ignore[arg-type]  # a parameter's literal type is lost
    assert broker.asked == []
