"""Names of topics: partitions, their partitioned topics, and Pulsar's own topics."""

from __future__ import annotations

import re

PARTITION_END = "-partition-[0-9]+$"
"""Regular expression of the end of a partition's name, in Python's and DuckDB's syntax."""

SYSTEM_TOPIC = (
    "^[a-z-]+://(pulsar/system/.*"
    f"|.*/(__change_events|__transaction_buffer_snapshot)({PARTITION_END})?"
    f"|.*__transaction_pending_ack({PARTITION_END})?)$"
)
"""Regular expression for the names of topics without quotas, in Python's and DuckDB's syntax."""

SEGMENT = "segment://"
"""Begin of the name of a scalable topic's segment, ``segment://tenant/ns/topic/0000-3fff-0`` (Pulsar 5, PIP-460).

Brokers list segments among the persistent topics of a bundle, and tell their figures alike; the admin API knows them by
other paths, and settings belong to the scalable topic.
"""

OWN_TENANT, _OWN_NAME = "pulsar/", "__"
"""Beginnings of the namespaces and of the names of Pulsar's own topics."""

_IN_NAMESPACE = re.compile(r"([^/\s]+/[^/\s]+)(?:/0x\w+| .*)?")
_PARTITION = re.compile("(.+)-partition-[0-9]+")


def partitioned_topic(topic: str) -> str:
    """The partitioned topic of a partition; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic


def namespace_of(topic: str) -> str:
    """The namespace of a topic, by its full name; of a subject that begins with one, too."""
    return "/".join(topic.partition("://")[2].split("/")[:2])


def namespace_in(subject: str) -> str:
    """The namespace of a finding's subject: of a topic, a subscription, a bundle or itself; empty: of none."""
    if "://" in subject:
        return namespace_of(subject)
    match = _IN_NAMESPACE.fullmatch(subject)
    return match[1] if match else ""


def is_own_topic(topic: str) -> bool:
    """True for a system topic of a namespace, such as ``__change_events``, by its full name."""
    return topic.rpartition("/")[2].startswith(_OWN_NAME)


def is_of_users(topic: str) -> bool:
    """True for a topic that is not Pulsar's own: neither of its tenant, nor a system topic of a namespace."""
    return not namespace_of(topic).startswith(OWN_TENANT) and not is_own_topic(topic)


OF_USERS = f"""not (starts_with(topic, 'persistent://{OWN_TENANT}') or starts_with(topic, 'non-persistent://{OWN_TENANT}')
    or starts_with(topic, '{SEGMENT}{OWN_TENANT}') or starts_with(split_part(topic, '/', -1), '{_OWN_NAME}'))"""
"""`is_of_users` as SQL on a column `topic`."""


def is_system_topic(topic: str) -> bool:
    """True for a topic without quotas and expiry, by its full name.

    These are the topics of ``pulsar/system``, for example transaction logs, and a few names with ``__`` at the
    beginning or end in any namespace. Users may have other topics with ``__`` (Pulsar's ``SystemTopicNames`` and
    ``SystemTopic``).
    """
    return re.fullmatch(SYSTEM_TOPIC, topic) is not None
