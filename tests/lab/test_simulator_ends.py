"""A simulator that ends while clients connect leaves nothing open, which would be a warning in a later test."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lab.simulator import ClusterSpec, running_simulator

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
