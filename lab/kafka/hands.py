"""What an operator and clients do to a Kafka cluster of the lab: topics, messages, positions, throttles, elections."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from lab.errors import PartFailedError
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka.admin import AdminClient

SHOWN_WITHIN_S = 120.0
EVERY_S = 0.3
QUIET = {"log_level": 0}


class KafkaHands:
    """Changes a cluster; each change is seen in it when its method returns.

    Args:
        admin: Its admin client.
        servers: ``host:port`` of its nodes, divided by commas.
    """

    def __init__(self, admin: AdminClient, servers: str) -> None:
        self._admin, self._servers = admin, servers

    def create(self, topic: str, replicas: Sequence[Sequence[int]], **settings: str) -> None:
        """Makes a topic with these replicas by partition, the preferred leader first; ``_`` in settings is ``.``."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        assigned = [list(each) for each in replicas]
        made = NewTopic(topic, len(replicas), replica_assignment=assigned, config=config)
        self._admin.create_topics([made])[topic].result()
        wait_until(lambda: self.led(topic) == len(replicas), f"{topic} is led", SHOWN_WITHIN_S, EVERY_S)

    def publish(self, topic: str, messages: int, *, partitions: int = 1, size: int = 1, seconds_ago: float = 0) -> None:
        """Publishes so many messages, evenly, with timestamps of so long ago; all replicas in sync have them then.

        Only such messages are told as there: a replica may be in sync for seconds without the newest.

        Raises:
            PartFailedError: If some could not be sent.
        """
        producer = Producer({"bootstrap.servers": self._servers, "acks": "all", **QUIET})
        then = round((time.time() - seconds_ago) * 1000)
        for number in range(messages):
            producer.produce(topic, b"x" * size, partition=number % partitions, timestamp=then + number)
            producer.poll(0)
        if left := producer.flush(SHOWN_WITHIN_S):
            raise PartFailedError(f"{left} messages could not be sent to {topic}")

    def commit(self, group: str, topic: str, offsets: Sequence[int]) -> None:
        """Commits a group's offsets, by partition, whether there are such messages or not."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": group, **QUIET})
        places = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def delete_before(self, topic: str, offset: int) -> None:
        """Deletes the messages of the first partition before an offset."""
        (deleted,) = self._admin.delete_records([TopicPartition(topic, 0, offset)]).values()
        deleted.result()

    def throttle(self, topic: str, broker: int, *, on: bool) -> None:
        """Has a broker copy a topic at a byte a second, as a throttle that was forgotten does, or as fast as it can."""
        kind = AlterConfigOpType.SET if on else AlterConfigOpType.DELETE
        of_broker, of_topic = (
            ConfigResource(where, name, incremental_configs=[ConfigEntry(setting, value, incremental_operation=kind)])
            for where, name, setting, value in (
                (ConfigResource.Type.BROKER, str(broker), "follower.replication.throttled.rate", "1"),
                (ConfigResource.Type.TOPIC, topic, "follower.replication.throttled.replicas", "*"),
            )
        )
        for changed in self._admin.incremental_alter_configs([of_topic]).values():
            changed.result()
        if on:  # other topics may be throttled there as well
            for changed in self._admin.incremental_alter_configs([of_broker]).values():
                changed.result()

    def elect(self) -> None:
        """Gives all partitions back to their preferred leaders."""
        self._admin.elect_leaders(ElectionType.PREFERRED, None).result()

    def led(self, topic: str) -> int:
        """Partitions of a topic that have a leader."""
        found = self._admin.list_topics(topic, timeout=SHOWN_WITHIN_S).topics[topic].partitions.values()
        return sum(each.leader >= 0 for each in found)

    def leads(self, broker: int) -> int:
        """Partitions that a broker leads."""
        topics = self._admin.list_topics(timeout=SHOWN_WITHIN_S).topics.values()
        return sum(each.leader == broker for topic in topics for each in topic.partitions.values())

    def out_of_sync(self) -> int:
        """Replicas that are out of sync."""
        topics = self._admin.list_topics(timeout=SHOWN_WITHIN_S).topics.values()
        return sum(len(each.replicas) - len(each.isrs) for topic in topics for each in topic.partitions.values())

    def until_in_sync(self) -> None:
        """Waits until every replica is in sync."""
        wait_until(lambda: not self.out_of_sync(), "all replicas are in sync", SHOWN_WITHIN_S, EVERY_S)

    def clear(self, topics: Sequence[str]) -> None:
        """Deletes topics, those that are there, by which a group loses their offsets.

        No group is deleted: without a coordinator the client ends the whole process (confluentinc/librdkafka#4605).
        """
        for deleted in self._admin.delete_topics(list(topics)).values():
            deleted.exception()
        wait_until(lambda: not self._there(topics), "topics are deleted", SHOWN_WITHIN_S, EVERY_S)

    def _there(self, topics: Sequence[str]) -> bool:
        try:
            return bool(self._admin.list_topics(timeout=SHOWN_WITHIN_S).topics.keys() & set(topics))
        except KafkaException:
            return True
