"""A namespace all of whose bundles are on one broker, as after the others were restarted."""

from collections.abc import Mapping

from lab.demo.scenarios.loaded import LoadedNamespace
from lab.demo.scenarios.scenario import Scenario

LOPSIDED = LoadedNamespace(name="lopsided", bundles=12, partitions=120, owner_of=lambda _: 0, owner=0)
SNAPSHOTS = 2
AT_MOST_TIMES_MEAN = 2


def _nearer(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return sum(now.values()) == sum(before.values()) and max(now.values()) * len(now) < AT_MOST_TIMES_MEAN * sum(
        now.values()
    )


UNLOAD = Scenario(
    name="unload",
    trouble=f"moving all {LOPSIDED.bundles} bundles of {LOPSIDED.namespace} to one broker",
    counted=f"topics of {LOPSIDED.namespace} by broker",
    made=LOPSIDED.made,
    spec=LOPSIDED.spec,
    shown=LOPSIDED.topics_by_broker,
    healed=_nearer,
    observations=SNAPSHOTS,
    policy={
        "broker_load_skew": {"minimum_topics": LOPSIDED.partitions // 2},
        "bundle_balance_remedy": {"least_snapshots": SNAPSHOTS},
    },
)
