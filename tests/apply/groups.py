"""A cluster that is to be divided by groups of brokers, and isolation policies as another tool sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.simulator import ClusterSpec, LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy
from pulsar_steward.model.step import SetIsolation
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import permitted, quick_policy

if TYPE_CHECKING:
    from typing import Any

    from tests.apply.worksite import Worksite

SPEC = ClusterSpec(
    brokers=4,
    hosts="distinct",
    system_bundles=4,
    namespaces=tuple(
        NamespaceSpec(
            name,
            bundles=4,
            topics=(TopicSpec("t", partitions=20, producers=1, subscriptions=(SubscriptionSpec("s", consumers=1),)),),
        )
        for name in ("shop/orders", "shop/carts", "news/all")
    ),
    loads=(LoadSpec(cpu_percent=20.0),) * 4,
    configuration={"exposeTopicLevelMetricsInPrometheus": "false"},
)
"""Four brokers on hosts of their own, which share three namespaces evenly."""

FIRST_TWO = {"name": "shop", "namespaces": ["shop/.*"], "primary": [r"127\.0\.0\.[12]"], "min_available_brokers": 2}
GROUP = IsolationPolicy(("shop/.*",), (r"127\.0\.0\.[12]",), (), Failover(FailoverLimits("2", "80")))
OTHER = IsolationPolicy(("news/.*",), (r"127\.0\.0\.4",), (), Failover(FailoverLimits("1", "90")))


def wanting(*groups: dict[str, Any], **sections: Any) -> Any:
    return quick_policy(brokers={"groups": list(groups)}, **sections)


def policies(site: Worksite) -> dict[str, IsolationPolicy]:
    with site.context() as context:
        return context.reader.isolation_policies()


def owners(site: Worksite, namespace: str) -> set[str]:
    """The brokers that own a bundle of a namespace."""
    owned = site.simulator.owned_bundles().items()
    return {broker for broker, bundles in owned if any(name.startswith(f"{namespace}/") for name in bundles)}


def somebody_sets(site: Worksite, name: str, policy: IsolationPolicy) -> None:
    """Sets a policy as another tool would, with nothing in the ledger."""
    with Writer(site.settings) as writer:
        writer.send(calls.set_isolation("local", name, policy), permitted)


def somebody_deletes(site: Worksite, name: str) -> None:
    """Deletes a policy as another tool would."""
    with Writer(site.settings) as writer:
        writer.send(calls.delete_isolation("local", name), permitted)


def setting(policy: IsolationPolicy | None = GROUP, **fields: Any) -> SetIsolation:
    usual: dict[str, Any] = {"pulsar_cluster": "local", "policy": "shop", "before": None, "after": policy}
    return SetIsolation(**{**usual, **fields})


def replace_primary(*patterns: str) -> IsolationPolicy:
    return IsolationPolicy(GROUP.namespaces, patterns, (), GROUP.auto_failover_policy)
