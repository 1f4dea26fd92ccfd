"""Namespace isolation policies: the brokers that may own a namespace's bundles, by the brokers' own rules.

Read in apache/pulsar (`NamespaceIsolationPolicies`, `NamespaceIsolationPolicyImpl`, `LoadManagerShared`): a pattern
has to match a broker's whole host, without its port. A namespace with a policy gets the primary brokers; it gets the
secondary ones too while fewer primaries than `min_limit` are active. A namespace without a policy gets the brokers that
are primary for no policy. If brokers' behaviour is uncertain, fewer brokers are allowed here, never more. No policy is
about the namespaces in which brokers check themselves, whatever its patterns match: each stays with its broker.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from pulsar_steward.decoding import convert
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.bundles import is_heartbeat
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class FailoverLimits(msgspec.Struct, frozen=True):
    """Limits of a failover; brokers take and tell numbers as text."""

    min_limit: str | int = "0"
    usage_threshold: str | int = "100"


class Failover(msgspec.Struct, frozen=True):
    """When the secondary brokers serve too; brokers know the type ``min_available`` alone."""

    parameters: FailoverLimits = FailoverLimits()
    policy_type: str = "min_available"


class IsolationPolicy(msgspec.Struct, frozen=True):
    """One policy as the admin API has it; every text is a regular expression."""

    namespaces: tuple[str, ...] = ()
    primary: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    auto_failover_policy: Failover | None = None

    @property
    def least_primaries(self) -> int:
        """Number of primary brokers below which the secondary brokers serve too."""
        return int(self.auto_failover_policy.parameters.min_limit) if self.auto_failover_policy else 0

    def claims(self, namespace: str) -> bool:
        """True if it is, or may be, about a namespace (``tenant/namespace``); False for brokers' heartbeats."""
        return _matches(self.namespaces, namespace, unreadable=True) and not is_heartbeat(namespace)

    def primaries(self, brokers: Iterable[str]) -> frozenset[str]:
        """Those of these brokers (``host:webport``) that are primary for it."""
        return _of_hosts(self.primary, brokers)

    def members(self, brokers: Iterable[str]) -> frozenset[str]:
        """Those of these brokers (``host:webport``) that are primary or secondary for it."""
        return _of_hosts((*self.primary, *self.secondary), brokers)

    def is_as(self, other: IsolationPolicy | None) -> bool:
        """True if another policy does the same, in whatever order its patterns are."""
        if other is None:
            return False
        one, two = (
            (set(each.namespaces), set(each.primary), set(each.secondary), each.auto_failover_policy)
            for each in (self, other)
        )
        return one == two


class Reach(msgspec.Struct, frozen=True):
    """Namespaces (``tenant/namespace``) and running brokers (``host:webport``) that policies match, each sorted."""

    namespaces: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()

    def differences(self, now: Reach) -> str:
        """What matches by now and did not, and what matches no more, with names; empty: the same matches."""
        told = []
        for thing, then, present in (
            ("namespace", self.namespaces, now.namespaces),
            ("broker", self.brokers, now.brokers),
        ):
            if come := sorted(set(present).difference(then)):
                told.append(f"{counted(len(come), f'more {thing} matches', f'more {thing}s match')}: {named(come)}")
            if gone := sorted(set(then).difference(present)):
                no_more = counted(len(gone), f"{thing} matches", f"{thing}s match")
                told.append(f"{no_more} no more: {named(gone)}")
        return "; ".join(told)


def policies_in_words(*policies: IsolationPolicy | None) -> tuple[str, ...]:
    """Policies as texts, ``none`` where there is none; two that differ never read alike."""
    different = len(set(policies))
    for form in (_in_brief, _with_threshold, _as_json):
        words = tuple("none" if policy is None else form(policy) for policy in policies)
        if len(set(words)) == different:
            break
    return words


def policy_in_words(policy: IsolationPolicy | None) -> str:
    """One policy as text; ``none`` where there is none."""
    return policies_in_words(policy)[0]


def in_brief(policy: IsolationPolicy | None) -> str:
    """A policy in at most 20 words: of many patterns the first one, and how many more there are."""
    if policy is None:
        return "none"
    short = [_first_of(each) for each in (policy.namespaces, policy.primary, policy.secondary)]
    return _in_brief(msgspec.structs.replace(policy, namespaces=short[0], primary=short[1], secondary=short[2]))


def difference_in_brief(before: IsolationPolicy, after: IsolationPolicy) -> str:
    """What differs between two policies in at most 13 words: patterns that come (+) and go (-), and the minimum."""
    told = [
        _patterns_in_brief(name, getattr(before, name), getattr(after, name))
        for name in ("namespaces", "primary", "secondary")
    ]
    if before.least_primaries != after.least_primaries:
        told.append(f"at least {before.least_primaries:,} → {after.least_primaries:,}")
    return ", ".join(filter(None, told)) or "the same patterns, another order or failover"


