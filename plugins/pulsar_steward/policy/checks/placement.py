"""Thresholds of the checks of where things are."""

from __future__ import annotations

from pydantic import Field

from pulsar_steward.policy.section import Section


class TcSkewPolicy(Section):
    """When uneven transaction coordinators are trouble, and how they are moved."""

    warning_spread_coordinators: int = Field(
        3, ge=2, description="most minus fewest on a broker; a freshly started cluster shows 2 (6/6/4)"
    )
    settled_bundle_coordinators: int = Field(
        4,
        ge=0,
        description="most coordinators in one bundle that may stay as they are where a broker has that bundle alone: no"
        " move makes them fewer, and a split cannot be undone",
    )
    critical_share_percent: int = Field(
        75, ge=1, le=100, description="share of all coordinators on one broker, whose restart would stall that many"
    )
    cooldown_minutes: int = Field(30, ge=0, description="rest of a bundle after a move, against moving in circles")


class BundleTopicSkewPolicy(Section):
    """When topics crowd in few bundles of a namespace."""

    minimum_topics: int = Field(100, ge=1, description="namespaces with fewer topics are left alone")
    warning_times_mean: int = Field(3, ge=2, description="topics in the fullest bundle, as a multiple of the mean")
    warning_topics_per_bundle: int = Field(1000, ge=1, description="topics in one bundle that are too many anywhere")


class BrokerLoadSkewPolicy(Section):
    """When a broker carries far more than the others, or nothing at all."""

    warning_times_others: int = Field(
        2, ge=2, description="what a broker carries, as a multiple of the mean of the others; shedders bear less too"
    )
    minimum_topics: int = Field(500, ge=1, description="topics on a broker; one with fewer is not full")
    minimum_bundles: int = Field(50, ge=1, description="bundles on a broker, its heartbeats among them; the same")
    minimum_throughput_megabytes: int = Field(20, ge=1, description="bytes in and out, 10^6 a second; the same")
    minimum_clients: int = Field(1000, ge=1, description="producers and consumers on a broker; the same")
    empty_percent: int = Field(
        5, ge=0, le=100, description="a broker with at most this share of the others' mean topics counts as empty"
    )
    critical_cpu_percent: int = Field(
        85, ge=1, le=100, description="CPU of a full broker; as `loadBalancerBrokerOverloadedThresholdPercentage`"
    )


class HotBundlePolicy(Section):
    """When one bundle is too much for the broker that has to take it as a whole."""

    warning_times_mean: int = Field(
        10, ge=2, description="throughput or clients of a bundle, as a multiple of the mean of bundles that have any"
    )
    minimum_throughput_megabytes: int = Field(20, ge=1, description="10^6 bytes a second; less is not hot")
    minimum_clients: int = Field(1000, ge=1, description="producers and consumers; fewer are not hot")
    dominating_topic_percent: int = Field(
        50, ge=1, le=100, description="share of one topic in its bundle from which a split cannot help"
    )
    critical_cpu_percent: int = Field(
        85, ge=1, le=100, description="CPU of the owner; as `loadBalancerBrokerOverloadedThresholdPercentage`"
    )


class BundleFlappingPolicy(Section):
    """When a bundle changes its owner again and again; a move straight back counts as two."""

    window_minutes: int = Field(360, ge=1, description="earlier snapshots that are looked at")
    warning_moves: int = Field(
        4, ge=2, description="within the window; 3 are a move and its undoing, which Steward may have done itself"
    )
    critical_moves: int = Field(8, ge=2, description="the same; there and back three times are 9")


class PlacementChecks(Section):
    """A section for each check of the group."""

    tc_skew: TcSkewPolicy = TcSkewPolicy()
    bundle_topic_skew: BundleTopicSkewPolicy = BundleTopicSkewPolicy()
    broker_load_skew: BrokerLoadSkewPolicy = BrokerLoadSkewPolicy()
    hot_bundle: HotBundlePolicy = HotBundlePolicy()
    bundle_flapping: BundleFlappingPolicy = BundleFlappingPolicy()
