"""Reports about what is kept: readers of it, and offloading."""

from lab.faults.fault import Expected
from lab.faults.field.clients import ago_ms, offloading, reader
from lab.faults.field.unseen.first import unseen
from lab.faults.simulated._clusters import GIB, cluster, held, retained
from lab.simulator import (
    BookieSpec,
    ClusterSpec,
    NamespaceSpec,
    SubscriptionSpec,
    TopicSpec,
)


def _jumping(backlog: int, sent: int, expired: int) -> ClusterSpec:
    """A reader of ten months of changes, seven minutes after it connected, and six later."""
    passed = ago_ms(3) if expired else 0
    told = (("msgOutCounter", sent), ("totalMsgExpired", expired), ("lastExpireTimestamp", passed))
    back = SubscriptionSpec(
        "reader-4f1c0a9b2e",
        kind="Exclusive",
        consumers=1,
        new_consumers=1,
        backlog=backlog,
        rate_out=4.2,
        durable=False,
        told=told,
    )
    changes = TopicSpec(
        "changes-partition-0",
        subscriptions=(back,),
        message_bytes=100_000,
        backlog_bytes=0,
        storage_bytes=2_474_700_000,
        new_clients_ago_s=7 * 60,
        stored_ago_s=300 * 86_400,
        told=(("offloadedStorageSize", 2_400_000_000), ("lastOffloadSuccessTimeStamp", ago_ms(4_000))),
    )
    policies = offloading(
        GIB,
        offload_threshold_in_seconds=259_200,
        **retained(5_300_000),
        message_ttl_in_seconds=1_209_600,
    )
    return cluster(
        NamespaceSpec("ref/master", topics=(changes,), policies=policies),
        configuration={"messageExpiryCheckIntervalInMinutes": "5"},
        version="4.0.13",
    )


def _readers_only(*readers: SubscriptionSpec) -> ClusterSpec:
    ticks = TopicSpec(
        "ticks", producers=1, subscriptions=readers, message_bytes=95, storage_bytes=68_700_000_000, rate_in=1_200.0
    )
    return cluster(
        NamespaceSpec("quotes/feed", topics=(ticks,), policies={**held(10 * GIB), **retained(10_080)}),
        configuration={"brokerDeleteInactiveTopicsEnabled": "false"},
    )


TAIL = reader("reader-19ab44c0de", rate_out=1_200.0)


def _lost_the_race(failed_min: float) -> ClusterSpec:
    es = SubscriptionSpec("es", consumers=4, backlog=300, unacked=120, rate_out=9_000.0)
    devices = TopicSpec(
        "app-devices",
        producers=4,
        subscriptions=(es,),
        message_bytes=1_000,
        storage_bytes=2_500_000_000,
        rate_in=9_000.0,
        told=(("lastOffloadFailureTimeStamp", ago_ms(failed_min)),),
    )
    policies = offloading() | retained(0, 0)
    return cluster(NamespaceSpec("public/fluentbit", topics=(devices,), policies=policies))


FAULTS = (
    unseen(
        "reader-jumps-over-retained-history",
        "apache/pulsar#26504",
        "A reader of ten months of history is carried over 20,100 messages by a time to live of two weeks.",
        "The time to live of ref/master also moves readers on, over history that is kept for ever: none, or one longer"
        " than the history.",
        _jumping(21_600, 3_100, 0),
        _jumping(40, 4_600, 20_100),
        expected=(Expected("ttl-before-read", "ref/master", "(?i)reader"),),
        never=(r"(?i)retention of ref/master", r"(?i)offload.* fail", "autoSkipNonRecoverableData"),
        minutes_apart=6,
    ),
    unseen(
        "readers-only-topic-large-storage",
        "apache/pulsar#8204",
        "A topic that only readers read stores seven days of retention, six times its quota; one reader is 37,000,000"
        " behind and catches up.",
        "Nothing: readers have no backlog that counts, and what is stored is the retention.",
        _readers_only(reader("reader-5d0e11b3aa", rate_out=1_200.0)),
        _readers_only(TAIL, reader("reader-77e1f00a53", backlog=41_000_000, rate_out=8_000.0)),
        _readers_only(TAIL, reader("reader-77e1f00a53", backlog=37_000_000, rate_out=8_000.0)),
        servers=((BookieSpec(disks_percent=(55.0,)),) * 3,),
        never=(
            r"(?i)delete .*reader-",
            r"(?i)(retention|quota|TTL) of quotes/feed",
            r"reader-77e1f00a53.*(behind|backlog|lag)",
        ),
    ),
    unseen(
        "offload-lost-the-race-with-trimming",
        "apache/pulsar#13219",
        "Without retention, ledgers are consumed and deleted before they are offloaded: the last offload failed a few"
        " minutes ago, and none succeeded.",
        "Nothing: each ledger was consumed by all before it was deleted. Whoever wants an archive needs retention.",
        _lost_the_race(11),
        _lost_the_race(3),
        never=(r"(?i)data loss|lost data", "autoSkipNonRecoverableData", r"(?i)retention of public/fluentbit"),
    ),
)
