"""Delayed messages by the million."""

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.simulated._clusters import GIB, IN_MEMORY, at, cluster, strained
from lab.simulator import LoadSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

NO_MILLIONS = "millions of delayed messages take longer to write than the lab may run"


def _namespace(*topics: TopicSpec, owner: int | None = None) -> NamespaceSpec:
    return NamespaceSpec("shop/reminders", topics=topics, owner=owner)


def _delayed(name: str, messages: int, *, buckets: int = 0) -> SubscriptionSpec:
    return SubscriptionSpec(
        name, consumers=2, backlog=messages, delayed=messages, delayed_buckets=buckets, rate_out=10.0
    )


def _topic(name: str, *subscriptions: SubscriptionSpec, partitions: int = 0) -> TopicSpec:
    return TopicSpec(name, partitions=partitions, producers=2, subscriptions=subscriptions, rate_in=10.0)


def _few_hold_much(gibibytes: int = 60) -> TopicSpec:
    """Two hundred messages for next month, and what came and went behind the first of them since."""
    monthly = SubscriptionSpec(
        "invoices", consumers=2, backlog=200, delayed=200, ack_holes=180, spans=2_000_000 * gibibytes, rate_out=900.0
    )
    return TopicSpec(
        "monthly",
        producers=2,
        subscriptions=(monthly,),
        message_bytes=550,
        backlog_bytes=gibibytes * GIB,
        storage_bytes=(gibibytes + 1) * GIB,
        rate_in=900.0,
    )


FAULTS = (
    SimulatedFault(
        name="buckets-pile-up",
        about="A subscription has 80 buckets of delayed messages where 50 are allowed: merging does not keep up.",
        expected=(Expected("delayed-bucket-count", "^persistent://shop/reminders/carts$"),),
        specs=(
            cluster(
                _namespace(_topic("carts", _delayed("mail", 4_000_000, buckets=80))),
                configuration={"delayedDeliveryMaxNumBuckets": "50"},
            ),
        ),
        why=NO_MILLIONS,
    ),
    SimulatedFault(
        name="few-delayed-messages-hold-much",
        about="200 messages that wait for a month keep 60 GiB of consumed ones from deletion.",
        expected=(Expected("delayed-holds-ledgers", "^persistent://shop/reminders/monthly$"),),
        allowed={"backlog-quota-missing": "by the broker's figure it is a backlog of 60 GiB, which no quota bounds"},
        specs=(cluster(_namespace(_few_hold_much())),),
        why="60 GiB of messages",
    ),
    SimulatedFault(
        name="delayed-index-fills-memory",
        about="The in-memory index of 2.4 million delayed messages takes a fifth of a small broker's direct memory.",
        expected=(Expected("delayed-index-memory", at(0)),),
        specs=(
            cluster(
                _namespace(_topic("trials", _delayed("mail", 300_000), partitions=8), owner=0),
                usual=LoadSpec(),
                broker_0=LoadSpec(direct_mb=74.0),
                configuration=IN_MEMORY,
            ),
        ),
        why=NO_MILLIONS,
        quick=True,
    ),
    SimulatedFault(
        name="delayed-index-for-each-subscription",
        about="Six subscriptions of a topic each keep an index of the same 700,000 delayed messages.",
        expected=(Expected("delayed-index-multiplied", "^persistent://shop/reminders/offers$"),),
        specs=(
            cluster(
                _namespace(_topic("offers", *(_delayed(f"shard-{number}", 700_000) for number in range(6)))),
                usual=strained(direct_mb=1200),
                configuration=IN_MEMORY,
            ),
        ),
        why=NO_MILLIONS,
    ),
    SimulatedFault(
        name="buckets-are-merged",
        about="Healthy: a subscription has 20 buckets of delayed messages where 50 are allowed.",
        specs=(
            cluster(
                _namespace(_topic("carts", _delayed("mail", 1_000_000, buckets=20))),
                configuration={"delayedDeliveryMaxNumBuckets": "50"},
            ),
        ),
        why=NO_MILLIONS,
        twin_of=("buckets-pile-up",),
    ),
    SimulatedFault(
        name="few-delayed-messages-hold-little",
        about="Healthy: 200 messages that wait for a month keep 2 GiB of consumed ones from deletion.",
        specs=(cluster(_namespace(_few_hold_much(2))),),
        why="gigabytes of messages",
        twin_of=("few-delayed-messages-hold-much",),
    ),
    SimulatedFault(
        name="delayed-index-with-room",
        about="Healthy: the in-memory index of 240,000 delayed messages, two of whose subscriptions repeat 50,000.",
        specs=(
            cluster(
                _namespace(
                    _topic("trials", _delayed("mail", 30_000), partitions=8),
                    _topic("offers", *(_delayed(f"shard-{number}", 50_000) for number in range(2))),
                    owner=0,
                ),
                configuration=IN_MEMORY,
            ),
        ),
        why=NO_MILLIONS,
        twin_of=("delayed-index-fills-memory", "delayed-index-for-each-subscription"),
    ),
)
