"""Topics of the live cluster, by brokers' statistics and metrics: risks of a move, and backlogs under a quota."""

from __future__ import annotations

import time
from math import isnan
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.statistics import backlogged, topics_of
from pulsar_steward.admin.statistics import largest_backlog as largest_of
from pulsar_steward.errors import AdminError
from pulsar_steward.facts.backlogs import Backlog, TopicAge, ages_of
from pulsar_steward.facts.risks import (
    PERSISTED_HOLES,
    TRACKER,
    MoveRisks,
    SubscriptionFigures,
    TopicFigures,
    move_risks_of,
    surroundings_of,
)
from pulsar_steward.model.series import AGE, AGE_LIMIT, DELAYED_INDEX, DELAYED_SERIES, SIZE_LIMIT
from pulsar_steward.model.topics import partitioned_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pulsar_steward.admin.metrics import Sample
    from pulsar_steward.admin.owner import TopicDetail
    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.facts.risks import Surroundings
    from pulsar_steward.model.step import BundleChange, ChangeSetting, DeleteSubscription
    from pulsar_steward.policy.guards import GuardsPolicy

RESTING = {SIZE_LIMIT: -1.0, AGE_LIMIT: -1.0, AGE: -1.0, DELAYED_INDEX: 0.0}

MAX_TOPICS_ASKED = 100
"""Topics with the largest backlogs that are asked one by one where a broker's metrics have no topics."""


def owning(namespace: str, owned: Mapping[str, tuple[str, ...] | AdminError]) -> dict[str, frozenset[str]]:
    """The brokers that own a bundle of a namespace, with these bundles.

    Raises:
        AdminError: If one of them could not be read.
    """
    found: dict[str, frozenset[str]] = {}
    for broker, names in owned.items():
        if isinstance(names, AdminError):
            raise names
        found[broker] = frozenset(name for name in names if name.startswith(f"{namespace}/0x"))
    return {broker: names for broker, names in found.items() if names}


def move_risks(
    reader: LiveReader, owner: str, change: BundleChange, policy: GuardsPolicy, require_owned: Callable[[], None]
) -> MoveRisks:
    """Risks of moving or splitting a bundle.

    Args:
        reader: Reads the cluster.
        owner: The bundle's owner.
        change: The change.
        policy: The margin below a quota.
        require_owned: Checks, before topics are asked one by one, that the owner owns them at this instant.

    Raises:
        AdminError: If the owner cannot be read.
    """
    topics = reader.topics(owner, change.namespace, change.bundle)
    topics = {name: topic for name, topic in topics.items() if topic.subscriptions}
    risky = {name for name, topic in topics.items() if topic.backlog_size or _delayed_or_holes(topic)}
    if not risky:
        return MoveRisks()
    samples = reader.samples(owner, RESTING)
    if any(sample.series == SIZE_LIMIT for sample in samples):
        more = _figures_in_metrics(samples, risky)
    else:
        require_owned()
        largest = sorted(risky, key=lambda name: (-topics[name].backlog_size, name))[:MAX_TOPICS_ASKED]
        more = {name: _figures_of_topic(reader, owner, name) for name in largest}
    figures = [_figures(name, topics[name], more.get(name, {})) for name in sorted(risky)]
    return move_risks_of(figures, _surroundings(reader, owner, change.namespace), policy)


def largest_backlog(reader: LiveReader, change: ChangeSetting, owners: Iterable[str]) -> int:
    """Bytes of the largest backlog that a quota is for: of all topics of the namespace, or the one that it is set on.

    Raises:
        AdminError: If an owner cannot be read.
    """
    largest = (largest_of(reader.statistics(each), change.namespace, each, topic=change.topic) for each in owners)
    return max(largest, default=0)


def backlogs(reader: LiveReader, change: ChangeSetting, owners: Iterable[str]) -> list[Backlog]:
    """The backlogs of all topics that a quota is for.

    Raises:
        AdminError: If an owner cannot be read.
    """
    return [
        _backlog(name, topic)
        for owner in owners
        for name, topic in backlogged(reader.statistics(owner), change.namespace, owner, topic=change.topic).items()
    ]


def new_backlogs(reader: LiveReader, new: Mapping[str, str]) -> list[Backlog]:
    """The backlogs of topics that are in no statistics yet, asked one by one.

    Args:
        reader: Reads the cluster.
        new: Full names, with their owners.

    Raises:
        AdminError: If an owner cannot be read.
    """
    return [
        _backlog(name, each)
        for owner in sorted(set(new.values()))
        for name, each in reader.details_of(owner, sorted(name for name in new if new[name] == owner)).items()
    ]


