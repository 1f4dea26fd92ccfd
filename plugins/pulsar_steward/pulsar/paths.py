"""Paths of the admin API, with every name quoted: a topic may contain ``/``, ``%``, spaces, quotes and any Unicode."""

from __future__ import annotations

from urllib.parse import quote

from pulsar_steward.errors import InvalidName

BROKERS = "/admin/v2/brokers"
CLUSTERS = "/admin/v2/clusters"
TENANTS = "/admin/v2/tenants"
BOOKIES = "/admin/v2/bookies/all"
BOOKIE_GROUPS = "/admin/v2/bookies/racks-info"
COORDINATORS = "/admin/v3/transactions/transactionCoordinator/replicas"


def segment(name: str) -> str:
    """Quotes a name as one path segment; characters that could end it are escaped.

    Raises:
        InvalidName: If the name is empty, ``.`` or ``..``: as a segment, these mean another resource.
    """
    if name in {"", ".", ".."}:
        raise InvalidName(f"{name!r} cannot be a part of a path of the admin API")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidName(f"{name!r} cannot be a part of a path of the admin API: it is no Unicode") from error


def namespace(name: str, *below: str) -> str:
    """Path of a namespace (``tenant/ns``), or of something below it."""
    tenant, _, local = name.partition("/")
    return "/".join(["/admin/v2/namespaces", segment(tenant), segment(local), *below])


def scalable(namespace: str) -> str:
    """Path that lists a namespace's scalable topics (Pulsar 5)."""
    return "/".join(["/admin/v2/scalable", *map(segment, namespace.split("/", 1))])


def isolation(pulsar_cluster: str, *below: str) -> str:
    """Path of a cluster's namespace isolation policies, or of the policy with this name."""
    return "/".join([CLUSTERS, segment(pulsar_cluster), "namespaceIsolationPolicies", *map(segment, below)])


def tenant_namespaces(tenant: str) -> str:
    """Path that lists a tenant's namespaces."""
    return f"/admin/v2/namespaces/{segment(tenant)}"


def topic(full_name: str, prefix: str = "/admin/v2") -> str:
    """Path of a topic, ``persistent://tenant/ns/local name``.

    Raises:
        InvalidName: If it is not a topic's full name, or a part of it cannot be a segment.
    """
    domain, _, rest = full_name.partition("://")
    if domain not in {"persistent", "non-persistent"} or rest.count("/") <= 1:  # tenant/namespace/topic
        raise InvalidName(f"{full_name!r} is not the full name of a topic")
    tenant, local_namespace, local = rest.split("/", 2)
    return "/".join([prefix, segment(domain), segment(tenant), segment(local_namespace), segment(local)])


def can_hold(topic_name: str) -> bool:
    """True if a request can be made for a topic with this full name, as tenants choose names."""
    try:
        topic(topic_name)
    except InvalidName:
        return False
    return True


def topics(name: str) -> str:
    """Path that lists the persistent topics of a namespace (``tenant/ns``)."""
    tenant, _, local = name.partition("/")
    return "/".join(["/admin/v2/persistent", segment(tenant), segment(local)])


def lookup(full_name: str) -> str:
    """Path that looks up a topic, which loads its bundle."""
    return topic(full_name, prefix="/lookup/v2/topic")
