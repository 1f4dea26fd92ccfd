"""Planner: more partitions for a topic that is too much for those it has (docs/remediations/partitions.md).

It is off by default: brokers never lower the number again, and keys go to other partitions from then on.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.client_numbers import CONSUMER_FANOUT, PRODUCER_FANOUT
from pulsar_steward.checks.delayed.partition_ceiling import CHECK as PARTITION_CEILING
from pulsar_steward.checks.placement.bundle_load import HOT_BUNDLE
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import TOPIC_PARTITIONS, Batch
from pulsar_steward.model.step import AddPartitions, Step, Touched
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.model.units import counted, throughput_in_words
from pulsar_steward.planners.base import Planner, Proposal, joined, reasons_against
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.partitions.facts import Partition, PartitionedFact
    from pulsar_steward.planners.planning_facts import PlanningFacts

GOAL = "Partitions of topics"
LIMIT = "policy key guards.most_partitions"
NO_FEWER = "A raise cannot be undone: brokers refuse a lower number, and only a new topic has fewer."


def obstacle(planning: PlanningFacts, _: str) -> str | None:
    """A note if the policy permits no raise, or there are too many partitions already."""
    if not planning.policy.guards.most_partitions:
        return f"{GOAL}: Adding partitions cannot be undone, and the policy does not allow it ({LIMIT})."
    for finding in planning.findings:
        if finding.check_id == PARTITION_CEILING.check_id and finding.severity.rank >= Severity.WARNING.rank:
            return f"{GOAL}: no raise is proposed, as {finding.subject} has too many already (partition-ceiling)."
    return None


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch of one step for each topic whose load, or whose clients, more partitions divide."""
    facts = {subject: fact for fact in planning.partitioned for subject in fact.named_by}
    of_topic: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if fact := facts.get(finding.subject):
            of_topic[fact.topic].append(finding)
    topics = {fact.topic: fact for fact in planning.partitioned}
    whole = [
        each.subject
        for each in findings
        if each.check_id != HOT_BUNDLE.check_id and partitioned_topic(each.subject) == each.subject
    ]
    why = "no raise is proposed, as it has no partitions: only a new topic can have some."
    return joined(
        (
            *(_for_topic(planning, topics[name], found) for name, found in sorted(of_topic.items())),
            Proposal(notes=tuple(f"{each}: {why}" for each in sorted(set(whole)))),
        )
    )


def _for_topic(planning: PlanningFacts, fact: PartitionedFact, findings: Sequence[Finding]) -> Proposal:
    before, most = fact.state.partitions, planning.policy.guards.most_partitions
    remedy = planning.policy.topic_partitions_remedy
    if len(fact.partitions) < before:
        loaded = f"{len(fact.partitions):,} of {counted(before, 'partition')} are loaded"
        return _none(fact, f"{loaded}, and what the others do is not known")
    if before >= most:
        return _none(fact, f"it has {counted(before, 'partition')}, and the policy permits {most:,} ({LIMIT})")
    against = [_undivided(fact, each, remedy.even_percent) for each in findings]
    helped = tuple(finding for finding, why in zip(findings, against, strict=True) if why is None)
    if not helped:
        return _none(fact, "; ".join(dict.fromkeys(why for why in against if why)))
    after = min(-(-before * remedy.raise_percent // 100), most)
    step = guarded(_step(fact, helped[0], after), planning)
    if vetoed := reasons_against(step):
        return _none(fact, vetoed)
    title = f"{fact.topic}: raise the number of partitions from {before:,} to {after:,}"
    return Proposal(batches=(Batch(kind=TOPIC_PARTITIONS, title=title, findings=helped, steps=(step,)),))


def _none(fact: PartitionedFact, why: str) -> Proposal:
    return Proposal(notes=(f"{fact.topic}: no raise of its partitions is proposed: {why}.",))


def _measure(finding: Finding) -> tuple[str, Callable[[Partition], int]]:
    """What a finding is about, and its amount of a partition."""
    if finding.check_id == HOT_BUNDLE.check_id:
        return "throughput", lambda partition: partition.bytes
    if finding.check_id == PRODUCER_FANOUT.check_id:
        return "producers", lambda partition: partition.producers
    return "consumers", lambda partition: partition.consumers


# A client of a partitioned topic connects to each of its partitions, unless it was told to use some of them: then the
# numbers differ. Throughput is divided by more partitions unless it follows few keys: then it differs as well.
def _undivided(fact: PartitionedFact, finding: Finding, even_percent: int) -> str | None:
    """Reason why more partitions do not divide what a finding is about; None: they do."""
    what, amount = _measure(finding)
    amounts = [amount(each) for each in fact.partitions]
    most, total = max(amounts), sum(amounts)
    if finding.check_id == HOT_BUNDLE.check_id:
        if most * len(amounts) * 100 <= even_percent * total:
            return None
        return (
            f"its largest partition carries {throughput_in_words(most)} of {throughput_in_words(total)}: that follows"
            " few keys or producers, and stays with them (topic_partitions_remedy.even_percent)"
        )
    if min(amounts) * 2 <= most:
        return None
    return (
        f"each partition has about as many {what}, as each client connects to all of them: it would to new ones as well"
    )


def _step(fact: PartitionedFact, finding: Finding, after: int) -> Step:
    before = fact.state.partitions
    flow = sum(each.bytes for each in fact.partitions)
    clients = sum(each.producers + each.consumers for each in fact.partitions)
    more = clients * (after - before) // before
    what, amount = _measure(finding)
    total, most = sum(map(amount, fact.partitions)), max(map(amount, fact.partitions))
    connected = counted(more, "more producer or consumer", "more producers and consumers")
    words = throughput_in_words if what == "throughput" else lambda number: f"{number:,} {what}"
    return Step(
        change=AddPartitions(namespace=fact.namespace, topic=fact.topic, before=before, after=after),
        why=(
            f"{fact.named_by[finding.subject]} carries up to {words(most)} of {words(total)} in"
            f" {counted(before, 'partition')}, and no split of a bundle parts a partition"
        ),
        effect=(
            f"there are {counted(after, 'partition')}, for good, each with the subscriptions of the first; producers"
            f" that take them in turn give each {throughput_in_words(flow // after)} instead of"
            f" {throughput_in_words(flow // before)}; what is stored stays where it is; clients that use all"
            f" partitions connect to the new ones, up to {connected}"
        ),
        touched=Touched(producers=0, consumers=0, topics=0, coordinators=0),
        undo_note=NO_FEWER,
    )


PLANNER = Planner(
    kinds=(TOPIC_PARTITIONS,),
    answers=frozenset({CONSUMER_FANOUT.check_id, PRODUCER_FANOUT.check_id, HOT_BUNDLE.check_id}),
    goal=lambda _: GOAL,
    propose=propose,
    obstacle=obstacle,
    partial_note=f"{GOAL}: no raise is proposed, as the snapshot is partial without {{missing}}.",
)
