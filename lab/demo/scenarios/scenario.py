"""One trouble that the demo makes, how it is shown, and when it counts as healed."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from lab.cluster import Lab
from lab.simulator import ClusterSpec
from lab.target import PulsarTarget

Shown = dict[str, int]
"""Counts by broker, bundle or setting."""


def _as_described(_target: PulsarTarget) -> AbstractContextManager[None]:
    """The simulated cluster is broken from the start."""
    return nullcontext()


def _nothing_more(_target: PulsarTarget) -> dict[str, Any]:
    """No section depends on the cluster."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One trouble, on a real cluster and on a simulated one.

    Attributes:
        name: As ``make demo SCENARIO=...`` has it.
        trouble: What is done to the cluster, as a stage of the demo.
        counted: What `shown` counts.
        made: Makes it on a real lab for a ``with`` block, and returns once the brokers show it.
        spec: The simulated cluster.
        made_up: Makes it there, for a ``with`` block, where `spec` does not describe it already.
        shown: Counts what was broken, by the brokers' own word.
        healed: Whether it is well now, from what was shown before and after.
        observations: Snapshots until something is proposed.
        policy: Sections of the cluster's policy that are not the default, as a lab is small.
        marked: Sections that name something of the cluster, such as a broker.
    """

    name: str
    trouble: str
    counted: str
    made: Callable[[Lab], AbstractContextManager[None]]
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    made_up: Callable[[PulsarTarget], AbstractContextManager[None]] = _as_described
    shown: Callable[[PulsarTarget], Shown]
    healed: Callable[[Mapping[str, int], Mapping[str, int]], bool]
    observations: int = 1
    policy: dict[str, Any] = field(default_factory=dict)
    marked: Callable[[PulsarTarget], dict[str, Any]] = _nothing_more

    def broken(self, target: PulsarTarget) -> AbstractContextManager[None]:
        """Makes the trouble for a ``with`` block."""
        return self.made(target) if isinstance(target, Lab) else self.made_up(target)

    def policy_on(self, target: PulsarTarget) -> dict[str, Any]:
        """All sections of the policy that are not the default."""
        return self.policy | self.marked(target)
