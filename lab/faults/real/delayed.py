"""Messages that are to be delivered later, on both of the brokers' trackers."""

from collections.abc import Callable
from typing import Any

from lab.faults.clients.work import Language
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ages import OLD_S, PRECISE, age_of, until_old
from lab.faults.real.ground import Ground, fault_on_ground

INDEXED_WITHIN_S = 120.0
MESSAGES = 50_000
HOUR_S, DAY_S = 3600, 86_400
MONTH_S = 30 * DAY_S
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
    here.until(topic, lambda shown: _backlog(shown) >= messages, "all of them are in the backlog")
    return topic


def _backlog(shown: dict[str, dict[str, dict[str, int]]]) -> int:
    return min(each["msgBacklog"] for each in shown["subscriptions"].values())


def _allowed(longest_s: int, ttl_s: int) -> Callable[[Ground], None]:
    """The longest delay that the namespace allows, and its time to live."""

    def arrange(here: Ground) -> None:
        here.admin.set_policy(here.namespace, "messageTTL", ttl_s)
        longest = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": longest_s * 1000}
        here.admin.set_policy(here.namespace, "delayedDelivery", longest)
        delay(here, 1000)

    return arrange


def _living(percent_of_ttl: int) -> Callable[[Ground], Change]:
    """Messages whose age comes to that share of their time to live when they are looked at."""

    def arrange(here: Ground) -> Change:
        topic = delay(here, 1000)
        until_old(here, topic, OLD_S)

        def limit(_observed: int) -> None:
            here.admin.set_policy(here.namespace, "messageTTL", age_of(here, topic) * 100 // percent_of_ttl)

        return limit

    return arrange


def _consumed_beside_one(*, first: bool) -> Callable[[Ground], None]:
    """40 MB that are consumed, and one message that is due in a month, before or behind all of them."""
    messages = 4000

    def arrange(here: Ground) -> None:
        topic = here.topic()
        here.take(topic)
        if first:
            here.send(topic, 1, 20, delay_s=MONTH_S)
        here.send(topic, messages, 10_000)
        here.until(
            topic, lambda shown: shown["msgInCount"] >= messages and _backlog(shown) <= 1, "all else is consumed"
        )
        if not first:
            here.send(topic, 1, 20, delay_s=MONTH_S)
        here.until_quiet(topic)
        here.until_metric("pulsar_subscription_delayed", topic, 1)

    return arrange


def _delayed(
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
SMALL_DISK = "The threshold is lowered, as a lab's disk is no place for its default."
MUCH_HELD: dict[str, object] = {"delayed_holds_ledgers": {"warning_held_mebibytes": 16}}

MULTIPLIED = (
    _delayed(
        "delayed-for-22-in-memory",
        "50,000 delayed messages that 22 subscriptions wait for, indexed in memory: 1.1 million entries.",
        _waiting(22),
        "delayed-index-multiplied",
        "delayed-index-memory",
        settings=IN_MEMORY,
    ),
    _delayed(
        "delayed-for-3-in-memory",
        "Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in memory.",
        _waiting(3),
        settings=IN_MEMORY,
        twin_of=("delayed-for-22-in-memory",),
    ),
    _delayed(
        "delayed-for-1-in-memory",
        "Healthy: 45,000 delayed messages of a single subscription, indexed in memory.",
        _waiting(1, 45_000),
        settings=IN_MEMORY,
        client="java",
        twin_of=("delayed-for-22-in-memory",),
    ),
    _delayed(
        "delayed-for-22-in-buckets",
        "50,000 delayed messages that 22 subscriptions wait for, indexed in buckets.",
        _waiting(22),
        "delayed-index-multiplied",
        allowed=FILLED,
        among=DELAYED,
    ),
    _delayed(
        "delayed-for-30-in-buckets",
        "40,000 delayed messages that 30 subscriptions wait for, indexed in buckets.",
        _waiting(30, 40_000),
        "delayed-index-multiplied",
        allowed=FILLED,
        client="java",
        among=DELAYED,
    ),
    _delayed(
        "delayed-for-3-in-buckets",
        "Healthy: 50,000 delayed messages that three subscriptions wait for, indexed in buckets.",
        _waiting(3),
        among=DELAYED,
        twin_of=("delayed-for-22-in-buckets",),
    ),
    _delayed(
        "delayed-for-30-but-few",
        "Healthy: 1,000 delayed messages that 30 subscriptions wait for, indexed in buckets.",
        _waiting(30, 1_000),
        client="go",
        among=DELAYED,
        twin_of=("delayed-for-30-in-buckets",),
    ),
)

BUCKETS = (
    _delayed(
        "too-many-buckets",
        "10,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 10_500),
        "delayed-bucket-count",
        settings=SMALL_BUCKETS,
    ),
    _delayed(
        "too-many-buckets-java",
        "12,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 12_500),
        "delayed-bucket-count",
        settings=SMALL_BUCKETS,
        client="java",
    ),
    _delayed(
        "few-buckets",
        "Healthy: 4,500 delayed messages in buckets of 1,000, where ten buckets are the limit.",
        _waiting(1, 4_500),
        settings=SMALL_BUCKETS,
        client="go",
        twin_of=("too-many-buckets", "too-many-buckets-java"),
    ),
)

EXPIRING = (
    _delayed(
        "delays-beyond-ttl",
        "Delays of a week are allowed where messages live for a day.",
        _allowed(7 * DAY_S, DAY_S),
        "delayed-past-ttl",
        among=DELAYED,
    ),
    _delayed(
        "delays-within-ttl",
        "Healthy: delays of a day are allowed where messages live for a week.",
        _allowed(DAY_S, 7 * DAY_S),
        client="java",
        among=DELAYED,
        twin_of=("delays-beyond-ttl",),
    ),
    _delayed(
        "delayed-about-to-expire",
        "Messages delayed by an hour and more, which will have lived for their minute before that.",
        _living(90),
        "delayed-past-ttl",
        settings=PRECISE,
    ),
    _delayed(
        "delayed-about-to-expire-go",
        "Messages delayed by an hour and more, which will have lived for their minute before that.",
        _living(85),
        "delayed-past-ttl",
        settings=PRECISE,
        client="go",
    ),
    _delayed(
        "delayed-with-time-to-live",
        "Healthy: messages delayed by an hour and more, of which the oldest has lived for a fraction of its time.",
        _allowed(DAY_S, 2 * DAY_S),
        settings=PRECISE,
        client="java",
        twin_of=("delayed-about-to-expire", "delayed-about-to-expire-go"),
    ),
)

HOLDING = (
    _delayed(
        "delayed-holds-ledgers",
        f"One message that is delayed by a month, and 40 MB behind it that nobody needs any more. {SMALL_DISK}",
        _consumed_beside_one(first=True),
        "delayed-holds-ledgers",
        policy=MUCH_HELD,
        among=DELAYED,
        batched=False,
    ),
    _delayed(
        "delayed-holds-ledgers-java",
        f"One message that is delayed by a month, and 40 MB behind it that nobody needs any more. {SMALL_DISK}",
        _consumed_beside_one(first=True),
        "delayed-holds-ledgers",
        policy=MUCH_HELD,
        among=DELAYED,
        client="java",
    ),
    _delayed(
        "delayed-holds-nothing",
        f"Healthy: 40 MB that are consumed, and behind them one message that is delayed by a month. {SMALL_DISK}",
        _consumed_beside_one(first=False),
        policy=MUCH_HELD,
        among=DELAYED,
        client="go",
        batched=False,
        twin_of=("delayed-holds-ledgers", "delayed-holds-ledgers-java"),
    ),
)

FAULTS = (*MULTIPLIED, *BUCKETS, *EXPIRING, *HOLDING)
