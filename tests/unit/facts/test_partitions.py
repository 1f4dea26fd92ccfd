"""Who would notice that a topic gets more partitions."""

import pytest

from pulsar_steward.facts.partitions import PartitionedTopic, ordering


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["Shared", "Shared"], None),
        (["Shared", "Key_Shared"], "keeps the order of keys"),
        (["Shared", "Exclusive"], "keeps the order of messages"),
        (["Shared", "None"], "nobody can tell"),
        (["Shared", "Odd"], "(Odd) is of a type that is not known"),
        ([""], "(no type) is of a type that is not known"),
        ([], "(no type) is of a type that is not known"),
    ],
)
def test_only_shared_subscriptions_keep_no_order(kinds: list[str], words: str | None) -> None:
    """Every other type, one that nobody knows as well, is a reason against more partitions."""
    reasons = list(PartitionedTopic(partitions=2, subscriptions={"app": ordering(*kinds)}).against_order())
    assert [words in each for each in reasons if words] == [True] * (words is not None)
    assert len(reasons) == (words is not None)


def test_a_subscription_that_some_partitions_lack_is_a_reason() -> None:
    """New partitions get the subscriptions of the first one alone, so that such a one may be missed."""
    shared = {"app": "Shared", "all": "Shared"}
    (reason,) = PartitionedTopic(partitions=2, subscriptions=shared, apart=("app",)).against_order()
    assert reason == "subscription app is not on every partition, and may be missed on new ones"
