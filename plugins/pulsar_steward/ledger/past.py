"""Steward's earlier changes of a cluster, under all of its names: moves, raises, calls and missing proofs."""

from __future__ import annotations

import statistics
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, or_, select

from pulsar_steward.changes import kind_of
from pulsar_steward.decoding import decode
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import Outcome, Unproved
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import BATCHES, INTENTS, OUTCOMES, PROOFS
from pulsar_steward.model.plan import BROKER_DRAIN, BROKER_GROUP
from pulsar_steward.model.step import Change, RaiseCoordinators, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, Select

    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import Policy


RAISE = str(RaiseCoordinators.__struct_config__.tag)
"""Text in the document of every raise of the number of coordinators."""

MOVE = str(UnloadBundle.__struct_config__.tag)
"""Text in the document of every move."""

GUARDED_BY = (INTENTS, PROOFS, BATCHES)
"""Tables with rows of other plans that guards and the pace use, so that they can stop a change."""


def plans_changing_since(connection: Connection, cluster: NamedCluster, since: datetime) -> frozenset[str]:
    """Plans that changed a cluster since `since`, under any of its names."""
    query = select(INTENTS.c.plan_id).where(*_made_in(connection, cluster, since)).distinct()
    return frozenset(connection.execute(query).scalars())


def _made_in(connection: Connection, cluster: NamedCluster, since: datetime) -> tuple[ColumnElement[bool], ...]:
    """Conditions for calls in a cluster since `since`."""
    known = known_cluster(connection, cluster)
    return or_(INTENTS.c.cluster == known.name, INTENTS.c.name_id.in_(known.name_ids)), INTENTS.c.at >= since


class PastReader:
    """Reads Steward's earlier changes of one cluster. Every method raises `LedgerError` if the database cannot be read.

    Args:
        engine: An open ledger.
        cluster: The cluster.
    """

    def __init__(self, engine: Engine, cluster: NamedCluster) -> None:
        self._engine = engine
        self._cluster = cluster

    def moves_since(self, since: datetime) -> dict[str, datetime]:
        """Time of each bundle's last move since `since`, by ``tenant/ns/range``; an attempted move counts too."""
        moved: dict[str, datetime] = {}
        for row in self._calls(select(INTENTS.c.at, INTENTS.c.change), since):
            bundle = kind_of(_change(row["change"])).disturbs
            if bundle is not None and bundle.moves:
                moved[bundle.name] = row["at"]
        return moved

    def move_seconds_since(self, since: datetime, most: int) -> tuple[float, ...]:
        """Seconds from the call until the new owner was seen, for the newest `most` moves that succeeded."""
        ended = (OUTCOMES.c.intent_id == INTENTS.c.intent_id, OUTCOMES.c.outcome == Outcome.DONE)
        moves = INTENTS.c.change.contains(MOVE)  # a name in another change may contain the text too
        query = select(INTENTS.c.at, INTENTS.c.change, OUTCOMES.c.at.label("seen")).join(OUTCOMES, and_(*ended))
        rows = self._calls(query.where(moves).order_by(INTENTS.c.intent_id.desc()).limit(most), since)
        return tuple(
            (row["seen"] - row["at"]).total_seconds()
            for row in rows
            if isinstance(_change(row["change"]), UnloadBundle)
        )

    def raised_since(self, since: datetime) -> tuple[datetime, ...]:
        """Times at which the number of coordinators was raised since `since`, oldest first; attempts count too."""
        raises = INTENTS.c.change.contains(RAISE)  # a name in another change may contain the text too
        rows = self._calls(select(INTENTS.c.at, INTENTS.c.change).where(raises), since)
        return tuple(row["at"] for row in rows if isinstance(_change(row["change"]), RaiseCoordinators))

    def moved_in_circles(self, since: datetime) -> dict[str, tuple[str, ...]]:
        """Ranges of bundles that were moved away and back since `since`, by namespace, in ascending order.

        Moves that drained a broker, or brought bundles to their group, do not count: a person marked the broker or
        wanted the group, so a move back is no circle of balancers.
        """
        same_batch = (BATCHES.c.plan_id == INTENTS.c.plan_id, BATCHES.c.batch_id == INTENTS.c.batch_id)
        wanted = exists().where(*same_batch, BATCHES.c.kind.in_([BROKER_DRAIN, BROKER_GROUP]))
        rows = self._calls(select(INTENTS.c.change).where(~wanted), since)
        bundles = (kind_of(_change(row["change"])).disturbs for row in rows)
        moves = [bundle for bundle in bundles if bundle is not None and bundle.moves]
        ways = {(move.name, move.owner_before, move.owner_after) for move in moves}
        circling = {
            (move.namespace, move.bundle) for move in moves if (move.name, move.owner_after, move.owner_before) in ways
        }
        found: dict[str, tuple[str, ...]] = {}
        for namespace, bundle in sorted(circling):
            found[namespace] = (*found.get(namespace, ()), bundle)
        return found

    def changes_since(self, since: datetime) -> tuple[tuple[datetime, int], ...]:
        """Time and touched clients of every call since `since`, including intended calls, oldest first."""
        rows = self._calls(select(INTENTS.c.at, INTENTS.c.clients), since)
        return tuple((row["at"], row["clients"]) for row in rows)

    def unproved_since(self, since: datetime, besides: tuple[str, str]) -> Unproved | None:
        """A batch that changed the cluster since `since`, with a missing or negative last proof.

        Args:
            since: Changes before it are ignored.
            besides: Plan and batch to ignore.
        """
        batches = dict.fromkeys(
            (row["plan_id"], row["batch_id"])
            for row in self._calls(select(INTENTS.c.plan_id, INTENTS.c.batch_id), since)
        )
        with transaction(self._engine) as connection:
            for plan_id, batch_id in (batch for batch in batches if batch != besides):
                of_batch = select(PROOFS).where(PROOFS.c.plan_id == plan_id, PROOFS.c.batch_id == batch_id)
                last = of_batch.order_by(PROOFS.c.proof_id.desc()).limit(1)
                proof = connection.execute(last).mappings().first()
                if proof is None or not proof["proved"]:
                    reason = None if proof is None else proof["reason"]
                    return Unproved(plan_id=plan_id, batch_id=batch_id, reason=reason)
        return None

    def _calls(self, query: Select[Any], since: datetime) -> Sequence[RowMapping]:
        """Rows of a query of `INTENTS`, limited to this cluster since `since`; oldest first, unless the query sorts."""
        with transaction(self._engine) as connection:
            made = query.where(*_made_in(connection, self._cluster, since))
            return connection.execute(made.order_by(INTENTS.c.intent_id)).mappings().all()


