"""A subscription of one topic as a broker tells it, and whose it is by its name."""

from __future__ import annotations

import re

import msgspec

READER = r"^(reader|multiTopicsReader)-[0-9A-Za-z]+$"
"""Pattern of the names that clients generate for the subscriptions of readers, which have no duty to consume."""

CURSORS = ("pulsar.dedup", "pulsar.repl")
"""Beginnings of the names of cursors that brokers keep for deduplication and replication."""

_OWN_TENANT = "pulsar"


class SubscriptionState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a subscription of one topic or partition.

    Attributes:
        consumers: Connected consumers.
        entries: Entries of its backlog.
        topic_bytes: Backlog of the topic, that of its slowest subscription: the bytes that it holds, at most.
        moved_milliseconds: Last time that a message of it was sent, acknowledged, skipped or expired, since the epoch,
            as far as the broker remembers; 0: not since it loaded the topic, or not known.
        position: Mark-delete position of its cursor, ``ledger:entry``; empty: not asked.
        replicated: True if its position is replicated to other clusters; None: not asked.
        others: Other subscriptions of the topic.
    """

    consumers: int
    entries: int
    topic_bytes: int
    moved_milliseconds: int = 0
    position: str = ""
    replicated: bool | None = None
    others: int = 0


def not_a_users(topic: str, subscription: str) -> str | None:
    """Why a subscription is no user's to delete, as the end of a sentence that begins with it; None: it is one."""
    namespace, _, name = topic.partition("://")[2].rpartition("/")
    if namespace.partition("/")[0] == _OWN_TENANT or name.startswith("__"):
        return "is of a topic of Pulsar's own"
    if subscription.startswith("__"):
        return "is Pulsar's own"
    if subscription.startswith(CURSORS):
        return "is a cursor of deduplication or replication"
    if re.match(READER, subscription):
        return "is a reader's"
    return None
