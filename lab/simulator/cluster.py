"""A running simulator: what tests, the demo and the benchmarks hold in their hands."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from lab.simulator import builder
from lab.simulator.application import application
from lab.simulator.faults import Faults
from lab.simulator.front import RequestLog, Shared
from lab.simulator.model import Broker, Health
from lab.simulator.routing import Here
from lab.simulator.server import Listener, LoopThread, bound, listen
from lab.simulator.spec import ClusterSpec, TopicSpec
from lab.simulator.state import ClusterState, tc_topics

SESSION_S = 30.0
"""How long a killed broker stays listed: Pulsar's default ``metadataStoreSessionTimeoutMillis``."""

FILLED_WITHIN_S = 1_800.0
"""Limit for making up a cluster; ten million partitions take minutes."""


@contextlib.contextmanager
def running_simulator(
    spec: ClusterSpec | None = None,
    *,
    base_port: int | None = None,
    token: str | None = None,
    looking_token: str | None = None,
    session_s: float = SESSION_S,
    keep_log: bool = True,
) -> Iterator["Simulator"]:
    """A made-up cluster for the length of a ``with`` block.

    Args:
        spec: What it looks like; three brokers, 16 transaction coordinators and no topics by default.
        base_port: The first broker's port, the others follow; None takes free ones.
        token: What every request must bear, but for ``/metrics``; None lets all in.
        looking_token: What GET requests may bear in its place, as behind a gateway that lets nothing else through.
        session_s: Seconds until a killed broker is no longer listed.
        keep_log: False for millions of requests.

    Raises:
        OSError: A port is in use.
    """
    simulator = Simulator(
        spec or ClusterSpec(),
        base_port=base_port,
        token=token,
        looking_token=looking_token,
        session_s=session_s,
        keep_log=keep_log,
    )
    try:
        simulator.start()
        yield simulator
    finally:
        simulator.close()


