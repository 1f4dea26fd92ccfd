"""Namespaces → Arrow batches: policies, bundle boundaries, and the brokers that isolation policies leave to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, allowed_brokers
from pulsar_steward.admin.reader import Reader
from pulsar_steward.collect.arrow import UNREAD
from pulsar_steward.collect.rows import Rows
from pulsar_steward.errors import AdminError, BrokenAnswer, NotFound
from pulsar_steward.model.tables import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.collect.arrow import Piece


class Placement(msgspec.Struct, frozen=True):
    """What decides where namespaces may be: the brokers that are listed, and the isolation policies."""

    brokers: tuple[str, ...]
    policies: tuple[IsolationPolicy, ...]


class _Bundles(msgspec.Struct, frozen=True):
    boundaries: list[str]


class _Policies(msgspec.Struct, frozen=True):
    bundles: _Bundles


def read_namespaces(settings: AdminSettings, placement: Placement, namespaces: Iterable[str]) -> Iterator[Piece]:
    """Asks for each namespace (``tenant/name``), and yields rows of `NAMESPACE_TABLES`.

    A namespace that was deleted since it was listed yields no row.
    """
    rows, unread = Rows(NAMESPACES), Rows(UNREAD)
    with Reader(settings) as reader:
        for namespace in namespaces:
            try:
                rows.add(*([value] for value in _row(reader, placement, namespace)))
            except NotFound:
                continue
            except AdminError as error:
                unread.add([namespace], [str(error)])
            yield from rows.full()
    yield from rows.rest()
    yield from unread.rest()


def _row(reader: Reader, placement: Placement, namespace: str) -> tuple[object, ...]:
    document = reader.namespace_policies(namespace)
    boundaries = _boundaries(document, namespace)
    allowed = allowed_brokers(placement.policies, namespace, placement.brokers)
    return namespace, len(boundaries) - 1, boundaries, document.decode(), allowed


def _boundaries(document: bytes, namespace: str) -> list[str]:
    try:
        boundaries = msgspec.json.decode(document, type=_Policies).bundles.boundaries
        return sorted(boundaries, key=lambda boundary: int(boundary, 16))
    except (msgspec.DecodeError, ValueError) as error:
        raise BrokenAnswer("GET", namespace, "any broker", f"its policies cannot be read: {error}") from error
