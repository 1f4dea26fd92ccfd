"""The simulator ends cleanly, puts documents together once, and places topics as brokers do."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from lab import placement
from lab.simulator import ClusterSpec, running_simulator
from lab.simulator.steady import SteadyDocuments

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 15
AT_MOST = 60
"""Connections of a round."""


def connect_until(stop: threading.Event, urls: Sequence[str], opened: list[socket.socket]) -> None:
    """Connects again and again."""
    places = [(each.hostname or "", each.port or 0) for each in map(urlsplit, urls)]
    while not stop.is_set() and len(opened) < AT_MOST:
        for place in places:
            with suppress(OSError):
                opened.append(socket.create_connection(place, timeout=1))


def test_clients_that_connect_at_the_end_are_closed() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        connected = 0
        for number in range(ROUNDS):
            stop, opened = threading.Event(), list[socket.socket]()
            with running_simulator(ClusterSpec()) as simulator:
                client = threading.Thread(target=connect_until, args=(stop, simulator.admin_urls, opened))
                client.start()
                time.sleep(number * 0.0004)
            stop.set()
            client.join()
            connected += len(opened)
            for each in opened:
                each.close()
        gc.collect()
    assert connected > 0
    assert [str(each.message) for each in seen] == []


def test_each_document_is_made_once_and_stays_what_it_was() -> None:
    documents = SteadyDocuments()
    made = [documents.get(broker, name, f"{broker} {name}".encode) for broker in ("a", "b") for name in ("stats", "")]
    again = [documents.get(broker, name, b"another".upper) for broker in ("a", "b") for name in ("stats", "")]
    assert made == [b"a stats", b"a ", b"b stats", b"b "]
    assert again == made


HALVES = {"a:1": ["pulsar/system/0x00000000_0x80000000"], "b:1": ["pulsar/system/0x80000000_0xffffffff"]}


def test_the_position_is_the_crc_32_of_the_name() -> None:
    assert placement.position("123456789") == 0xCBF43926


@pytest.mark.parametrize(
    ("bundle", "held"),
    [
        ("0xcbf43926_0xcbf43927", True),
        ("0xcbf43925_0xcbf43926", False),
        ("0xcbf43927_0xffffffff", False),
        ("tenant/ns/0x00000000_0xffffffff", True),
    ],
)
def test_ranges_are_open_at_the_upper_end(bundle: str, held: bool) -> None:
    """A hash on the boundary of two bundles belongs to the bundle that begins there."""
    assert placement.holds(bundle, "123456789") is held


def test_every_coordinator_is_counted_once() -> None:
    """Two brokers that own the whole range hold all the coordinators between them."""
    counted = placement.count_by_broker(16, HALVES)
    assert set(counted) == {"a:1", "b:1"}
    assert sum(counted.values()) == 16
    assert all(counted.values())


@pytest.mark.parametrize("bundles", [[], ["public/default/0x00000000_0xffffffff"]])
def test_bundles_of_other_namespaces_hold_no_coordinator(bundles: list[str]) -> None:
    assert placement.count_by_broker(16, {"a:1": bundles}) == {"a:1": 0}
