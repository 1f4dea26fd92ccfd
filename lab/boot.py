"""Bringing the parts of a lab up: each is started, written into the state file, and waited for."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from lab import certificates, jars, java, plan, ports, process, settings, tokens
from lab.admin import NO_CERTIFICATES, Admin
from lab.errors import NotReachedError, PartFailedError
from lab.model import WITH_TOKEN, Broker, LabState, LogLevel, Node
from lab.store import StateFile
from lab.waiting import wait_until

UP_WITHIN_S = 180.0
ANSWER_WITHIN_S = 5.0

Progress = Callable[[str], None]


def log_file(home: Path, part: str) -> Path:
    """The log file of a part of the lab in ``home``."""
    return home / "log" / f"{part}.log"


@dataclass(frozen=True)
class Launch:
    """A part to start: its command line, and how to tell that it serves."""

    part: Node | Broker
    command: list[str]
    serves: Callable[[], bool]


class Boot:
    """Starts the processes of the lab in the folder ``home``, whose state file is there already."""

    def __init__(self, home: Path, store: StateFile, progress: Progress) -> None:
        self._home = home
        self._store = store
        self._progress = progress
        self._spec = store.read().spec

    def everything(self) -> None:
        """From nothing to brokers that answer."""
        for folder in ("conf", "log", "data/zookeeper"):
            (self._home / folder).mkdir(parents=True)
        if self._spec.auth == "token":
            tokens.make(self._secrets)
        if self._spec.auth == "oauth2":
            tokens.make_key_pair(self._secrets)
        if self._spec.listeners != "plain":
            certificates.make(self._secrets, plan.possible_hosts(self._spec))
        if self._spec.advertised == "name":
            self._hosts.write_text(settings.hosts(plan.possible_names(self._spec)), encoding="utf-8")
        state, data = self._store.read(), self._home / "data"
        zookeeper = state.zookeeper
        conf, logging = self._conf(zookeeper, settings.zookeeper(state, data)), self.log_at(zookeeper, "INFO")
        command = java.zookeeper(self._runtime, conf, logging)
        self._up(Launch(zookeeper, command, lambda: _zookeeper_serves(zookeeper)))
        self._cluster_metadata(state, logging)
        # Brokers need bookies only once they answer their health check, so all start side by side.
        self._up(*map(self._bookie_launch, state.bookies), *map(self._broker_launch, state.brokers))

    def bookie(self, bookie: Node) -> None:
        """Starts a bookie, and returns once it listens."""
        self._up(self._bookie_launch(bookie))

    def brokers(self, brokers: Iterable[Broker]) -> None:
        """Starts these brokers side by side, and returns once each has written and read a message."""
        self._up(*map(self._broker_launch, brokers))

    def log_at(self, part: Node | Broker, level: LogLevel, pipe: Path | None = None) -> Path:
        """Writes a part's log configuration, which it reads again where it runs; returns the file.

        ``pipe`` is a named pipe to write every line to as well.
        """
        path = self._home / "conf" / f"{part.name}.log4j2.xml"
        written = path.with_suffix(".new")  # a running part must never read half of it
        version = part.pulsar_version if isinstance(part, Broker) else self._spec.pulsar_version
        text = settings.logging(level, counted=jars.counts_log_lines(version), pipe=pipe)
        written.write_text(text, encoding="utf-8")
        return written.replace(path)

    def token(self) -> str | None:
        """The superuser's token, or None."""
        if self._spec.auth not in WITH_TOKEN:
            return None
        return tokens.token_file(self._secrets).read_text(encoding="utf-8")

    def context(self) -> ssl.SSLContext:
        """Certificates for calls to this lab."""
        return certificates.context(self._secrets) if self._spec.listeners == "tls" else NO_CERTIFICATES

    def admin(self, broker: Broker, within_s: float = ANSWER_WITHIN_S) -> Admin:
        """Speaks to a broker as the superuser."""
        names = plan.possible_names(self._spec)
        return Admin(broker.admin_url, self.token(), within_s, self.context(), names, self._spec.cluster)

    @property
    def _secrets(self) -> Path:
        return self._home / "secrets"

    @property
    def _runtime(self) -> java.Runtime:
        return java.Runtime.of(self._spec.pulsar_version)

    def _bookie_launch(self, bookie: Node) -> Launch:
        conf = self._conf(bookie, settings.bookie(self._store.read(), bookie, self._home / "data"))
        logging = self.log_at(bookie, "INFO")
        command = java.bookie(self._runtime, conf, logging)
        return Launch(bookie, command, lambda: ports.answers(bookie.host, bookie.port))

    def _broker_launch(self, broker: Broker) -> Launch:
        extra = self._listeners(broker) | self._authentication()
        conf = self._conf(broker, settings.broker(self._store.read(), broker, extra))
        hosts = self._hosts if self._spec.advertised == "name" else None
        logging = self.log_at(broker, "INFO")
        runtime = java.Runtime.of(broker.pulsar_version)
        command = java.broker(runtime, conf, logging, self._spec.broker_heap_mb, hosts)
        return Launch(broker, command, self.admin(broker).healthy)

    def _log(self, name: str) -> Path:
        return log_file(self._home, name)

    def _listeners(self, broker: Broker) -> dict[str, str]:
        return {} if self._spec.listeners == "plain" else certificates.listener_settings(self._secrets, broker)

    def _authentication(self) -> dict[str, str]:
        known = {"token": tokens.settings, "oauth2": tokens.key_pair_settings, "tls": certificates.settings}
        return known[self._spec.auth](self._secrets) if self._spec.auth in known else {}

    @property
    def _hosts(self) -> Path:
        return self._home / "conf" / "hosts"

    def _conf(self, part: Node | Broker, text: str) -> Path:
        path = self._home / "conf" / f"{part.name}.conf"
        path.write_text(text, encoding="utf-8")
        return path

    def _cluster_metadata(self, state: LabState, logging: Path) -> None:
        began = time.monotonic()
        try:
            command = java.cluster_metadata(self._runtime, state, logging)
            process.run(command, self._log("cluster-metadata"), UP_WITHIN_S)
        except PartFailedError as error:
            raise PartFailedError(f"writing the cluster's metadata: {error}") from error
        self._progress(f"cluster metadata written in {time.monotonic() - began:.1f} s")

    def _up(self, *launches: Launch) -> None:
        began = time.monotonic()
        for launch in launches:
            self._spawn(launch)
        # Side by side too: a broker's first health check takes seconds.
        waiters = ThreadPoolExecutor(len(launches))
        try:
            for done in as_completed([waiters.submit(self._await_up, launch) for launch in launches]):
                self._progress(f"{done.result()} ready in {time.monotonic() - began:.1f} s")
        finally:
            # Not waited for: whoever handles the failure ends the parts, and so what the others wait for.
            waiters.shutdown(wait=False, cancel_futures=True)

    def _spawn(self, launch: Launch) -> None:
        name = launch.part.name
        with process.uninterrupted():
            started = process.spawn(launch.command, self._log(name), tied=self._spec.tied)
            self._store.change(lambda state: state.with_process(name, started))

    def _await_up(self, launch: Launch) -> str:
        name = launch.part.name

        def up_or_dead() -> bool:
            if process.condition(self._store.read().part(name).process) == "gone":
                raise PartFailedError(f"{name} died while starting; {process.tail(self._log(name))}")
            return launch.serves()

        try:
            wait_until(up_or_dead, f"{name} serves", UP_WITHIN_S)
        except NotReachedError as error:
            raise PartFailedError(f"{error}; {process.tail(self._log(name))}") from error
        return name


def _zookeeper_serves(node: Node) -> bool:
    """Asks ZooKeeper itself (its four-letter word ``srvr``): it listens some time before it serves."""
    with contextlib.suppress(OSError), socket.create_connection((node.host, node.port), timeout=1) as connection:
        connection.sendall(b"srvr")
        return b"Mode:" in connection.makefile("rb").read()
    return False
