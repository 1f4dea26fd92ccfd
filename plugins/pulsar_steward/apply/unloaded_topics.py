"""Topics of the live cluster that no broker has loaded: a new quota meets their backlog once somebody does.

Statistics of brokers do not have them, and a topic's own statistics would load it. The metadata store tells how much
of a backlog is in closed ledgers, and nothing of the last one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.admin.statistics import is_of_topic, loaded_topics
from pulsar_steward.facts.backlogs import TopicAge
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.topics import is_own_topic
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pulsar_steward.admin.stored import StoredTopic
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.model.step import ChangeSetting

YOUNG = timedelta(minutes=2)
"""Age of a topic of an owned bundle up to which it may be loaded and absent from statistics: these are a minute old."""

BUDGET_KEY = "policy key backlog_quota_remedy.most_topics_asked"


def unloaded_topics(
    reader: LiveReader, change: ChangeSetting, owners: Iterable[str], budget: int
) -> dict[str, StoredTopic] | Unknown:
    """Topics that a quota is for, that have a subscription and are in no statistics, by full name.

    They are not loaded, or were loaded since brokers refreshed their statistics, up to a minute ago.

    Args:
        reader: Reads the cluster.
        change: The quota.
        owners: Brokers that own a bundle of the namespace.
        budget: Number of topics that may be asked.

    Raises:
        AdminError: If a broker cannot be read.
    """
    loaded = frozenset[str]().union(
        *(loaded_topics(reader.statistics(each), change.namespace, each) for each in owners)
    )
    missing = [
        name
        for name in reader.topic_names(change.namespace)
        if name not in loaded and not is_own_topic(name) and (change.topic is None or is_of_topic(name, change.topic))
    ]
    if len(missing) > budget:
        return Unknown(
            f"{counted(len(missing), 'topic')} of {change.holder} are not loaded, and the backlogs of no more than"
            f" {budget:,} are asked ({BUDGET_KEY})"
        )
    stored = {name: reader.stored_topic(name) for name in missing}
    return {name: each for name, each in stored.items() if each.subscriptions}


def new_topics(
    unloaded: Mapping[str, StoredTopic], owners: Mapping[str, Iterable[str]], now: datetime
) -> dict[str, str]:
    """New topics of owned bundles, by full name, with their owners: these have them loaded, or load them when asked.

    Args:
        unloaded: The result of `unloaded_topics`.
        owners: Brokers that own a bundle of the namespace, with these bundles (``tenant/ns/range``).
        now: Current time, UTC.
    """
    owned = [
        (BundleRange.parse(bundle.rpartition("/")[2]), owner) for owner, bundles in owners.items() for bundle in bundles
    ]
    young = {name: position_of(name) for name, each in unloaded.items() if _is_young(each, now)}
    return {name: owner for name, position in young.items() for bundle, owner in owned if position in bundle}


def loss_unknown(change: ChangeSetting, unloaded: Collection[str]) -> Unknown | None:
    """Nobody tells what topics that are not loaded lose by a quota that evicts; None: there are none.

    Args:
        change: The quota.
        unloaded: Those of the topics in no statistics that are not new.
    """
    if not unloaded:
        return None
    return Unknown(
        f"what {counted(len(unloaded), 'topic')} of {change.holder} would lose is not known, as"
        f" {'it is' if len(unloaded) == 1 else 'they are'} not loaded ({min(unloaded)}): a consumer, or"
        " `pulsar-admin topics stats`, has a topic loaded"
    )


def least_ages(unloaded: Mapping[str, StoredTopic], now: datetime) -> list[TopicAge]:
    """Ages of backlogs that are at least so old, of topics with such a backlog in a closed ledger."""
    milliseconds = int(now.timestamp() * 1000)
    closed = ((name, each.oldest_closed_milliseconds) for name, each in unloaded.items())
    return [TopicAge(max(milliseconds - at, 0) // 1000, name) for name, at in closed if at is not None]


def _is_young(topic: StoredTopic, now: datetime) -> bool:
    try:
        created = datetime.fromisoformat(topic.creation_date)
    except ValueError:
        return False
    return now - created.astimezone(UTC) < YOUNG
