"""Names of topics: a partition's, that of the partitioned topic that it belongs to, and those of Pulsar's own."""

from __future__ import annotations

import re

PARTITION_END = "-partition-[0-9]+$"
"""Regular expression of the end of a partition's name, in Python's and DuckDB's syntax."""

_SYSTEM_TOPIC = re.compile(
    "[a-z-]+://(pulsar/system/.*"
    f"|.*/(__change_events|__transaction_buffer_snapshot|__transaction_log_.*)({PARTITION_END})?"
    f"|.*__transaction_pending_ack({PARTITION_END})?)"
)

_PARTITION = re.compile("(.+)-partition-[0-9]+")


def partitioned_topic(topic: str) -> str:
    """Partitioned topic that a partition belongs to; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic


def is_own_topic(topic: str) -> bool:
    """True for one of a namespace's own topics, such as ``__change_events``, by its full name."""
    return topic.rpartition("/")[2].startswith("__")


def is_system_topic(topic: str) -> bool:
    """True for a topic that brokers hold to no quota and expire nothing of, by its full name.

    Those of ``pulsar/system`` and some of the names that begin with ``__``: users may have topics of other such names
    (Pulsar's ``SystemTopicNames`` and ``SystemTopic``).
    """
    return _SYSTEM_TOPIC.fullmatch(topic) is not None
