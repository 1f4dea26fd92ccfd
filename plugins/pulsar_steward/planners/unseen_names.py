"""Names in a policy that match nothing in the cluster: a list without effect must not look effective."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pulsar_steward.model.pulsar_versions import POLICY_KEY, is_vouched_for
from pulsar_steward.model.topics import PARTITION_END
from pulsar_steward.model.units import named
from pulsar_steward.policy.layers import NAMESPACES as OF_NAMESPACES
from pulsar_steward.policy.layers import TENANTS as OF_TENANTS
from pulsar_steward.policy.names import expression

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot

SNAPSHOTS = 4
"""Number of snapshots that are searched, usually one hour: topics are unloaded, and brokers restart."""


class UnseenNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of one policy key that match nothing in the last snapshots.

    Attributes:
        key: The policy key.
        names: The names or patterns, sorted.
        kind: Kind of the named things, such as ``namespace``.
        snapshots: Number of snapshots that were searched.
        unread: Data missing in the newest snapshot: a partial one proves nothing absent.
    """

    key: str
    names: tuple[str, ...]
    kind: str
    snapshots: int
    unread: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The names in a sentence."""
        looked = "the last snapshot" if self.snapshots == 1 else f"the last {self.snapshots} snapshots"
        partial = f" ({named(self.unread)} could not be read)" if self.unread else ""
        return f"{self.key}: no {self.kind} in {looked}{partial} is called {named(self.names)}: that has no effect."


Lookup = Callable[["Snapshot", Collection[str]], set[str]]
"""Function from a snapshot and names to the names that match something in it."""


class _Names(NamedTuple):
    """Names of one key of the policy, what kind of thing they name, and how to find those that match something."""

    kind: str
    of: Callable[[Policy], Iterable[str]]
    lookup: Lookup


def unseen_names(snapshot: Snapshot, policy: Policy) -> tuple[UnseenNames, ...]:
    """The names of a cluster's policy that match nothing in a snapshot or the few before it, by key.

    Args:
        snapshot: The cluster's newest snapshot.
        policy: The cluster's policy.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    return tuple(each for key, names in NAMES.items() if (each := _unseen(snapshot, policy, key, names)) is not None)


def names_in(policy: Policy) -> dict[str, frozenset[str]]:
    """The names of a cluster's policy that can be searched, by key; keys without names are left out."""
    return {key: names for key, kind in NAMES.items() if (names := frozenset(kind.of(policy)))}


def _unseen(snapshot: Snapshot, policy: Policy, key: str, names: _Names) -> UnseenNames | None:
    left, looked = set(names.of(policy)), 0
    if not left:
        return None
    left -= names.lookup(snapshot, left)
    for looked, each in enumerate(snapshot.earlier(SNAPSHOTS - 1) if left else (), start=1):  # noqa: B007 - counts them
        left -= names.lookup(each, left)
        if not left:
            break
    if not left:
        return None
    return UnseenNames(
        key=key, names=tuple(sorted(left)), kind=names.kind, snapshots=1 + looked, unread=snapshot.meta().unread
    )


def _versions(snapshot: Snapshot, names: Collection[str]) -> set[str]:
    told = {row.pulsar_version for row in snapshot.brokers() if row.pulsar_version}
    return {name for name in names if any(is_vouched_for(version, [name]) for version in told)}


class _Seen(msgspec.Struct, frozen=True):
    name: str


def _values(query: str, end: str = "") -> Lookup:
    """Makes a lookup of names that match a `value` of a query; `end` is a regular expression for text after a name."""

    def lookup(snapshot: Snapshot, names: Collection[str]) -> set[str]:
        wanted: dict[str, Any] = {}
        for number, name in enumerate(names):
            wanted |= {f"name_{number}": name, f"pattern_{number}": f"^(?s:{expression(name)}){end}$"}
        # One query for each name, as a pattern that is the same for all rows is compiled only once.
        each = (
            f"select $name_{number} as name where exists (from seen where regexp_matches(value, $pattern_{number}))"
            for number in range(len(names))
        )
        rows = snapshot.select(f"with seen as materialized ({query}) {' union all '.join(each)}", _Seen, **wanted)
        return {row.name for row in rows}

    return lookup


_NAMESPACES = "select namespace as value from namespaces"

NAMES: Mapping[str, _Names] = {
    "apply.protected_namespaces": _Names(
        "namespace", lambda policy: policy.apply.protected_namespaces, _values(_NAMESPACES)
    ),
    "brokers.draining": _Names(
        "broker", lambda policy: policy.brokers.draining, _values("select broker as value from brokers")
    ),
    "subscriptions.protected_topics": _Names(
        "loaded topic",
        lambda policy: policy.subscriptions.protected_topics,
        _values("select topic as value from topics", f"({PARTITION_END})?"),
    ),
    "subscriptions.protected_subscriptions": _Names(
        "subscription of a loaded topic",
        lambda policy: policy.subscriptions.protected_subscriptions,
        _values("select distinct subscription as value from subscriptions"),
    ),
    POLICY_KEY: _Names("broker's version", lambda policy: policy.guards.versions_tried_here, _versions),
    OF_TENANTS: _Names("tenant with a namespace", lambda policy: policy.tenants, _values(_NAMESPACES, "/.*")),
    OF_NAMESPACES: _Names("namespace", lambda policy: policy.namespaces, _values(_NAMESPACES)),
}
"""Keys whose names are searched, in the order in which they are reported."""
