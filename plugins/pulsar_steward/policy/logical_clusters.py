"""Section of logical clusters: several clusters that serve as one, and what holds for placing namespaces."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from pulsar_steward.model.section import Section
from pulsar_steward.policy.names import TENANT, ClusterName

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def _tenant(text: str) -> str:
    if not re.fullmatch(TENANT, text):
        raise ValueError(f"{text!r} is no tenant; there are no patterns of tenants")
    return text


Tenant = Annotated[str, AfterValidator(_tenant)]


class LogicalClusterPolicy(Section):
    """One logical cluster; names of clusters are those in Steward."""

    primary: ClusterName = Field(description="the member whose address clients know")
    extensions: tuple[ClusterName, ...] = Field((), description="the other members")
    regions: dict[ClusterName, Annotated[str, Field(min_length=1)]] = Field(
        {}, description="region of each member, of all or of none; namespaces stay in theirs"
    )
    together: tuple[tuple[Tenant, ...], ...] = Field(
        (), description="groups of tenants whose namespaces have to be at one member"
    )

    @property
    def members(self) -> tuple[str, ...]:
        """All members, the primary first."""
        return (self.primary, *self.extensions)

    @model_validator(mode="after")
    def _holds_up(self) -> Self:
        _require_once([name.casefold() for name in self.members], "is a member twice")
        _require_once([tenant for group in self.together for tenant in group], "is in `together` twice")
        if self.regions and self.regions.keys() != set(self.members):
            strange = sorted(self.regions.keys() ^ set(self.members))
            raise ValueError(f"regions: give one for each member and for no other cluster, or none; see {strange[0]}")
        return self


class LogicalClustersPolicy(Section):
    """Clusters that serve as one: for `steward whatif --logical NAME`, and of Pulsar for `apply.members_at_once`."""

    named: dict[ClusterName, LogicalClusterPolicy] = Field({}, description="logical clusters, by name")

    def beside(self, names: Collection[str]) -> frozenset[str]:
        """The other members of a cluster's logical cluster; empty: it is in none.

        Args:
            names: All names of the cluster; upper and lower case are the same.
        """
        own = {name.casefold() for name in names}
        members = ({name.casefold(): name for name in each.members} for each in self.named.values())
        return frozenset(each[name] for each in members if own & each.keys() for name in each.keys() - own)

    @model_validator(mode="after")
    def _share_no_member(self) -> Self:
        names = [name.casefold() for each in self.named.values() for name in each.members]
        _require_once(names, "is in two logical clusters")
        return self


def _require_once(names: Sequence[str], words: str) -> None:
    """Checks that no name is there twice.

    Raises:
        ValueError: If one is.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{name} {words}")
