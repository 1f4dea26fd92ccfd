"""Messages that are to be delivered later, on both of the brokers' trackers."""

import re
from collections.abc import Callable
from typing import Any

from lab.bookie import ADMIN_API, set_read_only
from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import Ground, fault_on_ground
from lab.waiting import wait_until

INDEXED_WITHIN_S = 120.0
MESSAGES = 50_000
HOUR_S = 3600
UNSEALED, ENOUGH = 6_500, 5
"""Messages that are indexed by a thousand, and the buckets of which it has to be known what became of them."""

DELAYED = "delayed"
OF_BROKERS = ("delayed-index-memory",)

IN_MEMORY = (
    (
        "delayedDeliveryTrackerFactoryClassName",
        "org.apache.pulsar.broker.delayed.InMemoryDelayedDeliveryTrackerFactory",
    ),
)
SMALL_BUCKETS = (
    ("delayedDeliveryMinIndexCountPerBucket", "500"),
    ("delayedDeliveryMaxNumBuckets", "10"),
    # A bucket is sealed where a ledger ends, and only there.
    ("managedLedgerMaxEntriesPerLedger", "1000"),
    ("managedLedgerMinLedgerRolloverTimeMinutes", "0"),
)


def _waiting(subscriptions: int, messages: int = MESSAGES) -> Callable[[Ground], None]:
    """Messages that are due in an hour and later, a second apart, indexed for every subscription."""

    def arrange(here: Ground) -> None:
        delay(here, messages, subscriptions)

    return arrange


def delay(here: Ground, messages: int, subscriptions: int = 1) -> str:
    """Publishes messages that are due in an hour and later, and waits until the brokers have indexed them."""
    topic = here.topic()
    for number in range(subscriptions):
        here.shared(topic, f"s{number}", receiver_queue_size=10)
    here.send(topic, messages, 20, delay_s=HOUR_S)
    here.until_metric("pulsar_subscription_delayed", topic, subscriptions * messages, INDEXED_WITHIN_S)
    here.until(topic, lambda shown: backlog_of(shown) >= messages, "all of them are in the backlog")
    return topic


def backlog_of(shown: dict[str, dict[str, dict[str, int]]]) -> int:
    """The smallest backlog of its subscriptions, in entries; 0 where the topic shows none yet."""
    return min((each["msgBacklog"] for each in shown["subscriptions"].values()), default=0)


def about_delayed(
    name: str,
    about: str,
    arrange: Callable[[Ground], Change | None],
    *checks: str,
    client: Language = "python",
    batched: bool | None = None,
    **label: Any,
) -> RealFault:
    """A fault about delayed messages, which no client batches; checks that look at brokers are of any subject."""
    expected = tuple(Expected(check, "" if check in OF_BROKERS else rf"public/{name}\b") for check in checks)
    return fault_on_ground(name, about, arrange, expected=expected, client=client, batched=batched, **label)


FILLED = {"delayed-index-memory": "the buckets that are being filled take their share of a small lab's memory"}

MULTIPLIED = (
    about_delayed(
        "delayed-for-22-in-memory",
        "50,000 delayed messages that 22 subscriptions wait for, indexed in memory: 1.1 million entries.",
        _waiting(22),
        "delayed-index-multiplied",
        "delayed-index-memory",
        settings=IN_MEMORY,
    ),
    about_delayed(
        "delayed-for-3-in-memory",
        "Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in memory.",
        _waiting(3),
        settings=IN_MEMORY,
        twin_of=("delayed-for-22-in-memory",),
    ),
    about_delayed(
        "delayed-for-1-in-memory",
        "Healthy: 45,000 delayed messages of a single subscription, indexed in memory.",
        _waiting(1, 45_000),
        settings=IN_MEMORY,
        client="java",
        twin_of=("delayed-for-22-in-memory",),
    ),
    about_delayed(
        "delayed-for-22-in-buckets",
        "50,000 delayed messages that 22 subscriptions wait for, indexed in buckets.",
        _waiting(22),
        "delayed-index-multiplied",
        allowed=FILLED,
        among=DELAYED,
    ),
    about_delayed(
        "delayed-for-30-in-buckets",
        "40,000 delayed messages that 30 subscriptions wait for, indexed in buckets.",
        _waiting(30, 40_000),
        "delayed-index-multiplied",
        allowed=FILLED,
        client="java",
        among=DELAYED,
    ),
    about_delayed(
        "delayed-for-3-in-buckets",
        "Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in buckets.",
        _waiting(3),
        among=DELAYED,
        twin_of=("delayed-for-22-in-buckets",),
    ),
    about_delayed(
        "delayed-for-30-but-few",
        "Healthy: 1,000 delayed messages that 30 subscriptions wait for, indexed in buckets.",
        _waiting(30, 1_000),
        client="go",
        among=DELAYED,
        twin_of=("delayed-for-30-in-buckets",),
    ),
)

BUCKETS = (
    about_delayed(
        "too-many-buckets",
        "10,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 10_500),
        "delayed-bucket-count",
        settings=SMALL_BUCKETS,
    ),
    about_delayed(
        "too-many-buckets-java",
        "12,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 12_500),
        "delayed-bucket-count",
        settings=SMALL_BUCKETS,
        client="java",
    ),
    about_delayed(
        "few-buckets",
        "Healthy: 4,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 4_500),
        settings=SMALL_BUCKETS,
        client="go",
        twin_of=("too-many-buckets", "too-many-buckets-java"),
    ),
)


def _met_by_a_bookie(*, read_only: bool) -> Callable[[Ground], None]:
    """Delayed messages that wait in several ledgers, and then a consumer: what its broker reads is sealed in buckets.

    The bookie is as told while it reads. Brokers set the counts of what failed back whenever their metrics are read:
    so their logs are waited for.
    """

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.subscription(topic)
        here.send(topic, UNSEALED, 20, delay_s=HOUR_S)
        if read_only:
            set_read_only(here.lab, on=True)
        try:
            here.shared(topic, receiver_queue_size=10)
            end = "Failed to create bucket snapshot" if read_only else "Create bucket snapshot finish"
            wait_until(lambda: _logged(here, end) >= ENOUGH, f"{ENOUGH} buckets: {end}", INDEXED_WITHIN_S)
        finally:
            if read_only:
                set_read_only(here.lab, on=False)

    return arrange


def _logged(here: Ground, end: str) -> int:
    """Buckets that came to this end, by the brokers' logs: the tracker's word, once each was tried four times."""
    logs = (here.lab.log(broker.name).read_text(encoding="utf-8") for broker in here.lab.brokers)
    return sum(len(re.findall(rf"BucketDelayedDeliveryTracker \[[^\]]*\] {end}", log)) for log in logs)


OF_ITS_OWN: dict[str, Any] = {"settings": SMALL_BUCKETS, "own_lab": True, "bookie_settings": tuple(ADMIN_API.items())}

FAILING = (
    about_delayed(
        "buckets-cannot-be-sealed",
        "6,500 delayed messages that are indexed while the only bookie takes no writes: no bucket of them is sealed.",
        _met_by_a_bookie(read_only=True),
        "delayed-bucket-failing",
        **OF_ITS_OWN,
    ),
    about_delayed(
        "buckets-are-sealed",
        "Healthy: 6,500 delayed messages that are indexed while the bookie takes writes.",
        _met_by_a_bookie(read_only=False),
        twin_of=("buckets-cannot-be-sealed",),
        **OF_ITS_OWN,
    ),
)

FAULTS = (*MULTIPLIED, *BUCKETS, *FAILING)
