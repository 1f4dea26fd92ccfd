"""Groups of brokers: isolation policies with the namespaces, brokers and loads that they divide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.isolation import IsolationPolicy, Reach, allowed_brokers

if TYPE_CHECKING:
    from pulsar_steward.model.step import SetIsolation

ISOLATION_UNKNOWN = Unknown("the cluster's isolation policies, and the load of its brokers, are not known")


class LoadOfBroker(msgspec.Struct, frozen=True, kw_only=True):
    """Loaded topics of a broker by namespace, and its CPU usage in percent; None: not reported."""

    topics: dict[str, int] = {}
    cpu_percent: float | None = None


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as isolation policies divide it.

    Attributes:
        policies: The policies by name.
        loads: Every running broker (``host:webport``) with its load.
        namespaces: All namespaces (``tenant/namespace``), sorted.
    """

    policies: dict[str, IsolationPolicy] = {}
    loads: dict[str, LoadOfBroker] = {}
    namespaces: tuple[str, ...] = ()

    def after(self, change: SetIsolation) -> Isolation:
        """The cluster once a change is made; nothing is moved by it."""
        return msgspec.structs.replace(self, policies=change.made_in(self.policies))

    def claimed(self, *policies: IsolationPolicy | None) -> tuple[str, ...]:
        """Namespaces that one of these policies is about."""
        return tuple(
            name for name in self.namespaces if any(each is not None and each.claims(name) for each in policies)
        )

    def reach(self, change: SetIsolation) -> Reach:
        """Namespaces and running brokers that the former or the new policy matches."""
        policies = [each for each in (change.before, change.after) if each is not None]
        brokers = frozenset[str]().union(*(each.members(self.loads) for each in policies))
        return Reach(namespaces=self.claimed(*policies), brokers=tuple(sorted(brokers)))

    def allowed(self, namespace: str) -> tuple[str, ...] | None:
        """Running brokers that may own the namespace's bundles, sorted; None: every broker."""
        return allowed_brokers(self.policies, namespace, self.loads)

    def number_left(self, namespace: str) -> int:
        """Number of running brokers that may own the namespace's bundles."""
        allowed = self.allowed(namespace)
        return len(self.loads) if allowed is None else len(allowed)

    def elsewhere(self, name: str) -> tuple[str, str] | None:
        """A namespace of the policy with this name, and another policy that is about it too; None: there is none."""
        claimed = self.claimed(self.policies.get(name))
        others = ((other, each) for other, each in self.policies.items() if other != name)
        return next(((space, other) for other, each in others for space in claimed if each.claims(space)), None)

    def room(self, policy: IsolationPolicy) -> GroupLoad:
        """The load that a policy's primary brokers come to, once all bundles of its namespaces are on them."""
        group, claimed = policy.primaries(self.loads), frozenset(self.claimed(policy))
        topics, cpu = 0, 0.0
        silent = []
        for broker, load in self.loads.items():
            theirs = sum(number for name, number in load.topics.items() if name in claimed)
            every = sum(load.topics.values())
            carried, share = (every, 1.0) if broker in group else (theirs, theirs / every if every else 0.0)
            topics += carried
            if load.cpu_percent is None and share:
                silent.append(broker)
            cpu += share * (load.cpu_percent or 0.0)
        return GroupLoad(brokers=len(group), topics=topics, cpu=cpu, silent=tuple(sorted(silent)))


class GroupLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Topics and CPU, in percent of one broker, that a group of brokers has to carry.

    What other namespaces have on these brokers counts: it stays there until it is unloaded.
    """

    brokers: int
    topics: int
    cpu: float
    silent: tuple[str, ...]

    @property
    def topics_each(self) -> int:
        """Topics of a broker on average, rounded up."""
        return -(-self.topics // max(self.brokers, 1))

    @property
    def cpu_each(self) -> int:
        """CPU usage of a broker on average, in percent."""
        return int(self.cpu / max(self.brokers, 1))
