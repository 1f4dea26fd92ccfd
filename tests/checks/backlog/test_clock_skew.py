"""Clocks of brokers that are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.backlog.brokers import CLOCK_SKEW
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import severity_of

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene

WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL

Clocks = list[int | None]

CLOCKS: dict[str, tuple[Clocks, Severity | None, bool]] = {
    "all the same, far from the collector's": ([90_000, 90_900, 90_100], None, True),
    "just not apart": ([-2500, 0, 2499], None, True),
    "apart": ([-2500, 0, 2500], WARNING, True),
    "a minute apart": ([0, 60_000, None], CRITICAL, True),
    "one that was not read": ([0, 0, None], None, False),
    "none that was read": ([None, None], None, False),
}


@pytest.mark.parametrize(("skews", "severity", "whole"), CLOCKS.values(), ids=CLOCKS)
def test_clocks_are_compared_with_each_other(
    scene: Scene, skews: Clocks, severity: Severity | None, *, whole: bool
) -> None:
    """Brokers' clocks are compared with each other only, and health is not claimed with an unread clock."""
    scene.rows["brokers"] = [
        {"broker": f"b{number}", "read": True, "clock_skew_milliseconds": skew} for number, skew in enumerate(skews)
    ]
    judgement = scene.judged(CLOCK_SKEW)
    assert severity_of(judgement) is severity
    assert (judgement.cannot_tell is None) == whole


def test_a_broker_that_was_not_read_is_left_alone(scene: Scene) -> None:
    """A broker that was not read leads to no finding, though its clock seems to be far off."""
    for broker, read, skew in (("a:8080", True, 0), ("b:8080", True, 0), ("c:8080", False, 90_000)):
        scene.rows["brokers"] = [row for row in scene.rows["brokers"] if row["broker"] != broker]
        scene.rows["brokers"].append({"broker": broker, "read": read, "clock_skew_milliseconds": skew})
    judgement = scene.judged(CLOCK_SKEW)
    assert (judgement.findings, judgement.cannot_tell) == ((), None)


def test_a_snapshot_without_clocks_cannot_tell(scene: Scene) -> None:
    """The check cannot tell when the snapshot has no column of brokers' clocks."""
    assert scene.judged(CLOCK_SKEW).cannot_tell == "No broker's clock was read."
