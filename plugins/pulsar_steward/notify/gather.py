"""All notices due now, from the ledger and the newest snapshots, and the times of their messages. Cannot write."""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError, PolicyError, SnapshotError
from pulsar_steward.ledger.batch_record import ended_batches, open_batches
from pulsar_steward.ledger.halts import halts_since
from pulsar_steward.ledger.messages import OVER, DeliveryState, Queued, known_keys
from pulsar_steward.ledger.questions import unasked_questions, waiting_questions
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.notice import STATES
from pulsar_steward.notify.compose import message_id
from pulsar_steward.notify.events import (
    batch_notices,
    halt_notices,
    question_notices,
    trouble_notices,
    unasked_notices,
    variable_notices,
)
from pulsar_steward.policy.files import own_policy_files, policy_file
from pulsar_steward.policy.load import load_policy
from pulsar_steward.report.since import look_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from pulsar_steward.model.notice import Notice
    from pulsar_steward.notify.variable import VariableHalt
    from pulsar_steward.policy.notify import NotifyPolicy, RecipientKind
    from pulsar_steward.report.since import Look
    from pulsar_steward.snapshots.latest import SnapshotShelf


CLAIM_VALID = timedelta(minutes=10)
"""Time after which a claim without a result is taken for that of a killed worker.

It is longer than the time limit of the sending task, so that two workers never send the same message at once.
"""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)

GIVEN_UP_AFTER = timedelta(days=1)
"""Time from the queueing of a message after which it is not tried again."""


class Turn(Enum):
    """Next action for a message."""

    SEND = "send"
    WAIT = "wait"
    GIVE_UP = "give up"
    OVER = "over"


def turn(message: Queued, now: datetime) -> Turn:
    """Next action for a message at this time; pauses double from a minute to an hour."""
    if any(each.state in OVER for each in message.tries):
        return Turn.OVER
    last = message.tries[-1] if message.tries else None
    if last is not None and last.state is DeliveryState.CLAIMED and now - last.at < CLAIM_VALID:
        return Turn.WAIT  # another worker may be sending it
    if now - message.at >= GIVEN_UP_AFTER:
        return Turn.GIVE_UP
    if last is not None and last.state is DeliveryState.FAILED and now - last.at < pause_after(last.attempt):
        return Turn.WAIT
    return Turn.SEND


def pause_after(attempt: int) -> timedelta:
    """Pause after a failed attempt."""
    return min(FIRST_PAUSE * (1 << min(attempt - 1, 10)), LONGEST_PAUSE)


log = logging.getLogger(__name__)

LOOKED_BACK = timedelta(days=1)
"""Age from which an event makes no notice, as after Airflow stood still for days."""

SNAPSHOTS = 4
"""Number of a cluster's newest snapshots that are compared, each with the ones before it."""


class Route(NamedTuple):
    """Connection and settings to reach a recipient."""

    recipient: str
    connection: str
    kind: RecipientKind


def notices_now(
    engine: Engine,
    shelf: SnapshotShelf,
    policies: Mapping[str, NotifyPolicy],
    now: datetime,
    by_variable: Mapping[str, VariableHalt] | None = None,
    asking_is_paused: Callable[[], bool | None] | None = None,
) -> tuple[Notice, ...]:
    """Notices of recent events and of waiting questions, for clusters with recipients, oldest first.

    If a cluster's snapshots cannot be read, its notices come from the ledger alone.

    Args:
        engine: An open ledger.
        shelf: The snapshots.
        policies: Section of messages by cluster.
        now: Current time, UTC.
        by_variable: Observed values of Airflow's halt variable by cluster; None: not looked at.
        asking_is_paused: Function to whether the asking DAG is paused; None: not known here.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    clusters = sorted(name for name, policy in policies.items() if policy.recipients)
    since = now - LOOKED_BACK
    with one_moment(engine) as connection:
        batches = open_batches(connection, now)
        questions, unasked = waiting_questions(batches, now), unasked_questions(batches, now)
        ends = ended_batches(connection, since)
        halts = halts_since(connection, since)
    lately = {name: each for name, each in (by_variable or {}).items() if each.halted or each.at >= since}
    paused = asking_is_paused() if asking_is_paused and unasked else None
    found: list[Notice] = [*unasked_notices(unasked, now, paused)]
    found += [*batch_notices(ends), *halt_notices(halts, clusters), *variable_notices(lately)]
    for cluster in clusters:
        expiring = timedelta(minutes=policies[cluster].expiring_minutes)
        found += question_notices((each for each in questions if each.cluster == cluster), now, expiring)
        found += (each for each in trouble_notices(cluster, _snapshots(shelf, cluster)) if each.at >= since)
    return tuple(sorted((each for each in found if each.cluster in clusters), key=lambda each: (each.at, each.key)))


def new_messages(
    engine: Engine, notices: Sequence[Notice], policies: Mapping[str, NotifyPolicy], now: datetime
) -> tuple[Queued, ...]:
    """Messages to queue: for each recipient one per occasion, with the notices that it wants and did not get yet.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with one_moment(engine) as connection:
        known = known_keys(connection, [notice.key for notice in notices])
    groups: defaultdict[tuple[str, str, RecipientKind, str], list[Notice]] = defaultdict(list)
    for notice in notices:
        for name, recipient in policies[notice.cluster].recipients.items():
            if recipient.wants(notice.occasion, notice.severity) and (notice.key, name) not in known:
                groups[name, recipient.connection, recipient.kind, notice.occasion].append(notice)
    return tuple(
        Queued(message_id=message_id(recipient, some), recipient=recipient, at=now, notices=tuple(some))
        for (recipient, *_), some in groups.items()
    )


def route_of(message: Queued, policies: Mapping[str, NotifyPolicy]) -> Route | None:
    """Route to a message's recipient by the present policy; None: the policy no longer names it."""
    for notice in message.notices:
        policy = policies.get(notice.cluster)
        if policy and (found := policy.recipients.get(message.recipient)):
            return Route(message.recipient, found.connection, found.kind)
    return None


def is_outdated(message: Queued, standing: Collection[str]) -> bool:
    """True if everything in a message that was waiting, or about to end, is in none of the present notices any more."""
    return all(notice.occasion in STATES and notice.key not in standing for notice in message.notices)


def _snapshots(shelf: SnapshotShelf, cluster: str) -> list[Look]:
    """Troubles of a cluster's newest snapshots, oldest first; none if one of them cannot be read."""
    try:
        return [look_of(snapshot) for snapshot in reversed(shelf.diagnosed(cluster, SNAPSHOTS))]
    except SnapshotError as error:
        log.warning("troubles of %s are not told: %s", cluster, error)
        return []


class Policies(NamedTuple):
    """Sections by cluster, and problems of invalid policies."""

    policies: dict[str, NotifyPolicy]
    troubles: tuple[str, ...]


def policies_of(known: Collection[str], *more: str) -> Policies:
    """Sections of these clusters, and of clusters with a policy file of their own; without a file nothing is sent."""
    policies: dict[str, NotifyPolicy] = {}
    troubles: list[str] = []
    clusters = {*known, *more}
    try:
        clusters |= own_policy_files().keys()
    except (PolicyError, ConfigurationError) as error:
        troubles.append(str(error))
    for cluster in sorted(clusters):
        try:
            policies[cluster] = load_policy(policy_file(cluster)).for_cluster(cluster).notify
        except (PolicyError, ConfigurationError) as error:
            troubles.append(str(error))
    return Policies(policies, tuple(dict.fromkeys(troubles)))
