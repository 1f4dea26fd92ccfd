"""Section of approvals: who is asked, who may answer, and how long a request and its answer are valid."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Self

import msgspec
from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pulsar_steward.decoding import convert
from pulsar_steward.model.people import different_people
from pulsar_steward.model.plan import (
    BROKER_DRAIN,
    BROKER_GROUP,
    BUNDLE_BALANCE,
    BUNDLE_SPLIT,
    KINDS,
    ROLLBACK,
    SUBSCRIPTION_DELETION,
    TC_COUNT,
    TOPIC_PARTITIONS,
)
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.section import Section, number
from pulsar_steward.policy.names import UserId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


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


def _kind(text: str) -> str:
    if text not in KINDS:
        raise ValueError(f"{text!r} is no kind of batch: {', '.join(KINDS)}")
    return text


Kind = Annotated[str, AfterValidator(_kind)]


def _planned(kind: str) -> str:
    if kind == ROLLBACK:
        raise ValueError(f"a {ROLLBACK} is asked because a person wanted it: it cannot be left out")
    return kind


PlannedKind = Annotated[Kind, AfterValidator(_planned)]
"""Kind of batches that an observation can lead to."""


class RiskTerms(Section):
    """Requirements for batches of one risk level, besides those for their kind; the stricter one applies."""

    users: tuple[UserId, ...] = Field(
        (), description="who may answer at this risk, of those who may by kind; empty: as at the lower level"
    )
    people: int | None = Field(None, ge=1, le=2, description="who have to approve")
    valid_minutes: int | None = Field(None, ge=1, description="that an approval counts")
    requester_may_approve: bool | None = Field(None, description="whether who started the run by hand may approve")


class DecideBy(StrEnum):
    """Size of a decision: the scope of proposals of one kind that share one question."""

    NAMESPACE = "namespace"
    TENANT = "tenant"
    KIND = "kind"


ALWAYS_ALONE = (
    TC_COUNT,
    "tc_balance",
    BUNDLE_BALANCE,
    BROKER_DRAIN,
    BROKER_GROUP,
    TOPIC_PARTITIONS,
    SUBSCRIPTION_DELETION,
    ROLLBACK,
)
"""Kinds whose batches are each a question by itself. They concern the whole cluster, or a person requested them, or the
owners of each namespace have to be asked, as nothing restores deleted data, or fewer partitions."""


def _kind_of_namespaces(text: str) -> str:
    if _kind(text) in ALWAYS_ALONE:
        raise ValueError(f"a batch of kind {text!r} is always asked about by itself")
    return text


KindOfNamespaces = Annotated[str, AfterValidator(_kind_of_namespaces)]


class ApprovalPolicy(Section):
    """People who may answer, the grouping of questions, and how long a question and its answer are valid."""

    response_timeout_minutes: int = number(24 * 60, "no answer by then is a rejection")
    valid_minutes: int = number(60, "from the answer to the last change made under it")
    wait_for_window_minutes: int = number(
        7 * 24 * 60,
        "that an approved batch may wait for the next of `guards.windows`, from whose opening"
        " `valid_minutes` counts then; one that opens later is not waited for",
        ge=0,
    )
    ask_again_minutes: int = number(
        24 * 60, "in which nobody is asked again about a proposal that was rejected or taken back", ge=0
    )
    never_ask: tuple[PlannedKind, ...] = Field(
        (), description="kinds of batches that are not proposed; for a tenant or a namespace too"
    )
    assigned_users: tuple[UserId, ...] = Field(
        (), description="who may answer, by Airflow's ids; empty: everyone whom it lets"
    )
    assigned_users_by_kind: dict[Kind, tuple[UserId, ...]] = Field(
        {}, description="the same for one kind of batch, in place of `assigned_users`; no empty list"
    )
    two_people_for: tuple[Kind, ...] = Field((), description="kinds of batches that a second person has to approve")
    requester_may_approve: bool = Field(True, description="whether who started a run by hand may approve what it asks")
    decide_by: DecideBy = Field(
        DecideBy.NAMESPACE, description="what one question is about: a `namespace`, a `tenant`, or a whole `kind`"
    )
    decide_by_kind: dict[KindOfNamespaces, DecideBy] = Field(
        {}, description="the same for one kind of batch, in place of `decide_by`"
    )
    most_steps: int = number(200, "steps of a question about several namespaces; more are another one")

    by_risk: dict[Risk, RiskTerms] = Field(
        {}, description="what batches demand by their risk, which Steward computes; higher levels demand no less"
    )

    def waits_until(self, asked_at: datetime) -> datetime:
        """Time until which a question asked at `asked_at` waits for an answer under this policy."""
        return asked_at + timedelta(minutes=self.response_timeout_minutes)

    def size_for(self, kind: str) -> DecideBy:
        """Size of a decision for batches of this kind."""
        return self.decide_by_kind.get(kind, self.decide_by)

    @model_validator(mode="after")
    def _risks_hold(self) -> Self:
        if troubles := [*self._below_the_floor(), *self._less_than_below(), *self._empty_lists(), *self._too_few()]:
            raise PydanticCustomError("by_risk", "{words}", {"words": "; ".join(dict.fromkeys(troubles))})
        return self

    def terms(self, kinds: tuple[str, ...], risk: Risk) -> Terms:
        """Terms for the approval of a batch to which the rules of these kinds apply (`Batch.answered_as`)."""
        return self.values.terms(kinds, risk)

    @property
    def values(self) -> ApprovalValues:
        """Its values as recorded policies give them."""
        return convert(self.model_dump(mode="json"), ApprovalValues)

    def _below_the_floor(self) -> Iterator[str]:
        for level, most in FLOOR_VALID_MINUTES.items():
            minutes = self.by_risk[level].valid_minutes if level in self.by_risk else None
            if minutes is not None and minutes > most:
                yield f"by_risk.{level}.valid_minutes is {minutes}, and no policy may say more than {most}"

    def _less_than_below(self) -> Iterator[str]:
        """Risk levels that require less than a lower level, whose requirement would apply anyway."""
        named = [(level, self.by_risk[level]) for level in Risk if level in self.by_risk]
        for (low, below), (high, above) in combinations(named, 2):
            pairs = {
                "people": (below.people, above.people),
                "valid_minutes": (above.valid_minutes, below.valid_minutes),
                "requester_may_approve": (above.requester_may_approve, below.requester_may_approve),
            }
            for key, (less, more) in pairs.items():
                if less is not None and more is not None and less > more:
                    yield f"by_risk.{high}.{key} demands less than by_risk.{low}.{key}: a higher risk demands no less"

    def _empty_lists(self) -> Iterator[str]:
        for kind, users in self.assigned_users_by_kind.items():
            if not users:
                yield (
                    f"assigned_users_by_kind.{kind}: an empty list is not allowed: name who may answer, or leave the"
                    " key out, so that assigned_users holds"
                )

    def _too_few(self) -> Iterator[str]:
        """Batches of all kinds that cannot be approved, as fewer people may answer than have to approve."""
        both = (BUNDLE_SPLIT, BUNDLE_BALANCE)
        combined = (
            f"{BUNDLE_SPLIT} with moves of parts, to which the rules of {' and of '.join(both)} apply: let the same"
            f" people answer for both, or put {BUNDLE_BALANCE} into never_ask, so that bundles are split alone"
        )
        alone = {(kind,): kind for kind in KINDS}
        back = {(ROLLBACK, kind): f"{ROLLBACK} of a {kind}" for kind in KINDS if kind != ROLLBACK}
        together = [{both: combined}, {(ROLLBACK, *both): f"{ROLLBACK} of a {combined}"}]
        for rules in (alone, back, *(together if set(both).isdisjoint(self.never_ask) else ())):
            found: dict[str, list[str]] = {}
            for kinds, what in rules.items():
                if words := self._lacking(kinds):
                    found.setdefault(words, []).append(what)
            if found:
                yield from (f"{words} to {', '.join(whats)}" for words, whats in found.items())
                return

    def _lacking(self, kinds: tuple[str, ...]) -> str | None:
        """Words on the lowest risk at which more people have to approve than may answer; None: there is none."""
        lists = "assigned_users, assigned_users_by_kind"
        for level in Risk:
            terms = self.terms(kinds, level)
            if terms.users is None or (there := different_people(terms.users)) >= terms.people:
                continue
            if there:
                only = ", ".join(sorted(terms.users))
                two = f"two people have to approve at {level} risk (two_people_for, by_risk)"
                return f"{two}, and only {only}, who is one, may answer ({lists}, by_risk)"
            if level in self.by_risk and self.by_risk[level].users:
                return f"by_risk.{level}.users: nobody of them may answer by {lists}"
            return f"{lists}: nobody may answer"
        return None
