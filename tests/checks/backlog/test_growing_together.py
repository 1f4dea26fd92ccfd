"""Backlogs that grow too slowly to matter, but together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.model.finding import Severity
from tests.builders import a_policy
from tests.checks.backlog.histories import by_name, judged, scenes

if TYPE_CHECKING:
    from tests.golden import Golden

MIB, GIB = 1024**2, 1024**3
WARNING = Severity.WARNING
SLOW = 800 * MIB
"""In a quarter of an hour: 0.9 MiB/s."""


def growing(count: int, name: str = "free/t-partition-{0}", steps: int = 4, by: int = SLOW) -> dict[str, list[int]]:
    """Backlogs of so many topics, each of which grows by as much from one snapshot to the next."""
    return {name.format(number): [step * by for step in range(steps)] for number in range(count)}


def test_partitions_that_each_grow_slowly_are_found_together(golden: Golden) -> None:
    """Slowly growing backlogs of many partitions lead to a single finding, about their partitioned topic."""
    (finding,) = judged(scenes(growing(10))).findings
    assert (finding.subject, finding.severity) == ("persistent://acme/free/t", WARNING)
    golden(finding.evidence)
    assert "no size quota" in finding.evidence
    assert finding.figures["topics"] == 10
    assert finding.figures["growth_bytes_per_second"] == 10 * (SLOW - MIB // 3) // 900


def test_topics_of_a_namespace_are_found_together(golden: Golden) -> None:
    """Unpartitioned topics and single partitions that grow slowly give one finding about their namespace."""
    topics = growing(6, "free/t{0}") | growing(6, "free/{0}-partition-0")
    (finding,) = judged(scenes(topics)).findings
    assert finding.subject == "acme/free"
    assert "12 topics of this namespace" in finding.evidence
    golden(finding.evidence)


HEALTHY: dict[str, dict[str, list[int]]] = {
    "too few": growing(5),
    "under a size quota": growing(10, "bound/t-partition-{0}"),
    "of Pulsar's own": growing(10, "free/__t-partition-{0}"),
    "consumed in batches, every hour": {name: [2 * GIB * (step % 4) for step in range(12)] for name in growing(10)},
    "each consumed in batches at another time": {
        f"free/t-partition-{number}": [2 * GIB * ((step + number) % 4) for step in range(12)] for number in range(12)
    },
    "to and fro about a mebibyte": {name: [MIB - 9, MIB + 9] * 3 for name in growing(1000)},
    "grew in one step": {name: [0, 0, 0, 4 * SLOW] for name in growing(10)},
    "shrinks": {name: [4 * SLOW, 3 * SLOW, 2 * SLOW, SLOW] for name in growing(10)},
    "a single topic": {"free/t-partition-0": [0, SLOW, 2 * SLOW, 3 * SLOW]},
}


@pytest.mark.parametrize("backlogs", HEALTHY.values(), ids=HEALTHY)
def test_what_is_well_is_not_found(backlogs: dict[str, list[int]]) -> None:
    """Backlogs that are few, bounded by a quota, Pulsar's own or not growing steadily give no finding."""
    judgement = judged(scenes(backlogs))
    assert judgement.findings == ()
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(("seconds", "found"), [(60, True), (61, False)])
def test_what_is_hardly_behind_is_to_and_fro(seconds: int, found: bool) -> None:
    """Growing backlogs are found only if they exceed `minimum_seconds_behind` at the topics' throughput."""
    made = scenes(growing(10))
    for row in made[-1].rows["topics"]:
        row["throughput_in_bytes"] = 3 * SLOW // 60
    assert bool(judged(made, a_policy(backlog_growing={"minimum_seconds_behind": seconds - 1})).findings) is found


def test_what_grows_by_itself_is_not_told_again() -> None:
    """A fast growing partition has its own finding and alone causes no joint one, which needs enough other topics."""
    fast = {"free/t-partition-0": [0, 10 * GIB, 20 * GIB, 30 * GIB]}
    assert by_name(judged(scenes(fast | growing(3, "free/t-partition-1{0}")))) == {"free/t-partition-0": WARNING}
    assert set(by_name(judged(scenes(fast | growing(8, "free/t-partition-1{0}"))))) == {"free/t-partition-0", "free/t"}


def test_a_snapshot_that_is_partial_makes_no_sum() -> None:
    """A partial snapshot is left out of the sums, so that its missing topics do not count as a fall."""
    made = scenes(growing(10, steps=6))
    made[3].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]
    made[3].rows["topics"] = made[3].rows["topics"][::2]
    assert list(by_name(judged(made))) == ["free/t"]


def test_a_namespace_has_its_own_threshold() -> None:
    """A namespace with a higher threshold of its own gives no finding about its topics together."""
    policy = a_policy(namespaces={"acme/free": {"backlog_growing": {"warning_bytes_per_second_together": 10 * MIB}}})
    assert judged(scenes(growing(10)), policy).findings == ()
