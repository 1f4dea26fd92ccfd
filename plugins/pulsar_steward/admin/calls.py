"""The calls that change a cluster, as data: what a dry run prints is what the writer sends."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlencode

import msgspec

from pulsar_steward.admin import paths


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the admin API, without host and credentials."""

    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    query: dict[str, str] = {}

    def __str__(self) -> str:
        query = f"?{urlencode(self.query, safe=':')}" if self.query else ""
        return f"{self.method} {self.path}{query}"


def unload(namespace: str, bundle: str, destination: str) -> Call:
    """Unloads a bundle from its owner, to be loaded by the destination (``host:webport``) at the next lookup."""
    path = paths.namespace(namespace, paths.segment(bundle), "unload")
    return Call(method="PUT", path=path, query={"destinationBroker": destination})


def split(namespace: str, bundle: str, algorithm: str) -> Call:
    """Splits a bundle in two; both halves stay with its owner."""
    path = paths.namespace(namespace, paths.segment(bundle), "split")
    return Call(method="PUT", path=path, query={"unload": "false", "splitAlgorithmName": algorithm})


def look_up(topic: str) -> Call:
    """Looks a topic up, which makes a broker load its bundle: the one that an unload named, if there was one."""
    return Call(method="GET", path=paths.lookup(topic))
