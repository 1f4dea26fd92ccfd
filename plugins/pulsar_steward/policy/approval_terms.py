"""Terms of an approval, by kind and risk of its batch: who may approve, how many have to, and how long it counts.

Several keys of the section `approval` apply to each term, and the strictest counts; no policy goes below the floor. The
section is decoded from JSON, so that a policy in force and a recorded one give the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.risk import Risk

if TYPE_CHECKING:
    from collections.abc import Mapping

UNLIMITED = 10**9
"""Minutes that stand for no limit."""

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


class RiskValues(msgspec.Struct, frozen=True, kw_only=True):
    """Values of the section `approval.by_risk` for one level; None: not set."""

    users: tuple[str, ...] = ()
    people: int | None = None
    valid_minutes: int | None = None
    requester_may_approve: bool | None = None


class ApprovalValues(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a policy's section `approval`; a missing key demands nothing, and an empty list of users neither."""

    valid_minutes: int = UNLIMITED
    wait_for_window_minutes: int = 0
    ask_again_minutes: int | None = None
    assigned_users: tuple[str, ...] = ()
    assigned_users_by_kind: dict[str, tuple[str, ...]] = {}
    two_people_for: tuple[str, ...] = ()
    requester_may_approve: bool = True
    by_risk: dict[str, RiskValues] = {}

    def terms(self, kinds: tuple[str, ...], risk: Risk) -> Terms:
        """Terms for a batch of this risk to which the rules of these kinds apply; the strictest rule counts."""
        # A higher risk never requires less: the lower levels count too, the lowest first.
        levels = [self.by_risk[level] for level in Risk if level.rank <= risk.rank and level in self.by_risk]
        minutes = [each.valid_minutes for each in levels if each.valid_minutes is not None]
        named = next((each.users for each in reversed(levels) if each.users), ())
        by_kind = self.assigned_users_by_kind
        # Lists by kind replace the general list, also if a rollback is of a kind that has one.
        usual = [by_kind[kind] for kind in kinds if by_kind.get(kind)] or [self.assigned_users]
        lists = [frozenset(users) for users in (named, *usual) if users]
        people = [each.people for each in levels if each.people is not None]
        return Terms(
            users=frozenset.intersection(*lists) if lists else None,
            people=max(1 if set(kinds).isdisjoint(self.two_people_for) else TWO, *people, 1),
            valid_minutes=min(*minutes, FLOOR_VALID_MINUTES.get(risk, UNLIMITED), self.valid_minutes),
            most_minutes=FLOOR_VALID_MINUTES.get(risk),
            requester_may_approve=self.requester_may_approve
            and all(each.requester_may_approve is not False for each in levels),
        )
