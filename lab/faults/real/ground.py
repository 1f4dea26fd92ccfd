"""Place of a fault: a namespace of its own with a client, all gone afterwards as the brokers see it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pulsar

from lab.cluster import Lab
from lab.errors import AdminCallError, NotReachedError
from lab.faults.clients.languages import clients
from lab.faults.clients.python import quiet_client
from lab.faults.clients.work import Clients, Crowd, Flowing, Language, Sending, Taking, Transacting, Work
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.operator import Operator, metrics_of, operator_of, recently_shown
from lab.waiting import wait_until

GONE_WITHIN_S = 180.0

CLEARING = threading.Semaphore(6)
"""Namespaces that are deleted at one time: each of their topics is work for the brokers' metadata store."""


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

    with CLEARING:
        wait_until(gone, f"{namespace} is deleted", GONE_WITHIN_S, EVERY_S)
    prefix = f"persistent://{namespace}/"

    def unseen() -> bool:
        # A client that a quota cut off may have had its topic made anew while the namespace went.
        # Topics of Pulsar's own do not count: a broker's reader may leave a deleted one in the statistics for good.
        left = [
            topic for topic in recently_shown(lab) if topic.startswith(prefix) and not topic.startswith(f"{prefix}__")
        ]
        for topic in left:
            with contextlib.suppress(AdminCallError):
                admin.delete_topic(topic)
        return not left

    wait_until(unseen, f"no broker shows topics of {namespace}", GONE_WITHIN_S, EVERY_S)


