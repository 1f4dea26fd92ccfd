"""The number of transaction coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement.coordinators import TC_COUNT as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from tests.golden import Golden


def rows(coordinators: int, brokers: int, **meta: Any) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of so many brokers and coordinators, the first broker of which could not be read."""
    about = {"cluster": "lab", "taken_at": NOW, "coordinators": coordinators, "tcs_by_bundle": True}
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


def test_brokers_that_take_none_do_not_count() -> None:
    """Brokers that are draining or that isolation policies exclude do not count as holders of coordinators."""
    assert judge_rows(CHECK, rows(3, 4), Policy.model_validate({"brokers": {"draining": ["b1:8080"]}})).findings == ()
    apart = {"namespaces": [{"namespace": "pulsar/system", "allowed_brokers": ["b0:8080", "b1:8080", "b2:8080"]}]}
    assert judge_rows(CHECK, rows(3, 4) | apart).findings == ()


def test_the_evidence_says_what_it_means(golden: Golden) -> None:
    """The evidence says what follows from too few coordinators, from too many and from fewer than brokers."""
    found = [judge_rows(CHECK, rows(*each)).findings[0] for each in ((1, 2), (400, 3), (16, 100))]
    golden("\n".join(each.evidence for each in found))
    assert found[0].figures == {"brokers": 2, "coordinators": 1, "share_percent": 100}


def test_what_is_no_trouble_is_said() -> None:
    """The check says when the number of coordinators suits, when transactions are off and when it cannot tell."""
    suits = judge_rows(CHECK, rows(16, 3)).quiet
    assert suits == "There are 16 transaction coordinators for 3 brokers that could hold them, which suits them."
    assert judge_rows(CHECK, rows(0, 3)).quiet == "Transactions are off: there are no coordinators."
    assert judge_rows(CHECK, rows(16, 0)).cannot_tell == "No broker that may hold coordinators is listed."


def test_elected_coordinators_are_advised_about(golden: Golden) -> None:
    """For elected coordinators the check cannot tell; it names the setting that fixes their number for good."""
    judgement = judge_rows(CHECK, rows(16, 3, tcs_by_bundle=False))
    assert judgement.findings == ()
    golden(judgement.cannot_tell or "")