class Simulator:
    """A `lab.target.PulsarTarget` in one process, of this or a million partitions; `running_simulator` makes one.

    Attributes:
        faults: Trouble to make.
        requests: Every request since the start.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        base_port: int | None,
        token: str | None,
        looking_token: str | None,
        session_s: float,
        keep_log: bool,
    ) -> None:
        self.faults = Faults()
        self.requests = RequestLog()
        self._shared = Shared(self.faults, self.requests, token, looking_token, spec.compress, keep_log)
        self._state = ClusterState(spec)
        self._base_port = base_port
        self._session_s = session_s
        self._listeners: dict[str, Listener] = {}
        self._started: list[str] = []
        self._loop = LoopThread()

    def start(self) -> None:
        """Brings the brokers up and fills the cluster; brokers of one host are numbered as their ids sort."""
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(self._bound(number)) for number in range(self._state.spec.brokers)]
            stack.pop_all()
        if self._state.spec.hosts == "same":
            # A test that takes the last broker of a list takes the same one whichever free ports there were.
            socks.sort(key=lambda sock: str(sock.getsockname()[1]))
        for sock in socks:
            self._add(sock)
        self._loop.call(builder.populate, self._state, within_s=FILLED_WITHIN_S)

    def close(self) -> None:
        """Ends everything; may be called again."""
        for listener in self._listeners.values():
            self._loop.run(listener.kill())
        self._listeners.clear()
        self._loop.close()

    @property
    def cluster(self) -> str:
        """The cluster's name in its own configuration."""
        return self._state.spec.cluster

    @property
    def admin_urls(self) -> tuple[str, ...]:
        """``http://host:port`` of every broker that was started, in order of starting."""
        return tuple(self.broker(broker_id).admin_url for broker_id in self._started)

    @property
    def service_url(self) -> None:
        """Always None: nothing here speaks the binary protocol."""
        return

    @property
    def token(self) -> str | None:
        """Token that every request has to carry; None: no token is asked for."""
        return self._shared.token

    def broker(self, broker_id: str) -> Broker:
        """The broker of that id (``host:webport``).

        Raises:
            LookupError: There is none.
        """
        if broker_id not in self._state.brokers:
            raise LookupError(f"no broker {broker_id!r} in the simulator: it has {', '.join(self._state.brokers)}")
        return self._state.brokers[broker_id]

    def active_brokers(self) -> tuple[str, ...]:
        """Ids of the brokers that the cluster itself lists, killed ones included while their session lasts."""
        return tuple(sorted(broker.broker_id for broker in self._loop.call(lambda: self._state.listed)))

    def owned_bundles(self) -> dict[str, tuple[str, ...]]:
        """Broker id to the sorted bundles it owns, heartbeats included, of every broker that answers."""
        return self._loop.call(self._owned)

    def tc_placement(self) -> dict[str, int]:
        """Broker id to the number of transaction coordinators it holds, of every broker that answers."""
        return self._loop.call(self._tc_placement)

    def pile_up_tcs(self, broker_id: str | None = None) -> str:
        """Gives every transaction coordinator to one broker (the first that answers by default); returns its id."""
        target = next(iter(self._listeners)) if broker_id is None else self.broker(broker_id).broker_id
        self._loop.call(self._give_all_tcs, target)
        return target

    def change_subscription(self, topic: str, name: str, **figures: Any) -> None:
        """Gives a subscription of a topic or partition other figures, such as ``consumers=1``, as its clients would.

        Args:
            topic: Full name.
            name: The subscription.
            figures: Fields of `lab.simulator.spec.SubscriptionSpec`.
        """
        self._loop.call(builder.change_subscription, self._state, topic, name, figures)

    def add_topic(self, namespace: str, spec: TopicSpec) -> None:
        """Makes a topic, or all partitions of one, of which nobody has loaded the bundles yet."""
        self._loop.call(builder.add_topic, self._state, namespace, spec)

    # -- faults of whole brokers

    def add_broker(self) -> Broker:
        """Starts one more broker; nothing moves to it by itself."""
        return self._add(self._bound(len(self._state.brokers)))

    def _bound(self, number: int) -> socket.socket:
        host = "127.0.0.1" if self._state.spec.hosts == "same" else f"127.0.0.{number + 1}"
        return bound(host, 0 if self._base_port is None else self._base_port + number)

    def _add(self, sock: socket.socket) -> Broker:
        broker = self._loop.call(self._state.add_broker, *sock.getsockname())
        self._started.append(broker.broker_id)
        self._listen(broker, sock)
        return broker

    def kill_broker(self, broker_id: str) -> Broker:
        """Kills a broker: it refuses connections, and stays listed with all it owns until its session ends."""
        broker = self._stop(broker_id)
        self._loop.call(self._state.broker_died, broker_id)
        self._loop.later(self._session_s, lambda: self._expire(broker_id, broker.started_ms))
        return broker

    def expire_session(self, broker_id: str) -> None:
        """Ends a killed broker's session now: it is no longer listed, and nobody owns its bundles."""
        self._loop.call(self._expire, broker_id, self.broker(broker_id).started_ms)

    def stop_broker(self, broker_id: str) -> Broker:
        """Stops a broker: it gives its bundles up and is gone at once."""
        broker = self._stop(broker_id)
        self._loop.call(self._state.session_expired, broker_id)
        return broker

    def start_broker(self, broker_id: str) -> Broker:
        """Starts an ended broker again on its port; it owns nothing."""
        broker = self.broker(broker_id)
        sock = bound(broker.host, broker.port)
        self._loop.call(self._state.broker_returned, broker_id)
        self._listen(broker, sock)
        return self.broker(broker_id)

    def pause_broker(self, broker_id: str) -> None:
        """Pauses a broker: it accepts connections and answers nothing; its session goes on, unlike a real one's."""
        self._loop.call(self._listeners[self.broker(broker_id).broker_id].front.awake.clear)

    def resume_broker(self, broker_id: str) -> None:
        """Lets a paused broker go on."""
        self._loop.call(self._listeners[self.broker(broker_id).broker_id].front.awake.set)

    def _clock_ahead_s(self, broker_id: str) -> float:
        return self._state.spec.load_of(self._state.brokers[broker_id].number).clock_ahead_s

    def _listen(self, broker: Broker, sock: socket.socket) -> None:
        app = application(Here(self._state, broker.broker_id))
        listener = self._loop.run(listen(app, broker.broker_id, self._shared, sock))
        listener.front.clock_ahead_s = self._clock_ahead_s(broker.broker_id)
        self._listeners[broker.broker_id] = listener

    def _stop(self, broker_id: str) -> Broker:
        broker = self.broker(broker_id)
        if broker_id not in self._listeners:
            raise LookupError(f"broker {broker_id} has ended already: start_broker() starts it again")
        self._loop.run(self._listeners.pop(broker_id).kill())
        return broker

    def _expire(self, broker_id: str, started_ms: int) -> None:
        """Ends the session that the broker had then, not that of a later start."""
        broker = self._state.brokers[broker_id]
        if broker.health is Health.DEAD and broker.started_ms == started_ms:
            self._state.session_expired(broker_id)

    def _owned(self) -> dict[str, tuple[str, ...]]:
        owned = {}
        for broker_id in self._started:
            if broker_id in self._listeners:
                owned[broker_id] = tuple(sorted((*self._state.watched_by(broker_id), *self._state.owned_by(broker_id))))
        return owned

    def _tc_placement(self) -> dict[str, int]:
        topics = tc_topics(self._state.coordinators)
        owners = [self._state.owner(self._state.bundle_of(topic)) for topic in topics]
        ids = [owner.broker_id for owner in owners if owner is not None]
        return {broker_id: ids.count(broker_id) for broker_id in self._started if broker_id in self._listeners}

    def _give_all_tcs(self, broker_id: str) -> None:
        for topic in tc_topics(self._state.coordinators):
            self._state.ownership.give(self._state.bundle_of(topic), broker_id)
