"""Small values for any test: policies, findings, bundles of coordinators, scenes, facts, steps and plans.

Everything has a harmless default, so a test names only what it is about.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import msgspec

from pulsar_steward.facts.backlogs import Backlog, PulsarsHold
from pulsar_steward.facts.isolation import ISOLATION_UNKNOWN, Isolation, LoadOfBroker
from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, TRAFFIC_UNKNOWN, USAGES_UNKNOWN, LoadManager
from pulsar_steward.facts.partitions import PartitionedTopic
from pulsar_steward.facts.protocol import Bookies, ClusterFacts
from pulsar_steward.facts.risks import MoveRisks
from pulsar_steward.facts.room import Usage
from pulsar_steward.facts.unknown import (
    CLOCKS_UNKNOWN,
    QUOTA_CHECKS_UNKNOWN,
    Unknown,
    ages_unknown,
    backlogs_unknown,
    clusters_unknown,
    delayed_unknown,
    loss_unknown,
)
from pulsar_steward.ledger.batch_record import BatchRecord, BatchRun, open_batches
from pulsar_steward.ledger.questions import WaitingQuestion, waiting_questions
from pulsar_steward.ledger.rows import ApprovedPart, Grant, Outcome, StepOutcome
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.write import IntendedCall
from pulsar_steward.model.bundles import FULL_RANGE, TC_NAMESPACE, BundleRange, position_of, range_holding, tc_topic
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import Batch, Plan
from pulsar_steward.model.step import (
    BundleChange,
    Change,
    ChangeSetting,
    DeleteSubscription,
    SplitBundle,
    Step,
    Touched,
    UnloadBundle,
)
from pulsar_steward.model.subscription import Cursor
from pulsar_steward.planners.planning_facts import BrokerFact, PlanningFacts, TcBundle
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Engine

    from pulsar_steward.ledger.rows import Answer
    from pulsar_steward.model.setting import Setting

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ASKED_DIGEST = "a5" * 32
"""Digest of a question as it was shown, where no test looks at what was."""
"""When every snapshot of the tests was taken."""

CLUSTER = "east"
NAMED = NamedCluster(CLUSTER)
"""The same, whichever Pulsar cluster it was seen to lead to last."""

SNAPSHOT = "east-20260301T120000Z"
BUNDLE = "0x00000000_0x10000000"
TOUCHED = Touched(producers=1, consumers=2, topics=3, coordinators=3)


CALM = LoadManager(name="ModularLoadManagerImpl")
"""A load manager whose own shedding is off."""

IDENTITY = ClusterIdentity(name="local", metadata_id="0123456789abcdef")
"""Which Pulsar cluster a made-up snapshot is of."""

PULSAR = "4.0.7"
"""The version of a made-up broker."""


def broker(number: int) -> str:
    """The name of a made-up broker; names sort as the numbers do, up to 99."""
    return f"broker-{number:02d}:8080"


def a_policy(**sections: dict[str, Any]) -> Policy:
    """The default policy with other values in some sections: ``a_policy(brokers={"draining": (...,)})``."""
    return Policy.model_validate(sections)


def a_finding(severity: Severity = Severity.WARNING, *, check_id: str = "tc-skew", **fields: Any) -> Finding:
    """A finding about the whole cluster; `fields` are those of `Finding`."""
    usual: dict[str, Any] = {"subject": CLUSTER, "evidence": "made up", "figures": {"spread": 3}}
    return Finding(check_id=check_id, severity=severity, **{**usual, **fields})


def equal_ranges(number: int) -> tuple[BundleRange, ...]:
    """The hash space in so many bundles of equal width, as Pulsar divides a new namespace."""
    width = (FULL_RANGE + 1) // number
    edges = [*(index * width for index in range(number)), FULL_RANGE]
    return tuple(BundleRange(lower, upper) for lower, upper in pairwise(edges))


def tc_bundle(
    bundle: BundleRange, owner: str | None, coordinators: Iterable[int], *, others: Iterable[str] = (), clients: int = 0
) -> TcBundle:
    """A bundle with coordinators and perhaps other topics, by their full names; all clients are consumers."""
    tcs = tuple(sorted(coordinators))
    topics = [*(tc_topic(number) for number in tcs), *others]
    return TcBundle(
        bundle=str(bundle),
        owner=owner,
        coordinators=tcs,
        positions=tuple(sorted(position_of(topic) for topic in topics)),
        consumers=clients,
    )


def hashed_tc_bundles(owners: Sequence[str | None], coordinators: int) -> tuple[TcBundle, ...]:
    """The bundles into which a real cluster's coordinators 0, 1, 2 ... fall.

    Args:
        owners: Who owns each bundle of ``pulsar/system``, in order of range.
        coordinators: How many the cluster has.
    """
    ranges = equal_ranges(len(owners))
    held: dict[BundleRange, list[int]] = {bundle: [] for bundle in ranges}
    for number in range(coordinators):
        held[range_holding(ranges, position_of(tc_topic(number)))].append(number)
    return tuple(
        tc_bundle(bundle, owner, held[bundle]) for bundle, owner in zip(ranges, owners, strict=True) if held[bundle]
    )


def counted_tc_bundles(owners_and_counts: Sequence[tuple[str | None, int]]) -> tuple[TcBundle, ...]:
    """Bundles with chosen counts: each takes the lowest coordinators that fall into its range (so ids have gaps)."""
    ranges = equal_ranges(len(owners_and_counts))
    return tuple(
        tc_bundle(bundle, owner, coordinators_in(bundle, count))
        for bundle, (owner, count) in zip(ranges, owners_and_counts, strict=True)
    )


def coordinators_in(bundle: BundleRange, count: int) -> tuple[int, ...]:
    """The lowest ids of so many coordinators that fall into a range."""
    return tuple(number for position, number in _tc_positions() if position in bundle)[:count]


@cache
def _tc_positions() -> tuple[tuple[int, int], ...]:
    return tuple((position_of(tc_topic(number)), number) for number in range(1000))


def planning_facts_with(
    brokers: int | Iterable[BrokerFact], tc_bundles: Iterable[TcBundle] = (), **fields: Any
) -> PlanningFacts:
    """A whole snapshot with a tc-skew warning; `fields` are those of `PlanningFacts`.

    Args:
        brokers: The brokers, or how many.
        tc_bundles: The bundles that place coordinators.
        fields: What else is other than usual.
    """
    if isinstance(brokers, int):
        brokers = [BrokerFact(broker=broker(n), read=True) for n in range(brokers)]
    usual: dict[str, Any] = {
        "cluster": CLUSTER,
        "snapshot_id": SNAPSHOT,
        "taken_at": NOW,
        "pulsar_cluster": IDENTITY,
        "load_manager": CALM,
        "versions": (PULSAR,),
        "findings": (a_finding(),),
        "policy": Policy(),
    }
    return PlanningFacts(brokers=tuple(brokers), tc_bundles=tuple(tc_bundles), **{**usual, **fields})


def a_move(**fields: Any) -> UnloadBundle:
    """A move from broker 0 to broker 1; `fields` are those of `UnloadBundle`."""
    usual = UnloadBundle(namespace=TC_NAMESPACE, bundle=BUNDLE, source=broker(0), target=broker(1))
    return msgspec.structs.replace(usual, **fields)


def a_split(**fields: Any) -> SplitBundle:
    """A split on broker 0; `fields` are those of `SplitBundle`."""
    usual = SplitBundle(
        namespace=TC_NAMESPACE,
        bundle=BUNDLE,
        owner=broker(0),
        algorithm="topic_count_equally_divide",
        halves=("0x00000000_0x08000000", "0x08000000_0x10000000"),
    )
    return msgspec.structs.replace(usual, **fields)


def a_step(change: Change | None = None, **fields: Any) -> Step:
    """A step, of a move if nothing else is given; `fields` are those of `Step`."""
    usual = Step(
        step_id="b1.s01",
        change=a_move() if change is None else change,
        why="made up",
        effect="made up",
        touched=TOUCHED,
        undo_note="cannot be undone",
    )
    return msgspec.structs.replace(usual, **fields)


def a_batch(*steps: Step, **fields: Any) -> Batch:
    """A batch of these steps, or of one move; `fields` are those of `Batch`."""
    usual = Batch(
        batch_id="b1",
        kind="tc_balance",
        title="made up",
        findings=(a_finding(),),
        steps=steps or (a_step(),),
        unit="transaction coordinators",
    )
    return msgspec.structs.replace(usual, **fields)


_USUAL_POLICY = Policy().digest
"""Worked out once: tests make thousands of plans."""


def a_plan(*batches: Batch, **fields: Any) -> Plan:
    """A plan of these batches, or of one move; `fields` are those of `Plan`."""
    usual = Plan(
        cluster=CLUSTER,
        snapshot_id=SNAPSHOT,
        taken_at=NOW,
        policy_digest=_USUAL_POLICY,
        pulsar_cluster=IDENTITY,
        batches=batches or (a_batch(),),
        notes=(),
    )
    return msgspec.structs.replace(usual, **fields)


def an_outcome(plan: Plan, step_id: str = "b1.s01", outcome: Outcome = Outcome.DONE, **fields: Any) -> StepOutcome:
    """An outcome of a step of a plan's first batch; `fields` are those of `StepOutcome`."""
    usual: dict[str, Any] = {"intent_id": None, "run": "dag/run/0", "at": NOW, "reason": "made up", "proof": {}}
    known: dict[str, Any] = {"plan_id": plan.plan_id, "batch_id": "b1", "step_id": step_id, "outcome": outcome}
    return StepOutcome(**{**usual, **known, **fields})


