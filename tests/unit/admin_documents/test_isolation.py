"""Which brokers isolation policies leave to a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.isolation import allowed_brokers, isolation_policies

A, B, C = "10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"


def policy(namespaces: str, primary: str, secondary: str = "", least: str = "1") -> dict[str, Any]:
    """A policy in the shape that a 4.0.7 broker answered."""
    return {
        "namespaces": [namespaces],
        "primary": [primary],
        "secondary": [secondary] if secondary else [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": least, "usage_threshold": "80"},
        },
    }


CASES = {
    "no policy leaves every broker": ([], None),
    "primaries serve alone while there are enough": ([policy("acme/.*", r"10\.0\.0\.1", ".*")], (A,)),
    "secondaries serve too when primaries are too few": ([policy("acme/.*", r"10\.0\.0\.1", r".*\.2", "2")], (A, B)),
    "no matching primary leaves the secondaries": ([policy("acme/.*", "nobody", r".*\.3")], (C,)),
    "nothing that matches leaves no broker": ([policy("acme/.*", "nobody")], ()),
    "another namespace's primaries are taken": ([policy("other/.*", r"10\.0\.0\.1")], (B, C)),
    "another namespace's secondaries are not": ([policy("other/.*", "nobody", ".*")], None),
    "a pattern has to match the whole namespace": ([policy("acme", r"10\.0\.0\.1")], (B, C)),
    "a pattern has to match the whole host": ([policy("acme/.*", "10")], ()),
    "a pattern with the port matches nothing": ([policy("acme/.*", "10.0.0.1:8080")], ()),
    "of two matching policies what both allow": (
        [policy("acme/.*", r".*\.[12]"), policy(".*/orders", r".*\.[23]")],
        (B,),
    ),
    "a primary pattern that only Java reads allows nothing": ([policy("acme/.*", r"\p{Alnum}+", ".*")], ()),
    "a namespace pattern that only Java reads counts as matching": ([policy(r"\p{Alpha}+/.*", r".*\.1")], (A,)),
    "a foreign primary pattern that only Java reads takes all": ([policy("other/.*", r"\p{Alnum}+")], ()),
}


@pytest.mark.parametrize(("policies", "expected"), CASES.values(), ids=CASES)
def test_allowed_brokers(policies: list[dict[str, Any]], expected: tuple[str, ...] | None) -> None:
    """The brokers left to a namespace are those that a broker itself would choose from, or fewer."""
    document = {f"p{number}": each for number, each in enumerate(policies)}

    assert allowed_brokers(isolation_policies(document), "acme/orders", [C, A, B]) == expected


def test_an_ipv6_host_is_matched_with_its_brackets() -> None:
    """An isolation policy's pattern is matched against an IPv6 host with its brackets, as in Java's URL."""
    policies = isolation_policies({"p": policy("acme/.*", r"\[::1\]")})

    assert allowed_brokers(policies, "acme/orders", ["[::1]:8080", A]) == ("[::1]:8080",)


@pytest.mark.parametrize("document", [{"p": {"namespaces": "acme"}}, {"p": policy("a", "b", least="many")}])
def test_a_policy_of_another_shape_is_an_error(document: dict[str, Any]) -> None:
    """An isolation policy of an unknown shape raises a `ConfigurationError`."""
    with pytest.raises(ConfigurationError, match="isolation policies cannot be read"):
        isolation_policies(document)
