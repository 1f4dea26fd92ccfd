"""Names of topics: which of them is a partition's, and which are of users."""

import re

import duckdb
import pytest

from pulsar_steward.model.topics import OF_USERS, PARTITION_END, is_of_users, partitioned_topic

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


@pytest.mark.parametrize("tenant", ["pulsar", "pulsars", "a"])
@pytest.mark.parametrize("name", ["t", "__change_events", "_t", "t__", "__t-partition-0"])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_topics_of_users_are_the_same_for_queries(domain: str, tenant: str, name: str) -> None:
    """A topic is Pulsar's own by its tenant or by the beginning of its name, and queries agree."""
    topic = f"{domain}://{tenant}/b/{name}"
    assert is_of_users(topic) == (tenant != "pulsar" and not name.startswith("__"))
    query = f"select {OF_USERS} from (select ? as topic)"  # noqa: S608 - of the library's own words
    assert duckdb.execute(query, [topic]).fetchall() == [(is_of_users(topic),)]
