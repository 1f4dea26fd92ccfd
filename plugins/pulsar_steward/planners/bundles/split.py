"""Planner: splits bundles with too many topics or too much load until no part has (docs/remediations/split.md).

Where a hot bundle's broker carries too much as well, the same batch moves some of its parts to other brokers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.placement.broker_load import names_full_broker
from pulsar_steward.checks.placement.bundle_load import BUNDLE_TOPIC_SKEW, HOT_BUNDLE
from pulsar_steward.model.bundles import BY_TOPIC_COUNT
from pulsar_steward.model.plan import BUNDLE_BALANCE, BUNDLE_SPLIT, Batch
from pulsar_steward.model.step import SplitBundle, Step, Touched
from pulsar_steward.model.topics import SEGMENT
from pulsar_steward.model.units import counted
from pulsar_steward.planners.base import Planner, Proposal, Vetoed, enumerated, placements
from pulsar_steward.planners.bundles.balance import GOAL, UNIT, BalanceSearch, free_to_move, why_no_moves
from pulsar_steward.planners.bundles.balance import PLANNER as MOVES
from pulsar_steward.planners.bundles.facts import BundleTrouble, is_business
from pulsar_steward.planners.bundles.parts import (
    TOPICS,
    BundleLimits,
    BundlePart,
    Excess,
    dominant,
    halves_of,
    part_of,
    placed,
)
from pulsar_steward.planners.snapshot_facts import guarded, vetoes
from pulsar_steward.policy.never_asked import never_asked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pulsar_steward.model.bundles import BundleRange
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.bundles.facts import SplitCandidate
    from pulsar_steward.planners.bundles.parts import Dominant
    from pulsar_steward.planners.planning_facts import PlanningFacts

NO_WAY_BACK = (
    "A split cannot be undone: Pulsar does not join bundles again. Both halves stay on their broker, and can be moved"
    " like any bundle."
)


class SplitSearch:
    """The namespace's parts, and the splits (`steps`) that make them. Each leaves fewer topics a part, so it ends."""

    def __init__(self, planning: PlanningFacts, limits: BundleLimits) -> None:
        self._planning = planning
        self._limits = limits
        self._final: set[BundleRange] = set()
        self._unknown: defaultdict[str, list[BundlePart]] = defaultdict(list)
        self._dominated: dict[tuple[str, str], tuple[Excess, Dominant]] = {}
        self._left: list[tuple[BundlePart, Excess]] = []
        self._vetoed = Vetoed()
        self._parts: dict[BundleRange, BundlePart] = {}
        self.steps: list[Step] = []
        for suspect in limits.crowd.suspects:
            part = part_of(suspect, suspect.owner or "", suspect.positions or ())
            self._parts[part.range] = part
            if why := _unknown(suspect):
                self._unknown[why].append(part)
                self._final.add(part.range)

    @property
    def namespace(self) -> str:
        """``tenant/namespace``."""
        return self._limits.crowd.namespace

    @property
    def parts(self) -> tuple[BundlePart, ...]:
        """Bundles and parts after all steps."""
        return tuple(self._parts.values())

    def run(self) -> None:
        """Splits until no split makes a too large part smaller, or the policy's number is reached."""
        while generation := self._too_large():
            for part, excess in generation:
                if len(self.steps) >= self._limits.cluster.bundle_split_remedy.most_splits:
                    left = [(part, each) for part, _ in self._too_large() for each in self._helped(part)]
                    self._left = [(part, each) for part, each in left if each.measure is not TOPICS]
                    return
                self._split(part, excess)

    def notes(self) -> Iterator[str]:
        """Notes on why there are no further splits."""
        for reason, parts in self._unknown.items():
            bundles = [str(part.range) for part in parts if self._limits.excesses(part, len(self.steps))]
            if bundles:
                yield f"{self.namespace}: {enumerated(bundles)} cannot be split, as {reason}."
        for (bundle, _), (excess, topic) in sorted(self._dominated.items()):
            yield (
                f"{self.namespace}/{bundle}: a split cannot help against {excess.measure.words(excess.amount)}, as"
                f" {topic.topic} has {topic.share_percent} % of its {excess.measure.name}: more partitions for"
                f" {topic.base} can (hot_bundle.dominating_topic_percent)."
            )
        yield from self._vetoed.notes(f"bundles of {self.namespace} from being split")
        most = self._limits.cluster.bundle_split_remedy.most_splits
        hot: dict[str, Excess] = {}
        for part, excess in self._left:
            hot.setdefault(str(part.range), excess)
        if hot:
            yield (
                f"{self.namespace}: {enumerated([f'{name} ({excess.words})' for name, excess in hot.items()])}"
                f" {'is' if len(hot) == 1 else 'are'} still too hot after these {counted(most, 'split')}, the most of"
                " one plan (bundle_split_remedy.most_splits); later plans go on."
            )

    def _too_large(self) -> list[tuple[BundlePart, Excess]]:
        """Parts that a split may help, the worst first."""
        found = [
            (part, excess)
            for part in self._parts.values()
            if part.range not in self._final and (excess := next(self._helped(part), None)) is not None
        ]
        return sorted(found, key=lambda pair: (-pair[1].ratio, pair[0].range))

    def _helped(self, part: BundlePart) -> Iterator[Excess]:
        """Yields excesses of a part that a split reduces, the worst first; keeps those of a single topic for notes."""
        percent = self._planning.policy.hot_bundle.dominating_topic_percent
        for excess in self._limits.excesses(part, len(self.steps)):
            if (topic := dominant(part, excess.measure, percent)) is None:
                yield excess
            else:
                self._dominated.setdefault((str(part.range), excess.measure.name), (excess, topic))

    def _split(self, part: BundlePart, excess: Excess) -> None:
        halves = halves_of(part)
        if halves is None:
            self._final.add(part.range)
            self._unknown["all their topics have one hash position"].append(part)
            return
        step = self._step(part, halves, excess)
        step = guarded(step, self._planning, whole=part.bundle, place_in_run=len(self.steps) + 1)
        if self._vetoed.holds(vetoes(step), str(part.range)):
            self._final.add(part.range)
            return
        self.steps.append(step)
        del self._parts[part.range]
        self._parts.update((half.range, half) for half in halves)

    def _step(self, part: BundlePart, halves: tuple[BundlePart, BundlePart], excess: Excess) -> Step:
        lower, upper = halves
        stay = self._planning.bundles.splits_keep_clients
        return Step(
            change=SplitBundle(
                namespace=self.namespace,
                bundle=str(part.range),
                owner=part.owner,
                algorithm=BY_TOPIC_COUNT,
                halves=(str(lower.range), str(upper.range)),
            ),
            why=f"It carries {excess.words} bundle of {self.namespace}",
            effect=(
                f"{part.owner} still has both halves, {lower.range} with {_carries(lower)}"
                f" and {upper.range} with {_carries(upper)}{'; all clients stay connected' if stay else ''}"
            ),
            touched=Touched(
                producers=0 if stay else part.load.producers,
                consumers=0 if stay else part.load.consumers,
                topics=len(part.positions),
                coordinators=0,
            ),
            undo_note=NO_WAY_BACK,
        )


