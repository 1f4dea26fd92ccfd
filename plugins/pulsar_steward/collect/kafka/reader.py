"""Requests to a Kafka cluster that only read, each within a time limit, and all within another."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsar_steward.errors import ConfigurationError, KafkaUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.collect.kafka.settings import KafkaSettings
    from pulsar_steward.policy.schema import KafkaPolicy

LARGEST_RESPONSE = 1_000_000_000
"""Bytes of one response at most; one with all metadata of a million partitions takes about 70 MB."""

CONNECTED_WITHIN_S = 5.0
"""After it, nobody is waited for any longer if no address could be connected to."""

SHORTEST_WAIT_S = 1.0
"""If less is left to wait for brokers that do not answer, no further request is sent."""

TOPICS_AT_ONCE = 1_000
"""Topics whose settings one request asks for: about 5 MB of response."""

NO_CONNECTION = frozenset({"_ALL_BROKERS_DOWN", "_BAD_MSG"})
"""Errors of the client by which no address could be connected to."""

MEANINGS = (
    ("brokers are down", "the connection was closed at once, as by a port that wants TLS or a login"),
    ("Required feature not supported", "this is no broker's port; a controller's, perhaps"),
    ("Invalid response size", "the port answers in another protocol, such as HTTP or TLS"),
)
"""What some words of the client mean to a person."""


class KafkaPartition(NamedTuple):
    """A partition by its topic and number."""

    topic: str
    number: int


class OutOfTime(Exception):
    """The time for all requests, or for brokers that do not answer, is over; its text says which."""


def require_client() -> tuple[Any, Any]:
    """The modules `confluent_kafka` and `confluent_kafka.admin`.

    Raises:
        ConfigurationError: If they are not installed.
    """
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra, and half a second
        from confluent_kafka import admin  # noqa: PLC0415 - as above
    except ImportError:
        raise ConfigurationError(
            "Kafka clusters are read by confluent-kafka, which is not installed here: pip install"
            " 'pulsar-steward[kafka]'"
        ) from None
    return confluent_kafka, admin


class KafkaReader:
    """Reads a Kafka cluster. Errors of single groups, partitions and brokers are among the results, as text.

    Brokers that do not answer are waited for `kafka.request_timeout_seconds` in all: requests that are sent side by
    side have half of the rest, so that those after them still reach the brokers that answer.

    Args:
        settings: Its addresses and credentials.
        limits: Limits of time, and of what is asked for at once.

    Raises:
        ConfigurationError: If `confluent-kafka` is not installed, or a property is not valid.
    """

    def __init__(self, settings: KafkaSettings, limits: KafkaPolicy) -> None:
        self._kafka, self._admin = require_client()
        self._settings, self._limits = settings, limits
        self._ends_at = time.monotonic() + limits.total_seconds
        self._patience = float(limits.request_timeout_seconds)
        self._unanswered = False
        self._errors: list[Any] = []
        self._racks: dict[int, str | None] = {}
        self.requests = 0
        try:
            self._client: Any = self._admin.AdminClient(
                {
                    "client.id": "pulsar-steward",
                    **settings.properties,
                    "bootstrap.servers": settings.servers,
                    "receive.message.max.bytes": LARGEST_RESPONSE,
                    "log_level": 0,  # it would write to standard error by itself
                    "error_cb": self._errors.append,
                }
            )
        except self._kafka.KafkaException as error:
            raise ConfigurationError(f"Kafka's client does not take the properties: {self._words(error)}") from error

    def metadata(self) -> Any:
        """Brokers, and all topics with their partitions: one request (`confluent_kafka.admin.ClusterMetadata`).

        A short request for the brokers' racks goes before it, so that a wrong address is told at once.

        Raises:
            KafkaUnreachable: If no broker answers.
        """
        self.requests += 2
        began = time.monotonic()
        short = min(self._left(), CONNECTED_WITHIN_S)
        try:
            found = self._client.describe_cluster(request_timeout=short).result()
            self._racks = {node.id: node.rack for node in found.nodes}
        except self._kafka.KafkaException as error:  # also without a controller, which the metadata do not need
            self._client.poll(0)  # hands over errors of connections
            if any(each.name() in NO_CONNECTION for each in self._errors):
                raise self._nobody(error, began) from error
        try:
            return self._client.list_topics(timeout=self._left())
        except self._kafka.KafkaException as error:
            self._client.poll(0)  # as above
            raise self._nobody(error, began) from error

    def _nobody(self, error: Any, began: float) -> KafkaUnreachable:
        """That no broker answered since a time of the monotonic clock, by the first error of a connection."""
        why = self._words(next(iter(self._errors), error)).partition(" (after")[0]
        why = next((meaning for words, meaning in MEANINGS if words in why), why)
        waited = f"{time.monotonic() - began:.0f} s"
        return KafkaUnreachable(f"no Kafka broker at {self._settings.servers} answered within {waited}: {why}")

    def racks(self) -> dict[int, str | None]:
        """Racks by the id of listed brokers, as told with the metadata; empty if they were not."""
        return self._racks

    def settings(self, brokers: Sequence[int], names: frozenset[str]) -> dict[int, dict[str, str] | str]:
        """Settings in force by broker, or why one did not tell them; sensitive ones are never told."""
        resource = self._admin.ConfigResource
        futures: dict[Any, Any] = {}
        with self._waiting() as timeout:
            for each in brokers:  # the client takes one broker at a time; the requests are under way side by side
                futures |= self._client.describe_configs(
                    [resource(resource.Type.BROKER, str(each))], request_timeout=timeout
                )
            self.requests += len(futures)
            return {int(each.name): self._named(future, names) for each, future in futures.items()}

    def topic_settings(self, topics: Sequence[str], names: frozenset[str]) -> dict[str, dict[str, str] | str]:
        """Settings in force by topic, its own or the brokers', or why they are not told; given up when time is over."""
        resource = self._admin.ConfigResource
        found: dict[str, dict[str, str] | str] = {}
        for some in chunks(topics, TOPICS_AT_ONCE):
            try:
                with self._waiting() as timeout:
                    futures = self._client.describe_configs(
                        [resource(resource.Type.TOPIC, each) for each in some], request_timeout=timeout
                    )
                    self.requests += 1
                    found |= {str(each.name): self._named(future, names) for each, future in futures.items()}
            except OutOfTime as over:
                found |= dict.fromkeys(some, str(over))
        return found

    def _named(self, future: Any, names: frozenset[str]) -> dict[str, str] | str:
        """Values of the settings of these names, or why they are not told."""
        found = self._result(future)
        if isinstance(found, str):
            return found
        return {name: str(found[name].value) for name in names if name in found and found[name].value is not None}

    def groups(self) -> tuple[dict[str, str], list[str]]:
        """States of consumer groups by name, and why others could not be listed."""
        self.requests += 1
        with self._waiting() as timeout:
            found = self._result(self._client.list_consumer_groups(request_timeout=timeout))
            if isinstance(found, str):
                return {}, [found]
            self._unanswered = any(map(self._no_answer, found.errors or ()))
        states = {each.group_id: getattr(each, "state", None) for each in found.valid}
        named = {name: state.name.lower() if state is not None else "unknown" for name, state in sorted(states.items())}
        return named, sorted({self._words(each) for each in found.errors or ()})

    def committed(self, groups: Sequence[str]) -> dict[str, dict[KafkaPartition, int] | str]:
        """Committed offsets of some groups, by group and partition; a request for each, side by side."""
        ask = self._kafka.ConsumerGroupTopicPartitions
        futures: dict[str, Any] = {}
        told: dict[str, Any] = {}
        with self._waiting() as timeout:
            for group in groups:
                try:
                    asked = self._client.list_consumer_group_offsets([ask(group)], request_timeout=timeout)
                except (ValueError, TypeError) as error:  # a name that the client does not send, such as an empty one
                    told[group] = self._words(error)
                else:
                    futures[group] = asked[group]
            self.requests += len(futures)
            told |= {group: self._result(future) for group, future in futures.items()}
        return {group: found if isinstance(found, str) else self._known(found) for group, found in told.items()}

    def _known(self, told: Any) -> dict[KafkaPartition, int] | str:
        """Committed offsets by partition, of a `ConsumerGroupTopicPartitions`, or why one of them is not told."""
        every = told.topic_partitions or ()
        if (error := next((each.error for each in every if each.error is not None), None)) is not None:
            return self._words(error)
        return {KafkaPartition(each.topic, each.partition): each.offset for each in every if each.offset >= 0}

    def ends(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """Offsets behind the newest messages; partitions that did not tell it are left out."""
        return self._offsets(partitions, self._admin.OffsetSpec.latest)

    def starts(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        """Offsets of the oldest messages that are kept; partitions that did not tell it are left out."""
        return self._offsets(partitions, self._admin.OffsetSpec.earliest)

    def first_since(self, partitions: Sequence[KafkaPartition], milliseconds: int) -> dict[KafkaPartition, int]:
        """Offsets of the first messages of a time, since the epoch, or later; -1: there is none."""
        return self._offsets(partitions, lambda: self._admin.OffsetSpec.for_timestamp(milliseconds))

    def _offsets(self, partitions: Sequence[KafkaPartition], spec: Callable[[], Any]) -> dict[KafkaPartition, int]:
        found: dict[KafkaPartition, int] = {}
        for some in chunks(partitions, self._limits.partitions_at_once):
            asked = {self._kafka.TopicPartition(each.topic, each.number): spec() for each in some}
            with self._waiting() as timeout:
                futures: Mapping[Any, Any] = self._client.list_offsets(asked, request_timeout=timeout)
                self.requests += 1
                for key, future in futures.items():
                    told = self._result(future)
                    if not isinstance(told, str):
                        found[KafkaPartition(key.topic, key.partition)] = told.offset
        return found

    def _result(self, future: Any) -> Any:
        """Result of a request, or its failure in words."""
        try:
            return future.result()
        except self._kafka.KafkaException as error:
            self._unanswered = self._unanswered or self._no_answer(error)
            return self._words(error)

    def _no_answer(self, error: Any) -> bool:
        """True if a request ended as its time was over."""
        first = next(iter(getattr(error, "args", ())), error)
        return bool(first.code() == self._kafka.KafkaError._TIMED_OUT)  # noqa: SLF001 - its public name

    @contextmanager
    def _waiting(self) -> Iterator[float]:
        """Seconds for requests that are sent side by side.

        Raises:
            OutOfTime: If none are left.
        """
        half, most = self._patience / 2, self._limits.request_timeout_seconds
        if half < min(SHORTEST_WAIT_S, most / 4):
            raise OutOfTime(f"kafka.request_timeout_seconds ({most}) were waited for brokers that do not answer")
        began, self._unanswered = time.monotonic(), False
        yield min(self._left(), half)
        if self._unanswered:
            self._patience -= time.monotonic() - began

    def _left(self) -> float:
        """Seconds for a request that needs no broker in particular.

        Raises:
            OutOfTime: If none are left.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"kafka.total_seconds ({self._limits.total_seconds}) were over")
        return float(min(left, self._limits.request_timeout_seconds))

    def _words(self, error: Any) -> str:
        """An error in words, without the secrets of the settings."""
        first = next(iter(getattr(error, "args", ())), error)
        words = str(first.str() if hasattr(first, "str") else first)
        for secret in self._settings.secrets:
            words = words.replace(secret, "***")
        return words


def chunks(things: Iterable[Any], most: int) -> Iterator[list[Any]]:
    """The things in lists of `most`; the last one may be shorter."""
    left = iter(things)
    while some := list(islice(left, most)):
        yield some
