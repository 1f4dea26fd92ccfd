"""Changing calls of a client, by the brokers' own request logs, each once however it was redirected."""

import re
import time
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from lab.cluster import Lab

CLIENT = "python-requests/"
"""How Steward's HTTP client names itself; the lab and brokers name themselves otherwise."""

LOGGED_S = 0.2
"""A request is logged right after its answer went out."""

_CHANGING = re.compile(rf'RequestLog \S+ .*?"(PUT|POST|DELETE) (\S+) HTTP/[\d.]+" (\d+) .*"{re.escape(CLIENT)}')
_REDIRECT = 307
_REDIRECTING = {"authoritative", "destinationBroker"}
"""Of an unload's address the leader keeps the destination, and sends the caller on without it."""


class RequestLogs:
    """The request logs of all brokers of a lab, from now on; also of those that are started later.

    Args:
        lab: The cluster.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._read_up_to = {broker.name: lab.log(broker.name).stat().st_size for broker in lab.brokers}

    def changing_calls(self) -> list[str]:
        """Changing calls that brokers answered themselves since the last time: method and address, as they came."""
        time.sleep(LOGGED_S)
        return [call for broker in self._lab.brokers for call in changing_calls_in(self._news_of(broker.name))]

    def _news_of(self, broker: str) -> str:
        """Whole lines that came since the last time."""
        begin = self._read_up_to.get(broker, 0)
        with self._lab.log(broker).open("rb") as log:
            log.seek(begin)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read_up_to[broker] = begin + len(whole)
        return whole.decode(errors="replace")


def changing_calls_in(text: str) -> list[str]:
    """The changing calls in a broker's log that it answered itself, and not by a redirect."""
    return [f"{method} {address}" for method, address, status in _CHANGING.findall(text) if int(status) != _REDIRECT]


def essence(call: str) -> str:
    """A call (method and address) without what brokers add to its address, or leave out, when they redirect it."""
    method, _, address = call.partition(" ")
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in _REDIRECTING]
    return f"{method} {unquote(parts.path)}?{urlencode(kept)}"
