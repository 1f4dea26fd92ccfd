"""Plan of a new lab, or of one broker more: names, addresses and ports, before anything is started."""

from collections.abc import Sequence

from msgspec.structs import replace

from lab.model import Broker, LabSpec, LabState, Node
from lab.ports import LOOPBACK, Ports, require_free

MOST_HOSTS = 20
"""Brokers with an address or a name of their own for which a lab is prepared."""


def new_state(spec: LabSpec) -> LabState:
    """A lab to be: nothing of it runs yet.

    Raises:
        PortTakenError: A port that was asked for is in use.
    """
    ports = Ports(spec.base_port)
    return LabState(
        spec=spec,
        zookeeper=Node(name="zookeeper", host=LOOPBACK, port=ports.take(LOOPBACK, "ZooKeeper")),
        bookies=tuple(_bookie(number, spec, ports) for number in range(1, spec.bookies + 1)),
        brokers=_brokers(range(1, spec.brokers + 1), spec, ports),
    )


def with_one_more_broker(state: LabState) -> LabState:
    """The same lab with a broker that has yet to be started."""
    last, spec = state.brokers[-1], state.spec
    if spec.hosts == "distinct":
        added = _at(last.number + 1, spec, last.ports)
        for port in added.ports:
            require_free(added.host, port, added.name)
    else:
        (added,) = _brokers([last.number + 1], spec, Ports(spec.base_port, used_by(state)))
    return replace(state, brokers=(*state.brokers, added))


def possible_hosts(spec: LabSpec) -> tuple[str, ...]:
    """Addresses of the lab's brokers, also of those that it may get later."""
    return tuple(dict.fromkeys(_host(number, spec) for number in range(1, MOST_HOSTS + 1)))


def possible_names(spec: LabSpec) -> dict[str, str]:
    """Names under which the lab's brokers list themselves, those of later ones too, with the address of each."""
    return {name: _host(number, spec) for number in range(1, MOST_HOSTS + 1) if (name := _name(number, spec))}


def used_by(state: LabState) -> frozenset[int]:
    """The lab's ports, those of ended brokers included."""
    of_brokers = (port for broker in state.brokers for port in broker.ports)
    of_bookies = (port for bookie in state.bookies for port in (bookie.port, bookie.api_port) if port is not None)
    return frozenset((state.zookeeper.port, *of_bookies, *of_brokers))


def _bookie(number: int, spec: LabSpec, ports: Ports) -> Node:
    name = "bookie" if number == 1 else f"bookie-{number}"
    answers = spec.bookie_settings.get("httpServerEnabled") == "true"
    return Node(
        name=name,
        host=LOOPBACK,
        port=ports.take(LOOPBACK, name),
        api_port=ports.take(LOOPBACK, f"the own API of {name}") if answers else None,
    )


def _brokers(numbers: Sequence[int], spec: LabSpec, ports: Ports) -> tuple[Broker, ...]:
    kinds = ["service", "web"] if spec.listeners != "both" else ["service", "web", "service TLS", "web TLS"]
    if spec.hosts == "distinct":  # the same ports for all of them, as brokers on machines of their own have
        hosts = [_host(number, spec) for number in numbers]
        shared = [ports.take_on_all(hosts, f"the brokers' {kind} port") for kind in kinds]
        return tuple(_at(number, spec, shared) for number in numbers)
    return tuple(
        _at(number, spec, [ports.take(LOOPBACK, f"broker {number}'s {kind} port") for kind in kinds])
        for number in numbers
    )


def _at(number: int, spec: LabSpec, taken: Sequence[int]) -> Broker:
    service_port, web_port, *for_tls = taken
    service_port_tls, web_port_tls = for_tls or (None, None)
    return Broker(
        number=number,
        host=_host(number, spec),
        service_port=service_port,
        web_port=web_port,
        tls=spec.listeners == "tls",
        service_port_tls=service_port_tls,
        web_port_tls=web_port_tls,
        advertised=_name(number, spec),
        pulsar_version=spec.broker_versions.get(number, spec.pulsar_version),
    )


def _host(number: int, spec: LabSpec) -> str:
    return LOOPBACK if spec.hosts == "same" else f"127.0.0.{number}"


def _name(number: int, spec: LabSpec) -> str | None:
    """RFC 2606 keeps ``.invalid`` from ever being a name that others could resolve."""
    return None if spec.advertised == "address" else f"broker-{number}.lab.invalid"
