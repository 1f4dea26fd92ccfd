"""Names of topics: a partition's, that of the partitioned topic that it belongs to, and those of Pulsar's own."""

from __future__ import annotations

import re

PARTITION_END = "-partition-[0-9]+$"
"""Regular expression of the end of a partition's name, in Python's and DuckDB's syntax."""

_PARTITION = re.compile("(.+)-partition-[0-9]+")


def partitioned_topic(topic: str) -> str:
    """Partitioned topic that a partition belongs to; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic


def is_own_topic(topic: str) -> bool:
    """True for one of a namespace's own topics, such as ``__change_events``, by its full name."""
    return topic.rpartition("/")[2].startswith("__")