def backlog_ages(
    reader: LiveReader,
    change: ChangeSetting,
    owners: Iterable[str],
    budget: int,
    unloaded: Iterable[TopicAge],
    new: Mapping[str, str],
) -> BacklogAges:
    """The ages of the backlogs of all topics that an age quota is for, by their owners' clocks.

    Args:
        reader: Reads the cluster.
        change: The age quota.
        owners: Brokers that own a bundle of the namespace at this instant.
        budget: How many topics may be asked.
        unloaded: Ages of backlogs of topics that are not loaded, at least.
        new: Topics that are in no statistics yet, with their owners.

    Raises:
        AdminError: If an owner cannot be read, or a topic went elsewhere meanwhile.
    """
    ages: dict[str, TopicAge] = {each.topic: each for each in unloaded}
    waiting, unanswered, stored = len(ages), 0, len(ages)
    for owner in owners:
        shown = backlogged(reader.statistics(owner), change.namespace, owner, topic=change.topic)
        topics = sorted({*shown, *(name for name in new if new[name] == owner)})
        waiting += len(topics)
        asked = topics[: max(budget - (len(ages) - stored) - unanswered, 0)]
        published = reader.oldest_published(owner, asked) if asked else {}
        found = _aged(published, reader.clock_milliseconds(owner) if published else None)
        unanswered += len(published) - len(found)
        waiting -= len(asked) - len(published)
        ages |= found
    why = (
        f"{unanswered:,} were asked, and their brokers do not tell"
        if unanswered
        else f"no more than {budget:,} are asked (policy key backlog_quota_remedy.most_topics_asked)"
    )
    return ages_of(ages.values(), waiting=waiting, unknown=waiting - len(ages), why_unknown=why)


def delayed_messages(reader: LiveReader, namespace: str, owners: Iterable[str]) -> int | None:
    """Number of delayed messages of a namespace; None where an owner's metrics have no topics.

    Raises:
        AdminError: If an owner cannot be read.
    """
    total = 0
    for broker in owners:
        samples = reader.samples(broker, {DELAYED_SERIES: 0})
        if not samples:
            return None
        total += sum(int(each.value) for each in samples if each.labels.get("namespace") == namespace)
    return total


def consumers_beside(reader: LiveReader, change: DeleteSubscription, owners: Iterable[str]) -> int:
    """Consumers of the subscription of the same name on the other partitions of a topic; 0 of one without partitions.

    Raises:
        AdminError: If an owner cannot be read.
    """
    whole = partitioned_topic(change.topic)
    if whole == change.topic:
        return 0
    found = (topics_of(reader.statistics(each), change.namespace, each, topic=whole).items() for each in owners)
    return sum(
        len(topic.subscriptions[change.subscription].consumers)
        for topics in found
        for name, topic in topics
        if name != change.topic and change.subscription in topic.subscriptions
    )


def _backlog(name: str, topic: TopicStatistics | TopicDetail) -> Backlog:
    messages = tuple(each.msg_backlog for each in topic.subscriptions.values())
    return Backlog(topic=name, bytes=topic.backlog_size, messages=messages)


def _aged(published: dict[str, int | None], ahead_milliseconds: int | None) -> dict[str, TopicAge]:
    """Ages by topic, by the broker's own clock; topics without a known publish time are left out."""
    if ahead_milliseconds is None:
        return {}
    now = int(time.time() * 1000) + ahead_milliseconds
    return {
        topic: TopicAge(max(now - at, 0) // 1000 if at else 0, topic)
        for topic, at in published.items()
        if at is not None
    }


def _delayed_or_holes(topic: TopicStatistics) -> bool:
    return any(
        each.msg_backlog or each.total_non_contiguous_deleted_messages_range for each in topic.subscriptions.values()
    )


def _figures_in_metrics(samples: Iterable[Sample], wanted: set[str]) -> dict[str, dict[str, int]]:
    """Figures by topic, from its series; a series at its resting value is left out: the broker sets no limit."""
    fields = {
        SIZE_LIMIT: "limit_bytes",
        AGE_LIMIT: "limit_seconds",
        AGE: "age_seconds",
        DELAYED_INDEX: "delayed_index_bytes",
    }
    none = {"limit_bytes": -1, "limit_seconds": -1}
    figures: dict[str, dict[str, int]] = {name: dict(none) for name in wanted}
    for sample in samples:
        topic = figures.get(sample.topic or "")
        if topic is not None and not isnan(sample.value) and sample.value != RESTING[sample.series]:
            topic[fields[sample.series]] = int(sample.value)
    return figures


def _figures_of_topic(reader: LiveReader, owner: str, topic: str) -> dict[str, int]:
    detail = reader.details(owner, topic)
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


def _surroundings(reader: LiveReader, owner: str, namespace: str) -> Surroundings:
    running = reader.configuration(owner)
    settings = reader.settings_of(namespace)
    return surroundings_of(settings, running.get(PERSISTED_HOLES, ""), running.get(TRACKER, ""))
