"""Brokers on which a namespace's bundles belong, by the cluster's policies; pure functions over documents."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lab.simulator.model import Broker

Policy = Mapping[str, Any]
Policies = Mapping[str, Policy]
ROLES = ("primary", "secondary")


def policy_of(namespace: str, policies: Policies | None) -> Policy | None:
    """The first policy whose patterns match the namespace."""
    return next((each for each in (policies or {}).values() if matches(each["namespaces"], namespace)), None)


def role(broker: Broker, policy: Policy) -> str:
    """Role of a broker for a policy's namespaces: ``primary``, ``secondary`` or ``shared``."""
    return next((role for role in ROLES if is_named(broker, policy[role])), "shared")


def is_named(broker: Broker, patterns: Iterable[str]) -> bool:
    """True if one of the patterns fits the broker's host, or its id."""
    return matches(patterns, broker.host) or matches(patterns, broker.broker_id)


def matches(patterns: Iterable[str], text: str) -> bool:
    """True if one of the patterns fits all of the text."""
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def allowed(namespace: str, brokers: list[Broker], policies: Policies | None) -> list[Broker]:
    """Brokers that may own the namespace's bundles: its policy's, or those in no policy; all rather than none."""
    policy = policy_of(namespace, policies)
    if policy is None:
        taken = [pattern for each in (policies or {}).values() for pattern in each["primary"]]
        return [broker for broker in brokers if not is_named(broker, taken)] or brokers
    primary = [broker for broker in brokers if is_named(broker, policy["primary"])]
    return primary or [broker for broker in brokers if is_named(broker, policy["secondary"])] or brokers


def unloading(policy: Policy, former: Policy | None) -> set[str]:
    """Patterns of the namespaces that brokers since 4.0 unload when they set a policy in place of a former one."""
    scope, now = policy.get("unload_scope"), set(policy["namespaces"])
    if scope == "none":
        return set()
    then = set(former["namespaces"]) if former else set()
    moved = former is not None and set(former["primary"]) != set(policy["primary"])
    return now | then if scope == "all_matching" or moved else now ^ then
