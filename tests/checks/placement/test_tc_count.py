"""The number of transaction coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement.coordinators import TC_COUNT as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from tests.golden import Golden


def rows(coordinators: int, brokers: int, **meta: Any) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of so many brokers and coordinators, the first broker of which could not be read."""
    about = {"cluster": "lab", "taken_at": NOW, "coordinators": coordinators}
    return {
        "snapshot": [about | {"unread_brokers": [], "unread_namespaces": []} | meta],
        "brokers": [{"broker": f"b{number}:8080", "read": number > 0} for number in range(brokers)],
    }


CASES: list[tuple[int, int, Severity | None]] = [
    (1, 1, None),
    (16, 1, None),
    (16, 3, None),
    (16, 64, None),
    (16, 65, Severity.INFO),
    (1, 2, Severity.WARNING),
    (3, 3, None),
    (3, 4, Severity.WARNING),
    (4, 5, None),
    (4, 16, None),
    (4, 17, Severity.INFO),
    (300, 3, None),
    (301, 3, Severity.WARNING),
    (1000, 100, None),
]


@pytest.mark.parametrize(("coordinators", "brokers", "severity"), CASES)
def test_the_number_is_held_against_the_brokers(coordinators: int, brokers: int, severity: Severity | None) -> None:
    """The number of coordinators is judged by the number of listed brokers, whether they were read or not."""
    found = judge_rows(CHECK, rows(coordinators, brokers)).findings
    assert [each.severity for each in found] == ([severity] if severity else [])


def test_what_it_says(golden: Golden) -> None:
    """Brokers that take none do not count."""
    draining = Policy.model_validate({"brokers": {"draining": ["b1:8080"]}})
    apart = {"namespaces": [{"namespace": "pulsar/system", "allowed_brokers": ["b0:8080", "b1:8080", "b2:8080"]}]}
    cases: dict[str, tuple[Any, ...]] = {
        "one drains": (rows(3, 4), draining),
        "one is kept out by isolation": (rows(3, 4) | apart,),
        "too few": (rows(1, 2),),
        "too many": (rows(400, 3),),
        "fewer than brokers": (rows(16, 100),),
        "they suit": (rows(16, 3),),
        "transactions are off": (rows(0, 3),),
        "no broker is listed": (rows(16, 0),),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))
