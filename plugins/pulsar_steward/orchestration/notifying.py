"""The task of ``pulsar_notify``: queues messages to people, and sends those that are due."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import msgspec
from airflow.providers.common.compat.sdk import conf

from pulsar_steward.errors import PolicyError, StewardError
from pulsar_steward.ledger.clock import LedgerClock
from pulsar_steward.ledger.messages import DeliveryState, Queued, Try, open_messages
from pulsar_steward.ledger.outbox import Outbox
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.notify.compose import composed
from pulsar_steward.notify.gather import Turn, is_outdated, new_messages, notices_now, policies_of, route_of, turn
from pulsar_steward.orchestration import connections, home, recipients
from pulsar_steward.orchestration.halt_variable import halts_seen
from pulsar_steward.orchestration.ledger_heads import LedgerHeads
from pulsar_steward.snapshots.latest import SnapshotShelf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import Engine

    from pulsar_steward.notify.compose import Message
    from pulsar_steward.notify.gather import Route
    from pulsar_steward.notify.variable import VariableHalt
    from pulsar_steward.orchestration.run_states import RunStates
    from pulsar_steward.policy.notify import NotifyPolicy

log = logging.getLogger(__name__)

BEGIN_WITHIN_SECONDS = 120
"""A run starts sending no more messages after this time; the next run sends the rest."""


class Round(msgspec.Struct, kw_only=True):
    """Numbers of messages that one run queued, sent and gave up."""

    queued: int = 0
    sent: int = 0
    failed: int = 0
    outdated: int = 0
    given_up: int = 0

    @property
    def words(self) -> str:
        """The numbers in a sentence."""
        named = msgspec.structs.asdict(self)
        return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in named.items())


def notify(runs: RunStates) -> str | None:
    """Queues and sends messages; returns what was done, or None if no policy names a recipient.

    Args:
        runs: Airflow's state of the DAG that asks for approval.

    Raises:
        LedgerError: If the ledger cannot be used.
        PolicyError: If a cluster's policy is not valid; messages of the other clusters were sent before.
    """
    found = policies_of(SnapshotShelf(home.snapshots_uri()).clusters(), *home.observed_clusters())
    done = None
    if any(policy.recipients for policy in found.policies.values()):
        engine = connections.ledger()
        try:
            done = _round(engine, found.policies, runs)
        finally:
            engine.dispose()
    if found.troubles:
        raise PolicyError(*found.troubles)
    return done.words if done else None


def _round(engine: Engine, policies: Mapping[str, NotifyPolicy], runs: RunStates) -> Round:
    outbox = Outbox(engine)
    try:
        teller = Teller(
            engine,
            outbox,
            policies,
            clock=LedgerClock(LedgerReader(engine), home.now),
            send=recipients.send,
            airflow=conf.get("api", "base_url", fallback="") or "",
            by_variable=lambda now: halts_seen(
                [name for name, each in policies.items() if each.recipients], now, LedgerReader(engine).clusters
            ),
            asking_is_paused=runs.asking_is_paused,
        )
        return teller.round(SnapshotShelf(home.snapshots_uri()))
    finally:
        LedgerHeads(engine.url).note(outbox.head)


class Teller:
    """Queues messages and sends those that are due; each is claimed before it is sent, and its result is recorded.

    Args:
        engine: An open ledger.
        outbox: The ledger's queue of messages.
        policies: The policy's section on messages, by cluster.
        clock: Current time, UTC.
        send: Sends a message; raises `StewardError` if its recipient did not take it.
        airflow: Airflow's base URL; empty: not known.
        by_variable: Returns the halt variable's state by cluster, at a time; None: there is no such variable.
        asking_is_paused: Returns whether the DAG that asks for approval is paused; None: that cannot be read here.
    """

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox,
        policies: Mapping[str, NotifyPolicy],
        *,
        clock: Callable[[], datetime],
        send: Callable[[Route, Message], None],
        airflow: str,
        by_variable: Callable[[datetime], Mapping[str, VariableHalt]] | None = None,
        asking_is_paused: Callable[[], bool | None] | None = None,
    ) -> None:
        self._engine = engine
        self._outbox = outbox
        self._policies = policies
        self._clock = clock
        self._send = send
        self._airflow = airflow
        self._by_variable = by_variable
        self._asking_is_paused = asking_is_paused

    def round(self, shelf: SnapshotShelf) -> Round:
        """Queues new messages, then sends due ones; a recipient that failed is not tried again in this round.

        Raises:
            LedgerError: If the ledger cannot be used.
        """
        began, done = time.monotonic(), Round()
        failed: set[Route] = set()
        now = self._clock()
        by_variable = self._by_variable(now) if self._by_variable else None
        notices = notices_now(self._engine, shelf, self._policies, now, by_variable, self._asking_is_paused)
        new = new_messages(self._engine, notices, self._policies, now)
        self._outbox.queue(new)
        done.queued = len(new)
        standing = frozenset(notice.key for notice in notices)
        with one_moment(self._engine) as connection:
            waiting = open_messages(connection)
        for message in waiting:
            if time.monotonic() - began > BEGIN_WITHIN_SECONDS:
                log.warning("the rest of %d messages is left for the next run", len(waiting))
                break
            route = route_of(message, self._policies)
            if route not in failed and not self._one(message, route, standing, done) and route is not None:
                failed.add(route)
        return done

    def _one(self, message: Queued, route: Route | None, standing: frozenset[str], done: Round) -> bool:
        """Sends or drops one message; False if its recipient did not take it."""
        what = turn(message, self._clock())
        if what in {Turn.WAIT, Turn.OVER}:
            return True
        if what is Turn.GIVE_UP:
            self._end(
                message, DeliveryState.GIVEN_UP, message.tries[-1].reason if message.tries else "its turn never came"
            )
            done.given_up += 1
            return True
        if reason := _obsolete(message, route, standing):
            self._end(message, DeliveryState.OUTDATED, reason)
            done.outdated += 1
            return True
        if route is None or (attempt := self._outbox.claim(message, self._clock())) is None:
            return True
        return self._sent(message, route, attempt, done)

    def _sent(self, message: Queued, route: Route, attempt: int, done: Round) -> bool:
        try:
            self._send(route, composed(message.message_id, message.notices, self._airflow))
        except StewardError as error:
            log.warning("%s was not told (try %d): %s", route.recipient, attempt, error)
            result = Try(attempt=attempt, state=DeliveryState.FAILED, at=self._clock(), reason=str(error))
            done.failed += 1
        else:
            result = Try(attempt=attempt, state=DeliveryState.SENT, at=self._clock(), reason="")
            done.sent += 1
        self._outbox.record(message.message_id, result)
        return result.state is DeliveryState.SENT

    def _end(self, message: Queued, state: DeliveryState, reason: str) -> None:
        attempt = message.tries[-1].attempt if message.tries else 0
        log.warning("a message to %s is not sent (%s): %s", message.recipient, state, reason)
        self._outbox.record(message.message_id, Try(attempt=attempt, state=state, at=self._clock(), reason=reason))


def _obsolete(message: Queued, route: Route | None, standing: frozenset[str]) -> str | None:
    """Reason why a message is not sent any more, or None."""
    if route is None:
        return "the policy names no such recipient any more"
    if is_outdated(message, standing):
        return "nothing of it waits any more"
    return None
