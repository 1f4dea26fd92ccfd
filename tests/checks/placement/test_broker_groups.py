"""Wanted groups of brokers: policies that differ, bundles outside, and what nobody wants or could read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.placement.broker_load import CHECK
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from tests.golden import Golden

LIMITS = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
SHOP = {"namespaces": ["shop/.*"], "primary": ["a", "b"], "secondary": [], "auto_failover_policy": LIMITS}


def cluster(policies: dict[str, Any] | None, *owners: str) -> dict[str, list[dict[str, Any]]]:
    """Three brokers, and a bundle of `shop/orders` with topics on each of these."""
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}
    bundles = [
        {"namespace": "shop/orders", "bundle": f"0x{number}", "owner": owner, "owner_known": True, "topics": 2}
        for number, owner in enumerate(owners)
    ]
    idle = {"namespace": "shop/orders", "bundle": "idle", "owner": "c:1", "owner_known": True, "topics": 0}
    return {
        "snapshot": [about | {"isolation_json": None if policies is None else json.dumps(policies)}],
        "brokers": [{"broker": name, "read": True} for name in ("a:1", "b:1", "c:1")],
        "namespaces": [{"namespace": "shop/orders", "bundles": 4, "allowed_brokers": ["a:1", "b:1"]}],
        "bundles": [*bundles, idle],
    }


def wanting(*primary: str) -> Policy:
    return a_policy(brokers={"groups": [{"name": "shop", "namespaces": ["shop/.*"], "primary": list(primary)}]})


def test_what_it_says(golden: Golden) -> None:
    """Each way in which a group is not as wanted is a warning; idle bundles and an order of patterns are none."""
    cases: dict[str, tuple[Any, ...]] = {
        "nobody wants a group": (cluster({}),),
        "there is no policy": (cluster({}, "a:1"), wanting("a", "b")),
        "it is as wanted": (cluster({"shop": SHOP}, "a:1", "b:1"), wanting("b", "a")),
        "it has other brokers": (cluster({"shop": SHOP}, "a:1"), wanting("a", "c")),
        "bundles are outside": (cluster({"shop": SHOP}, "a:1", "c:1", "c:1"), wanting("a", "b")),
        "policies could not be read": (cluster(None, "c:1"), wanting("a", "b")),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))
