"""Recorded policies, of this version or another one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pulsar_steward.model.risk import Risk
from pulsar_steward.policy.approval_terms import UNLIMITED
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.recorded import Pace, RecordedPolicy
from pulsar_steward.policy.schema import Policy
from tests.builders import a_policy


def recorded(values: dict[str, Any]) -> RecordedPolicy:
    """A policy with these values, from its document."""
    return RecordedPolicy.decoded(msgspec.json.encode(values))


@pytest.mark.parametrize(
    "values", [{}, {"approval": {}}, {"approval": {"by_risk": {}, "of_tomorrow": 7}, "tomorrow": [1]}], ids=str
)
def test_what_is_missing_limits_nothing(values: dict[str, Any]) -> None:
    """A recorded policy without a section or a key limits nothing, and has the defaults of rest and pace."""
    found = recorded(values)
    terms = found.approval.terms(("retention",), Risk.LOW)
    assert (terms.users, terms.people, terms.valid_minutes) == (None, 1, UNLIMITED)
    assert (found.rest, found.windows, Pace.of(found)) == (timedelta(days=1), (), Pace())
    assert loosened(Policy(), found) == ()


def test_a_policy_comes_back_as_it_was_recorded() -> None:
    """A policy in force and its record give the same terms, rest and windows."""
    windows = [{"opens": "0 22 * * *", "minutes": 60, "time_zone": "UTC"}]
    approval = {"ask_again_minutes": 5, "valid_minutes": 7, "two_people_for": ["retention"]}
    policy = a_policy(approval=approval, guards={"windows": windows})
    found = RecordedPolicy.of(policy)
    assert (found.approval, found.rest) == (policy.approval.values, timedelta(minutes=5))
    assert found.windows == policy.guards.windows
    assert found.approval.terms(("retention",), Risk.LOW).people == 2


def test_a_format_that_is_not_read_is_an_error_or_unknown() -> None:
    """A value of another type cannot be decoded where it sets terms; windows of another form are left out."""
    with pytest.raises(msgspec.ValidationError, match="valid_minutes"):
        recorded({"approval": {"valid_minutes": "an hour"}})
    assert recorded({"guards": {"windows": [{"opens": "at night"}]}}).windows == ()
