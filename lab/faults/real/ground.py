"""Where a fault is made: a namespace of its own with a client, and all of it gone afterwards, seen by the brokers."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pulsar

from lab.cluster import Lab
from lab.errors import AdminCallError, NotReachedError
from lab.faults.real.operator import Operator, operator_of, operators_of, shown_topics
from lab.waiting import wait_until

SHOWN_WITHIN_S = 90.0
GONE_WITHIN_S = 120.0
EVERY_S = 0.5

COMMON_SETTINGS = (
    # The brokers' statistics are a document that they renew once a minute; nobody waits for that with fifty faults.
    ("statsUpdateFrequencyInSecs", "2"),
    ("statsUpdateInitialDelayInSecs", "1"),
    ("backlogQuotaCheckIntervalInSeconds", "2"),
    ("forceDeleteNamespaceAllowed", "true"),
)
"""Of every lab that faults are made on."""


class Ground:
    """A namespace on a lab, and a client.

    Attributes:
        lab: The cluster.
        namespace: ``public/NAME``.
        client: Connected to all brokers; closed with the block.
        admin: An operator's calls.
    """

    def __init__(self, lab: Lab, namespace: str, client: pulsar.Client, admin: Operator) -> None:
        self.lab = lab
        self.namespace = namespace
        self.client = client
        self.admin = admin

    def topic(self, name: str = "t") -> str:
        """The full name of a topic here."""
        return f"persistent://{self.namespace}/{name}"

    def producer(self, topic: str, *, batched: bool = True, **options: Any) -> pulsar.Producer:
        """A producer that waits where its queue is full."""
        return self.client.create_producer(
            topic,
            batching_enabled=batched,
            block_if_queue_full=True,
            max_pending_messages=5000,
            **options,
        )

    def shared(self, topic: str, subscription: str = "s", **options: Any) -> pulsar.Consumer:
        """A consumer of a Shared subscription that begins with the first message."""
        return self.client.subscribe(
            topic,
            subscription,
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
            **options,
        )

    def subscription(self, topic: str, name: str = "s") -> None:
        """A subscription that keeps all that is published from now on, without a consumer."""
        self.shared(topic, name).close()

    def until(
        self, topic: str, shows: Callable[[dict[str, Any]], bool], what: str, within_s: float = SHOWN_WITHIN_S
    ) -> None:
        """Waits until the brokers' cached statistics, of which snapshots are made, show a topic like that.

        Raises:
            NotReachedError: They did not; the topic as it is now is in the message.
        """
        last: dict[str, Any] = {}

        def reached() -> bool:
            last.update(shown_topics(self.lab).get(topic, {}))
            return bool(last) and shows(last)

        try:
            wait_until(reached, what, within_s, EVERY_S)
        except NotReachedError as error:
            raise NotReachedError(f"{error}; {topic} shows {_figures(last)}") from error

    def until_quiet(self, topic: str) -> None:
        """Waits until nothing goes in or out any more: what was published at once is no load that lasts."""
        self.until(topic, lambda shown: not shown["msgRateIn"] and not shown["msgRateOut"], "nothing goes in or out")

    def until_metric(self, series: str, topic: str, least: float, within_s: float = SHOWN_WITHIN_S) -> None:
        """Waits until the series of a topic, summed over its labels, is at least so much.

        Raises:
            NotReachedError: It was not, in time.
        """

        def total() -> float:
            rows = (row for operator in operators_of(self.lab) for row in operator.metrics())
            return sum(value for name, value in rows if name.startswith(f"{series}{{") and f'"{topic}"' in name)

        wait_until(lambda: total() >= least, f"{series} of {topic} is {least:,.0f}", within_s, EVERY_S)


@contextlib.contextmanager
def ground(lab: Lab, name: str, bundles: int = 4, **policies: object) -> Iterator[Ground]:
    """A namespace ``public/NAME``, made with these policies, and a client for the length of a block."""
    namespace = f"public/{name}"
    admin = operator_of(lab)
    admin.create_namespace(namespace, bundles, **policies)
    client = connected(lab)
    try:
        yield Ground(lab, namespace, client, admin)
    finally:
        with contextlib.suppress(Exception):  # the client raises bare errors of what a quota cut off; all of it goes
            client.close()
        clear(lab, namespace)


def connected(lab: Lab, **options: Any) -> pulsar.Client:
    """A client of all brokers; close it. ``options`` are those of `pulsar.Client`."""
    # It tells every retry as an error; what a fault needs is waited for, and said when it does not come.
    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    authentication = pulsar.AuthenticationToken(lab.token) if lab.token else None
    return pulsar.Client(lab.service_url, authentication=authentication, logger=quiet, **options)


def clear(lab: Lab, namespace: str) -> None:
    """Removes a namespace, and waits until no broker shows anything of it any more.

    Raises:
        NotReachedError: Some still do.
    """
    admin = operator_of(lab)

    def gone() -> bool:
        try:
            if admin.exists(namespace):
                admin.delete_namespace(namespace)
        except AdminCallError:
            # The brokers refuse for a moment where topics are still being closed; and for ever where the last
            # compaction of one of Pulsar's own topics failed, which is forgotten only with an unload.
            with contextlib.suppress(AdminCallError):
                admin.unload_namespace(namespace)
        return not admin.exists(namespace)

    wait_until(gone, f"{namespace} is deleted", GONE_WITHIN_S, EVERY_S)
    prefix = f"persistent://{namespace}/"

    def unseen() -> bool:
        # A client that a quota cut off may have had its topic made anew while the namespace went.
        # Topics of Pulsar's own do not count: a broker's reader may leave a deleted one in the statistics for good.
        left = [
            topic for topic in shown_topics(lab) if topic.startswith(prefix) and not topic.startswith(f"{prefix}__")
        ]
        for topic in left:
            with contextlib.suppress(AdminCallError):
                admin.delete_topic(topic)
        return not left

    wait_until(unseen, f"no broker shows topics of {namespace}", GONE_WITHIN_S, EVERY_S)


def _figures(topic: dict[str, Any]) -> dict[str, Any]:
    """What fits in a message: numbers and texts of the topic and of its subscriptions, without their clients."""
    plain = {key: value for key, value in topic.items() if isinstance(value, int | float | str) and value}
    subscriptions = topic.get("subscriptions", {})
    return plain | {name: _figures(each) for name, each in subscriptions.items()}
