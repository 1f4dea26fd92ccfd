"""Backlogs of topics, their age, and the loss by quotas; for plan and call alike.

With `consumer_backlog_eviction`, at a check the broker skips what the slowest subscription has beyond nine tenths of
the limit, then what the next one has, until none is over it; whole entries, and by their mean size (seen on 4.0.7,
docs/pulsar-behaviour.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.setting import Retention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.setting import Setting

MAX_NAMED = 10
"""Topics that are named; there may be thousands."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Backlog of one topic.

    Attributes:
        topic: Full name.
        bytes: Of its slowest subscription.
        messages: Of each subscription.
    """

    topic: str
    bytes: int
    messages: tuple[int, ...] = ()


def loss_of(backlogs: Iterable[Backlog], limit_bytes: int) -> Loss:
    """Loss at the brokers' next check, by eviction.

    Args:
        backlogs: All topics that the quota is for, or all that are over it.
        limit_bytes: The quota's.
    """
    over = (
        _topic_loss(each, limit_bytes) for each in backlogs if limit_bytes >= 0 and each.bytes >= max(limit_bytes, 1)
    )
    losses = sorted(over, key=lambda each: (-each.bytes, each.topic))
    return Loss(
        topics=tuple(losses[:MAX_NAMED]),
        more=max(len(losses) - MAX_NAMED, 0),
        messages=sum(each.messages or 0 for each in losses),
        bytes=sum(each.bytes for each in losses),
    )


def _topic_loss(backlog: Backlog, limit_bytes: int) -> TopicLoss:
    left = limit_bytes * 9 // 10
    most = max(backlog.messages, default=0)
    stay = most * left // backlog.bytes
    lost = sum(max(each - stay, 0) for each in backlog.messages)
    return TopicLoss(topic=backlog.topic, messages=lost, bytes=backlog.bytes - left)


class BacklogAges(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest message that a subscription has not consumed, over topics.

    Attributes:
        oldest_seconds: Of those topics of which it is known or estimated; 0: none of them has a backlog.
        topic: Whose that is; None: nobody's.
        estimated: Whether it is only estimated, from the size of a backlog and what comes in now.
        waiting: Topics with a backlog.
        unknown: Those of them of which nothing is known.
        why_unknown: In words, where there are any.
    """

    oldest_seconds: int = 0
    topic: str | None = None
    estimated: bool = False
    waiting: int = 0
    unknown: int = 0
    why_unknown: str = ""


class TopicAge(msgspec.Struct, frozen=True, order=True):
    """Age of a topic's backlog, told or estimated; the oldest is the largest."""

    seconds: int
    topic: str
    estimated: bool = False


def ages_of(known: Iterable[TopicAge], *, waiting: int, unknown: int, why_unknown: str) -> BacklogAges:
    """The oldest of these, and of how many topics nothing is known.

    Args:
        known: Topics whose age is known or estimated; those that are certainly not the oldest may be left out.
        waiting: Topics with a backlog.
        unknown: Those of them of which nothing is known.
        why_unknown: In words, should there be any.
    """
    oldest = max(known, default=None)
    return BacklogAges(
        oldest_seconds=oldest.seconds if oldest else 0,
        topic=oldest.topic if oldest else None,
        estimated=oldest.estimated if oldest else False,
        waiting=waiting,
        unknown=unknown,
        why_unknown=why_unknown,
    )


def retained_seconds(kept: Setting | None) -> int | None:
    """For how long a retention keeps consumed messages; None: without limit in time, or not at all."""
    return kept.minutes * 60 if isinstance(kept, Retention) and kept.minutes > 0 else None
