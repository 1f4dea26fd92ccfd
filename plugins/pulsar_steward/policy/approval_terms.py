"""Terms of an approval, by kind and risk of its batch: who may approve, how many have to, and how long it counts.

Several keys of the section `approval` apply to each term, and the strictest counts; no policy goes below the floor. The
section is read as JSON, so that a policy in force and a recorded one give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.risk import Risk

if TYPE_CHECKING:
    from collections.abc import Sequence

Values = Mapping[str, Any]

FLOOR_VALID_MINUTES: Mapping[Risk, int] = {Risk.HIGH: 24 * 60, Risk.CRITICAL: 4 * 60}
"""Maximum minutes from an answer to the last call under it, whatever a policy and its windows allow.

The floor does not require a second person: a single operator would answer under two names. It limits time, which one
person can give: an irreversible change is decided by the present state of the cluster, not last week's.
"""

TWO = 2


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of an approval.

    Attributes:
        users: Ids of the users who may answer; None: everyone whom Airflow permits.
        people: Number of people who have to approve.
        valid_minutes: Validity of an approval, from the answer or from the opening of the window that it waits for.
        most_minutes: Maximum validity from the answer, with or without a window; None: the risk sets no maximum.
        requester_may_approve: True if the person who started a run by hand may approve its questions.
    """

    users: frozenset[str] | None
    people: int
    valid_minutes: int
    most_minutes: int | None = None
    requester_may_approve: bool

    def may_answer(self, user_id: str) -> bool:
        """True if a user may answer."""
        return self.users is None or user_id in self.users


def terms_of(approval: Values, kinds: tuple[str, ...], risk: Risk) -> Terms:
    """Terms for a batch, by a policy's section `approval` as JSON; missing keys require nothing.

    An empty list of users counts as a missing key.

    Args:
        approval: The section.
        kinds: Kinds whose rules apply to the batch; the strictest rule counts.
        risk: Its risk.
    """
    levels = levels_up_to(approval, risk)
    minutes = [each["valid_minutes"] for each in levels if each.get("valid_minutes") is not None]
    named: Sequence[str] = next((each["users"] for each in reversed(levels) if each.get("users")), ())
    by_kind: Mapping[str, Sequence[str]] = approval.get("assigned_users_by_kind", {})
    # Lists by kind replace the general list, also if a rollback is of a kind that has one.
    usual = [by_kind[kind] for kind in kinds if by_kind.get(kind)] or [approval.get("assigned_users", ())]
    lists = [frozenset(users) for users in (named, *usual) if users]
    return Terms(
        users=frozenset.intersection(*lists) if lists else None,
        people=max(1 if set(kinds).isdisjoint(approval.get("two_people_for", ())) else TWO, *_people(levels)),
        valid_minutes=min([*minutes, *_floor(risk), approval["valid_minutes"]]),
        most_minutes=FLOOR_VALID_MINUTES.get(risk),
        requester_may_approve=bool(approval.get("requester_may_approve", True))
        and all(each.get("requester_may_approve") is not False for each in levels),
    )


def levels_up_to(approval: Values, risk: Risk) -> list[Values]:
    """Requirements of each level up to this one, the lowest first: a higher risk never requires less."""
    by_risk: Mapping[str, Values] = approval.get("by_risk", {})
    return [by_risk[level] for level in Risk if level.rank <= risk.rank and level in by_risk]


def _people(levels: Sequence[Values]) -> list[int]:
    return [1, *(each["people"] for each in levels if each.get("people") is not None)]


def _floor(risk: Risk) -> list[int]:
    return [FLOOR_VALID_MINUTES[risk]] if risk in FLOOR_VALID_MINUTES else []
