"""Delayed messages that may not live until they are due, and such as keep others from deletion."""

from collections.abc import Callable

from lab.faults.fault import Change
from lab.faults.real.ages import OLD_S, PRECISE, age_of, until_old
from lab.faults.real.delayed import DELAYED, about_delayed, backlog_of, delay
from lab.faults.real.ground import Ground

DAY_S = 86_400
MONTH_S = 30 * DAY_S

SMALL_DISK = "The threshold is lowered, as a lab's disk is no place for its default."
MUCH_HELD: dict[str, object] = {"delayed_holds_ledgers": {"warning_held_mebibytes": 16}}


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
            topic, lambda shown: shown["msgInCount"] >= messages and backlog_of(shown) <= 1, "all else is consumed"
        )
        if not first:
            here.send(topic, 1, 20, delay_s=MONTH_S)
        here.until_quiet(topic)
        here.until_metric("pulsar_subscription_delayed", topic, 1)

    return arrange


EXPIRING = (
    about_delayed(
        "delays-beyond-ttl",
        "Delays of a week are allowed where messages live for a day.",
        _allowed(7 * DAY_S, DAY_S),
        "delayed-past-ttl",
        among=DELAYED,
    ),
    about_delayed(
        "delays-within-ttl",
        "Healthy: delays of a day are allowed where messages live for a week.",
        _allowed(DAY_S, 7 * DAY_S),
        client="java",
        among=DELAYED,
        twin_of=("delays-beyond-ttl",),
    ),
    about_delayed(
        "delayed-about-to-expire",
        "Messages delayed by an hour and more, which will have lived for their minute before that.",
        _living(90),
        "delayed-past-ttl",
        settings=PRECISE,
    ),
    about_delayed(
        "delayed-about-to-expire-go",
        "Messages delayed by an hour and more, which will have lived for their minute before that.",
        _living(85),
        "delayed-past-ttl",
        settings=PRECISE,
        client="go",
    ),
    about_delayed(
        "delayed-with-time-to-live",
        "Healthy: messages delayed by an hour and more, of which the oldest has lived for a fraction of its time.",
        _allowed(DAY_S, 2 * DAY_S),
        settings=PRECISE,
        client="java",
        twin_of=("delayed-about-to-expire", "delayed-about-to-expire-go"),
    ),
)

HOLDING = (
    about_delayed(
        "delayed-holds-ledgers",
        f"One message that is delayed by a month, and 40 MB behind it that nobody needs any more. {SMALL_DISK}",
        _consumed_beside_one(first=True),
        "delayed-holds-ledgers",
        policy=MUCH_HELD,
        among=DELAYED,
        batched=False,
    ),
    about_delayed(
        "delayed-holds-ledgers-java",
        f"One message that is delayed by a month, and 40 MB behind it that nobody needs any more. {SMALL_DISK}",
        _consumed_beside_one(first=True),
        "delayed-holds-ledgers",
        policy=MUCH_HELD,
        among=DELAYED,
        client="java",
    ),
    about_delayed(
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

FAULTS = (*EXPIRING, *HOLDING)
