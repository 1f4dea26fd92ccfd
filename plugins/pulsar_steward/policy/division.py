"""Division of a cluster's namespaces by the policy values in force for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pulsar_steward.policy.schema import Policy


@dataclass(frozen=True)
class Division:
    """Parts of a cluster's namespaces, each with one policy.

    Attributes:
        policies: The policy of each part. The first applies to everything not in `tenants` or `namespaces`.
        tenants: Number of the part of a tenant's namespaces.
        namespaces: Number of the part of a single namespace (``tenant/namespace``); it takes precedence over its
            tenant's.
    """

    policies: tuple[Policy, ...]
    tenants: dict[str, int]
    namespaces: dict[str, int]

    def part_of(self, namespace: str) -> int:
        """Part of a namespace."""
        tenant = namespace.partition("/")[0]
        return self.namespaces.get(namespace, self.tenants.get(tenant, 0))

    def names(self, part: int) -> list[str]:
        """Tenants and namespaces that belong to a part by name."""
        return [name for names in (self.tenants, self.namespaces) for name, each in names.items() if each == part]


def divided(policy: Policy, sections: Collection[str]) -> Division:
    """Divides the namespaces of a cluster by the values of these sections; namespaces with equal values form one part.

    Args:
        policy: The cluster's policy.
        sections: The sections that a check reads.
    """
    parts = {_key(policy, sections): (0, policy)}

    def part_of(name: str) -> int:
        own = policy.for_namespace(name)
        return parts.setdefault(_key(own, sections), (len(parts), own))[0]

    tenants = {name: part_of(name) for name in _set_apart(policy.tenants.items(), sections)}
    namespaces = {name: part_of(name) for name in _set_apart(policy.namespaces.items(), sections)}
    return Division(tuple(own for _, own in parts.values()), tenants, namespaces)


def _set_apart(layers: Iterable[tuple[str, Collection[str]]], sections: Collection[str]) -> list[str]:
    return sorted(name for name, overridden in layers if not set(sections).isdisjoint(overridden))


def _key(policy: Policy, sections: Collection[str]) -> tuple[str, ...]:
    return tuple(getattr(policy, section).model_dump_json() for section in sections)
