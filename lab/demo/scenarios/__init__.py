"""What the demo can break and have healed, by name."""

from lab.demo.scenarios import balance, coordinators, settings, split
from lab.demo.scenarios.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each for each in (coordinators.TC, split.SPLIT, balance.UNLOAD, settings.QUOTA, settings.RETENTION)
}

__all__ = ["SCENARIOS", "Scenario"]