def _patterns_in_brief(name: str, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """``primary +10.0.2.* -10.0.1.*``, of several patterns their number: ``primary +2``; empty: the same patterns."""
    signed = (("+", set(after).difference(before)), ("-", set(before).difference(after)))
    told = [f"{sign}{len(some) if len(some) > 1 else _first_of([*some])[0]}" for sign, some in signed if some]
    return f"{name} {' '.join(told)}" if told else ""


def _first_of(patterns: Sequence[str]) -> tuple[str, ...]:
    """One pattern, cut if it is very long, and the number of further ones."""
    first = tuple(each if len(each) <= MAX_PATTERN else f"{each[:MAX_PATTERN]}…" for each in patterns[:1])
    more = len(patterns) - 1
    return (f"{first[0]} and {more:,} more",) if more > 0 else first


def _in_brief(policy: IsolationPolicy) -> str:
    """Patterns and minimum: ``shop/.* on 10.0.1.* (2 at least)``."""
    others = f", else {' or '.join(policy.secondary)}" if policy.secondary else ""
    brokers = f"{' or '.join(policy.primary)} ({policy.least_primaries:,} at least{others})"
    return f"{' and '.join(policy.namespaces)} on {brokers}"


MAX_PATTERN = 60
"""Characters of a pattern where words are short."""


def _with_threshold(policy: IsolationPolicy) -> str:
    failover = policy.auto_failover_policy
    threshold = "no failover" if failover is None else f"usage_threshold {failover.parameters.usage_threshold}"
    return f"{_in_brief(policy)}, {threshold}"


def _as_json(policy: IsolationPolicy) -> str:
    return msgspec.json.encode(policy).decode()


def isolation_policies(document: Mapping[str, Any]) -> dict[str, IsolationPolicy]:
    """Decodes the policies that `Reader.isolation_policies` returned, by name.

    Raises:
        ConfigurationError: If a policy has another shape than a broker would accept.
    """
    try:
        policies = convert(dict(document), dict[str, IsolationPolicy])
        for policy in policies.values():
            int(policy.least_primaries)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigurationError(f"the namespace isolation policies cannot be read: {error}") from error
    return policies


class AllowedBrokers:
    """Brokers that isolation policies leave to each namespace.

    Args:
        policies: All policies of the cluster, by name.
        brokers: Active brokers, ``host:webport``.
    """

    def __init__(self, policies: Mapping[str, IsolationPolicy], brokers: Iterable[str]) -> None:
        self._policies = dict(policies)
        self._everyone = frozenset(brokers)
        # Of many thousand namespaces each is matched once, and brokers once for all that the same policies are about.
        self._of_namespace = cache(self._look_up)
        self._of_policies = cache(self._look_up_together)

    def of(self, namespace: str) -> frozenset[str] | None:
        """Brokers that may own the bundles of a namespace (``tenant/namespace``); None: no policy restricts it.

        If several policies match, a broker uses the first one in its hash map. So only brokers that all of them allow
        are returned.
        """
        return self._of_namespace(namespace)

    def _look_up(self, namespace: str) -> frozenset[str] | None:
        about = tuple(name for name, policy in self._policies.items() if policy.claims(namespace))
        return None if is_heartbeat(namespace) else self._of_policies(about)

    def _look_up_together(self, names: tuple[str, ...]) -> frozenset[str] | None:
        if names:
            return frozenset.intersection(*(_candidates(self._policies[name], self._everyone) for name in names))
        claimed = _of_hosts(
            [pattern for policy in self._policies.values() for pattern in policy.primary],
            self._everyone,
            unreadable=True,
        )
        return self._everyone - claimed if claimed else None


def _candidates(policy: IsolationPolicy, brokers: frozenset[str]) -> frozenset[str]:
    primaries = policy.primaries(brokers)
    if len(_of_hosts(policy.primary, brokers, unreadable=True)) >= policy.least_primaries:
        return primaries
    return primaries | _of_hosts(policy.secondary, brokers)


def _of_hosts(patterns: Iterable[str], brokers: Iterable[str], *, unreadable: bool = False) -> frozenset[str]:
    patterns = tuple(patterns)
    if not patterns:
        return frozenset()
    return frozenset(broker for broker in brokers if _matches(patterns, _host(broker), unreadable=unreadable))


@lru_cache(maxsize=10_000)  # every policy asks for the hosts of all brokers
def _host(broker: str) -> str:
    # A Java URL keeps the brackets of an IPv6 host and the case of a name; `hostname` would not.
    return urlsplit(f"//{broker}").netloc.rpartition(":")[0]


def _matches(patterns: Iterable[str], text: str, *, unreadable: bool) -> bool:
    """True if any pattern matches the whole text; `unreadable` is the result for a pattern that only Java accepts."""
    for pattern in patterns:
        compiled = _compiled(pattern)
        if unreadable if compiled is None else compiled.fullmatch(text):
            return True
    return False


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None
