"""What brokers did for Steward, by their own request logs."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from benchmarks.chaos.ground import CALL, REDIRECT
from pulsar_steward.apply.changes import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lab.cluster import Lab
    from pulsar_steward.model.step import Change


class BrokerCalls:
    """The changing calls of Steward's that brokers carried out since this was made.

    Args:
        lab: The cluster.
    """

    def __init__(self, lab: Lab) -> None:
        self._logs = {lab.log(broker.name): lab.log(broker.name).stat().st_size for broker in lab.brokers}

    def carried_out(self) -> Counter[str]:
        """Each call's method and path, without redirects, and how often it was made."""
        time.sleep(0.2)  # a request is logged right after its answer went out
        found = Counter[str]()
        for log, length in self._logs.items():
            text = log.read_bytes()[length:].decode(errors="replace")
            requests = ((method, path) for method, path, status in CALL.findall(text) if int(status) != REDIRECT)
            found.update(f"{method} {unquote(urlsplit(path).path)}" for method, path in requests)
        return found


def calls_for(changes: Iterable[Change]) -> Counter[str]:
    """The calls that make these changes, likewise."""
    calls = (kind_of(change).call() for change in changes)
    return Counter(f"{call.method} {unquote(call.path)}" for call in calls)