def waiting_in(engine: Engine, now: datetime) -> list[WaitingQuestion]:
    """Questions of a whole ledger that wait for an answer, oldest first."""
    with one_moment(engine) as connection:
        return waiting_questions(open_batches(connection, now), now)


def a_batch_run(plan: Plan, run: str = "dag/run/0", *, over: str | None = None, **rows: Any) -> BatchRun:
    """A run of a plan's first batch; `over` ends its question, and `rows` are those of `BatchRecord`."""
    batch = plan.batches[0]
    record = BatchRecord(
        cluster=plan.cluster,
        plan_id=plan.plan_id,
        batch_id=batch.batch_id,
        kind=batch.kind,
        title=batch.title,
        steps=len(batch.steps),
        asked_by_batch=False,
        superseded_by=over,
        **rows,
    )
    return record.of_run(run)


def an_intended_call(
    plan: Plan, step: Step, answer: Answer, answer_id: int, *, before: dict[str, Any] | None = None, clients: int = 7
) -> IntendedCall:
    """A call that is about to be made under an answer."""
    grant = Grant(
        cluster=plan.named_cluster,
        plan_id=plan.plan_id,
        batch_id=answer.batch_id,
        run=answer.run,
        answer_ids=(answer_id,),
        expires_at=answer.expires_at or answer.answered_at + timedelta(hours=1),
    )
    part = ApprovedPart(step_ids=(step.step_id,), contents=frozenset())
    return IntendedCall(grant=grant, part=part, step=step, before=before or {}, clients=clients)


