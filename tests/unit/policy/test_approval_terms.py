"""Terms of an approval: of all keys that bear on one, the strictest holds, and below the floor no policy goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pulsar_steward.errors import PolicyError
from pulsar_steward.model.plan import KINDS
from pulsar_steward.model.risk import Risk
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.load import parse_policy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.recorded import RecordedPolicy
from pulsar_steward.policy.schema import Policy
from tests.cases import row_by_row

if TYPE_CHECKING:
    from pulsar_steward.policy.approval import Terms


def terms(kind: str = "retention", risk: Risk = Risk.HIGH, **approval: Any) -> Terms:
    """Terms of a batch under such a section."""
    return ApprovalPolicy.model_validate(approval).terms((kind,), risk)


def test_without_a_word_of_risk_all_is_as_it_was() -> None:
    """By default one person approves a batch of any risk, and the approval is valid for an hour."""
    for risk in Risk:
        found = terms(risk=risk)
        assert (found.users, found.people, found.valid_minutes, found.requester_may_approve) == (None, 1, 60, True)


@pytest.mark.parametrize("risk", Risk)
def test_the_floor_holds_whatever_the_policy_says_of_other_approvals(risk: Risk) -> None:
    """The validity of an approval is limited by risk level, also if the policy's `valid_minutes` is larger."""
    month = 30 * 24 * 60
    most = {Risk.LOW: month, Risk.MEDIUM: month, Risk.HIGH: 1440, Risk.CRITICAL: 240}
    found = terms(risk=risk, valid_minutes=month)
    assert found.valid_minutes == (found.most_minutes or month) == most[risk]


@pytest.mark.parametrize("people", [None, 1, 2])
@pytest.mark.parametrize("two_for", [(), ("retention",)])
@pytest.mark.parametrize("minutes", [None, 30, 90])
@pytest.mark.parametrize("requester", [(True, None), (True, False), (False, None), (False, True)])
def test_of_kind_and_risk_the_stricter_holds(
    people: int | None, two_for: tuple[str, ...], minutes: int | None, requester: tuple[bool, bool | None]
) -> None:
    by_risk = {"people": people, "valid_minutes": minutes, "requester_may_approve": requester[1]}
    found = terms(two_people_for=two_for, requester_may_approve=requester[0], by_risk={"high": by_risk})
    assert found.people == (2 if two_for or people == 2 else 1)
    assert found.valid_minutes == min(60, minutes or 60)
    assert found.requester_may_approve is (requester[0] and requester[1] is not False)


def test_a_higher_level_demands_what_a_lower_one_does() -> None:
    by_risk = {
        "medium": {"people": 2, "valid_minutes": 20, "users": ["ann", "eve"]},
        "critical": {"users": ["bob", "eve"]},
    }
    assert terms(risk=Risk.LOW, by_risk=by_risk).people == 1
    high, critical = (terms(risk=risk, by_risk=by_risk) for risk in (Risk.HIGH, Risk.CRITICAL))
    assert (high.people, high.valid_minutes, high.users) == (2, 20, frozenset({"ann", "eve"}))
    assert (critical.people, critical.valid_minutes, critical.users) == (2, 20, frozenset({"bob", "eve"}))


def test_who_may_answer_has_to_be_named_by_both() -> None:
    """A user may answer only if the lists by kind and by risk both permit it; a missing list permits everyone."""
    by_kind, by_risk = {"retention": ["ann", "bob"]}, {"high": {"users": ["bob", "eve"]}}
    found = terms(assigned_users_by_kind=by_kind, by_risk=by_risk)
    assert [found.may_answer(user) for user in ("ann", "bob", "eve")] == [False, True, False]
    assert terms(risk=Risk.MEDIUM, assigned_users_by_kind=by_kind, by_risk=by_risk).may_answer("ann")
    assert terms(kind="rollback", assigned_users_by_kind=by_kind, by_risk=by_risk).may_answer("eve")
    assert terms(risk=Risk.LOW, by_risk=by_risk).may_answer("anybody")


