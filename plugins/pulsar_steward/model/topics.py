"""Names of topics: a partition's, and that of the partitioned topic that it belongs to."""

from __future__ import annotations

import re

PARTITION_END = "-partition-[0-9]+$"
"""Regular expression of the end of a partition's name, in Python's and DuckDB's syntax."""

_PARTITION = re.compile("(.+)-partition-[0-9]+")


def partitioned_topic(topic: str) -> str:
    """Partitioned topic that a partition belongs to; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic
