"""Small values for any test: policies, findings, bundles of coordinators, scenes, views, steps and plans.

Everything has a harmless default, so a test names only what it is about.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.guard.view import BundleView, ClusterView
from pulsar_steward.ledger.rows import Grant
from pulsar_steward.ledger.write import IntendedCall
from pulsar_steward.model.bundles import FULL_RANGE, TC_NAMESPACE, BundleRange, position_of, range_holding, tc_topic
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import Batch, Plan
from pulsar_steward.model.step import Change, ChangeSetting, SplitBundle, Step, Touched, UnloadBundle
from pulsar_steward.planners.scene import BrokerFact, Scene, TcBundle
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.ledger.rows import Answer

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""When every snapshot of the tests was taken."""

CLUSTER = "east"
SNAPSHOT = "east-20260301T120000Z"
BUNDLE = "0x00000000_0x10000000"
TOUCHED = Touched(producers=1, consumers=2, topics=3, coordinators=3)


IDENTITY = ClusterIdentity(name="local", metadata_id="0123456789abcdef")
"""Which Pulsar cluster a made-up snapshot is of."""


def broker(number: int) -> str:
    """The name of a made-up broker; names sort as the numbers do, up to 99."""
    return f"broker-{number:02d}:8080"


def a_policy(**sections: dict[str, Any]) -> Policy:
    """The default policy with other values in some sections: ``a_policy(brokers={"draining": (...,)})``."""
    return Policy.model_validate(sections)


def a_finding(severity: Severity = Severity.WARNING, *, check_id: str = "tc-skew") -> Finding:
    """A finding about the whole cluster."""
    return Finding(check_id=check_id, severity=severity, subject=CLUSTER, evidence="made up", figures={"spread": 3})


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


def a_scene(brokers: int | Iterable[BrokerFact], tc_bundles: Iterable[TcBundle] = (), **fields: Any) -> Scene:
    """A whole snapshot with a tc-skew warning; `fields` are those of `Scene`.

    Args:
        brokers: The brokers, or how many.
        tc_bundles: The bundles that place coordinators.
        fields: What else is other than usual.
    """
    facts = [BrokerFact(broker=broker(n), read=True) for n in range(brokers)] if isinstance(brokers, int) else brokers
    usual: dict[str, Any] = {
        "cluster": CLUSTER,
        "snapshot_id": SNAPSHOT,
        "taken_at": NOW,
        "pulsar_cluster": IDENTITY,
        "findings": (a_finding(),),
        "policy": Policy(),
    }
    return Scene(brokers=tuple(facts), tc_bundles=tuple(tc_bundles), **{**usual, **fields})


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


def a_plan(*batches: Batch, **fields: Any) -> Plan:
    """A plan of these batches, or of one move; `fields` are those of `Plan`."""
    usual = Plan(
        cluster=CLUSTER,
        snapshot_id=SNAPSHOT,
        taken_at=NOW,
        policy_digest=Policy().digest,
        batches=batches or (a_batch(),),
        notes=(),
    )
    return msgspec.structs.replace(usual, **fields)


def an_intended_call(
    plan: Plan, step: Step, answer: Answer, answer_id: int, *, before: dict[str, Any] | None = None, clients: int = 7
) -> IntendedCall:
    """A call that is about to be made under an answer."""
    grant = Grant(
        cluster=plan.cluster,
        plan_id=plan.plan_id,
        batch_id=answer.batch_id,
        run=answer.run,
        answer_ids=(answer_id,),
        expires_at=answer.expires_at or answer.answered_at + timedelta(hours=1),
    )
    return IntendedCall(grant=grant, step=step, before=before or {}, clients=clients)


def a_view(bundle: BundleView | None = None, **fields: Any) -> ClusterView:
    """Three active brokers, and a bundle on broker 0 with three clients; `fields` are those of `ClusterView`."""
    usual = ClusterView(
        now=NOW,
        seen_at=NOW,
        pulsar_cluster=IDENTITY,
        planned_for=IDENTITY,
        brokers=frozenset(broker(number) for number in range(3)),
        allowed=None,
        bundle=a_bundle_view() if bundle is None else bundle,
        policy=Policy(),
    )
    return msgspec.structs.replace(usual, **fields)


def a_bundle_view(**fields: Any) -> BundleView:
    """A bundle that is there, owned by broker 0, with three clients; `fields` are those of `BundleView`."""
    return msgspec.structs.replace(BundleView(exists=True, owner=broker(0), clients=3), **fields)


def bundle_of(step: Step) -> str:
    """The bundle that a step moves or splits."""
    assert not isinstance(step.change, ChangeSetting)
    return step.change.bundle
