"""Names of topics: which of them is a partition's."""

import re

import pytest

from pulsar_steward.model.topics import PARTITION_END, partitioned_topic

NAMES = {
    "persistent://a/b/t-partition-12": "persistent://a/b/t",
    "persistent://a/b/t-partition-1-partition-0": "persistent://a/b/t-partition-1",
    "persistent://a/b/t-partition-x": "persistent://a/b/t-partition-x",
    "persistent://a/b/t-partition-٣": "persistent://a/b/t-partition-٣",
    "persistent://a/b/t": "persistent://a/b/t",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_partition_belongs_to_its_topic(name: str) -> None:
    """Only a number after `-partition-` marks a partition, and the pattern for queries agrees."""
    assert partitioned_topic(name) == NAMES[name]
    assert re.sub(PARTITION_END, "", name) == NAMES[name]
