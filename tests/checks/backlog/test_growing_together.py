"""Backlogs that grow too slowly to matter, but together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.finding import Severity
from tests.builders import a_policy
from tests.checks.backlog.histories import judged, scenes
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

MIB, GIB = 1024**2, 1024**3
WARNING = Severity.WARNING
SLOW = 800 * MIB
"""In a quarter of an hour: 0.9 MiB/s."""


def growing(count: int, name: str = "free/t-partition-{0}", steps: int = 4, by: int = SLOW) -> dict[str, list[int]]:
    """Backlogs of so many topics, each of which grows by as much from one snapshot to the next."""
    return {name.format(number): [step * by for step in range(steps)] for number in range(count)}


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


def test_what_it_says(golden: Golden) -> None:
    """What grows by itself is not told again, and alone causes no joint finding; a partial snapshot makes no sum."""
    own = a_policy(namespaces={"acme/free": {"backlog_growing": {"warning_bytes_per_second_together": 10 * MIB}}})
    fast = {"free/t-partition-0": [0, 10 * GIB, 20 * GIB, 30 * GIB]}
    partial = scenes(growing(10, steps=6))
    partial[3].rows["snapshot"][0]["unread_brokers"] = ["b:8080"]
    partial[3].rows["topics"] = partial[3].rows["topics"][::2]
    cases: dict[str, tuple[Any, ...]] = {
        "partitions of one topic": (scenes(growing(10)),),
        "topics, and single partitions, of one namespace": (
            scenes(growing(6, "free/t{0}") | growing(6, "free/{0}-partition-0")),
        ),
        "one grows fast, beside too few others": (scenes(fast | growing(3, "free/t-partition-1{0}")),),
        "one grows fast, beside enough others": (scenes(fast | growing(8, "free/t-partition-1{0}")),),
        "one snapshot was partial": (partial,),
        "below the namespace's own threshold": (scenes(growing(10)), own),
    }
    golden(told({rule: judged(*case) for rule, case in cases.items()}))