SHOWN_WITHIN_S = 90.0
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
    """A namespace on a lab, and clients.

    Args:
        lab: The cluster.
        namespace: ``public/NAME``.
        client: In Python, connected to all brokers; None: one is made when it is wanted.
        admin: An operator's calls.
        language: Of the clients that `do` work.
        batched: Whether their producers batch; None: as that library does by default.
    """

    def __init__(
        self,
        lab: Lab,
        namespace: str,
        client: pulsar.Client | None,
        admin: Operator,
        *,
        language: Language = "python",
        batched: bool | None = None,
    ) -> None:
        self.lab = lab
        self.namespace = namespace
        self.admin = admin
        self.language: Language = language
        self.batched = batched
        self._client = client
        self._workers: list[Clients] = []

    @property
    def client(self) -> pulsar.Client:
        """The one in Python; closed with the block."""
        if self._client is None:
            self._client = connected(self.lab)
        return self._client

    def do(self, work: Work) -> None:
        """Has work done by the client in this ground's language; what goes on does so until the block ends."""
        if not self._workers:
            log = self.lab.home / "log" / f"{self.namespace.rpartition('/')[2]}-{self.language}.log"
            worker = clients(self.language, self.lab.service_url, self.lab.token, log)
            self._workers.append(worker.__enter__())
        self._workers[0].do(work)

    def send(self, topic: str, count: int, size: int = 100, **more: Any) -> None:
        """Sends so many messages of so many bytes; ``more`` is of `Sending`."""
        self.do(Sending(topic=topic, count=count, size=size, **{"batched": self.batched} | more))

    def flow(self, topic: str, rate: int, size: int = 100, **more: Any) -> None:
        """Sends so many messages a second from now on; ``more`` is of `Flowing`."""
        self.do(Flowing(topic=topic, rate=rate, size=size, **{"batched": self.batched} | more))

    def take(self, topic: str, **more: Any) -> None:
        """Has an application take messages; ``more`` is of `Taking`."""
        self.do(Taking(topic=topic, **more))

    def crowd(self, topic: str, *, producers: int = 0, consumers: int = 0) -> None:
        """Connects so many clients that do nothing."""
        self.do(Crowd(topic=topic, producers=producers, consumers=consumers))

    def transact(self, topic: str, **more: Any) -> None:
        """Opens transactions from now on; ``more`` is of `Transacting`."""
        self.do(Transacting(topic=topic, **more))

    def close(self) -> None:
        """Ends all clients."""
        while self._workers:
            self._workers.pop().__exit__(None, None, None)
        if self._client is not None:
            with contextlib.suppress(Exception):  # it raises bare errors of what a quota cut off; all of it goes
                self._client.close()

    def topic(self, name: str = "t") -> str:
        """The full name of a topic here."""
        return f"persistent://{self.namespace}/{name}"

    def producer(self, topic: str, *, batched: bool = True, **options: Any) -> pulsar.Producer:
        """A producer that waits where its queue is full."""
        return self.client.create_producer(
            topic, batching_enabled=batched, block_if_queue_full=True, max_pending_messages=5000, **options
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
            try:
                last.update(recently_shown(self.lab).get(topic, {}))
                return bool(last) and shows(last)
            except (KeyError, AdminCallError):  # a subscription that is not told of yet; a broker that is too busy
                return False

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

        def reached() -> bool:
            try:
                rows = metrics_of(self.lab)
            except AdminCallError:  # a broker that is too busy
                return False
            of_topic = (value for name, value in rows if name.startswith(f"{series}{{") and f'"{topic}"' in name)
            return sum(of_topic) >= least

        wait_until(reached, f"{series} of {topic} is {least:,.0f}", within_s, EVERY_S)


@contextlib.contextmanager
def ground(
    lab: Lab,
    name: str,
    bundles: int = 4,
    *,
    language: Language = "python",
    batched: bool | None = None,
    **policies: object,
) -> Iterator[Ground]:
    """A namespace ``public/NAME``, made with these policies, and clients for the length of a block."""
    namespace = f"public/{name}"
    admin = operator_of(lab)
    admin.create_namespace(namespace, bundles, **policies)
    here = Ground(lab, namespace, None, admin, language=language, batched=batched)
    try:
        yield here
    finally:
        here.close()
        clear(lab, namespace)


def connected(lab: Lab, **options: Any) -> pulsar.Client:
    """A client of all brokers; close it. ``options`` are those of `pulsar.Client`."""
    return quiet_client(lab.service_url, lab.token, **options)


def _figures(topic: dict[str, Any]) -> dict[str, Any]:
    """Figures that fit in a message: numbers and texts of the topic and its subscriptions, without clients."""
    plain = {key: value for key, value in topic.items() if isinstance(value, int | float | str) and value}
    subscriptions = topic.get("subscriptions", {})
    return plain | {name: _figures(each) for name, each in subscriptions.items()}


def fault_on_ground(
    name: str,
    about: str,
    arrange: Callable[[Ground], Change | None],
    *,
    client: Language | None = "python",
    batched: bool | None = None,
    bundles: int = 4,
    **label: Any,
) -> RealFault:
    """A fault in a namespace of its own.

    Args:
        name: The fault's.
        about: As of `RealFault`.
        arrange: Makes the trouble and waits until brokers show it; may return what happens before each look.
        client: Of its messages; None: there are none.
        batched: As of `RealFault`.
        bundles: Of its namespace.
        **label: All else that a `RealFault` has.
    """

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[Change | None]:
        with ground(lab, name, bundles, language=client or "python", batched=batched) as here:
            yield arrange(here)

    return RealFault(name=name, about=about, made=making, client=client, batched=batched, **label)


def fault_of_namespace(
    name: str, about: str, arrange: Callable[[Ground], Change | None], *checks: str, **label: Any
) -> RealFault:
    """A fault of which everything is found of its own namespace.

    Args:
        name: The fault's.
        about: As of `RealFault`.
        arrange: As of `fault_on_ground`.
        *checks: Ids of the checks that find it; none: it is healthy.
        **label: All else that `fault_on_ground` takes.
    """
    expected = tuple(Expected(check, rf"public/{name}\b") for check in checks)
    return fault_on_ground(name, about, arrange, expected=expected, **label)
