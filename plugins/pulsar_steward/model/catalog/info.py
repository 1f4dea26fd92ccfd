"""What is known of a check in words."""

from __future__ import annotations

import enum

import msgspec


class Scope(enum.Enum):
    """What a check has to see to judge one subject; so, how far down the policy may say other thresholds for it."""

    CLUSTER = "cluster"
    """More than one namespace: brokers, the cluster, or a comparison of namespaces. One set of thresholds a cluster."""
    NAMESPACE = "namespace"
    """One namespace, beside what brokers are and are set to. Each tenant and namespace may have its own thresholds."""


class CheckInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One check in words.

    Attributes:
        check_id: The id that findings carry.
        title: The trouble in a few words.
        advice: What to do about it, one step a line.
        source: Where this was learned.
        remedied_by: The planner that can propose a remedy; None where there is none.
        scope: What it has to see to judge one subject.
        reads: Sections of the policy that it looks at beside its own, and that namespaces may set apart.
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    remedied_by: str | None = None
    scope: Scope = Scope.CLUSTER
    reads: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The section of the policy with its thresholds."""
        return self.check_id.replace("-", "_")

    @property
    def sections(self) -> tuple[str, ...]:
        """Every section that its judgement of a namespace rests on."""
        return (self.section, *self.reads)
