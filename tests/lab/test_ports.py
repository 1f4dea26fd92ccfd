"""Which ports a lab takes."""

import random
import socket
from collections.abc import Iterator

import pytest

from lab import ports
from lab.errors import PortTakenError
from lab.ports import LOOPBACK, Ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def free_run(length: int) -> int:
    """The first of as many free ports in a row."""
    return next(
        first
        for first in range(ports.HIGHEST, ports.LOWEST, -length)
        if all(ports.is_free(LOOPBACK, port) for port in range(first, first + length))
    )


def test_ports_count_from_the_base() -> None:
    first = free_run(3)
    wanted = Ports(first)
    assert [wanted.take(LOOPBACK, "a part") for _ in range(3)] == [first, first + 1, first + 2]


def test_ports_that_are_spoken_for_are_passed_over() -> None:
    """A port in the set of used ports is passed over, though no server listens on it."""
    first = free_run(3)
    wanted = Ports(first, frozenset({first, first + 1}))
    assert wanted.take(LOOPBACK, "a part") == first + 2


def test_a_taken_port_that_was_asked_for_is_an_error_that_names_it(taken: int) -> None:
    """The error about a requested port in use says which port, what wanted it and which option to change."""
    with pytest.raises(PortTakenError, match=rf"port {taken} on 127\.0\.0\.1, wanted for the bookie, .*--base-port"):
        Ports(taken).take(LOOPBACK, "the bookie")


def test_free_ports_are_below_those_of_outgoing_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEWARD_LAB_PORTS", raising=False)
    assert ports.HIGHEST < 32_768
    for drawn in (0, 1):
        monkeypatch.setattr(random, "randint", lambda *bounds, drawn=drawn: bounds[drawn])
        assert ports.LOWEST <= Ports(None).take(LOOPBACK, "a part") < ports.HIGHEST


def test_a_listening_server_is_seen(taken: int) -> None:
    assert ports.answers(LOOPBACK, taken)
    assert not ports.is_free(LOOPBACK, taken)


def test_an_idle_port_is_seen() -> None:
    port = free_run(1)
    assert not ports.answers(LOOPBACK, port)
    assert ports.is_free(LOOPBACK, port)
