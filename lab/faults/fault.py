"""Labelled faults: trouble made on purpose, with the findings that it must lead to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.cluster import Lab
from lab.faults.clients.work import BATCHED_BY_DEFAULT, Language
from lab.kafka.made_up import KafkaSpec
from lab.simulator import ClusterSpec, ServerSpec

if TYPE_CHECKING:
    from lab.kafka.cluster import KafkaLab


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that has to be there.

    Attributes:
        check_id: Of the check that finds it.
        subject: A regular expression found anywhere in the finding's subject; any subject where empty.
        evidence: A regular expression found anywhere in its evidence, where that has to name something.
    """

    check_id: str
    subject: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What somebody reported in public, and the right answer to it, written down before the product was asked.

    Attributes:
        address: ``owner/repository#number``, or an address.
        right: What is the matter, who or what is to be named, and what helps.
        never: Regular expressions of what would make it worse, found in no evidence of the fault's findings and in no
            step that is proposed.
        remedy: Regular expressions, each of which is found in a step that is proposed; in this order, where two are in
            one plan.
        unseen: Of a report written down by somebody who does not know the checks, the verdict of the first run, before
            anything was mended for it; else empty.
    """

    address: str
    right: str
    never: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    unseen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A cluster in a state that is labelled with what must be found in it, and nothing else may be.

    Attributes:
        name: ``piled-up-coordinators``; unique.
        about: The trouble in a sentence.
        expected: What must be found, at warning or critical. Empty: a healthy cluster.
        allowed: Checks that may report it as well, each with the reason why that is no mistake.
        quick: Whether it is among the quick ones, which `make test-all` runs (`make accuracy` runs all).
        observations: Snapshots that are taken one after another; only the last one is judged.
        policy: Sections of the policy that differ from the defaults, as its file would have them; not for moving a
            threshold to where the fault happens to be.
        twin_of: Of a healthy one, the names of the troubles that it looks like.
        report: The report that it is made from; None: one of our own.
    """

    name: str
    about: str
    expected: tuple[Expected, ...] = ()
    allowed: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    observations: int = 1
    policy: dict[str, object] = field(default_factory=dict)
    twin_of: tuple[str, ...] = ()
    report: Report | None = None


Change = Callable[[int], None]
"""A change of the cluster before a look, from the number of looks before it."""

Making = AbstractContextManager[Any]
"""Makes a fault, waits until brokers show it, and clears it away at the end.

It gives None, or a `Change` that is called before each look, the first one included.
"""


def _nothing(_lab: Lab) -> Making:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFault(Fault):
    """Trouble on real brokers, made with clients and the admin API.

    Those that can are made side by side in one lab, each in a namespace of its own.

    Attributes:
        made: Makes it for a ``with`` block.
        settings: Of ``broker.conf``, by name; faults with the same settings share a lab.
        own_lab: Whether it needs brokers that nothing was done to, or leaves traces in what they count since their
            start.
        alone: Whether it concerns the whole cluster, so that no other fault may be there at the same time.
        among: The name of the company it needs: those of one name are made side by side, and no others with them.
        client: The library that its messages are sent and taken with; None: there are none.
        batched: Whether its producers batch; None: as that library does by default.
        bookies: How many bookies its lab has, which is its own unless that is one.
        bookie_settings: Of each bookie of its lab, which is its own then.
    """

    made: Callable[[Lab], Making] = _nothing
    settings: tuple[tuple[str, str], ...] = ()
    own_lab: bool = False
    alone: bool = False
    among: str = ""
    client: Language | None = None
    batched: bool | None = None
    bookies: int = 1
    bookie_settings: tuple[tuple[str, str], ...] = ()

    @property
    def namespace(self) -> str:
        """Namespace in which it is made: a finding about anything in there is its own."""
        return f"public/{self.name}"

    @property
    def batches(self) -> bool | None:
        """True if its producers batch; None: it has none."""
        if self.client is None:
            return None
        return BATCHED_BY_DEFAULT[self.client] if self.batched is None else self.batched


@dataclass(frozen=True, slots=True, kw_only=True)
class RealKafkaFault(Fault):
    """Trouble on real brokers of Kafka, one after the other in one lab.

    Attributes:
        made: Makes it for a ``with`` block, and leaves the cluster as it was.
    """

    made: Callable[["KafkaLab"], Making]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpFault(Fault):
    """Trouble on a made-up cluster, where real brokers cannot be brought to it here.

    Attributes:
        why: Why it is not made for real.
    """

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFault(MadeUpFault):
    """Trouble on made-up brokers of Pulsar.

    Attributes:
        specs: The cluster, one for each observation; the last one stands for all further ones.
        servers: Bookies and ZooKeeper whose own metrics `collect.metrics_urls` names, for each observation: the same
            ones in the same order, with other figures; the last row stands for all further ones.
        minutes_apart: Between two observations, by the time that the snapshots say they were taken at.
    """

    specs: tuple[ClusterSpec, ...]
    servers: tuple[tuple[ServerSpec, ...], ...] = ((),)
    minutes_apart: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedKafkaFault(MadeUpFault):
    """Trouble on a made-up Kafka cluster, which `spec` is."""

    spec: KafkaSpec
