"""What a size quota with `consumer_backlog_eviction` takes away at the next check, by topic: for plan and call alike.

At a check the broker skips what the slowest subscription has beyond nine tenths of the limit, then what the next one
has, until none is over it; whole entries, and by their mean size (seen on 4.0.7, docs/findings.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.loss import Loss, TopicLoss

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED = 10
"""Topics that are named; there may be thousands."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What a topic holds for its subscriptions.

    Attributes:
        topic: Full name.
        bytes: Of its slowest subscription.
        messages: Of each subscription.
    """

    topic: str
    bytes: int
    messages: tuple[int, ...] = ()


def loss_of(backlogs: Iterable[Backlog], limit_bytes: int) -> Loss:
    """What brokers would evict at the next check.

    Args:
        backlogs: All topics that the quota is for, or all that are over it.
        limit_bytes: The quota's.
    """
    over = (
        _topic_loss(each, limit_bytes) for each in backlogs if limit_bytes >= 0 and each.bytes >= max(limit_bytes, 1)
    )
    losses = sorted(over, key=lambda each: (-each.bytes, each.topic))
    return Loss(
        topics=tuple(losses[:NAMED]),
        more=max(len(losses) - NAMED, 0),
        messages=sum(each.messages or 0 for each in losses),
        bytes=sum(each.bytes for each in losses),
    )


def _topic_loss(backlog: Backlog, limit_bytes: int) -> TopicLoss:
    left = limit_bytes * 9 // 10
    most = max(backlog.messages, default=0)
    stay = most * left // backlog.bytes
    lost = sum(max(each - stay, 0) for each in backlog.messages)
    return TopicLoss(topic=backlog.topic, messages=lost, bytes=backlog.bytes - left)
