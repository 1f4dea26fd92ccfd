"""Changes on brokers with another load manager, with shedding of their own, in groups, and of several clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from lab.simulator import Answer, ClusterSpec, Fault, LoadSpec, NamespaceSpec, TopicSpec
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.refusals import assert_stopped
from tests.apply.worksite import SKEWED, Worksite, a_worksite, permitted, said

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

SHEDDING = {"loadBalancerSheddingEnabled": "true", "loadBalancerBundleUnloadMinThroughputThreshold": "0"}
IMPL = "org.apache.pulsar.broker.loadbalance.impl."
MANAGERS = ("modular", "extensible")
ALL = "0x00000000_0xffffffff"
BUSY = (TopicSpec("t", producers=1, rate_in=1000.0),)
ORDERS = NamespaceSpec("shop/orders", bundles=1, owner=0, topics=BUSY)
USUAL = replace(SKEWED, namespaces=(ORDERS,))


def a_site(folder: Path, spec: ClusterSpec = USUAL, **fields: Any) -> AbstractContextManager[Worksite]:
    """A skewed cluster, with other fields of `ClusterSpec`."""
    return a_worksite(folder, replace(spec, **fields))


def loads(*percents: float) -> tuple[LoadSpec, ...]:
    """Loads of the brokers, by the usage of their processors."""
    return tuple(LoadSpec(cpu_percent=2 * percent, usage_ratio=percent / 100) for percent in percents)


@pytest.mark.parametrize("shedding", [{}, SHEDDING], ids=["calm", "shedding"])
@pytest.mark.parametrize("load_manager", MANAGERS)
def test_coordinators_move_whatever_the_load_manager_does(
    tmp_path: Path, load_manager: str, shedding: dict[str, str]
) -> None:
    with a_site(tmp_path, load_manager=load_manager, configuration=shedding) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", times=None))  # where a usage would be read
        plan = site.approved(site.move(0, 1), site.move(1, 2))
        assert said(site.carry_out(plan)) == ["done", "done"]
        site.proved(plan)
        assert [site.owner(bundle) for bundle in site.tc_bundles[:2]] == list(site.brokers[1:])


@pytest.mark.parametrize(
    ("load_manager", "strategy"),
    [
        ("modular", "ThresholdShedder"),
        ("modular", "AvgShedder"),
        ("modular", "UniformLoadShedder"),
        ("extensible", "TransferShedder"),
    ],
)
def test_a_move_that_shedding_would_undo_is_refused(tmp_path: Path, load_manager: str, strategy: str) -> None:
    """The target has other traffic, of which strategies take as much as the bundle has or more."""
    bills = replace(ORDERS, name="shop/bills", owner=1, topics=(replace(BUSY[0], rate_in=8000.0),))
    spec = replace(USUAL, namespaces=(ORDERS, bills), loads=loads(10, 80, 10))
    configuration = SHEDDING | {"loadBalancerLoadSheddingStrategy": f"{IMPL}{strategy}"}
    with a_site(tmp_path, spec, load_manager=load_manager, configuration=configuration) as site:
        assert_stopped(
            site,
            site.approved(site.move(ALL, 1, namespace="shop/orders")),
            "refused",
            f"shedding: the brokers' own shedding would undo it: {strategy} takes from",
        )


def test_a_broker_that_tells_no_usage_may_have_any(tmp_path: Path) -> None:
    with a_site(tmp_path, configuration=SHEDDING) as site:
        site.simulator.faults.add(Fault(Answer(500), path="/metrics/", broker_id=site.brokers[2], times=None))
        assert said(site.carry_out(site.approved(site.move(ALL, 1, namespace="shop/orders")))) == ["refused"]
        assert site.untouched()


def test_a_bundle_that_may_be_on_its_way_is_left_alone(tmp_path: Path) -> None:
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
    with a_site(tmp_path, load_manager="extensible", system_bundles=1) as site:
        assert said(site.carry_out(site.approved(site.move(ALL, 1)))) == ["done"]
        assert all("transaction_coordinator_assign" in path for path in site.lookups())


def test_a_group_is_kept_apart(tmp_path: Path) -> None:
    orders = replace(ORDERS, anti_affinity_group="apart")
    namespaces = (orders, replace(orders, name="shop/bills", owner=1))
    with a_site(tmp_path, namespaces=namespaces) as site:
        assert_stopped(
            site,
            site.approved(site.move(ALL, 1, namespace="shop/orders")),
            "refused",
            f"anti_affinity: {site.brokers[1]} has bundles of 1 other namespace of the",
        )
        assert said(site.carry_out(site.approved(site.move(ALL, 2, namespace="shop/orders")))) == ["done"]