@row_by_row(
    "approval, words",
    ({"by_risk": {"high": {"valid_minutes": 1441}}}, "by_risk.high.valid_minutes is 1441, .* more than 1440"),
    ({"by_risk": {"critical": {"valid_minutes": 241}}}, "by_risk.critical.valid_minutes is 241, .* than 240"),
    ({"by_risk": {"low": {"people": 2}, "high": {"people": 1}}}, "by_risk.high.people demands less than by_risk.low"),
    (
        {"by_risk": {"low": {"valid_minutes": 9}, "medium": {"valid_minutes": 10}}},
        "by_risk.medium.valid_minutes demands less",
    ),
    (
        {"by_risk": {"medium": {"requester_may_approve": False}, "high": {"requester_may_approve": True}}},
        "by_risk.high.requester_may_approve demands less",
    ),
    (
        {"by_risk": {"low": {"people": 2}, "medium": {"valid_minutes": 9}, "high": {"people": 1}}},
        "by_risk.high.people demands less than by_risk.low.people",
    ),
    (
        {"assigned_users": ["ann"], "by_risk": {"high": {"users": ["bob"]}}},
        "by_risk.high.users: nobody of them may answer by .* to .*retention",
    ),
    (
        {"assigned_users": ["ann"], "by_risk": {"medium": {"users": ["bob"]}, "high": {"people": 2}}},
        "by_risk.medium.users: nobody of them",
    ),
    ({"by_risk": {"hihg": {}}}, "by_risk.hihg"),
    ({"by_risk": {"high": {"persons": 2}}}, "by_risk.high.persons: no such key"),
    ({"by_risk": {"high": {"people": 3}}}, "by_risk.high.people: has to be 2 or less"),
    ({"by_risk": {"high": {"people": 0}}}, "by_risk.high.people: has to be 1 or more"),
    ({"by_risk": {"high": {"valid_minutes": 0}}}, "by_risk.high.valid_minutes: has to be 1 or more"),
)
def test_what_does_not_hold_up_is_named(approval: dict[str, Any], words: str) -> None:
    """Terms by risk that are invalid or weaker than a lower level's are refused with their key and the reason."""
    with pytest.raises(PolicyError, match=words):
        parse_policy({"approval": approval}, name="east.yaml")


STRICT = {"people": 2, "valid_minutes": 30, "users": ["ann", "bob"], "requester_may_approve": False}


@pytest.mark.parametrize("key", STRICT)
def test_less_by_risk_is_looser(key: str) -> None:
    """Dropping a key of the terms by risk is a loosening; adding a key or keeping all of them is none."""
    then = parse_policy({"approval": {"by_risk": {"medium": STRICT}}}, name="then")
    less = parse_policy(
        {"approval": {"by_risk": {"medium": {name: value for name, value in STRICT.items() if name != key}}}},
        name="now",
    )
    assert any("approval.by_risk" in words for words in loosened(less, RecordedPolicy.of(then)))
    assert loosened(then, RecordedPolicy.of(less)) == ()
    assert loosened(then, RecordedPolicy.of(then)) == ()


def test_moving_a_demand_to_a_lower_level_is_no_loosening() -> None:
    """Moving a demand to a lower risk level is no loosening, as higher levels keep it; the reverse is a loosening."""
    low, high = (parse_policy({"approval": {"by_risk": {level: STRICT}}}, name=level) for level in ("low", "high"))
    assert loosened(low, RecordedPolicy.of(high)) == ()
    assert loosened(high, RecordedPolicy.of(low))


def test_every_kind_has_terms_for_every_risk() -> None:
    """Every kind of batch has terms at every risk level, and the default policy sets none by risk."""
    approval = ApprovalPolicy.model_validate({"assigned_users": ["ann", "bob"], "by_risk": {"medium": STRICT}})
    assert all(approval.terms((kind,), risk).may_answer("ann") for kind in KINDS for risk in Risk)
    assert not Policy().approval.by_risk


SPLITS_AND_MOVES = [
    (
        {"bundle_split": ["zoe"], "bundle_balance": ["ann"]},
        [],
        "nobody may answer to bundle_split with moves of parts",
    ),
    (
        {"bundle_split": ["bob", "zoe"], "bundle_balance": ["ann", "zoe"]},
        ["bundle_balance"],
        "only zoe, who is one, may answer",
    ),
    (
        {"bundle_split": ["ann", "zoe"], "bundle_balance": ["ann", "bob"], "rollback": ["bob", "zoe"]},
        [],
        "nobody may answer to rollback of a bundle_split with moves of parts",
    ),
]


@pytest.mark.parametrize(("lists", "two", "words"), SPLITS_AND_MOVES)
def test_splits_with_moves_that_nobody_could_approve_are_an_error_of_the_policy(
    lists: dict[str, list[str]], two: list[str], words: str
) -> None:
    """Lists of splits and of moves with too few people in common are an error that names both kinds, and the remedy."""
    with pytest.raises(ValidationError, match=words) as caught:
        ApprovalPolicy.model_validate({"assigned_users_by_kind": lists, "two_people_for": two})
    assert "the rules of bundle_split and of bundle_balance apply" in str(caught.value)
    assert "put bundle_balance into never_ask" in str(caught.value)


@pytest.mark.parametrize("kind", ["bundle_split", "bundle_balance"])
def test_people_need_not_be_in_common_where_parts_never_move(kind: str) -> None:
    """Where one of the kinds is never asked about, no batch has both, and who may answer for each is a free choice."""
    lists = {"bundle_split": ["zoe"], "bundle_balance": ["ann"]}
    ApprovalPolicy.model_validate({"assigned_users_by_kind": lists, "never_ask": [kind]})
