"""Statistics and ledgers of one setting's topics, loaded or not, as recent as possible.

A broker's statistics of all topics are up to 1 min old, so they may be from before Steward's last call. A topic's own
statistics are current. So topics are read one by one, up to the policy's limit. If there are more, the statistics of
all topics are used, unless they may be from before Steward's last call.

Topics that are not loaded are in no statistics, and reading their own would load them. For these topics, the metadata
store has the closed ledgers, but nothing about the last one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pulsar_steward.apply.kept import once
from pulsar_steward.apply.live_topics import keeping_unknown
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.bundles import BundleRange, position_of
from pulsar_steward.model.subscription import COMPACTION
from pulsar_steward.model.topics import is_system_topic, partitioned_topic
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar.statistics import each_topic, is_of_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.model.step import ChangeSetting
    from pulsar_steward.pulsar.own_settings import StoredTopic
    from pulsar_steward.pulsar.owner import InternalDetail, TopicDetail
    from pulsar_steward.pulsar.statistics import TopicStatistics

YOUNG = timedelta(minutes=2)
"""Age up to which a loaded topic may be missing from statistics, as these are up to 1 min old."""

BUDGET_KEY = "policy key backlog_quota_remedy.most_topics_asked"
PERSISTENT = "persistent://"


@dataclass(frozen=True, slots=True)
class ShownTopic:
    """A loaded topic in a broker's statistics of all topics; kept small, as there may be many.

    Attributes:
        storage_size: Bytes stored.
        backlog_size: Bytes that its slowest durable cursor has not consumed.
        subscriptions: Entries that each subscription has not consumed; statistics do not tell if it is durable.
        replicators: Entries that were not sent to each remote cluster.
        compacted: True if it has a cursor of compaction.
    """

    storage_size: int
    backlog_size: int
    subscriptions: dict[str, int]
    replicators: dict[str, int]
    compacted: bool

    @classmethod
    def of(cls, topic: TopicStatistics) -> ShownTopic:
        """The topic from its statistics."""
        return cls(
            topic.storage_size or 0,
            topic.backlog_size or 0,
            {name: each.msg_backlog for name, each in topic.subscriptions.items() if each.msg_backlog},
            {name: each.replication_backlog for name, each in topic.replication.items() if each.replication_backlog},
            COMPACTION in topic.subscriptions,
        )


@dataclass
class TopicLooks:
    """Statistics and ledgers of a setting's topics. Every method raises `AdminError` if they cannot be read.

    Attributes:
        reader: Reads the cluster.
        change: The setting: of a namespace, or of one topic with its partitions.
        owners: Brokers that now own a bundle of the namespace, with these bundles (``tenant/ns/range``).
        budget: Number of topics that may be read one by one; counts for loaded topics and for the others separately.
        now: Current time, UTC.
        told_in_seconds: Time until brokers' statistics of all topics are from after Steward's last call; 0: they are.
        known: Results that were read already.
    """

    reader: LiveReader
    change: ChangeSetting
    owners: Mapping[str, frozenset[str]]
    budget: int
    now: datetime
    told_in_seconds: float
    known: dict[Any, Any] = field(default_factory=dict)

    # -- loaded topics

    @once
    def loaded(self) -> dict[str, str]:
        """Loaded topics by full name, with their owners: topics in the statistics, and new ones."""
        return {**{name: owner for name, (owner, _) in self._shown().items()}, **self._new()}

    @once
    def details(self, *, ages: bool = False) -> dict[str, TopicDetail] | Unknown:
        """Current statistics of each loaded topic; unknown if there are too many to read one by one.

        Args:
            ages: True to also read the ages of subscriptions' backlogs.
        """
        loaded = self.loaded()
        if len(loaded) > self.budget:
            return self.too_many(f"{counted(len(loaded), 'topic')} of {self.change.holder} are loaded")
        return self.asked(loaded, ages=ages)

    def asked(self, names: Iterable[str], *, ages: bool = False) -> dict[str, TopicDetail]:
        """Current statistics of some loaded topics; a topic that was deleted in the meantime is left out."""
        loaded, wanted = self.loaded(), frozenset(names)
        found: dict[str, TopicDetail] = {}
        for owner in self.owners:
            if ours := sorted(name for name in wanted if loaded.get(name) == owner):
                found |= self.reader.details_of(owner, ours, ages=ages)
        return found

    def of_new(self) -> dict[str, TopicDetail]:
        """Current statistics of topics that are too new for the statistics of all topics."""
        return self.asked(self._new())

    @once
    def statistics(self) -> dict[str, ShownTopic] | Unknown:
        """Loaded topics that store data or are compacted, from the statistics of all topics.

        Unknown if Steward made a call since.
        """
        if self.told_in_seconds:
            return Unknown(
                f"{self.change.holder} has {counted(len(self.loaded()), 'topic')}, of which at most {self.budget:,} are"
                f" asked one by one ({BUDGET_KEY}), and brokers' statistics of all topics may be from before Steward's"
                " last change: try again in a minute"
            )
        found: dict[str, ShownTopic] = {}
        for name, (owner, topic) in self._shown().items():
            if topic is None:
                return Unknown(keeping_unknown([name], owner))
            if topic.storage_size or topic.backlog_size or topic.compacted:
                found[name] = topic
        return found

    @once
    def compaction_bytes(self) -> int | Unknown:
        """The largest compaction threshold of a topic: its own, its namespace's or the brokers'; 0: none."""
        loaded = self._compacted()
        if isinstance(loaded, Unknown):
            return loaded
        compacted = sorted({partitioned_topic(name) for name in loaded})
        if len(compacted) > self.budget:
            return self.too_many(f"{counted(len(compacted), 'topic')} of {self.change.holder} are compacted")
        others = () if self.change.topic in compacted else (None,)
        return max(self.reader.compaction_bytes(self.change.namespace, [*compacted, *others]))

    def _compacted(self) -> set[str] | Unknown:
        """Loaded topics with a cursor of compaction."""
        details = self.details()
        if not isinstance(details, Unknown):
            return {name for name, each in details.items() if COMPACTION in each.subscriptions}
        shown = self.statistics()
        if isinstance(shown, Unknown):
            return shown
        new = {name for name, each in self.of_new().items() if COMPACTION in each.subscriptions}
        return new | {name for name, each in shown.items() if each.compacted}

    def internals(self, name: str) -> InternalDetail:
        """Current ledgers and cursors of a loaded topic."""
        return self.reader.internals(self.loaded()[name], name)

    @once
    def milliseconds(self, name: str) -> int:
        """Milliseconds since the epoch by the clock of a loaded topic's owner; if not known, by this machine's."""
        return int(time.time() * 1000) + (self.reader.clock_milliseconds(self.loaded()[name]) or 0)

    @once
    def _shown(self) -> dict[str, tuple[str, ShownTopic | None]]:
        """Topics in the statistics of all topics, with their owners; None: sizes or backlogs are left out.

        All is kept of one pass, as only the last broker's statistics are: they may be large.
        """
        found: dict[str, tuple[str, ShownTopic | None]] = {}
        for owner in self.owners:
            document = self.reader.statistics(owner)
            for name, each in each_topic(document, self.change.namespace, owner, self.change.topic):
                if name.startswith(PERSISTENT) and not is_system_topic(name):
                    found[name] = owner, None if each.keeps_unknown else ShownTopic.of(each)
        return found

    @once
    def _new(self) -> dict[str, str]:
        """New topics of owned bundles, with their owners, which have loaded them or load them when they are read."""
        missing = self._missing()
        if isinstance(missing, Unknown):
            return {}
        owned = [
            (BundleRange.parse(bundle.rpartition("/")[2]), owner)
            for owner, bundles in self.owners.items()
            for bundle in bundles
        ]
        young = {name: position_of(name) for name, each in missing.items() if _is_young(each, self.now)}
        return {name: owner for name, position in young.items() for bundle, owner in owned if position in bundle}

    # -- topics that are not loaded

    @once
    def not_loaded(self) -> dict[str, StoredTopic] | Unknown:
        """Topics that are not loaded, from the metadata store; unknown if there are too many to read one by one."""
        missing = self._missing()
        if isinstance(missing, Unknown):
            return missing
        return {name: each for name, each in missing.items() if name not in self._new()}

    @once
    def stored(self, name: str) -> StoredTopic:
        """A topic, loaded or not, from the metadata store."""
        return self.reader.stored_topic(name)

    @once
    def _missing(self) -> dict[str, StoredTopic] | Unknown:
        """Topics in no statistics: not loaded, or loaded after brokers made their statistics, up to 1 min ago."""
        names, shown = self.reader.topic_names(self.change.namespace), self._shown()
        missing = [name for name in names if name not in shown and self._concerns(name)]
        if len(missing) > self.budget:
            return self.too_many(f"{counted(len(missing), 'topic')} of {self.change.holder} are not loaded")
        return {name: self.stored(name) for name in missing}

    # -- which topics

    def too_many(self, what: str) -> Unknown:
        """Unknown, as there are more topics than the budget."""
        return Unknown(f"{what}, and no more than {self.budget:,} are asked ({BUDGET_KEY})")

    def _concerns(self, name: str) -> bool:
        """True for a topic of the setting, except Pulsar's own topics."""
        return (self.change.topic is None or is_of_topic(name, self.change.topic)) and not is_system_topic(name)


def _is_young(topic: StoredTopic, now: datetime) -> bool:
    try:
        created = datetime.fromisoformat(topic.creation_date)
    except ValueError:
        return False
    return now - created.astimezone(UTC) < YOUNG
