"""The data of a lab: what was asked for (`LabSpec`), and what runs (`LabState`, which is kept as JSON)."""

import re
from collections.abc import Mapping
from typing import Literal, TypedDict

import msgspec
from msgspec.structs import replace

from lab.errors import LabError

CLUSTER = "local"
VERSIONS = ("4.0.7", "4.2.4", "5.0.1", "3.3.2", "3.0.7", "2.10.4")

Auth = Literal["none", "token", "tls", "oauth2"]
WITH_TOKEN = ("token", "oauth2")
"""Kinds of authentication by a token."""

Listeners = Literal["plain", "tls", "both"]
Hosts = Literal["same", "distinct"]
Advertised = Literal["address", "name"]
LogLevel = Literal["INFO", "DEBUG"]


def refuse_unprepared(version: str) -> None:
    """Raises unless labs of that version can be started.

    Raises:
        LabError: Names those that can.
    """
    if version not in VERSIONS:
        raise LabError(f"Pulsar {version} is not prepared: choose one of {', '.join(VERSIONS)}")


class LabOptions(TypedDict, total=False):
    """The keywords that `running_lab` and `Lab.start` take; `LabSpec` says what each means."""

    brokers: int
    pulsar_version: str
    broker_versions: Mapping[int, str]
    auth: Auth
    listeners: Listeners
    hosts: Hosts
    advertised: Advertised
    base_port: int | None
    coordinators: int
    bookies: int
    cluster: str
    configuration_store: str | None
    link_port: int | None
    broker_heap_mb: int
    broker_settings: Mapping[str, str]
    bookie_settings: Mapping[str, str]
    zookeeper_settings: Mapping[str, str]
    tied: bool


class LabSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a lab that is to be started.

    Attributes:
        name: Names the lab's folder; letters, digits, ``.``, ``_`` and ``-``.
        brokers: How many brokers to begin with.
        pulsar_version: One of `VERSIONS`.
        broker_versions: Versions of single brokers by number, as in the middle of an upgrade; the others, the bookies
            and ZooKeeper are of `pulsar_version`.
        auth: All but ``none`` turn authentication and authorization on. ``token``: the superuser's token is made anew.
            ``oauth2``: tokens that an issuer signs with its private key, for the lab's audience, with the role in a
            claim; `Lab.access_token` makes them. ``tls``: a client certificate of the lab's own authority, without
            which no connection is made.
        listeners: Ports for plain text, for TLS, or for both.
        hosts: ``distinct`` puts broker N on 127.0.0.N, on the same ports, as namespace isolation policies match hosts
            and one port for TLS is that of all. Linux only: elsewhere 127.0.0.1 is the only address of the loopback
            interface.
        advertised: ``name`` has brokers list themselves under names that nobody else can resolve, as behind a proxy.
            The binary protocol stays at their addresses.
        base_port: The first of the ports to use; None takes free ones.
        coordinators: How many transaction coordinators the cluster has.
        bookies: How many bookies; each topic's ledgers are on one, unless the brokers' settings say otherwise.
        cluster: Name of the cluster.
        configuration_store: ``host:port`` of the store of tenants and namespaces, as `Lab.configuration_store` gives it
            for another lab whose cluster has another name, to have two clusters that replicate; None: its own.
        link_port: Port of a `lab.link.Link`, by which other clusters reach the only broker: its listener ``link``.
        broker_heap_mb: Heap of each broker at most; of direct memory it has half as much. With the default of both, one
            that has 10,000 topics and consumers ends with an OutOfDirectMemoryError as soon as it writes its metrics.
        broker_settings: More settings for ``broker.conf``; they win over the lab's own.
        bookie_settings: Likewise for the bookies'.
        zookeeper_settings: Likewise for ZooKeeper's.
        tied: The processes are killed when the thread that started them ends, even by SIGKILL (Linux only).
    """

    name: str
    brokers: int = 3
    pulsar_version: str = VERSIONS[0]
    broker_versions: Mapping[int, str] = {}
    auth: Auth = "none"
    listeners: Listeners = "plain"
    hosts: Hosts = "same"
    advertised: Advertised = "address"
    base_port: int | None = None
    coordinators: int = 16
    bookies: int = 1
    cluster: str = CLUSTER
    configuration_store: str | None = None
    link_port: int | None = None
    broker_heap_mb: int = 512
    broker_settings: Mapping[str, str] = {}
    bookie_settings: Mapping[str, str] = {}
    zookeeper_settings: Mapping[str, str] = {}
    tied: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise LabError(f"lab name {self.name!r}: use letters, digits, '.', '_' and '-' only")
        for version in self.versions:
            refuse_unprepared(version)
        if self.brokers < 1:
            raise LabError(f"a lab needs at least one broker, {self.brokers} were asked for")
        if self.link_port is not None and self.brokers > 1:
            raise LabError(f"a link leads to one broker, and {self.brokers} were asked for")
        if self.bookies < 1:
            raise LabError(f"a lab needs at least one bookie, {self.bookies} were asked for")
        if self.auth == "tls" and self.listeners != "tls":
            raise LabError("client certificates are asked for by TLS only: auth 'tls' needs listeners 'tls'")

    @property
    def versions(self) -> frozenset[str]:
        """Every version that it begins with."""
        return frozenset((self.pulsar_version, *self.broker_versions.values()))


class ProcessId(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for a later one with the same pid: the start time tells them apart."""

    pid: int
    started: str


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """ZooKeeper or a bookie.

    Attributes:
        name: ``zookeeper``, ``bookie``, ``bookie-2``...
        host: Address that it listens on.
        port: Port of its protocol.
        api_port: Port of a bookie's own admin API and metrics; None: it has none.
        process: Its process; None once it was ended on purpose.
    """

    name: str
    host: str
    port: int
    api_port: int | None = None
    process: ProcessId | None = None


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """One broker and where it listens; ``process`` is None once it was ended on purpose.

    Attributes:
        number: Counted from 1.
        host: Address that it listens on.
        service_port: Port of the binary protocol.
        web_port: Port of the admin API, by which the cluster lists it.
        tls: Whether these two ports speak TLS.
        service_port_tls: Port for TLS beside a plain `service_port`.
        web_port_tls: Port for TLS beside a plain `web_port`.
        advertised: Name by which the cluster lists it, in place of its address.
        pulsar_version: What it runs, or ran last.
        process: Its process.
    """

    number: int
    host: str
    service_port: int
    web_port: int
    tls: bool = False
    service_port_tls: int | None = None
    web_port_tls: int | None = None
    advertised: str | None = None
    pulsar_version: str = VERSIONS[0]
    process: ProcessId | None = None

    @property
    def name(self) -> str:
        """``broker-N``, also the stem of its log file and its configuration."""
        return f"broker-{self.number}"

    @property
    def broker_id(self) -> str:
        """``host:webport``, as the cluster itself names its brokers."""
        return f"{self.advertised or self.host}:{self.web_port}"

    @property
    def admin_url(self) -> str:
        """Address of its admin API."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.web_port}"

    @property
    def admin_url_tls(self) -> str | None:
        """Address of its admin API by TLS; None: it speaks none."""
        port = self.web_port if self.tls else self.web_port_tls
        return None if port is None else f"https://{self.host}:{port}"

    @property
    def service_address(self) -> str:
        """``host:port`` of the binary protocol."""
        return f"{self.host}:{self.service_port}"

    @property
    def service_address_tls(self) -> str | None:
        """``host:port`` of the binary protocol by TLS; None: it speaks none."""
        port = self.service_port if self.tls else self.service_port_tls
        return None if port is None else f"{self.host}:{port}"

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports that it listens on."""
        known = (self.service_port, self.web_port, self.service_port_tls, self.web_port_tls)
        return tuple(port for port in known if port is not None)


class LabState(msgspec.Struct, frozen=True, kw_only=True):
    """A lab as it stands in its state file."""

    spec: LabSpec
    zookeeper: Node
    bookies: tuple[Node, ...]
    brokers: tuple[Broker, ...]

    @property
    def parts(self) -> tuple[Node | Broker, ...]:
        """Every part, in the order in which they are stopped: a broker whose ZooKeeper went first hangs."""
        return (*self.brokers, *self.bookies, self.zookeeper)

    def part(self, name: str) -> Node | Broker:
        """The part of that name."""
        return next(part for part in self.parts if part.name == name)

    def with_process(self, name: str, process: ProcessId | None) -> "LabState":
        """The same lab, with that part's process started anew or (None) ended."""
        if name == self.zookeeper.name:
            return replace(self, zookeeper=replace(self.zookeeper, process=process))
        brokers = (replace(broker, process=process) if broker.name == name else broker for broker in self.brokers)
        bookies = (replace(bookie, process=process) if bookie.name == name else bookie for bookie in self.bookies)
        return replace(self, brokers=tuple(brokers), bookies=tuple(bookies))

    def with_version(self, name: str, pulsar_version: str) -> "LabState":
        """The same lab, with that broker on another version from its next start on."""
        brokers = (replace(each, pulsar_version=pulsar_version) if each.name == name else each for each in self.brokers)
        return replace(self, brokers=tuple(brokers))