CALM_BROKER = Usage(cpu=10.0, direct_memory=5.0)

FACTS: dict[str, Any] = {
    "now": NOW,
    "planned_at": NOW,
    "seen_at": NOW,
    "planned_for": IDENTITY,
    "planning": False,
    "place_in_run": 1,
    "identity": IDENTITY,
    "active": frozenset(broker(number) for number in range(3)),
    "silent_brokers": (),
    "versions": (PULSAR,),
    "read_only_bookies": (),
    "bookies": Bookies(listed=3),
    "allowed_brokers": None,
    "isolation": Isolation(
        loads={broker(number): LoadOfBroker(topics={}, used=CALM_BROKER) for number in range(3)},
        namespaces=("pulsar/system", "shop/carts", "shop/orders"),
    ),
    "anti_affinity": None,
    "load_manager": CALM,
    "usages": None,
    "traffic": None,
    "other_clusters": (),
    "scalable_topics": (),
    "unproved_batch": None,
    "changes_in_the_last_hour": 0,
    "own_changes_to_come": 0,
    "moved_at": None,
    "circling": (),
    "has_bundle": True,
    "owner": broker(0),
    "clients": 3,
    "move_risks": MoveRisks(),
    "raised_at": None,
    "restless_coordinators": (),
    "partitioned_topic": PartitionedTopic(
        partitions=2, subscriptions={"app": "Shared"}, created=NOW - timedelta(days=1)
    ),
    "setting": None,
    "inherited": msgspec.UNSET,
    "largest_backlog": None,
    "held_by_pulsar": PulsarsHold(),
    "taken": None,
    "backlog_ages": None,
    "retained_seconds": None,
    "delayed_messages": None,
    "quotas_are_checked": None,
    "clock_difference": None,
    "subscription": Unknown("not told"),
    "consumers_beside": 0,
}
"""Made-up facts by name: three active brokers, and a bundle on broker 0 with three clients."""

