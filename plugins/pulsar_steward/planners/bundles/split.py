"""Planner: splits bundles that hold too many topics, or are too hot, until no part is (docs/remediations/split.md)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.bundle_topic_skew import CHECK as BUNDLE_TOPIC_SKEW
from pulsar_steward.checks.placement.hot_bundle import CHECK as HOT_BUNDLE
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.numbering import batch_id
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.units import counted
from pulsar_steward.planners.bundles.excess import Limits
from pulsar_steward.planners.bundles.facts import is_business
from pulsar_steward.planners.bundles.notes import enumerated
from pulsar_steward.planners.bundles.split_search import Search
from pulsar_steward.planners.planning_facts import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.planners.bundles.facts import CrowdedNamespace
    from pulsar_steward.planners.planning_facts import PlanningFacts

KIND = "bundle_split"
ANSWERED = frozenset({BUNDLE_TOPIC_SKEW.check_id, HOT_BUNDLE.check_id})
"""Checks whose findings this planner can answer."""


class Trouble(msgspec.Struct):
    """What was found of one namespace.

    Attributes:
        findings: All of it.
        by_topics: Whether its topics crowd.
        hot: Its hot bundles, as ranges.
    """

    findings: list[Finding]
    by_topics: bool = False
    hot: set[str] = msgspec.field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Takes note of a finding."""
        self.findings.append(finding)
        if finding.check_id == BUNDLE_TOPIC_SKEW.check_id:
            self.by_topics = True
        else:
            self.hot.add(finding.subject.rpartition("/")[2])


def troubles(findings: Iterable[Finding]) -> dict[str, Trouble]:
    """Findings that this planner can answer, by business namespace, in order of name."""
    found: defaultdict[str, Trouble] = defaultdict(lambda: Trouble([]))
    for finding in findings:
        if finding.check_id not in ANSWERED or finding.severity.rank < Severity.WARNING.rank:
            continue
        hot = finding.check_id == HOT_BUNDLE.check_id
        namespace = finding.subject.rpartition("/")[0] if hot else finding.subject
        if is_business(namespace):
            found[namespace].add(finding)
    return {name: found[name] for name in sorted(found)}


def propose(planning: PlanningFacts) -> Proposal:
    """A batch for each namespace with bundles that are too large; none from a partial snapshot."""
    found = troubles(planning.findings)
    if found and planning.unread:
        partial = (
            f"Splits of bundles: nothing is proposed, as the snapshot is partial without {_names(planning.unread)}."
        )
        return Proposal(notes=(partial,))
    needed = planning.policy.plan.standing_snapshots
    crowds = {crowd.namespace: crowd for crowd in planning.bundles.crowds}
    standing = troubles(finding for finding in planning.findings if finding.snapshots_in_a_row >= needed)
    proposals = [
        _of_namespace(planning, crowds.get(name), name, standing[name])
        if name in standing
        else _too_young(name, needed)
        for name in found
    ]
    return Proposal(
        batches=tuple(batch for each in proposals for batch in each.batches),
        notes=tuple(note for each in proposals for note in each.notes),
    )


def _names(unread: Iterable[str]) -> str:
    return enumerated(tuple(unread))


def _too_young(namespace: str, needed: int) -> Proposal:
    young = (
        f"{namespace}: no split is proposed yet, as its findings have not stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    )
    return Proposal(notes=(young,))


def _of_namespace(planning: PlanningFacts, crowd: CrowdedNamespace | None, name: str, trouble: Trouble) -> Proposal:
    if name in planning.claimed:
        return Proposal(notes=(f"{name}: no split is proposed, as this plan already changes its bundles.",))
    if crowd is None:
        return Proposal(notes=(f"{name}: no split is proposed, as its bundles are not in the snapshot.",))
    limits = Limits(
        crowd=crowd,
        by_topics=trouble.by_topics,
        hot=frozenset(trouble.hot),
        busy=planning.bundles.busy,
        brokers=planning.bundles.limits,
        policy=planning.policy.for_namespace(name),
        cluster=planning.policy,
    )
    search = Search(planning, limits, batch_id(1))
    search.run()
    notes = (*search.notes(), *_rest(search, limits))
    if not search.steps:
        return Proposal(
            notes=notes or (f"{name}: no split is proposed, as none of its bundles is too large by the policy.",)
        )
    whole = len({piece.bundle for piece in search.pieces if piece.made_by is not None})
    batch = Batch(
        batch_id=batch_id(1),
        kind=KIND,
        title=(
            f"{name}: split {counted(whole, 'bundle')} into {whole + len(search.steps)},"
            f" so that it has {crowd.bundles + len(search.steps):,} instead of {crowd.bundles:,}"
        ),
        findings=tuple(trouble.findings),
        steps=tuple(search.steps),
    )
    return Proposal(batches=(batch,), notes=notes)


def _rest(search: Search, limits: Limits) -> Iterator[str]:
    """What stays too full, measured by the check itself."""
    if not limits.by_topics:
        return
    fullest = max((piece.load.topics for piece in search.pieces), default=0)
    fullest = max(fullest, limits.crowd.rest_topics)
    if fullest >= (limit := limits.topics(len(search.steps))):
        remedy = limits.cluster.bundle_split_remedy
        yield (
            f"{limits.crowd.namespace}: its fullest bundle still holds {fullest:,} topics then, and bundle-topic-skew"
            f" warns of {limit:,}: at most {counted(remedy.most_splits, 'split')} come in one plan, and bundles of"
            f" fewer than {counted(remedy.least_topics, 'topic')} are not split for their number"
            " (bundle_split_remedy.most_splits and .least_topics)."
        )