def _unknown(suspect: SplitCandidate) -> str | None:
    """The reason why the result of a split is not known; None: it is."""
    if suspect.owner is None:
        return "there is no owner, or it is not known who"
    if suspect.positions is None:
        return (
            "the hash positions of the topics are not in the snapshot: each broker is asked for its worst few bundles"
            " (collect.positions_bundles)"
        )
    if len(suspect.topics) < suspect.load.topics:
        return "there are too many topics to be looked at in one plan"
    if any(topic.topic.startswith(SEGMENT) for topic in suspect.topics):
        return "they hold segments of scalable topics, which brokers leave out of account when they divide a bundle"
    return None


def _carries(part: BundlePart) -> str:
    idle = len(part.positions) - part.load.topics
    return part.load.words + (f", and {counted(idle, 'topic')} not loaded" if idle > 0 else "")


def _moves_of_parts(planning: PlanningFacts, split: SplitSearch, hot: Collection[str]) -> BalanceSearch | None:
    """Moves of the parts of hot bundles, if their brokers carry too much as well; None: no part may move.

    Why brokers' loads cannot be evened out at all is said by the planner of moves.
    """
    full, facts = {each.subject for each in _full_brokers(planning)}, planning.bundles.load
    wholes = {bundle: planning.bundles.placed(split.namespace, bundle) for bundle in hot}
    stays = tuple(
        placed(part, whole)
        for part in sorted(split.parts, key=lambda part: part.range)
        if (whole := wholes.get(part.bundle)) and whole.owner in full
        if str(part.range) != part.bundle and part.load.topics  # without a topic, no lookup could have it loaded
    )
    left = never_asked((BUNDLE_SPLIT, BUNDLE_BALANCE), split.namespace, planning.policy)
    unwanted = left or split.namespace in planning.parts_stay
    if not stays or facts is None or unwanted or why_no_moves(planning):
        return None
    free, _ = free_to_move(planning, msgspec.structs.replace(facts, stays=stays))
    search = BalanceSearch(planning, free, split.steps)
    search.run()
    return search


def _full_brokers(planning: PlanningFacts) -> Iterator[Finding]:
    """The findings of brokers that carry too much, and have done so for long enough."""
    least = planning.policy.plan.standing_snapshots
    for finding in MOVES.answered(planning.findings).get(GOAL, ()):
        if finding.snapshots_in_a_row >= least and names_full_broker(finding):
            yield finding


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
        kind=BUNDLE_SPLIT,
        title=(
            f"{goal}: split {counted(whole, 'bundle')} into {whole + len(search.steps):,}"
            f" (namespace: {crowd.bundles:,} → {crowd.bundles + len(search.steps):,})"
        ),
        findings=findings,
        steps=tuple(search.steps),
    )
    moving = _moves_of_parts(planning, search, trouble.hot)
    if moving and moving.moves:
        batch = msgspec.structs.replace(
            batch,
            title=f"{batch.title}, then move {len(moving.moves)} of the parts: {moving.forecast}",
            findings=(*findings, *(each for each in _full_brokers(planning) if each.subject in moving.sources)),
            steps=(*batch.steps, *moving.moves),
            unit=UNIT,
            before=moving.before,
            after=placements(moving.loads.topics),
        )
    elif goal in planning.parts_stay:
        notes = (*notes, f"{goal}: parts are not moved, as a person said no to that, or to moves between brokers.")
    return Proposal(batches=(batch,), notes=(*notes, *(moving.notes() if moving else ())))


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
    kinds=(BUNDLE_SPLIT,),
    answers=frozenset({BUNDLE_TOPIC_SKEW.check_id, HOT_BUNDLE.check_id}),
    goal=_namespace,
    propose=propose,
    partial_note="Splits of bundles: nothing is proposed, as the snapshot is partial without {missing}.",
    young_note=(
        "{goal}: no split is proposed yet, as its findings have not stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    ),
)
