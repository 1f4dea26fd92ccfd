"""A broker that is about to be shut down, with coordinators and topics that clients use."""

from collections.abc import Mapping
from typing import Any

from lab.demo.scenarios.loaded import LoadedNamespace
from lab.demo.scenarios.scenario import Scenario, Shown
from lab.target import PulsarTarget

HARVEST = LoadedNamespace(name="harvest", bundles=12, partitions=36, owner_of=lambda number: number)


def _by_broker(target: PulsarTarget) -> Shown:
    """Topics of the namespace and coordinators together."""
    coordinators = target.tc_placement()
    return {broker: coordinators[broker] + topics for broker, topics in HARVEST.topics_by_broker(target).items()}


def _emptied(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """True if one broker that held something holds nothing, and nothing is lost."""
    empty = [broker for broker, count in now.items() if not count]
    return len(empty) == 1 and before[empty[0]] > 0 and sum(now.values()) == sum(before.values())


def _last_broker(target: PulsarTarget) -> dict[str, Any]:
    return {"brokers": {"draining": [list(target.owned_bundles())[-1]]}}


DRAIN = Scenario(
    name="drain",
    trouble=(
        f"spreading {HARVEST.bundles} bundles of {HARVEST.namespace} over the brokers, and marking the last one as"
        " draining"
    ),
    counted=f"topics of {HARVEST.namespace} and transaction coordinators by broker",
    made=HARVEST.made,
    spec=HARVEST.spec,
    shown=_by_broker,
    healed=_emptied,
    # Brokers on one machine each report all of its CPU.
    policy={"broker_drain_remedy": {"most_usage_percent": 1000}},
    marked=_last_broker,
)
