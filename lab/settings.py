"""The configuration files of the parts, filled in from the templates in ``config/``."""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

from lab.model import Broker, LabState, LogLevel, Node
from lab.ports import LOOPBACK

TEMPLATES = Path(__file__).with_name("config")
NIC_SPEED = "loadBalancerOverrideBrokerNicSpeedGbps"
DELAYED_TRACKER = "delayedDeliveryTrackerFactoryClassName"


def zookeeper(state: LabState, data: Path) -> str:
    """ZooKeeper's configuration; what the lab was asked for wins over the template."""
    text = _filled("zookeeper", data=data, zookeeper_port=state.zookeeper.port)
    return _written(parsed(text) | dict(state.spec.zookeeper_settings))


def bookie(state: LabState, node: Node, data: Path) -> str:
    """A bookie's configuration; what the lab was asked for wins over the template."""
    text = _filled(
        "bookie",
        data=data / node.name,
        bookie_port=node.port,
        zookeeper=zookeeper_address(state),
        loopback_interface="lo" if sys.platform.startswith("linux") else "lo0",
    )
    own = {} if node.api_port is None else {"httpServerPort": str(node.api_port)}
    return _written(parsed(text) | dict(state.spec.bookie_settings) | own)


def broker(state: LabState, broker: Broker, extra: Mapping[str, str]) -> str:
    """A broker's configuration; ``extra`` wins over the template, and what the lab was asked for over both."""
    text = _filled(
        "broker",
        zookeeper=zookeeper_address(state),
        configuration_store=configuration_store(state),
        cluster=state.spec.cluster,
        service_port=broker.service_port,
        web_port=broker.web_port,
        host=broker.host,
    )
    template = parsed(text)
    if broker.pulsar_version.startswith("2."):
        del template[DELAYED_TRACKER]  # indexes in buckets came with 3.0 (PIP-195)
    if broker.pulsar_version.startswith("3.0."):
        template[NIC_SPEED] = "1"  # it does not start where the network card tells no speed, as virtual ones do not
    settings = template | _listeners(broker, state.spec.link_port) | dict(extra) | dict(state.spec.broker_settings)
    return _written(settings)


def logging(level: LogLevel, *, counted: bool, pipe: Path | None = None) -> str:
    """A part's log configuration.

    Args:
        level: The lowest level that is logged.
        counted: Whether log lines are counted in its metrics, by level.
        pipe: A named pipe that every line is written to as well: the part waits for whoever reads it.
    """
    template = Template((TEMPLATES / "log4j2.xml").read_text(encoding="utf-8"))
    counting = '<Prometheus name="lines"/>' if counted else ""
    piping = f'<File name="pipe" fileName="{pipe}"><PatternLayout pattern="%d %p %c %m%n"/></File>' if pipe else ""
    return template.substitute(
        level=level,
        counting=counting,
        counted='<AppenderRef ref="lines"/>' if counted else "",
        piping=piping,
        piped='<AppenderRef ref="pipe"/>' if pipe else "",
    )


def hosts(names: Mapping[str, str]) -> str:
    """A file of hosts for brokers' Java, which then resolves nothing else: these names, and this machine's own."""
    known = {"localhost": LOOPBACK, socket.gethostname(): LOOPBACK, **names}
    return "".join(f"{address} {name}\n" for name, address in known.items())


def zookeeper_address(state: LabState) -> str:
    """``host:port`` of the metadata store."""
    return f"{state.zookeeper.host}:{state.zookeeper.port}"


def configuration_store(state: LabState) -> str:
    """``host:port`` of the store of tenants and namespaces, which several clusters may share."""
    return state.spec.configuration_store or zookeeper_address(state)


def parsed(text: str) -> dict[str, str]:
    """The settings in a ``key=value`` file."""
    lines = (line.partition("=") for line in text.splitlines() if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in lines}


LINK = "link"
"""Listener by which other clusters reach a broker that has a link."""


def _listeners(broker: Broker, link_port: int | None) -> dict[str, str]:
    """Settings of a broker that lists itself by a name, or has a link: its binary protocol stays where it is.

    The broker's own client resolves names by Netty, which does not read Java's file of hosts.
    """
    if broker.advertised is None and link_port is None:
        return {}
    by_tls = broker.service_address_tls
    spoken = [] if broker.tls else [f"internal:pulsar://{broker.service_address}"]
    spoken += [f"internal:pulsar+ssl://{by_tls}"] if by_tls else []
    spoken += [] if link_port is None else [f"{LINK}:pulsar://{LOOPBACK}:{link_port}"]
    return {
        "advertisedAddress": broker.advertised or broker.host,
        "advertisedListeners": ",".join(spoken),
        "internalListenerName": "internal",
    }


def _written(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _filled(name: str, **values: object) -> str:
    template = Template((TEMPLATES / f"{name}.conf").read_text(encoding="utf-8"))
    return template.substitute(values)