UNKNOWN: dict[str, Callable[[Any], Unknown]] = {
    "isolation": lambda _: ISOLATION_UNKNOWN,
    "load_manager": lambda _: MANAGER_UNKNOWN,
    "usages": lambda _: USAGES_UNKNOWN,
    "traffic": lambda _: TRAFFIC_UNKNOWN,
    "other_clusters": clusters_unknown,
    "largest_backlog": backlogs_unknown,
    "taken": loss_unknown,
    "backlog_ages": ages_unknown,
    "delayed_messages": delayed_unknown,
    "quotas_are_checked": lambda _: QUOTA_CHECKS_UNKNOWN,
    "clock_difference": lambda _: CLOCKS_UNKNOWN,
}
"""What these facts are where a test says None."""


class MadeUpFacts:
    """Facts that are as a test says, whatever the change."""

    def __init__(self, **told: Any) -> None:
        assert told.keys() <= FACTS.keys()
        self._told = {**FACTS, **told}

    def is_active(self, broker: str) -> bool:
        """Returns whether a broker is one of the given active ones."""
        return broker in self._told["active"]

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """Returns the given value that applies where nothing is set, else the one of the plan."""
        told = change.inherited if self._told["inherited"] is msgspec.UNSET else self._told["inherited"]
        return None if isinstance(told, msgspec.UnsetType) else told

    def largest_backlog(self, change: ChangeSetting) -> Backlog | Unknown:
        """Returns a backlog of the given size, or that it is unknown."""
        told = self._told["largest_backlog"]
        return backlogs_unknown(change) if told is None else Backlog(topic=change.holder, bytes=told)

    def __getattr__(self, name: str) -> Any:
        """Any other fact, the same for every change."""
        told = self._told[name]
        if isinstance(getattr(ClusterFacts, name), property):
            return told
        return lambda *asked: UNKNOWN[name](*asked or (None,)) if told is None and name in UNKNOWN else told


Seen = tuple[ClusterFacts, Policy]
"""What a guard is given besides the step."""


CURSOR = Cursor(created=datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC), position="1:-1", written="-1:-1")
"""Identity that the simulator gives to a subscription with the largest backlog of its topic."""


def a_deletion(topic: str, subscription: str = "audit", cursor: Cursor = CURSOR, stay: int = 0) -> DeleteSubscription:
    """The deletion of a subscription of a topic, by its full name, after which so many others are said to stay."""
    namespace = "/".join(topic.partition("://")[2].split("/")[:2])
    return DeleteSubscription(namespace=namespace, topic=topic, subscription=subscription, cursor=cursor, stay=stay)


def a_look(policy: Policy | None = None, **told: Any) -> Seen:
    """Facts for a guard, of a cluster where all is well but what is told; `told` are those of `FACTS`."""
    return cast("ClusterFacts", MadeUpFacts(**told)), policy or Policy()


def bundle_of(step: Step) -> str:
    """The bundle that a step moves or splits."""
    assert isinstance(step.change, BundleChange)
    return step.change.bundle