def _change(document: str) -> Change:
    change: Change = decode(document, Change)
    return change


MOST_MOVES = 200
"""Maximum number of moves, the newest ones, so that the query stays fast in a large ledger."""


class MoveTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of moves, from the call until the new owner was seen.

    Attributes:
        moves: Number of moves.
        middle: Median, in seconds.
        nine_in_ten: 90th percentile, in seconds; not the maximum, as a crash makes a single move seem to take hours.
        days: Period of these moves, in days.
    """

    moves: int
    middle: float
    nine_in_ten: float
    days: int


def looked_back(policy: Policy) -> timedelta:
    """Longest time for which guards and the pace look back at changes of a cluster."""
    guards = policy.guards
    rests = (policy.tc_skew.cooldown_minutes, guards.circle_minutes, guards.coordinators_rest_minutes)
    return timedelta(minutes=max(*rests, guards.snapshot_valid_minutes, 60))  # an hour: guards.most_changes_per_hour


def move_times(past: PastReader, at: datetime, policy: Policy) -> MoveTimes | None:
    """Durations of the newest moves in a cluster, within the policy's days; None: there are none."""
    days = policy.failover_time.moves_count_for_days
    took = sorted(past.move_seconds_since(at - timedelta(days=days), MOST_MOVES))
    if not took:
        return None
    nine_in_ten = took[-(-9 * len(took) // 10) - 1]
    return MoveTimes(moves=len(took), middle=statistics.median(took), nine_in_ten=nine_in_ten, days=days)


def moved_lately(past: PastReader, at: datetime, policy: Policy) -> dict[str, datetime]:
    """Time of each bundle's last move, by ``tenant/ns/range``, within the policy's cooldown."""
    return past.moves_since(at - timedelta(minutes=policy.tc_skew.cooldown_minutes))


def circling_lately(past: PastReader, at: datetime, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Ranges of bundles that were moved away and back within the policy's time, by namespace."""
    return past.moved_in_circles(at - timedelta(minutes=policy.guards.circle_minutes))


def raised_lately(past: PastReader, at: datetime, policy: Policy) -> tuple[datetime, ...]:
    """Times at which the number of coordinators was raised, oldest first, within the policy's rest time."""
    return past.raised_since(at - timedelta(minutes=policy.guards.coordinators_rest_minutes))
