"""A running lab: `running_lab` for the length of a block, `Lab.start` until it is stopped, `Lab.attach` to join in."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self, Unpack

from lab import certificates, coordinators, jars, placement, plan, ports, prerequisites, process, settings, tokens
from lab.admin import TIMEOUT_S, Admin
from lab.boot import Boot, Progress, log_file
from lab.errors import AdminCallError, BrokerStateError, LabExistsError, UnknownBrokerError
from lab.model import WITH_TOKEN, Broker, LabOptions, LabSpec, LabState, LogLevel, Node, refuse_unprepared
from lab.store import StateFile
from lab.waiting import wait_until

GRACE_S = 15.0
QUICK_ANSWER_S = 3.0

COLLECTED_WITHIN_S = 20.0
BETWEEN_SIGNALS_S = 0.02
"""Two of one kind that are sent at once may count as one."""
QUIET_S = 0.3
"""A broker that printed nothing for so long has obeyed all of them."""


def silent(_message: str) -> None:
    """The progress of those who do not want to hear any."""


def labs_dir() -> Path:
    """Folder of all labs: ``STEWARD_LAB_HOME``, or ``var/labs`` in the project."""
    return Path(os.environ.get("STEWARD_LAB_HOME") or Path(__file__).parents[1] / "var" / "labs").absolute()


@contextlib.contextmanager
def running_lab(
    name: str = "lab", *, home: Path | None = None, progress: Progress = silent, **options: Unpack[LabOptions]
) -> Iterator["Lab"]:
    """A lab for the length of a ``with`` block; `LabSpec` has the options.

    Its processes are tied to the calling thread, unless ``tied=False``: call it in the main thread, or in one that
    outlives the block.

    Raises:
        LabError: It could not be started; nothing of it runs then.
    """
    options.setdefault("tied", True)
    lab = Lab.start(name, home=home, progress=progress, **options)
    try:
        yield lab
    finally:
        lab.stop()


class Lab:
    """A real cluster on loopback; a `lab.target.PulsarTarget`. Several processes may hold the same one.

    Args:
        home: The lab's own folder, with its state file, configuration, data and logs.
        progress: Told what happens, a line at a time.
    """

    def __init__(self, home: Path, progress: Progress = silent) -> None:
        self.home = home
        self._store = StateFile(home / "state.json")
        self._progress = progress

    @classmethod
    def start(
        cls, name: str = "lab", *, home: Path | None = None, progress: Progress = silent, **options: Unpack[LabOptions]
    ) -> Self:
        """Starts a lab that runs until `stop`; what a lab of that name left behind is removed first.

        Args:
            name: Names its folder within ``home``.
            home: The folder of all labs; `labs_dir` by default.
            progress: Told what happens, a line at a time.
            **options: See `LabSpec`.

        Raises:
            LabExistsError: A lab of that name is running.
            PrerequisiteMissingError: Java or Maven is missing or too old.
            PortTakenError: A port that was asked for is in use.
            PartFailedError: A part did not come up; its log's end is in the message. Nothing is left running.
        """
        spec = LabSpec(name=name, **options)
        lab = cls((home or labs_dir()) / name, progress)
        lab._refuse_if_running()
        for version in sorted(spec.versions):
            _have(version, progress)
        lab._begin(plan.new_state(spec))
        return lab

    @classmethod
    def attach(cls, name: str = "lab", *, home: Path | None = None, progress: Progress = silent) -> Self:
        """Joins a lab that another process started.

        Raises:
            UnknownLabError: There is none of that name.
        """
        lab = cls((home or labs_dir()) / name, progress)
        lab._store.read()
        return lab

    @property
    def state(self) -> LabState:
        """The lab as it stands in its state file now."""
        return self._store.read()

    @property
    def cluster(self) -> str:
        """The cluster's name in its own configuration."""
        return self.state.spec.cluster

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """Every broker that was started, in order of starting, the ended ones included."""
        return self.state.brokers

    @property
    def admin_urls(self) -> tuple[str, ...]:
        """``http://host:port`` of every broker that was started; ``https`` where it speaks TLS."""
        return tuple(broker.admin_url for broker in self.brokers)

    @property
    def service_url(self) -> str:
        """``pulsar://host:port,...`` of every broker that was started; ``pulsar+ssl`` where they speak only TLS."""
        scheme = "pulsar+ssl" if self.state.spec.listeners == "tls" else "pulsar"
        return f"{scheme}://" + ",".join(broker.service_address for broker in self.brokers)

    @property
    def admin_urls_tls(self) -> tuple[str, ...]:
        """``https://host:port`` of every broker that was started and speaks TLS, though it may speak plain text too."""
        return tuple(url for broker in self.brokers if (url := broker.admin_url_tls))

    @property
    def service_url_tls(self) -> str:
        """``pulsar+ssl://host:port,...`` of the same brokers."""
        return "pulsar+ssl://" + ",".join(place for broker in self.brokers if (place := broker.service_address_tls))

    @property
    def configuration_store(self) -> str:
        """``host:port`` of the store of tenants and namespaces, for the options of a lab that shares it."""
        return settings.configuration_store(self.state)

    @property
    def token_file(self) -> Path | None:
        """The file with a superuser's token, or None where brokers take none."""
        return tokens.token_file(self._secrets) if self.state.spec.auth in WITH_TOKEN else None

    @property
    def token(self) -> str | None:
        """A superuser's token, or None where brokers take none."""
        return None if self.token_file is None else self.token_file.read_text(encoding="utf-8")

    def role_token(self, role: str) -> str:
        """A token of a role that the cluster knows nothing of, unless it was told, where `auth` is ``token``."""
        return tokens.signed(tokens.key_file(self._secrets).read_bytes(), role)

    def access_token(self, lives_s: float | None, audience: str = tokens.AUDIENCE) -> str:
        """A superuser's token as an issuer gives it, by `tokens.access_token`, where brokers take such ones."""
        return tokens.access_token(self._secrets, lives_s, audience)

    @property
    def ca_file(self) -> Path | None:
        """The file of the authority of the brokers' certificates, or None where they speak no TLS."""
        return None if self.state.spec.listeners == "plain" else certificates.client_files(self._secrets).ca_file

    @property
    def client_files(self) -> certificates.ClientFiles | None:
        """Files of the authority and of the superuser's certificate, or None where brokers ask for none."""
        return certificates.client_files(self._secrets) if self.state.spec.auth == "tls" else None

    def broker(self, broker_id: str) -> Broker:
        """The broker of that id (``host:webport``) or name (``broker-1``).

        Raises:
            UnknownBrokerError: There is none.
        """
        for broker in self.brokers:
            if broker_id in (broker.broker_id, broker.name):
                return broker
        known = ", ".join(f"{broker.broker_id} ({broker.name})" for broker in self.brokers)
        raise UnknownBrokerError(f"no broker {broker_id!r} in lab {self.home.name!r}: it has {known}")

    def add_broker(self) -> Broker:
        """Starts one more broker, and returns it once it serves; one that fails stays listed as gone."""
        return self._started(self._store.change(plan.with_one_more_broker).brokers[-1])

    def kill_broker(self, broker_id: str) -> Broker:
        """SIGKILL: the broker is gone, while the cluster lists it until its metadata session ends."""
        broker = self._in_condition(broker_id, "running", "paused")
        process.kill([broker.process])
        return self._ended(broker)

    def stop_broker(self, broker_id: str) -> Broker:
        """SIGTERM: the broker gives up its bundles and leaves; killed when it takes longer than the grace."""
        broker = self._in_condition(broker_id, "running", "paused")
        process.end([broker.process], GRACE_S)
        return self._ended(broker)

    def start_broker(self, broker_id: str, pulsar_version: str | None = None) -> Broker:
        """Starts an ended broker again on its ports, and returns once it serves.

        Args:
            broker_id: Its id or its name.
            pulsar_version: What it is to run from now on, as in a rolling upgrade; None: what it ran before.

        Raises:
            PrerequisiteMissingError: Java is too old for that version, or Maven is missing.
        """
        broker = self._in_condition(broker_id, "gone")
        if pulsar_version is not None:
            refuse_unprepared(pulsar_version)
            _have(pulsar_version, self._progress)
            self._store.change(lambda state: state.with_version(broker.name, pulsar_version))
            broker = self.broker(broker.name)
        for port in broker.ports:
            ports.require_free(broker.host, port, broker.name)
        return self._started(broker)

    def pause_broker(self, broker_id: str) -> Broker:
        """SIGSTOP: connections are accepted and nothing is answered; its metadata session runs out meanwhile."""
        return self._signalled(self._in_condition(broker_id, "running"), signal.SIGSTOP, "paused")

    def resume_broker(self, broker_id: str) -> Broker:
        """SIGCONT: goes on where it was paused."""
        return self._signalled(self._in_condition(broker_id, "paused"), signal.SIGCONT, "running")

    def collect_heap(self, broker_id: str, times: int) -> None:
        """SIGQUIT: a running broker stands still for full collections, as in a heap that is too small.

        Returns once it prints no more of what is left, or has ended: signals are obeyed one after the other, also
        long after they were sent.
        """
        broker = self._in_condition(broker_id, "running")
        log = self.log(broker.name)
        before = log.stat().st_size
        for _ in range(times):
            self._signal(broker, signal.SIGQUIT)
            time.sleep(BETWEEN_SIGNALS_S)

        sizes = [before]

        def printed() -> bool:
            sizes.append(log.stat().st_size)
            return sizes[-1] == sizes[-2] > before or self.condition(broker_id) != "running"

        wait_until(printed, f"{broker.name} has collected its heap", COLLECTED_WITHIN_S, QUIET_S)

    def log_at(self, broker_id: str, level: LogLevel, pipe: Path | None = None) -> None:
        """Has a running broker log at this level from the next second on; started again, it logs at INFO.

        It writes every line to the named pipe as well, if there is one, and waits for whoever reads that.
        """
        self._boot().log_at(self._in_condition(broker_id, "running"), level, pipe)

    def pause_zookeeper(self) -> None:
        """SIGSTOP: brokers read what they have cached, change nothing, and lose their sessions if it lasts."""
        self._signal(self.state.zookeeper, signal.SIGSTOP)

    def resume_zookeeper(self) -> None:
        """SIGCONT; harmless where it runs."""
        self._signal(self.state.zookeeper, signal.SIGCONT)

    def pause_bookies(self) -> None:
        """SIGSTOP: what brokers write waits, and so does whoever publishes."""
        for bookie in self.state.bookies:
            self._signal(bookie, signal.SIGSTOP)

    def resume_bookies(self) -> None:
        """SIGCONT; harmless where they run."""
        for bookie in self.state.bookies:
            self._signal(bookie, signal.SIGCONT)

    def kill_bookie(self, number: int) -> None:
        """SIGKILL of the bookie of this number, from 1; the cluster lists it until its metadata session ends."""
        bookie = self.state.bookies[number - 1]
        process.kill([bookie.process])
        self._store.change(lambda state: state.with_process(bookie.name, None))

    def start_bookie(self, number: int) -> None:
        """Starts an ended bookie again, with its disks, and returns once it listens."""
        self._boot().bookie(self.state.bookies[number - 1])

    @contextlib.contextmanager
    def second_cluster(self, name: str, **options: Unpack[LabOptions]) -> Iterator["Lab"]:
        """A cluster of another name behind the same configuration store, for the length of a ``with`` block.

        Its setting up adds it to the clusters that serve this one's ``public`` and ``pulsar``: whoever needs brokers
        that know of no other cluster cannot use this lab any more.

        Raises:
            LabError: It could not be started; nothing of it runs then.
        """
        options["cluster"], options["configuration_store"] = name, self.configuration_store
        options.setdefault("pulsar_version", self.state.spec.pulsar_version)
        with running_lab(name, home=self.home / "beside", progress=self._progress, **options) as second:
            yield second

    def restore(self) -> None:
        """Has every broker that the lab began with running, and no other."""
        self.resume_zookeeper()
        self.resume_bookies()
        for number, bookie in enumerate(self.state.bookies, start=1):
            if process.condition(bookie.process) == "gone":
                self.start_bookie(number)
        for broker in self.brokers:
            now, wanted = self.condition(broker.broker_id), broker.number <= self.state.spec.brokers
            if now == "paused":
                self.resume_broker(broker.broker_id)
            if wanted and now == "gone":
                self.start_broker(broker.broker_id)
            if not wanted and now != "gone":
                self.stop_broker(broker.broker_id)

    def active_brokers(self) -> tuple[str, ...]:
        """Ids of the brokers that the cluster itself lists."""
        return self._admin().active_brokers()

    def owned_bundles(self) -> dict[str, tuple[str, ...]]:
        """Broker id to the sorted bundles it owns, of every broker that answers; loads nothing."""
        owned = {}
        for broker in self._running():
            with contextlib.suppress(AdminCallError):
                owned[broker.broker_id] = self._boot().admin(broker, QUICK_ANSWER_S).owned(broker.broker_id)
        return owned

    def tc_placement(self) -> dict[str, int]:
        """Broker id to the number of transaction coordinators it holds, of every broker that answers."""
        return placement.count_by_broker(self._admin().coordinators(), self.owned_bundles())

    def make_topic(self, topic: str, bundles: int = 4) -> None:
        """Makes a namespace of so many bundles and a loaded topic in it, by its full name."""
        admin = self._admin()
        admin.create_namespace(topic.partition("://")[2].rpartition("/")[0], bundles)
        admin.create_topic(topic)
        admin.look_up(topic)

    def pile_up_tcs(self, broker_id: str | None = None) -> str:
        """Moves every transaction coordinator onto one broker (the first running one by default); returns its id.

        Raises:
            NotReachedError: The cluster does not show it in time.
        """
        target = self._first_running() if broker_id is None else self._in_condition(broker_id, "running")
        coordinators.pile_up(self._admin(), target.broker_id, self.owned_bundles)
        return target.broker_id

    def log(self, part: str) -> Path:
        """The log file of a part (``zookeeper``, ``bookie``, ``bookie-2``, ``broker-1``)."""
        return log_file(self.home, part)

    def condition(self, broker_id: str) -> process.Condition:
        """State of the broker's process: running, paused or gone."""
        return process.condition(self.broker(broker_id).process)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Ends everything, in the order that does not hang, and forgets the lab; its logs stay. May be called again."""
        if not self._store.exists():
            return
        state = self.state
        for parts in (state.brokers, state.bookies, (state.zookeeper,)):
            process.end([part.process for part in parts], grace_s)
        self._store.remove()
        self._remove("data", "secrets")
        self._progress(f"lab {self.home.name!r} stopped")

    def _refuse_if_running(self) -> None:
        if self._store.exists() and any(process.condition(part.process) != "gone" for part in self.state.parts):
            raise LabExistsError(
                f"lab {self.home.name!r} in {self.home.parent} is running:"
                f" `python -m lab stop --name {self.home.name}` ends it"
            )

    def _begin(self, state: LabState) -> None:
        self._remove("conf", "data", "log", "secrets")
        self.home.mkdir(parents=True, exist_ok=True)
        self._store.write(state)
        try:
            self._boot().everything()
        except BaseException:
            with process.uninterrupted():
                self.stop(grace_s=2)
            raise

    def _remove(self, *folders: str) -> None:
        for folder in folders:
            shutil.rmtree(self.home / folder, ignore_errors=True)

    @property
    def _secrets(self) -> Path:
        return self.home / "secrets"

    def _boot(self) -> Boot:
        return Boot(self.home, self._store, self._progress)

    def _running(self) -> list[Broker]:
        return [broker for broker in self.brokers if process.condition(broker.process) == "running"]

    def _first_running(self) -> Broker:
        if running := self._running():
            return running[0]
        raise BrokerStateError(f"no broker of lab {self.home.name!r} is running: start one again")

    def _admin(self) -> Admin:
        return self._boot().admin(self._first_running(), TIMEOUT_S)

    def _in_condition(self, broker_id: str, *wanted: process.Condition) -> Broker:
        broker = self.broker(broker_id)
        if (now := process.condition(broker.process)) not in wanted:
            raise BrokerStateError(f"{broker.name} ({broker.broker_id}) is {now}, not {' or '.join(wanted)}")
        return broker

    def _started(self, broker: Broker) -> Broker:
        try:
            self._boot().brokers([broker])
        except BaseException:
            with process.uninterrupted():
                process.kill([self.broker(broker.name).process])
                self._ended(broker)
            raise
        return self.broker(broker.name)

    def _ended(self, broker: Broker) -> Broker:
        self._store.change(lambda state: state.with_process(broker.name, None))
        return self.broker(broker.broker_id)

    @staticmethod
    def _signal(part: Node | Broker, number: signal.Signals) -> None:
        if part.process is not None:
            process.send(part.process, number)

    def _signalled(self, broker: Broker, number: signal.Signals, wanted: Literal["running", "paused"]) -> Broker:
        self._signal(broker, number)
        wait_until(lambda: process.condition(broker.process) == wanted, f"{broker.name} is {wanted}", 5)
        return broker


def _have(version: str, progress: Progress) -> None:
    """Has the jars of a version in the cache, on a machine with a Java for it."""
    java_at_least = prerequisites.java_for(version)
    prerequisites.require(maven=not jars.fetched(version), java_at_least=java_at_least)
    jars.fetch(version, progress)
