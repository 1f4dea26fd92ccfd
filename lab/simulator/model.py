"""The things in a made-up cluster, frozen: a change replaces one by another."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lab.simulator.spec import TopicSpec

HEARTBEAT_RANGE = "0x00000000_0xffffffff"
TC_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
LOAD_BALANCER_TOPICS = (
    "persistent://pulsar/system/loadbalancer-service-unit-state",
    "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
)
"""Where ``extensible`` brokers keep who owns what, and how busy they are.

The leader serves them, whoever owns their bundle.
"""


class Health(Enum):
    """State of a broker's process and session."""

    UP = "up"
    DEAD = "dead"  # killed; its metadata session has not expired, so it is listed and refuses connections
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker; ``broker_id`` is ``host:webport``."""

    number: int
    port: int
    started_ms: int
    host: str = "127.0.0.1"
    health: Health = Health.UP

    @property
    def broker_id(self) -> str:
        """Id of the broker in the API."""
        return f"{self.host}:{self.port}"

    @property
    def admin_url(self) -> str:
        """Address of its admin API."""
        return f"http://{self.broker_id}"

    @property
    def service_url(self) -> str:
        """Address for clients; the host does not exist, as nothing here speaks that protocol."""
        return f"pulsar://broker-{self.number}.simulated.invalid:6650"

    @property
    def heartbeat_namespaces(self) -> tuple[str, str]:
        """The two namespaces that every broker keeps for its own health check."""
        return f"pulsar/{self.broker_id}", f"pulsar/local/{self.broker_id}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic or one partition, by its full name; ``spec`` is shared with all partitions like it."""

    name: str
    position: int
    spec: TopicSpec


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace's bounds and policies; what is not in ``policies`` has never been set."""

    name: str
    boundaries: tuple[int, ...]
    policies: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as a broker received it; `only_looks`: with the token that may do nothing else."""

    method: str
    broker_id: str
    path: str
    query: str
    had_authorization: bool
    body: bytes = b""
    only_looks: bool = False

    @property
    def writes(self) -> bool:
        """True if the method changes something."""
        return self.method not in {"GET", "HEAD", "OPTIONS"}
