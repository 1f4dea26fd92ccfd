"""Made-up scenes of crowded bundles and of brokers with uneven loads."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from pulsar_steward.facts.risks import Surroundings, TopicFigures
from pulsar_steward.model.bundles import BundleRange, position_of, range_holding
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import numbered
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import SplitBundle, Step, UnloadBundle
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.planners.bundles.facts import (
    BundleFacts,
    Load,
    LoadFacts,
    NamespaceToSplit,
    OwnedBundlesLoad,
    PlacedBundle,
    RiskFigures,
    SplitCandidate,
    TopicFact,
)
from pulsar_steward.planners.bundles.parts import load_of
from pulsar_steward.policy.schema import Policy
from tests.builders import a_finding, broker, equal_ranges, planning_facts_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.planners.base import Proposal
    from pulsar_steward.planners.planning_facts import PlanningFacts

NAMESPACE = "shop/orders"


def finding(check_id: str, subject: str, severity: Severity = Severity.WARNING, **fields: Any) -> Finding:
    """A finding of any kind, without figures unless `fields` have some."""
    return a_finding(severity, check_id=check_id, subject=subject, **{"figures": {}, **fields})


CROWDED = finding("bundle-topic-skew", NAMESPACE)


def hot(bundle: BundleRange | str) -> Finding:
    return finding("hot-bundle", f"{NAMESPACE}/{bundle}")


def names_in(bundle: BundleRange) -> Iterator[str]:
    """Endless names of topics that fall into a range."""
    names = (f"persistent://{NAMESPACE}/t-partition-{number}" for number in count())
    return (name for name in names if position_of(name) in bundle)


def topics_in(bundle: BundleRange, loads: Iterable[Mapping[str, int]]) -> tuple[TopicFact, ...]:
    """Topics that fall into a range, one for each load, by position."""
    facts = [TopicFact(position_of(name), name, **load) for load, name in zip(loads, names_in(bundle), strict=False)]
    return tuple(sorted(facts, key=lambda fact: fact.position))


def a_suspect(bundle: BundleRange, loads: Iterable[Mapping[str, int]], **fields: Any) -> SplitCandidate:
    """A bundle on broker 0 whose topics are all loaded; `fields` are those of `SplitCandidate`."""
    topics = topics_in(bundle, loads)
    usual: dict[str, Any] = {
        "bundle": str(bundle),
        "owner": broker(0),
        "load": load_of(topics),
        "positions": tuple(topic.position for topic in topics),
        "topics": topics,
    }
    return SplitCandidate(**{**usual, **fields})


def a_crowd(suspects: Sequence[SplitCandidate], *, bundles: int = 4, others: int = 0) -> NamespaceToSplit:
    """A namespace of so many bundles; those that are no suspects have so many topics in all."""
    rest = bundles - len(suspects)
    return NamespaceToSplit(
        namespace=NAMESPACE,
        bundles=bundles,
        topics=sum(suspect.load.topics for suspect in suspects) + others,
        rest_topics=-(-others // rest) if rest else 0,
        suspects=tuple(suspects),
    )


def crowded_scene(crowd: NamespaceToSplit, findings: Sequence[Finding] = (CROWDED,), **fields: Any) -> PlanningFacts:
    """A planning of one namespace with trouble; `fields` are those of `BundleFacts` and `PlanningFacts`."""
    of_bundles = {name: fields.pop(name) for name in BundleFacts.__struct_fields__ if name in fields}
    facts = BundleFacts(crowds=(crowd,), **of_bundles)
    return planning_facts_with(3, **{"findings": tuple(findings), "bundles": facts, **fields})


def crowded(*counts: int) -> NamespaceToSplit:
    """A namespace of as many bundles as there are counts, each with so many idle topics."""
    ranges = equal_ranges(len(counts))
    suspects = [a_suspect(bundle, [{}] * number) for bundle, number in zip(ranges, counts, strict=True)]
    return a_crowd(suspects, bundles=len(counts))


def spread_out(topics: int, bundles: int) -> NamespaceToSplit:
    """A namespace of many bundles, its topics wherever they hash to."""
    ranges = equal_ranges(bundles)
    held: dict[BundleRange, list[TopicFact]] = {bundle: [] for bundle in ranges}
    for number in range(topics):
        name = f"persistent://{NAMESPACE}/t-partition-{number}"
        held[range_holding(ranges, position_of(name))].append(TopicFact(position_of(name), name))
    suspects = [
        SplitCandidate(
            bundle=str(bundle),
            owner=broker(0),
            load=Load(topics=len(facts)),
            positions=tuple(sorted(fact.position for fact in facts)),
            topics=tuple(sorted(facts, key=lambda fact: fact.position)),
        )
        for bundle, facts in held.items()
    ]
    return a_crowd(suspects, bundles=bundles)


def after_splits(crowd: NamespaceToSplit, proposal: Proposal) -> dict[BundleRange, tuple[TopicFact, ...]]:
    """The topics of every bundle after all splits, in order; fails where one comes before what makes its bundle."""
    held = {BundleRange.parse(each.bundle): each.topics for each in crowd.suspects}
    for batch in numbered(proposal.batches):
        made: dict[str, str] = {}
        for step in batch.steps:
            assert isinstance(step.change, SplitBundle)
            whole, *halves = (BundleRange.parse(text) for text in (step.change.bundle, *step.change.halves))
            assert step.after == ((made[str(whole)],) if str(whole) in made else ())
            topics = held.pop(whole)
            for half in halves:
                held[half] = tuple(topic for topic in topics if topic.position in half)
                made[str(half)] = step.step_id
    return held


def a_stay(owner: int, number: int, load: Load | None = None, **fields: Any) -> PlacedBundle:
    """A bundle that stayed on a broker; it carried the same all the time if nothing else is said."""
    same = Load(topics=100, bytes=MEGABYTE, producers=5, consumers=5) if load is None else load
    usual: dict[str, Any] = {
        "namespace": NAMESPACE,
        "bundle": f"0x{number << 12:08x}_0x{number + 1 << 12:08x}",
        "owner": broker(owner),
        "mean": same,
        "peak": same,
        "now": same,
    }
    return PlacedBundle(**{**usual, **fields})


FIELDS = ("topics", "bytes", "messages", "producers", "consumers")
SKEW = Policy().broker_load_skew
FULL_BROKER = (SKEW.minimum_topics, SKEW.minimum_throughput_megabytes * MEGABYTE, SKEW.minimum_clients)
"""Topics, bytes a second and clients of what the check takes for a full broker."""

CLIENTS = st.integers(0, 500)
LOADS = st.builds(
    Load, topics=st.integers(1, 3000), bytes=st.integers(0, 50 * MEGABYTE), producers=CLIENTS, consumers=CLIENTS
)


def summed(loads: Iterable[Load]) -> Load:
    every = list(loads)
    return Load(**{field: sum(getattr(load, field) for load in every) for field in FIELDS})


def assert_undoable(step: Step) -> None:
    """A move of a usual bundle passed its guards, says whom it touches, and its undo is the opposite move."""
    assert isinstance(step.change, UnloadBundle)
    assert isinstance(step.undo, UnloadBundle)
    assert (step.undo.source, step.undo.target) == (step.change.target, step.change.source)
    assert (step.touched.producers, step.touched.consumers, step.touched.topics) == (5, 5, 100)
    assert step.guards
    assert all(result.passed for result in step.guards)


def over_quota(bundle: str | None, topic: str = "persistent://shop/orders/t") -> RiskFigures:
    """A size quota of the namespace over which a topic of this bundle is, with three producers; None: no topic."""
    quota = BacklogQuota(limit_bytes=100, policy=QuotaPolicy.HOLD)
    return RiskFigures(
        figures={bundle: (TopicFigures(topic=topic, producers=3, backlog_bytes=100),)} if bundle else {},
        around={NAMESPACE: Surroundings(quotas={SettingName.SIZE_QUOTA: quota})},
    )


def load_of_stays(brokers: int, stays: Sequence[PlacedBundle], **fields: Any) -> LoadFacts:
    """The load of brokers that have these bundles and nothing else; `fields` are those of `LoadFacts`."""
    loads = []
    for number in range(brokers):
        held = [stay for stay in stays if stay.owner == broker(number)]
        loads.append(
            OwnedBundlesLoad(
                broker=broker(number),
                mean=summed(stay.mean for stay in held),
                peak=summed(stay.peak for stay in held),
                now=summed(stay.now for stay in held),
            )
        )
    return LoadFacts(**{"snapshots": 6, "brokers": tuple(loads), "stays": tuple(stays), **fields})


def uneven_scene(brokers: int, stays: Sequence[PlacedBundle], **fields: Any) -> PlanningFacts:
    """A planning of brokers with uneven loads; `fields` are those of `LoadFacts` and `PlanningFacts`."""
    of_load = {name: fields.pop(name) for name in ("snapshots", "moved", "allowed") if name in fields}
    risks = {"risks": fields.pop("risks")} if "risks" in fields else {}
    facts = BundleFacts(load=load_of_stays(brokers, stays, **of_load), **risks)
    usual: dict[str, Any] = {"findings": (finding("broker-load-skew", broker(0)),), "bundles": facts}
    return planning_facts_with(brokers, **{**usual, **fields})


def ways(proposal: Proposal) -> list[tuple[str, str, str]]:
    """Bundle, source and target of every move, in order."""
    steps = [step for batch in proposal.batches for step in batch.steps]
    changes = [step.change for step in steps if isinstance(step.change, UnloadBundle)]
    return [(change.bundle, change.source, change.target) for change in changes]
