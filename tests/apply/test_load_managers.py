"""Changes on brokers with another load manager, with shedding of their own, in groups, and of several clusters."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from lab.simulator import Answer, ClusterSpec, Fault, LoadSpec, NamespaceSpec, TopicSpec, running_simulator
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.setting import Retention, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import SKEWED, Worksite, permitted, said
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHEDDING = {"loadBalancerSheddingEnabled": "true", "loadBalancerBundleUnloadMinThroughputThreshold": "0"}
MANAGERS = ("modular", "extensible")
ALL = "0x00000000_0xffffffff"
BUSY = (TopicSpec("t", producers=1, rate_in=1000.0),)
ORDERS = NamespaceSpec("shop/orders", bundles=1, owner=0, topics=BUSY)
USUAL = replace(SKEWED, namespaces=(ORDERS,))


@contextmanager
def a_site(folder: Path, spec: ClusterSpec = USUAL, **fields: Any) -> Iterator[Worksite]:
    """A skewed cluster, with other fields of `ClusterSpec`."""
    with running_simulator(replace(spec, **fields)) as simulator:
        engine = ledger_at(f"sqlite:///{folder / 'ledger.db'}")
        yield Worksite(simulator, engine)
        engine.dispose()


def loads(*percents: float) -> tuple[LoadSpec, ...]:
    """Loads of the brokers, by the usage of their processors."""
    return tuple(LoadSpec(cpu_percent=2 * percent, usage_ratio=percent / 100) for percent in percents)


@pytest.mark.parametrize("shedding", [{}, SHEDDING], ids=["calm", "shedding"])
@pytest.mark.parametrize("load_manager", MANAGERS)
def test_coordinators_move_whatever_the_load_manager_does(
    tmp_path: Path, load_manager: str, shedding: dict[str, str]
) -> None:
    """Moves of coordinators are done under both load managers, with and without shedding, and need no usage."""
    with a_site(tmp_path, load_manager=load_manager, configuration=shedding) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", times=None))  # where a usage would be read
        plan = site.approved(site.move(0, 1), site.move(1, 2))
        assert said(site.carry_out(plan)) == ["done", "done"]
        site.proved(plan)
        assert [site.owner(bundle) for bundle in site.tc_bundles[:2]] == list(site.brokers[1:])


@pytest.mark.parametrize(
    ("load_manager", "strategy"), [("modular", "ThresholdShedder"), ("extensible", "TransferShedder")]
)
def test_a_move_that_shedding_would_undo_is_refused(tmp_path: Path, load_manager: str, strategy: str) -> None:
    """A move to a broker with high load is refused, as the brokers' own shedding would undo it."""
    with a_site(tmp_path, load_manager=load_manager, configuration=SHEDDING, loads=loads(10, 80, 10)) as site:
        (outcome,) = site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))
        assert outcome.outcome == "refused"
        assert f"shedding: the brokers' own shedding would undo it: {strategy} takes from" in outcome.reason
        assert site.untouched()


@pytest.mark.parametrize("load_manager", MANAGERS)
def test_a_move_that_shedding_would_leave_is_made(tmp_path: Path, load_manager: str) -> None:
    """A move from a broker with more load to one with less is done while shedding is on."""
    others = replace(ORDERS, name="shop/bills", topics=(TopicSpec("t", producers=1, rate_in=9000.0),))
    spec = replace(SKEWED, configuration=SHEDDING, loads=loads(30, 20, 25), namespaces=(ORDERS, others))
    with a_site(tmp_path, spec, load_manager=load_manager) as site:
        assert said(site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))) == ["done"]


def test_a_broker_that_tells_no_usage_may_have_any(tmp_path: Path) -> None:
    """A move is refused if the usage of a broker cannot be read while brokers shed bundles by themselves."""
    with a_site(tmp_path, configuration=SHEDDING) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", broker_id=site.brokers[2], times=None))
        assert said(site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))) == ["refused"]
        assert site.untouched()


def test_a_bundle_that_may_be_on_its_way_is_left_alone(tmp_path: Path) -> None:
    """A move drifts if another broker owns the bundle, or if no broker says that it owns the bundle."""
    with a_site(tmp_path, load_manager="extensible") as site:
        plan = site.approved(site.move(0, 1))
        with Writer(site.settings) as writer:
            writer.send(calls.unload(TC_NAMESPACE, site.tc_bundles[0], site.brokers[2]), permitted)
        assert site.owner(site.tc_bundles[0]) == site.brokers[2]
        assert said(site.carry_out(plan)) == ["drifted"]
        url = f"{site.simulator.admin_urls[0]}/admin/v2/namespaces/{TC_NAMESPACE}/{site.tc_bundles[1]}/unload"
        assert httpx.put(url).is_success
        (outcome,) = site.carry_out(site.approved(site.move(1)))
        assert outcome.outcome == "drifted"
        assert (
            "owner: no broker says that it owns pulsar/system/0x40000000_0x80000000: nobody does, or" in outcome.reason
        )


def test_topics_of_the_load_balancer_are_no_way_to_load_a_bundle(tmp_path: Path) -> None:
    """A bundle is loaded by a lookup of a coordinator's topic, and never of a load balancer's topic."""
    with a_site(tmp_path, load_manager="extensible", system_bundles=1) as site:
        assert said(site.carry_out(site.approved(site.move(ALL, 1)))) == ["done"]
        assert all("transaction_coordinator_assign" in path for path in site.lookups())


def test_a_group_is_kept_apart(tmp_path: Path) -> None:
    """A move is refused to a broker with a namespace of the same anti-affinity group, and done to another one."""
    orders = replace(ORDERS, anti_affinity_group="apart")
    namespaces = (orders, replace(orders, name="shop/bills", owner=1))
    with a_site(tmp_path, namespaces=namespaces) as site:
        (outcome,) = site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))
        assert outcome.outcome == "refused"
        assert f"anti_affinity: {site.brokers[1]} has bundles of 1 other namespace of the" in outcome.reason
        assert site.untouched()
        assert said(site.carry_out(site.approved(site.move(ALL, 2, namespace="shop/orders")))) == ["done"]


def test_a_setting_of_several_clusters_is_left_alone(tmp_path: Path) -> None:
    """A setting is refused if its namespace is replicated to another cluster."""
    shared = replace(ORDERS, policies={"replication_clusters": ["local", "west"]})
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.RETENTION, before=None, after=Retention(minutes=60, megabytes=-1)
    )
    with a_site(tmp_path, namespaces=(shared,)) as site:
        (outcome,) = site.carry_out(site.approved(change))
        assert outcome.outcome == "refused"
        assert "one_cluster: west would get it as well, as shop/orders is served there too" in outcome.reason
        assert site.untouched()
