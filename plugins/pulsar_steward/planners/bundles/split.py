"""Planner: splits bundles with too many topics or too much load until no part has (docs/remediations/split.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.placement.bundle_topic_skew import CHECK as BUNDLE_TOPIC_SKEW
from pulsar_steward.checks.placement.hot_bundle import CHECK as HOT_BUNDLE
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal
from pulsar_steward.planners.bundles.excess import BundleLimits
from pulsar_steward.planners.bundles.facts import BundleTrouble, is_business
from pulsar_steward.planners.bundles.split_search import SplitSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts

KIND = "bundle_split"


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch that splits the too large bundles of a namespace, the goal."""
    if goal in planning.claimed:
        return Proposal(notes=(f"{goal}: no split is proposed, as this plan already changes its bundles.",))
    crowd = next((each for each in planning.bundles.crowds if each.namespace == goal), None)
    if crowd is None:
        return Proposal(notes=(f"{goal}: no split is proposed, as its bundles are not in the snapshot.",))
    trouble = _trouble(findings)
    limits = BundleLimits(
        crowd=crowd,
        by_topics=trouble.by_topics,
        hot=trouble.hot,
        busy=planning.bundles.busy,
        brokers=planning.bundles.limits,
        policy=planning.policy.for_namespace(goal),
        cluster=planning.policy,
    )
    search = SplitSearch(planning, limits)
    search.run()
    notes = (*search.notes(), *_rest(search, limits))
    if not search.steps:
        return Proposal(
            notes=notes or (f"{goal}: no split is proposed, as none of its bundles is too large by the policy.",)
        )
    whole = len({part.bundle for part in search.parts if str(part.range) != part.bundle})
    batch = Batch(
        kind=KIND,
        title=(
            f"{goal}: split {counted(whole, 'bundle')} into {whole + len(search.steps)},"
            f" so that it has {crowd.bundles + len(search.steps):,} instead of {crowd.bundles:,}"
        ),
        findings=findings,
        steps=tuple(search.steps),
    )
    return Proposal(batches=(batch,), notes=notes)


def troubles(findings: Iterable[Finding]) -> dict[str, BundleTrouble]:
    """The findings of each business namespace that call for splits, summed up, in order of name."""
    return {name: _trouble(found) for name, found in PLANNER.answered(findings).items()}


def _trouble(findings: Iterable[Finding]) -> BundleTrouble:
    hot = {each.subject.rpartition("/")[2] for each in findings if each.check_id == HOT_BUNDLE.check_id}
    by_topics = any(each.check_id == BUNDLE_TOPIC_SKEW.check_id for each in findings)
    return BundleTrouble(by_topics=by_topics, hot=frozenset(hot))


def _namespace(finding: Finding) -> str | None:
    """The business namespace of a finding; None: it is the coordinators' or a broker's heartbeat namespace."""
    hot = finding.check_id == HOT_BUNDLE.check_id
    namespace = finding.subject.rpartition("/")[0] if hot else finding.subject
    return namespace if is_business(namespace) else None


def _rest(search: SplitSearch, limits: BundleLimits) -> Iterator[str]:
    """A note on parts that remain too full, by the measure of the check."""
    if not limits.by_topics:
        return
    fullest = max((part.load.topics for part in search.parts), default=0)
    fullest = max(fullest, limits.crowd.rest_topics)
    if fullest >= (limit := limits.topics(len(search.steps))):
        remedy = limits.cluster.bundle_split_remedy
        yield (
            f"{limits.crowd.namespace}: its fullest bundle still holds {counted(fullest, 'topic')} then, and"
            f" bundle-topic-skew warns of {limit:,}: at most {counted(remedy.most_splits, 'split')} come in one plan,"
            f" and bundles of fewer than {counted(remedy.least_topics, 'topic')} are not split for their number"
            " (bundle_split_remedy.most_splits and .least_topics)."
        )


PLANNER = Planner(
    kinds=(KIND,),
    answers=frozenset({BUNDLE_TOPIC_SKEW.check_id, HOT_BUNDLE.check_id}),
    goal=_namespace,
    propose=propose,
    partial_note="Splits of bundles: nothing is proposed, as the snapshot is partial without {missing}.",
    young_note=(
        "{goal}: no split is proposed yet, as its findings have not stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    ),
)
