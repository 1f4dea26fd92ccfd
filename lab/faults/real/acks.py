"""Acknowledgements that do not come."""

from collections.abc import Callable

from lab.faults.clients.work import Kind
from lab.faults.real.ground import Ground, fault_of_namespace

MOST_UNACKED = 50_000
"""``maxUnackedMessagesPerConsumer`` of Pulsar."""

CONSUMED_A_SECOND = 200

Arrange = Callable[[Ground], None]


def _never_acknowledged(most: int | None = None, kind: Kind = "Shared", consumers: int = 1) -> Arrange:
    """Consumers that take what they can get and acknowledge none of it, up to their limit (None: Pulsar's default)."""

    def arrange(here: Ground) -> None:
        if most is not None:
            here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", most)
        topic, held = here.topic(), most or MOST_UNACKED
        for _ in range(consumers):
            here.take(topic, kind=kind, acknowledge="never")
        here.send(topic, consumers * held * 6 // 5 + 4000, 20)
        _until_blocked(here, topic, consumers)

    return arrange


def _acknowledged_late(here: Ground) -> None:
    """The limit is reached again and again, and each time all is acknowledged."""
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", 500)
    topic = here.topic()
    here.take(topic, acknowledge="later", every_s=1.0, queue=100)
    here.flow(topic, 100)
    here.until(
        topic,
        lambda shown: shown["msgRateOut"] > 0 and shown["subscriptions"]["s"]["messageAckRate"] > 0,
        "it is consumed",
    )


def _subscription_blocked(here: Ground) -> None:
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerSubscription", 5_000)
    topic = here.topic()
    for _ in range(3):
        here.take(topic, acknowledge="never", queue=10, most=1_600)
    here.send(topic, 20_000, 20)
    here.until(
        topic,
        lambda shown: shown["subscriptions"]["s"]["blockedSubscriptionOnUnackedMsgs"],
        "the subscription is blocked",
    )


def _one_of_four_blocked(here: Ground) -> None:
    here.admin.set_policy(here.namespace, "maxUnackedMessagesPerConsumer", 500)
    topic = here.topic()
    here.take(topic, acknowledge="never", queue=100, most=500)
    for _ in range(3):
        here.take(topic, queue=100)
    here.send(topic, 4_000, 20)
    _until_blocked(here, topic, 1)


def _written(every_s: int) -> Arrange:
    """Much is consumed, and cursors are written so often."""

    def arrange(here: Ground) -> None:
        quorum = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
        here.admin.set_policy(here.namespace, "persistence", quorum | {"managedLedgerMaxMarkDeleteRate": 1 / every_s})
        topic = here.topic()
        here.take(topic)
        here.flow(topic, CONSUMED_A_SECOND)
        here.until(topic, lambda shown: shown["msgRateOut"] > CONSUMED_A_SECOND / 2, "it is consumed")

    return arrange


def _until_blocked(here: Ground, topic: str, consumers: int) -> None:
    here.until(
        topic,
        lambda shown: (
            consumers == sum(each["blockedConsumerOnUnackedMsgs"] for each in shown["subscriptions"]["s"]["consumers"])
        ),
        f"{consumers} consumers are blocked",
    )


FAULTS = (
    fault_of_namespace(
        "never-acknowledged",
        "The only consumer of a subscription took 50,000 messages and acknowledged none: it gets no more.",
        _never_acknowledged(),
        "subscription-blocked",
        batched=True,
    ),
    fault_of_namespace(
        "never-acknowledged-java",
        "The only consumer of a subscription holds the 2,000 messages that its namespace allows.",
        _never_acknowledged(2_000),
        "subscription-blocked",
        client="java",
    ),
    fault_of_namespace(
        "never-acknowledged-key-shared",
        "Three consumers of a Key_Shared subscription hold the 1,000 messages each that their namespace allows.",
        _never_acknowledged(1_000, "Key_Shared", 3),
        "subscription-blocked",
        client="go",
        batched=False,
    ),
    fault_of_namespace(
        "subscription-full",
        "Three consumers hold as many messages as their namespace lets a subscription have: nobody gets more.",
        _subscription_blocked,
        "subscription-blocked",
        batched=True,
    ),
    fault_of_namespace(
        "acks-written-seldom",
        "A consumer gets 200 messages a second, and what it acknowledges is written every two minutes.",
        _written(120),
        "ack-state-seldom",
        quick=True,
    ),
    fault_of_namespace(
        "acks-written-each-second",
        "Healthy: a consumer gets 200 messages a second, and what it acknowledges is written every second.",
        _written(1),
        twin_of=("acks-written-seldom",),
        quick=True,
    ),
    fault_of_namespace(
        "one-of-four-blocked",
        "Healthy enough: one of four consumers is blocked, the others work.",
        _one_of_four_blocked,
        twin_of=("subscription-full", "never-acknowledged-key-shared"),
    ),
    fault_of_namespace(
        "acknowledged-every-second",
        "Healthy: a consumer that acknowledges all it holds once a second.",
        _acknowledged_late,
        twin_of=("never-acknowledged", "never-acknowledged-java"),
        client="java",
    ),
)
