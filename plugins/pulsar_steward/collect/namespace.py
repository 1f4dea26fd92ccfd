"""Namespaces as Arrow batches: policies, bundle boundaries, and the brokers that isolation policies allow for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.collect.arrow import UNREAD
from pulsar_steward.collect.rows import UNFIT, Rows
from pulsar_steward.decoding import decode
from pulsar_steward.errors import AdminError, BrokenAnswer, NotFound
from pulsar_steward.model.tables import NAMESPACES
from pulsar_steward.pulsar.isolation import IsolationPolicy, allowed_brokers
from pulsar_steward.pulsar.own_settings import NamespaceDocument
from pulsar_steward.pulsar.reader import Bundles, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.pulsar.settings import AdminSettings


class PlacementInput(msgspec.Struct, frozen=True):
    """Input for the placement of namespaces: the listed brokers, the isolation policies, and the cluster's own name."""

    brokers: tuple[str, ...]
    policies: tuple[IsolationPolicy, ...]
    pulsar_cluster: str


class _Policies(NamespaceDocument, frozen=True, kw_only=True):
    """Namespace document, decoded to make sure that the snapshot's readers can decode it too."""

    bundles: Bundles


def read_namespaces(
    settings: AdminSettings, placement: PlacementInput, namespaces: Iterable[str]
) -> Iterator[TableBatch]:
    """Reads each namespace (``tenant/name``), and yields rows of `NAMESPACE_TABLES`.

    A namespace that was deleted after it was listed yields no row, nor does one that only other clusters of the same
    configuration store serve. An unreadable namespace yields a row with its name.
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


def _row(reader: Reader, placement: PlacementInput, namespace: str) -> tuple[object, ...] | None:
    """Row of a namespace, or None if it no longer exists, or belongs to other clusters only."""
    try:
        document = reader.namespace_policies(namespace)
    except NotFound:
        if namespace in reader.namespaces(namespace.partition("/")[0]):
            raise  # it is still listed, so it was not deleted
        return None
    policies = _policies(document, namespace)
    if not _is_served(policies, namespace, placement.pulsar_cluster):
        return None
    boundaries = policies.bundles.boundaries
    allowed = allowed_brokers(placement.policies, namespace, placement.brokers)
    return namespace, len(boundaries) - 1, boundaries, document.decode(), allowed


def _is_served(policies: _Policies, namespace: str, pulsar_cluster: str) -> bool:
    """True if this cluster serves the namespace: by its policies, or if they name none; always for Pulsar's own."""
    return not policies.clusters or pulsar_cluster in policies.clusters or namespace.startswith("pulsar/")


def _policies(document: bytes, namespace: str) -> _Policies:
    try:
        return decode(document, _Policies)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BrokenAnswer("GET", namespace, "any broker", f"its policies cannot be read: {error}") from error
