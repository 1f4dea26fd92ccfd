"""Scenarios of the demo, by name: each breaks something that Steward heals."""

from lab.demo.scenarios import balance, coordinators, drain, settings, split
from lab.demo.scenarios.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in (coordinators.TC, split.SPLIT, balance.UNLOAD, drain.DRAIN, settings.QUOTA, settings.RETENTION)
}

__all__ = ["SCENARIOS", "Scenario"]
