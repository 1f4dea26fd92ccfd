"""The Prometheus series that operators of Pulsar look at: of the process, of each topic, of each subscription."""

from collections.abc import Callable, Iterator

from lab.simulator.model import Topic
from lab.simulator.spec import LoadSpec, SubscriptionSpec, TopicSpec

MB = 1024 * 1024

OF_PROCESS: dict[str, Callable[[LoadSpec], float]] = {
    'jvm_memory_bytes_used{{cluster="{0}",area="heap"}}': lambda load: load.heap_mb * MB,
    'jvm_memory_bytes_max{{cluster="{0}",area="heap"}}': lambda load: load.heap_limit_mb * MB,
    'jvm_memory_direct_bytes_used{{cluster="{0}"}}': lambda load: load.direct_mb * MB,
    'jvm_memory_direct_bytes_max{{cluster="{0}"}}': lambda load: load.direct_limit_mb * MB,
    'jvm_gc_collection_seconds_sum{{cluster="{0}",gc="Copy"}}': lambda load: load.gc_seconds,
    'jvm_gc_collection_seconds_count{{cluster="{0}",gc="Copy"}}': lambda load: load.gc_count,
    'pulsar_metadata_store_ops_latency_ms_sum{{cluster="{0}",name="metadata-store",type="get",status="success"}}': (
        lambda load: load.metadata_reads * load.metadata_read_ms
    ),
    'pulsar_metadata_store_ops_latency_ms_count{{cluster="{0}",name="metadata-store",type="get",status="success"}}': (
        lambda load: load.metadata_reads
    ),
}
OF_TOPIC: dict[str, Callable[[TopicSpec], float]] = {
    "pulsar_subscriptions_count": lambda spec: len(spec.subscriptions),
    "pulsar_producers_count": lambda spec: spec.producers,
    "pulsar_consumers_count": lambda spec: spec.consumers,
    "pulsar_rate_in": lambda spec: spec.rate_in,
    "pulsar_throughput_in": lambda spec: spec.rate_in * spec.message_bytes,
    "pulsar_storage_size": lambda spec: spec.storage,
    "pulsar_storage_backlog_size": lambda spec: spec.backlog,
    "pulsar_storage_backlog_age_seconds": lambda spec: spec.backlog_age_s,
    "pulsar_msg_backlog": lambda spec: sum(each.backlog for each in spec.subscriptions),
}
OF_SUBSCRIPTION: dict[str, Callable[[SubscriptionSpec], float]] = {
    "pulsar_subscription_back_log": lambda spec: spec.backlog,
    "pulsar_subscription_back_log_no_delayed": lambda spec: spec.backlog - spec.delayed,
    "pulsar_subscription_delayed": lambda spec: spec.delayed,
    "pulsar_subscription_unacked_messages": lambda spec: spec.unacked,
    "pulsar_subscription_blocked_on_unacked_messages": lambda spec: int(spec.blocked),
    "pulsar_subscription_msg_rate_out": lambda spec: spec.rate_out,
}


def lines(cluster: str, load: LoadSpec, loaded: dict[str, dict[str, list[Topic]]]) -> Iterator[str]:
    """The lines, each with its end; ``loaded`` is namespace → bundle → topics."""
    for series, process_value in OF_PROCESS.items():
        yield f"# TYPE {series.partition('{')[0]} gauge\n{series.format(cluster)} {process_value(load)}\n"
    topics = [
        (f'cluster="{cluster}",namespace="{namespace}",topic="{topic.name}"', topic.spec)
        for namespace, bundles in loaded.items()
        for held in bundles.values()
        for topic in held
    ]
    for name, topic_value in OF_TOPIC.items():
        yield f"# TYPE {name} gauge\n"
        yield from (f"{name}{{{labels}}} {topic_value(spec)}\n" for labels, spec in topics)
    for name, value in OF_SUBSCRIPTION.items():
        yield f"# TYPE {name} gauge\n"
        for labels, spec in topics:
            for each in spec.subscriptions:
                yield f'{name}{{{labels},subscription="{each.name}"}} {value(each)}\n'
