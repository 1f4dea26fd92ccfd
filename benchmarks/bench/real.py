"""Comparison of a real cluster with 10,000 topics and a simulated one of the same shape."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from benchmarks.bench.answers import topics_of
from benchmarks.bench.figures import Figures
from benchmarks.processes import told_by
from lab.cluster import running_lab
from lab.faults.real.ground import COMMON_SETTINGS, ground
from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec, running_simulator
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TOPICS = 10
PARTITIONS = 1_000
BUNDLES = 16
BROKERS = 3
SHOWN_WITHIN_S = 600.0
NAMESPACE = "many"


class Cluster(msgspec.Struct, frozen=True):
    """One of the two.

    Attributes:
        topic_bytes: What its statistics say of a topic, the median.
        floor: Its documents fetched, decoded and written, and nothing else.
        collect: Collecting it.
    """

    topic_bytes: float
    floor: Figures
    collect: Figures


class Truth(msgspec.Struct, frozen=True):
    """Both; each with a partition's consumer, and no messages."""

    real: Cluster
    simulated: Cluster


def compared(home: Path, environment: dict[str, str], say: Callable[[str], None]) -> Truth:
    """Starts both, one after the other, and collects each."""
    say("the simulator beside real brokers")
    home.mkdir()
    with (
        running_lab("bench", home=home / "labs", brokers=BROKERS, broker_settings=dict(COMMON_SETTINGS)) as lab,
        ground(lab, NAMESPACE, BUNDLES) as here,
    ):
        topics = [here.topic(f"t-{number}") for number in range(TOPICS)]
        for topic in topics:
            here.admin.create_partitions(topic, PARTITIONS)
            here.shared(topic, receiver_queue_size=1)
        say("  all consumers are connected")
        urls = lab.admin_urls
        wait_until(lambda: len(_sizes(urls)) >= TOPICS * PARTITIONS, "all topics are shown", SHOWN_WITHIN_S, 1)
        real = _measured("real", urls, home, environment, say)
    with running_simulator(alike()) as simulator:
        simulated = _measured("simulated", simulator.admin_urls, home, environment, say)
    return Truth(real, simulated)


def alike() -> ClusterSpec:
    """A simulated cluster of the same shape."""
    like = TopicSpec("t", partitions=PARTITIONS, subscriptions=(SubscriptionSpec("s", consumers=1),))
    topics = tuple(replace(like, name=f"t-{number}") for number in range(TOPICS))
    return ClusterSpec(
        brokers=BROKERS, namespaces=(NamespaceSpec(f"public/{NAMESPACE}", bundles=BUNDLES, topics=topics),)
    )


def _measured(
    which: str, urls: Sequence[str], home: Path, environment: dict[str, str], say: Callable[[str], None]
) -> Cluster:
    sizes = _sizes(urls)
    floor = told_by(Figures, "benchmarks.bench.floor", home / f"{which}-floor", *urls)
    collect = told_by(Figures, "benchmarks.bench.collecting", "spark", home / which, *urls, environment=environment)
    say(f"  {which}: {len(sizes):,} topics, collected in {collect.seconds:.1f} s, floor {floor.seconds:.1f} s")
    return Cluster(statistics.median(sizes), floor, collect)


def _sizes(urls: Sequence[str]) -> list[int]:
    """Bytes of each topic of the namespace in the brokers' statistics."""
    ours = f"public/{NAMESPACE}"
    return [memoryview(each).nbytes for url in urls for namespace, _, each in topics_of(url) if namespace == ours]
