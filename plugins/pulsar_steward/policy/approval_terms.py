"""Terms of an approval, by kind and risk of its batch: who, how many, how long, and whether the requester may be one.

Several keys of the section `approval` bear on each of them, and the strictest holds; below the floor no policy goes.
All is read from the section as JSON, so that a policy in force and one that the ledger keeps come to the same.
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
"""Most minutes that an approval counts, whatever a policy says; of the other levels it says it alone.

Not a second person: who looks after a cluster alone would answer under two names. Time is what one person can give:
what cannot be brought back is decided on the cluster of that day, not of last week.
"""

TWO = 2


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of an approval.

    Attributes:
        users: Ids of those who may answer; None: everyone whom Airflow lets.
        people: Number of people who have to approve.
        valid_minutes: How long an approval counts.
        requester_may_approve: Whether who started a run by hand may approve what it asks.
    """

    users: frozenset[str] | None
    people: int
    valid_minutes: int
    requester_may_approve: bool

    def may_answer(self, user_id: str) -> bool:
        """True if a user may answer."""
        return self.users is None or user_id in self.users


def terms_of(approval: Values, kind: str, risk: Risk) -> Terms:
    """Terms for a batch, by a policy's section `approval` as JSON; an earlier Steward's has no `by_risk`."""
    levels = levels_up_to(approval, risk)
    minutes = [each["valid_minutes"] for each in levels if each.get("valid_minutes") is not None]
    named: Sequence[str] = next((each["users"] for each in reversed(levels) if each.get("users")), ())
    usual: Sequence[str] = approval.get("assigned_users_by_kind", {}).get(kind, approval.get("assigned_users", ()))
    lists = [frozenset(users) for users in (named, usual) if users]
    return Terms(
        users=frozenset.intersection(*lists) if lists else None,
        people=max(TWO if kind in approval.get("two_people_for", ()) else 1, *_people(levels)),
        valid_minutes=min([*minutes, *_floor(risk), approval["valid_minutes"]]),
        requester_may_approve=bool(approval.get("requester_may_approve", True))
        and all(each.get("requester_may_approve") is not False for each in levels),
    )


def levels_up_to(approval: Values, risk: Risk) -> list[Values]:
    """Demands of each level up to one, the lowest first: a higher risk never demands less."""
    by_risk: Mapping[str, Values] = approval.get("by_risk", {})
    return [by_risk[level] for level in Risk if level.rank <= risk.rank and level in by_risk]


def _people(levels: Sequence[Values]) -> list[int]:
    return [1, *(each["people"] for each in levels if each.get("people") is not None)]


def _floor(risk: Risk) -> list[int]:
    return [FLOOR_VALID_MINUTES[risk]] if risk in FLOOR_VALID_MINUTES else []
