"""What a labelled fault is: trouble made on purpose, and which findings it must lead to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from lab.cluster import Lab
from lab.simulator import ClusterSpec


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that has to be there.

    Attributes:
        check_id: Of the check that finds it.
        subject: A regular expression found anywhere in the finding's subject; any subject where empty.
    """

    check_id: str
    subject: str = ""


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
    """

    name: str
    about: str
    expected: tuple[Expected, ...] = ()
    allowed: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    observations: int = 1
    policy: dict[str, object] = field(default_factory=dict)


def _nothing(_lab: Lab) -> AbstractContextManager[None]:
    return nullcontext()


def _no_change(_lab: Lab, _observed: int) -> None:
    """Nothing happens between two observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFault(Fault):
    """Trouble on real brokers, made with clients and the admin API.

    Attributes:
        made: Makes it for a ``with`` block, waits until the brokers show it, and clears it away at the end.
        between: Told the lab and how many observations are done; what happens before the next one.
        settings: Of ``broker.conf``, by name; faults with the same settings share a lab.
        own_lab: Whether it needs brokers that nothing was done to, or leaves traces in what they count since their
            start.
    """

    made: Callable[[Lab], AbstractContextManager[None]] = _nothing
    between: Callable[[Lab, int], None] = _no_change
    settings: tuple[tuple[str, str], ...] = ()
    own_lab: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFault(Fault):
    """Trouble on a made-up cluster, where real brokers cannot be brought to it here.

    Attributes:
        specs: The cluster, one for each observation; the last one stands for all further ones.
        why: Why it is not made for real.
        minutes_apart: Between two observations, by the time that the snapshots say they were taken at.
    """

    specs: tuple[ClusterSpec, ...]
    why: str
    minutes_apart: int = 10
