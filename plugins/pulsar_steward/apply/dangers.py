"""The hazards of a bundle's move on the live cluster: from its owner's statistics and metrics, read anew."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guard.hazards import Hazards, SubscriptionFigures, Surroundings, TopicFigures, hazards_of
from pulsar_steward.model.series import AGE, AGE_LIMIT, SIZE_LIMIT
from pulsar_steward.model.setting import BacklogQuota

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.admin.metrics import Sample
    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.apply.look import Look
    from pulsar_steward.policy.guards import GuardsPolicy

INDEX = "pulsar_delayed_message_index_size_bytes"
RESTING = {SIZE_LIMIT: -1.0, AGE_LIMIT: -1.0, AGE: -1.0, INDEX: 0.0}

ASKED = 100
"""Topics, those of most backlog, that are asked by themselves where a broker's metrics tell nothing of topics."""


def dangers(look: Look, owner: str, namespace: str, bundle: str, policy: GuardsPolicy) -> Hazards:
    """What a move of a bundle would set off.

    Args:
        look: Reads the cluster.
        owner: Who owns the bundle, asked an instant before.
        namespace: ``tenant/namespace``.
        bundle: Its range.
        policy: How near to a quota is too near.

    Raises:
        AdminError: If the owner cannot be read.
    """
    topics = {name: topic for name, topic in look.topics(owner, namespace, bundle).items() if topic.subscriptions}
    backlogged = {name for name, topic in topics.items() if topic.backlog_size or _delayed_or_holes(topic)}
    if not backlogged:
        return Hazards()
    samples = look.samples(owner, RESTING)
    if any(sample.series == SIZE_LIMIT for sample in samples):
        more = _told_in_metrics(samples, backlogged)
    else:
        largest = sorted(backlogged, key=lambda name: (-topics[name].backlog_size, name))[:ASKED]
        more = {name: _asked(look, owner, name) for name in largest}
    figures = [_figures(name, topics[name], more.get(name, {})) for name in sorted(backlogged)]
    return hazards_of(figures, _surroundings(look, owner, namespace), policy)


def _delayed_or_holes(topic: TopicStatistics) -> bool:
    return any(
        each.msg_backlog or each.total_non_contiguous_deleted_messages_range for each in topic.subscriptions.values()
    )


def _told_in_metrics(samples: Iterable[Sample], wanted: set[str]) -> dict[str, dict[str, int]]:
    """By topic what its series tell; what rests is not there, and means that the broker sets no limit."""
    fields = {SIZE_LIMIT: "limit_bytes", AGE_LIMIT: "limit_seconds", AGE: "age_seconds", INDEX: "delayed_index_bytes"}
    none = {"limit_bytes": -1, "limit_seconds": -1}
    told: dict[str, dict[str, int]] = {name: dict(none) for name in wanted}
    for sample in samples:
        topic = told.get(sample.labels.get("topic", ""))
        if topic is not None and not isnan(sample.value) and sample.value != RESTING[sample.series]:
            topic[fields[sample.series]] = int(sample.value)
    return told


def _asked(look: Look, owner: str, topic: str) -> dict[str, int]:
    detail = look.details(owner, topic)
    index = sum(each.delayed_message_index_size_in_bytes or 0 for each in detail.subscriptions.values())
    return {
        "limit_bytes": detail.backlog_quota_limit_size,
        "limit_seconds": detail.backlog_quota_limit_time,
        "age_seconds": max(detail.oldest_backlog_message_age_seconds, 0),
        "delayed_index_bytes": index,
    }


def _figures(name: str, topic: TopicStatistics, more: Mapping[str, int]) -> TopicFigures:
    subscriptions = tuple(
        SubscriptionFigures(
            subscription=each,
            backlog_entries=subscription.msg_backlog,
            holes=subscription.total_non_contiguous_deleted_messages_range,
            entries_since_first_gap=subscription.number_of_entries_since_first_not_acked_message,
        )
        for each, subscription in topic.subscriptions.items()
        if subscription.total_non_contiguous_deleted_messages_range
    )
    usual = TopicFigures(
        topic=name, producers=topic.producer_count, backlog_bytes=topic.backlog_size, subscriptions=subscriptions
    )
    return msgspec.structs.replace(usual, **more)


def _surroundings(look: Look, owner: str, namespace: str) -> Surroundings:
    running = look.configuration(owner)
    quotas = {name: value for name, value in look.settings_of(namespace).items() if isinstance(value, BacklogQuota)}
    return Surroundings(
        quotas=quotas,
        persisted_holes=int(running.get("managedLedgerMaxUnackedRangesToPersist") or 10_000),
        index_in_memory="Bucket" not in running.get("delayedDeliveryTrackerFactoryClassName", ""),
    )
