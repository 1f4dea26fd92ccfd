"""Consumers that hold what others could work on, or that others wait for."""

from typing import Any

from lab.faults.fault import Expected, SimulatedFault
from lab.faults.field.clients import Members, ago_ms
from lab.faults.simulated._clusters import cluster
from lab.simulator import ClusterSpec, ConsumerSpec, NamespaceSpec, SubscriptionSpec, TopicSpec

HOUR_MIN = 60
DAY_MIN = 24 * HOUR_MIN
WHY = "hours without an acknowledgement are longer than the lab may run"


def _mails(*consumers: ConsumerSpec, **figures: Any) -> ClusterSpec:
    """Mails that a Shared subscription sends; 24 of them wait."""
    sender = SubscriptionSpec.of("sender", *consumers, **{"backlog": 24, **figures})
    topic = TopicSpec("mails", producers=2, subscriptions=(sender,), message_bytes=2_000, rate_in=0.0)
    return cluster(NamespaceSpec("shop/mail", topics=(topic,)))


def _worker(unacked: int = 0, *, acked_min: float = 90, consumed_min: float = 90, **more: Any) -> ConsumerSpec:
    """A consumer with 1,000 messages of room, whose times are so many minutes ago."""
    return ConsumerSpec(
        unacked, permits=1000 - unacked, acked_ms=ago_ms(acked_min), consumed_ms=ago_ms(consumed_min), **more
    )


def _carts(old: ConsumerSpec, backlog: int, version: str = "4.0.7", **told: object) -> ClusterSpec:
    """Carts by customer: one consumer from yesterday, and three that joined since."""
    work: dict[str, Any] = {"acked_min": 0, "consumed_min": 0, "rate_out": 20.0, "ack_rate": 20.0}
    new = tuple(_worker(5, connected_ms=ago_ms(70), **work) for _ in range(3))
    cart = SubscriptionSpec.of("cart", old, *new, kind="Key_Shared", backlog=backlog, told=tuple(told.items()))
    topic = TopicSpec("carts", producers=2, subscriptions=(cart,), message_bytes=500, rate_in=60.0)
    return cluster(NamespaceSpec("shop/carts", topics=(topic,)), version=version)


def _drains(messages: int, minutes: float) -> ConsumerSpec:
    """A consumer that holds messages of keys which others have got by now."""
    draining = (("drainingHashesCount", 4), ("drainingHashesClearedTotal", 91), ("drainingHashesUnackedMessages", 13))
    return _worker(messages, acked_min=minutes, consumed_min=minutes, told=draining)


IDLE = (_worker(acked_min=2, consumed_min=2),) * 4
LATER = Members({f"cart-{number}": "5120:9100" for number in range(1, 4)})


def _restarted() -> ClusterSpec:
    """Two consumers that restarted, and work on what they had."""
    work: dict[str, Any] = {"acked_min": 0, "consumed_min": 0, "rate_out": 250.0, "ack_rate": 90.0}
    return _mails(_worker(155, **work), _worker(155, **work), backlog=4_000, redeliver_rate=320.0)


FAULTS = (
    SimulatedFault(
        name="one-consumer-of-five-holds-all",
        about="A consumer that hangs for 90 minutes holds all 24 messages; the four others have nothing to do.",
        expected=(
            Expected(
                "subscription-stalled",
                "shop/mail/mails subscription sender$",
                r"sender-0 at 10\.0\.0\.0.*last acknowledgement",
            ),
        ),
        specs=(_mails(_worker(24), *IDLE),),
        why=WHY,
        quick=True,
    ),
    SimulatedFault(
        name="one-consumer-of-five-works-off-what-it-holds",
        about="Healthy: a consumer works for 20 minutes on each message, and holds 24; the others have none.",
        specs=(_mails(_worker(24, acked_min=19), *IDLE),),
        why=WHY,
        twin_of=("one-consumer-of-five-holds-all",),
    ),
    SimulatedFault(
        name="one-consumer-of-five-was-just-filled",
        about="Healthy: after a day without messages, 24 have just gone to one consumer.",
        specs=(_mails(_worker(24, acked_min=DAY_MIN, consumed_min=1), *IDLE),),
        why=WHY,
        twin_of=("one-consumer-of-five-holds-all",),
    ),
    SimulatedFault(
        name="one-consumer-of-five-works-on-one",
        about="Healthy: the only message that waits takes a consumer of five longer than an hour.",
        specs=(_mails(_worker(1), *IDLE, backlog=1),),
        why=WHY,
        twin_of=("one-consumer-of-five-holds-all",),
    ),
    SimulatedFault(
        name="messages-again-after-a-restart",
        about="Healthy: 320 messages a second are delivered again after a restart, and 180 a second acknowledged.",
        specs=(_restarted(),),
        observations=2,
        why="what is delivered again for long enough to be counted is more than the lab's clients have",
        twin_of=("field-poison-messages-go-round", "field-unacked-limit-passed-and-redelivery-storm"),
    ),
    SimulatedFault(
        name="keys-held-back-by-an-old-consumer",
        about="An old consumer of a Key_Shared subscription hangs; keys that went to others wait for it.",
        expected=(Expected("subscription-stalled", "shop/carts/carts", r"Key_Shared.*cart-0 at .*4 hashes"),),
        allowed={"backlog-growing": "what waits for it piles up"},
        specs=tuple(_carts(_drains(40, 120 + 10 * look), 3_000 + 800 * look) for look in range(2)),
        observations=2,
        why=WHY,
    ),
    SimulatedFault(
        name="later-consumers-wait-for-an-old-one",
        about="The same on Pulsar 3.0: three consumers that joined later wait for it.",
        expected=(Expected("subscription-stalled", "shop/carts", r"Key_Shared.*cart-0 at .*3 consumers that joined"),),
        allowed={"backlog-growing": "what waits for it piles up"},
        specs=tuple(
            _carts(
                _worker(40, acked_min=120 + 10 * look, consumed_min=120 + 10 * look),
                3_000 + 800 * look,
                version="3.0.7",
                consumersAfterMarkDeletePosition=LATER,
            )
            for look in range(2)
        ),
        observations=2,
        why=WHY,
    ),
    SimulatedFault(
        name="keys-that-are-handed-over",
        about="Healthy: keys went from a consumer to others, and it acknowledged what it holds of them a minute ago.",
        specs=(_carts(_drains(40, 1), 120),),
        why=WHY,
        twin_of=("keys-held-back-by-an-old-consumer", "later-consumers-wait-for-an-old-one"),
    ),
)
