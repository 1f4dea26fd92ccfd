"""The brokers' own load manager and what it compares, as planners find them in a snapshot."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, USAGES_UNKNOWN, BrokerUsage, LoadManager
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model import tables
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.facts.test_load_manager import EXTENSIBLE, FLOW, HISTORY, MODULAR, RESOURCES
from tests.unit.snapshots.conftest import write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.planners.planning_facts import PlanningFacts

Samples = list[tuple[str, str, float]]
READ = ("a:1", "b:1")


def planned(folder: Path, settings: Mapping[str, Mapping[str, str]], samples: Mapping[str, Samples]) -> PlanningFacts:
    """Facts of a snapshot whose brokers told these settings and samples."""
    configuration = [
        {"broker": broker, "key": key, "value": value} for broker, of in settings.items() for key, value in of.items()
    ]
    metrics = [
        {"source": broker, "source_kind": "broker", "series": series, "value": value}
        | {"labels_json": f'{{"feature":"{feature}"}}' if feature else "{}"}
        for broker, of in samples.items()
        for series, feature, value in of
    ]
    for table, rows in ((tables.CONFIGURATION, configuration), (tables.METRICS, metrics)):
        shutil.rmtree(folder / table.name)
        write(folder, table, rows)
    return planning_facts_of(open_snapshot(str(folder)), Policy(), Moves())


def test_a_calm_cluster(folder: Path) -> None:
    """No usage is read of brokers whose shedding is off."""
    calm = MODULAR | {"loadBalancerSheddingEnabled": "false"}
    facts = planned(folder, dict.fromkeys(READ, calm), {})
    assert facts.load_manager == LoadManager(name="ModularLoadManagerImpl")
    assert facts.usages == USAGES_UNKNOWN


@pytest.mark.parametrize(
    ("settings", "samples", "percent"),
    [(MODULAR, RESOURCES, 50.0), (EXTENSIBLE, HISTORY, 35.0)],
    ids=["modular", "extensible"],
)
def test_a_cluster_that_sheds(folder: Path, settings: dict[str, str], samples: Samples, percent: float) -> None:
    """Each broker that was read has a usage, by the figure that its load manager compares."""
    facts = planned(folder, dict.fromkeys(READ, settings), {key: [*samples, *FLOW] for key in READ})
    assert isinstance(facts.load_manager, LoadManager)
    assert facts.load_manager.sheds
    assert facts.usages == tuple(BrokerUsage(broker=broker, percent=percent, bytes=3000.0) for broker in READ)


@pytest.mark.parametrize("told", [READ[:1], ()])
def test_a_broker_that_tells_too_little(folder: Path, told: Sequence[str]) -> None:
    """Usages and load manager are unknown if a broker tells no metrics or no settings."""
    facts = planned(folder, dict.fromkeys(READ, MODULAR), {key: [*RESOURCES, *FLOW] for key in told})
    assert facts.usages == USAGES_UNKNOWN
    assert planned(folder, dict.fromkeys(told, MODULAR), {}).load_manager == MANAGER_UNKNOWN


def test_brokers_that_are_set_differently(folder: Path) -> None:
    """The load manager is unknown if the brokers' settings for it differ."""
    settings = {"a:1": MODULAR, "b:1": MODULAR | {"loadBalancerBrokerThresholdShedderPercentage": "50"}}
    assert isinstance(planned(folder, settings, {}).load_manager, Unknown)
