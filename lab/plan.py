"""Plan of a new lab, or of one broker more: names, addresses and ports, before anything is started."""

from msgspec.structs import replace

from lab.model import Broker, LabSpec, LabState, Node
from lab.ports import LOOPBACK, Ports

MOST_HOSTS = 20
"""Brokers with an address of their own for which a lab's certificate is made."""


def new_state(spec: LabSpec) -> LabState:
    """A lab to be: nothing of it runs yet.

    Raises:
        PortTakenError: A port that was asked for is in use.
    """
    ports = Ports(spec.base_port)
    return LabState(
        spec=spec,
        zookeeper=Node(name="zookeeper", host=LOOPBACK, port=ports.take(LOOPBACK, "ZooKeeper")),
        bookie=Node(name="bookie", host=LOOPBACK, port=ports.take(LOOPBACK, "the bookie")),
        brokers=tuple(_broker(number, spec, ports) for number in range(1, spec.brokers + 1)),
    )


def with_one_more_broker(state: LabState) -> LabState:
    """The same lab with a broker that has yet to be started."""
    ports = Ports(state.spec.base_port, used_by(state))
    added = _broker(state.brokers[-1].number + 1, state.spec, ports)
    return replace(state, brokers=(*state.brokers, added))


def possible_hosts(spec: LabSpec) -> tuple[str, ...]:
    """Addresses of the lab's brokers, also of those that it may get later."""
    return (LOOPBACK,) if spec.hosts == "same" else tuple(f"127.0.0.{number}" for number in range(1, MOST_HOSTS + 1))


def used_by(state: LabState) -> frozenset[int]:
    """The lab's ports, those of ended brokers included."""
    of_brokers = (port for broker in state.brokers for port in (broker.service_port, broker.web_port))
    return frozenset((state.zookeeper.port, state.bookie.port, *of_brokers))


def _broker(number: int, spec: LabSpec, ports: Ports) -> Broker:
    host = LOOPBACK if spec.hosts == "same" else f"127.0.0.{number}"
    service_port, web_port = (ports.take(host, f"broker {number}'s {kind} port") for kind in ("service", "web"))
    return Broker(number=number, host=host, service_port=service_port, web_port=web_port, tls=spec.auth == "tls")
