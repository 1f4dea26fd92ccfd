"""The series of topics and subscriptions: which stand at which, and where from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lab.simulator.metrics.text import family
from lab.simulator.spec import SubscriptionSpec, TopicSpec


@dataclass(frozen=True, slots=True)
class Shown:
    """A topic in the series.

    Attributes:
        labels: ``cluster="..",namespace="..",topic=".."``.
        spec: Its figures.
        limits: Its backlog quota, in bytes and in seconds; -1 where there is none.
    """

    labels: str
    spec: TopicSpec
    limits: tuple[int, int]


def _told(topic: Shown, member: str) -> int:
    """A number of its ``/stats``."""
    value = dict(topic.spec.told).get(member, 0)
    return value if isinstance(value, int) else 0


OF_TOPIC: dict[str, Callable[[Shown], float]] = {
    "pulsar_subscriptions_count": lambda topic: len(topic.spec.subscriptions),
    "pulsar_producers_count": lambda topic: topic.spec.producers,
    "pulsar_consumers_count": lambda topic: topic.spec.consumers,
    "pulsar_rate_in": lambda topic: topic.spec.rate_in,
    "pulsar_throughput_in": lambda topic: topic.spec.rate_in * topic.spec.message_bytes,
    "pulsar_throughput_out": lambda topic: (
        sum(each.rate_out for each in topic.spec.subscriptions) * topic.spec.message_bytes
    ),
    "pulsar_storage_size": lambda topic: topic.spec.storage,
    "pulsar_storage_write_latency_le_1000": lambda topic: topic.spec.slow_entries,
    "pulsar_storage_write_latency_overflow": lambda topic: topic.spec.stalled_entries,
    "pulsar_storage_backlog_size": lambda topic: topic.spec.backlog,
    "pulsar_storage_backlog_age_seconds": lambda topic: topic.spec.backlog_age_s,
    "pulsar_publish_rate_limit_times": lambda topic: _told(topic, "publishRateLimitedTimes"),
    "pulsar_txn_tb_active_total": lambda topic: _told(topic, "ongoingTxnCount"),
    "pulsar_storage_backlog_quota_limit": lambda topic: topic.limits[0],
    "pulsar_storage_backlog_quota_limit_time": lambda topic: topic.limits[1],
    "pulsar_msg_backlog": lambda topic: sum(each.backlog for each in topic.spec.subscriptions),
    "pulsar_delayed_message_index_size_bytes": lambda topic: topic.spec.index_bytes,
}
OF_SUBSCRIPTION: dict[str, Callable[[SubscriptionSpec], float]] = {
    "pulsar_subscription_back_log": lambda spec: spec.backlog,
    "pulsar_subscription_delayed": lambda spec: spec.delayed,
    "pulsar_subscription_delayed_message_index_size_bytes": lambda spec: spec.index_bytes,
    "pulsar_subscription_unacked_messages": lambda spec: spec.unacked,
    "pulsar_subscription_blocked_on_unacked_messages": lambda spec: int(spec.blocked),
    "pulsar_subscription_msg_rate_out": lambda spec: spec.rate_out,
    "pulsar_subscription_msg_rate_redeliver": lambda spec: spec.redeliver_rate,
}
HELD_BACK = {
    f"pulsar_subscription_dispatch_throttled_{what.lower()}_events": {
        level.lower(): f"dispatchThrottled{what}EventsBy{level}Limit" for level in ("Subscription", "Topic", "Broker")
    }
    for what in ("Msg", "Bytes")
}
"""Members of a subscription's ``/stats`` by the `reason` of each series of what dispatch rates held back."""
BUCKETS = "pulsar_delayed_message_index_bucket_total"


def counts(cluster: str, topics: dict[str, int]) -> Iterator[str]:
    """Yields how many topics of each namespace are loaded, which brokers tell with and without series of topics."""
    yield family("pulsar_topics_count", "gauge")
    for namespace, count in topics.items():
        yield f'pulsar_topics_count{{cluster="{cluster}",namespace="{namespace}"}} {count}\n'


def lines(topics: list[Shown], *, buckets: bool) -> Iterator[str]:
    """Yields topics' series; with ``buckets`` also those that only the bucket tracker has."""
    for name, topic_value in OF_TOPIC.items():
        yield family(name, "gauge")
        yield from (f"{name}{{{topic.labels}}} {topic_value(topic)}\n" for topic in topics)
    for name, value in OF_SUBSCRIPTION.items():
        yield family(name, "gauge")
        for topic in topics:
            for each in topic.spec.subscriptions:
                yield f'{name}{{{topic.labels},subscription="{each.name}"}} {value(each)}\n'
    yield from _held_back(topics)
    if buckets:
        yield from _of_buckets(topics)


def _held_back(topics: list[Shown]) -> Iterator[str]:
    for name, members in HELD_BACK.items():
        yield family(name, "gauge")
        for topic in topics:
            for each in topic.spec.subscriptions:
                told = dict(each.told)
                labels = f'{topic.labels},subscription="{each.name}"'
                for reason, member in members.items():
                    yield f'{name}{{{labels},reason="{reason}"}} {told.get(member, 0)}\n'


def _of_buckets(topics: list[Shown]) -> Iterator[str]:
    """Yields the bucket tracker's series, of subscriptions with a delayed message, as others have no tracker."""
    yield family(BUCKETS, "gauge")
    for topic in topics:
        told = [
            (each.name, each.delayed_buckets + 1)
            for each in topic.spec.subscriptions
            if each.delayed or each.delayed_buckets
        ]
        if told:
            yield f"{BUCKETS}{{{topic.labels}}} {sum(buckets for _, buckets in told)}\n"
        for name, buckets in told:
            yield f'{BUCKETS}{{{topic.labels},subscription="{name}"}} {buckets}\n'
