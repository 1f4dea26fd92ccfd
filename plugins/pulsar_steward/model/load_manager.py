"""Names in which brokers report their load manager: its settings with Pulsar's defaults, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

EXTENSIBLE = "ExtensibleLoadManagerImpl"
HISTORY = "pulsar_lb_resource_usage"
"""Metric that `ExtensibleLoadManagerImpl` compares: with the label ``feature="max_ema"``, averaged over time."""

RESOURCES = {
    "pulsar_lb_cpu_usage": "loadBalancerCPUResourceWeight",
    "pulsar_lb_memory_usage": "loadBalancerMemoryResourceWeight",
    "pulsar_lb_directMemory_usage": "loadBalancerDirectMemoryResourceWeight",
    "pulsar_lb_bandwidth_in_usage": "loadBalancerBandwidthInResourceWeight",
    "pulsar_lb_bandwidth_out_usage": "loadBalancerBandwidthOutResourceWeight",
}
"""Metrics of a broker's resources, in percent, and the settings of their weights."""

THROUGHPUT = ("pulsar_broker_throughput_in", "pulsar_broker_throughput_out")

SERIES = (*RESOURCES, HISTORY, *THROUGHPUT)
"""Metrics from which a broker's usage is read."""

WEIGHTS = {
    "loadBalancerCPUResourceWeight": 1.0,
    "loadBalancerMemoryResourceWeight": 0.0,
    "loadBalancerDirectMemoryResourceWeight": 0.0,
    "loadBalancerBandwidthInResourceWeight": 1.0,
    "loadBalancerBandwidthOutResourceWeight": 1.0,
}
LIMITS = {
    "loadBalancerBrokerThresholdShedderPercentage": 10.0,
    "loadBalancerBundleUnloadMinThroughputThreshold": 10.0,
    "loadBalancerBrokerOverloadedThresholdPercentage": 85.0,
    "loadBalancerBrokerLoadTargetStd": 0.25,
}
SETTINGS = (
    "loadManagerClassName",
    "loadBalancerEnabled",
    "loadBalancerSheddingEnabled",
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerTransferEnabled",
    *WEIGHTS,
    *LIMITS,
)
"""Settings of brokers from which the load manager is read."""


def is_extensible(settings: Mapping[str, str]) -> bool:
    """True if a broker with these settings runs `ExtensibleLoadManagerImpl`."""
    return settings.get("loadManagerClassName", "").endswith(f".{EXTENSIBLE}")
