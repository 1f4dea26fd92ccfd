"""Messages to people in the ledger, and the result of each try to send them. Cannot write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, exists, func, select

from pulsar_steward.decoding import decode
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.tables import DELIVERIES, MESSAGES
from pulsar_steward.model.notice import Notice

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection

KEYS_AT_ONCE = 500


class DeliveryState(StrEnum):
    """State of a try to send a message: its beginning (`CLAIMED`) or its result."""

    CLAIMED = "claimed"
    SENT = "sent"
    FAILED = "failed"
    GIVEN_UP = "given up"
    OUTDATED = "outdated"


OVER = (DeliveryState.SENT, DeliveryState.GIVEN_UP, DeliveryState.OUTDATED)
"""States after which a message is not tried again."""


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """Beginning or result of a try.

    Attributes:
        attempt: Number of the try, from 1.
        reason: Reason for a failure, or for not sending the message; never contains a secret.
    """

    attempt: int
    state: DeliveryState
    at: datetime
    reason: str


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """A message to one recipient.

    Attributes:
        message_id: The same in every try, so that a receiver recognises a message that comes twice.
        recipient: The recipient's name in the policy.
        at: Time at which it was queued.
        notices: Its notices, in the order in which they were derived.
        tries: Tries so far, oldest first.
    """

    message_id: str
    recipient: str
    at: datetime
    notices: tuple[Notice, ...]
    tries: tuple[Try, ...] = ()


class MessageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Messages about one cluster, summed up.

    Attributes:
        ended: Number of ended messages by their last state.
        pending: Number of messages yet to be sent.
        oldest_pending: Time at which the first pending message was queued, or None.
    """

    ended: Mapping[str, int] = {}
    pending: int = 0
    oldest_pending: datetime | None = None


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """Messages to one recipient that were given up; `reason` is that of the last one."""

    recipient: str
    number: int
    reason: str


def open_messages(connection: Connection) -> tuple[Queued, ...]:
    """Messages that are yet to be sent, or are being sent, oldest first."""
    query = select(MESSAGES).where(~_over()).order_by(MESSAGES.c.notice_id)
    rows: defaultdict[str, list[Mapping[Any, Any]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        rows[row["message_id"]].append(row)
    tries = _tries(connection, rows)
    return tuple(
        Queued(
            message_id=message_id,
            recipient=some[0]["recipient"],
            at=some[0]["at"],
            notices=tuple(decode(row["document"], Notice) for row in some),
            tries=tuple(tries.get(message_id, ())),
        )
        for message_id, some in rows.items()
    )


def tries_of(connection: Connection, message_id: str) -> tuple[Try, ...]:
    """Tries to send a message, oldest first."""
    return tuple(_tries(connection, [message_id]).get(message_id, ()))


def known_keys(connection: Connection, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Pairs of a notice's key and a recipient for which a message is queued or was sent already."""
    found: set[tuple[str, str]] = set()
    for begin in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[begin : begin + KEYS_AT_ONCE]
        query = select(MESSAGES.c.notice_key, MESSAGES.c.recipient).where(MESSAGES.c.notice_key.in_(some))
        found.update((key, recipient) for key, recipient in connection.execute(query))
    return frozenset(found)


def message_counts(connection: Connection) -> Mapping[str, MessageCounts]:
    """Messages by cluster; one about several clusters counts in each."""
    number = func.count(MESSAGES.c.message_id.distinct())
    of_message = and_(DELIVERIES.c.message_id == MESSAGES.c.message_id, DELIVERIES.c.state.in_(OVER))
    ended: defaultdict[str, dict[str, int]] = defaultdict(dict)
    query = select(MESSAGES.c.cluster, DELIVERIES.c.state, number).join(DELIVERIES, of_message)
    for cluster, state, count in connection.execute(query.group_by(MESSAGES.c.cluster, DELIVERIES.c.state)):
        ended[cluster][state] = count
    waits = select(MESSAGES.c.cluster, number, func.min(MESSAGES.c.at)).where(~_over()).group_by(MESSAGES.c.cluster)
    pending = {cluster: (count, oldest) for cluster, count, oldest in connection.execute(waits)}
    return {
        cluster: MessageCounts(
            ended=ended.get(cluster, {}),
            pending=pending.get(cluster, (0, None))[0],
            oldest_pending=pending.get(cluster, (0, None))[1],
        )
        for cluster in sorted({*ended, *pending})
    }


def given_up_since(connection: Connection, since: datetime) -> tuple[GivenUp, ...]:
    """Messages that were given up since `since`, by recipient."""
    whose = select(MESSAGES.c.message_id, MESSAGES.c.recipient).distinct().subquery()
    query = (
        select(whose.c.recipient, DELIVERIES.c.reason)
        .join(whose, whose.c.message_id == DELIVERIES.c.message_id)
        .where(DELIVERIES.c.state == DeliveryState.GIVEN_UP.value, DELIVERIES.c.at >= since)
        .order_by(DELIVERIES.c.delivery_id)
    )
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for recipient, reason in connection.execute(query):
        reasons[recipient].append(reason)
    return tuple(
        GivenUp(recipient=recipient, number=len(some), reason=some[-1]) for recipient, some in sorted(reasons.items())
    )


def _over() -> ColumnElement[bool]:
    return exists().where(DELIVERIES.c.message_id == MESSAGES.c.message_id, DELIVERIES.c.state.in_(OVER))


def _tries(connection: Connection, message_ids: Collection[str]) -> Mapping[str, list[Try]]:
    found: defaultdict[str, list[Try]] = defaultdict(list)
    ids = list(message_ids)
    for begin in range(0, len(ids), KEYS_AT_ONCE):
        query = select(DELIVERIES).where(DELIVERIES.c.message_id.in_(ids[begin : begin + KEYS_AT_ONCE]))
        for row in connection.execute(query.order_by(DELIVERIES.c.delivery_id)).mappings():
            found[row["message_id"]].append(from_row(row, Try))
    return found
