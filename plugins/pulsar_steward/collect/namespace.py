"""Namespaces as Arrow batches: policies, bundle boundaries, and the brokers that isolation policies allow for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, allowed_brokers
from pulsar_steward.admin.own_settings import NamespaceDocument
from pulsar_steward.admin.reader import Bundles, Reader
from pulsar_steward.collect.arrow import UNREAD
from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.errors import AdminError, BrokenAnswer, NotFound
from pulsar_steward.model.tables import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.collect.arrow import TableBatch


class Placement(msgspec.Struct, frozen=True):
    """Input for the placement of namespaces: the listed brokers and the isolation policies."""

    brokers: tuple[str, ...]
    policies: tuple[IsolationPolicy, ...]


class _Policies(NamespaceDocument, frozen=True, kw_only=True):
    """Namespace document, decoded to make sure that the snapshot's readers will find what they expect in it."""

    bundles: Bundles


def read_namespaces(settings: AdminSettings, placement: Placement, namespaces: Iterable[str]) -> Iterator[TableBatch]:
    """Reads each namespace (``tenant/name``), and yields rows of `NAMESPACE_TABLES`.

    A namespace that was deleted since it was listed yields no row; one that cannot be read yields one that names it.
    """
    rows, unread = Rows(NAMESPACES), Rows(UNREAD)
    with Reader(settings) as reader:
        for namespace in namespaces:
            try:
                if (row := _row(reader, placement, namespace)) is not None:
                    rows.require_fit(*row)
                    rows.add(*([value] for value in row))
            except AdminError as error:
                unread.add([namespace], [str(error)])
            except UNFIT as error:
                unread.add([namespace], [f"its policies are not what they should be: {type(error).__name__}: {error}"])
            yield from rows.full()
    yield from rows.rest()
    yield from unread.rest()


def _row(reader: Reader, placement: Placement, namespace: str) -> tuple[object, ...] | None:
    """Row of a namespace, or None if it no longer exists."""
    try:
        document = reader.namespace_policies(namespace)
    except NotFound:
        if namespace in reader.namespaces(namespace.partition("/")[0]):
            raise  # it is still listed, so it must not be taken for deleted
        return None
    boundaries = _boundaries(document, namespace)
    allowed = allowed_brokers(placement.policies, namespace, placement.brokers)
    return namespace, len(boundaries) - 1, boundaries, document.decode(), allowed


def _boundaries(document: bytes, namespace: str) -> list[str]:
    try:
        return msgspec.json.decode(document, type=_Policies).bundles.boundaries
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BrokenAnswer("GET", namespace, "any broker", f"its policies cannot be read: {error}") from error
