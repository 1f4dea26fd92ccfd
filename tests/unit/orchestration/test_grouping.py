"""Which of a plan's batches are one question, and that a question that stands keeps its size."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.plan import (
    ROLLBACK,
    Batch,
    Plan,
    content_digest,
    goal_of,
    goals_in,
    namespaces_of,
    numbered,
    parts_of,
)
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch, SilencedGoal
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import Publication, SnapshotView, decide
from tests.builders import NOW, a_batch, a_finding, a_move, a_plan, a_policy, a_split, a_step
from tests.cases import cases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.policy.schema import Policy


def quota(namespace: str, size: int = 1, name: SettingName = SettingName.SIZE_QUOTA, steps: int = 1) -> Batch:
    """A batch that sets a quota, and deletes nothing; of several steps each is about a topic."""
    after = BacklogQuota(limit_bytes=size, policy=QuotaPolicy.HOLD)
    changes = [
        ChangeSetting(
            namespace=namespace,
            topic=f"persistent://{namespace}/t{number}" if steps > 1 else None,
            name=name,
            before=None,
            after=after,
        )
        for number in range(steps)
    ]
    made = [a_step(each, step_id=f"b1.s{n:02d}", undo=each.inverse) for n, each in enumerate(changes, start=1)]
    return a_batch(*made, kind="backlog_quota", title=f"{namespace}: {size}")


def expiry(namespace: str, seconds: int = 60, **fields: Any) -> Batch:
    """A batch that has messages expire; `fields` are those of its step."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=seconds))
    title = f"{namespace}: {seconds} s"
    return a_batch(a_step(change, **{"undo": change.inverse, **fields}), kind="retention", title=title)


def planned(*batches: Batch, snapshot: str = "new") -> Plan:
    """A plan as planners make it."""
    plan = a_plan(snapshot_id=snapshot)
    return replace(plan, batches=numbered(batches), taken_at=NOW)


def sized(by: str, **approval: Any) -> Policy:
    """A policy with this size of a decision."""
    return a_policy(approval={"decide_by": by, "ask_again_minutes": 120, **approval})


@dataclass
class Book:
    """A ledger's questions in short: publishes one plan after another."""

    policy: Policy
    standing: list[AskedBatch] = field(default_factory=list)
    rejected: list[RejectedBatch] = field(default_factory=list)
    silenced: list[SilencedGoal] = field(default_factory=list)
    plan: Plan = field(default_factory=planned)

    def publish(
        self, *batches: Batch, view: SnapshotView = SnapshotView.COMPLETE, snapshot: str = "new"
    ) -> Publication:
        """Groups, decides, and keeps what comes of it."""
        made = planned(*batches, snapshot=snapshot)
        self.plan = grouped(made, view, self.standing, self.rejected, self.silenced, self.policy)
        publication = decide(self.plan, view, self.standing, self.rejected, self.silenced)
        ended = {each.question_id for each in publication.questions.ended}
        self.standing = [each for each in self.standing if each.question_id not in ended]
        next_id = max((*ended, *(each.question_id for each in self.standing)), default=0) + 1
        for number, new in enumerate(publication.questions.asked, start=next_id):
            batch = self.plan.batch(new.batch_id)
            self.standing.append(
                AskedBatch(
                    question_id=number,
                    plan_id=self.plan.plan_id,
                    batch_id=new.batch_id,
                    content=new.content_digest,
                    goal=new.goal,
                    batch=batch,
                    state=BatchState.WAITING,
                    risk=risk_of(self.plan, batch).level,
                )
            )
        return publication

    def becomes(self, state: BatchState) -> None:
        """All questions are in this state."""
        self.standing = [replace(each, state=state) for each in self.standing]

    def reject(self, minutes: int = 5) -> None:
        """A person rejects all questions."""
        self.becomes(BatchState.UNANSWERED)
        for each in self.standing:
            assert each.batch is not None
            self.rejected += [
                RejectedBatch(
                    plan_id=each.plan_id,
                    content=content_digest(self.plan, part),
                    batch=part,
                    at=NOW - timedelta(minutes=minutes),
                )
                for part in parts_of(each.batch)
            ]

    def snooze(self) -> None:
        """A person snoozes all questions for a week, or until they get worse."""
        self.becomes(BatchState.UNANSWERED)
        self.silenced += [
            SilencedGoal(
                plan_id=each.plan_id,
                goal=each.goal,
                batch=each.batch,
                at=NOW,
                until=NOW + timedelta(days=7),
                until_worse=True,
            )
            for each in self.standing
        ]

    @property
    def asked(self) -> list[tuple[str, ...]]:
        """Namespaces of the questions that stand."""
        return [namespaces_of(each.batch) for each in self.standing if each.batch is not None]


def about(plan: Plan) -> list[tuple[str, ...]]:
    """Namespaces of a plan's batches."""
    return [namespaces_of(batch) for batch in plan.batches]


def in_questions(policy: Policy, *batches: Batch) -> Plan:
    """A plan's batches in questions, where none stands."""
    return grouped(planned(*batches), SnapshotView.COMPLETE, (), (), (), policy)


AX, AY, AZ, BX = (quota(name) for name in ("a/x", "a/y", "a/z", "b/x"))


def test_by_namespace_a_plan_is_what_planners_made() -> None:
    """A plan with one question for each namespace, as is the default, equals the planners' plan to the byte."""
    for policy in (a_policy(), sized("namespace")):
        assert in_questions(policy, AX, AY, a_batch()).encoded() == planned(AX, AY, a_batch()).encoded()


@cases(
    "policy, expected",
    ("tenant", sized("tenant"), [("a/x", "a/y"), ("b/x",), ("a/x",), ("b/x",)]),
    ("kind", sized("kind"), [("a/x", "b/x", "a/y"), ("a/x", "b/x")]),
    (
        "one kind",
        sized("namespace", decide_by_kind={"retention": "kind"}),
        [("a/x",), ("b/x",), ("a/y",), ("a/x", "b/x")],
    ),
    (
        "all but one kind",
        sized("kind", decide_by_kind={"retention": "namespace"}),
        [("a/x", "b/x", "a/y"), ("a/x",), ("b/x",)],
    ),
    ("at most two", sized("kind", most_steps=2), [("a/x", "b/x"), ("a/y",), ("a/x", "b/x")]),
    ("at most one", sized("kind", most_steps=1), [("a/x",), ("b/x",), ("a/y",), ("a/x",), ("b/x",)]),
)
def test_the_policy_says_what_is_asked_together(policy: Policy, expected: list[tuple[str, ...]]) -> None:
    """The policy sets which namespaces share a question; questions keep the plan's order, and each has one kind."""
    plan = in_questions(policy, AX, BX, AY, expiry("a/x"), expiry("b/x"))
    assert about(plan) == expected
    assert [batch.batch_id for batch in plan.batches] == [f"b{n}" for n in range(1, len(expected) + 1)]


@cases(
    "pair",
    ("kinds", (AX, expiry("a/y"))),
    ("what loses messages, and what does not", (expiry("a/x"), expiry("a/y", 0))),
    ("what cannot be undone", (AX, a_batch(a_step(AY.steps[0].change), kind=AY.kind))),
    ("what a guard stops only at the call", (AX, quota("a/y", name=SettingName.AGE_QUOTA))),
    (
        "what loses messages all the same",
        (AX, replace(AY, steps=(replace(AY.steps[0], loss=Loss(messages=1, bytes=1)),))),
    ),
    ("moves", (a_batch(), a_batch(a_step(a_move(namespace="a/y"))))),
    (
        "moves of two namespaces",
        tuple(a_batch(a_step(a_move(namespace=name)), kind="bundle_balance") for name in ("a/x", "a/y")),
    ),
    ("rollbacks", tuple(replace(each, kind=ROLLBACK) for each in (AX, AY))),
)
def test_some_things_are_never_asked_together(pair: tuple[Batch, Batch]) -> None:
    """Moves, rollbacks, and batches that differ in kind, loss or undo are never merged into one question."""
    assert len(in_questions(sized("kind"), *pair).batches) == 2


def test_what_is_alike_is_asked_together() -> None:
    """Batches of one kind are one question, also where they lose messages or cannot be undone."""
    splits = [a_batch(a_step(a_split(namespace=name)), kind="bundle_split") for name in ("a/x", "a/y")]
    for pair in ((AX, AY), (expiry("a/x"), expiry("a/y")), splits):
        assert about(in_questions(sized("kind"), *pair)) == [("a/x", "a/y")]


def test_a_group_is_cut_between_namespaces() -> None:
    policy = sized("kind", most_steps=3)
    assert about(in_questions(policy, quota("a/x", steps=2), quota("a/y", steps=2), AZ)) == [("a/x",), ("a/y", "a/z")]
    crowd = (quota("a/x", steps=2), quota("a/x", 2, steps=2), AY, quota("a/z", steps=5))
    plan = in_questions(policy, *crowd)
    assert [(namespaces_of(batch), len(batch.steps)) for batch in plan.batches] == [
        (("a/x",), 2),
        (("a/x", "a/y"), 3),
        (("a/z",), 5),
    ]


def test_a_group_has_no_more_steps_than_may_be_changed_in_one_run() -> None:
    """A question has at most as many steps as the guards allow changes in one run."""
    policy = a_policy(approval={"decide_by": "kind"}, guards={"most_changes_per_run": 2})
    assert about(in_questions(policy, AX, AY, AZ)) == [("a/x", "a/y"), ("a/z",)]


def test_a_group_is_what_its_parts_are() -> None:
    """A group keeps the order and dependencies of steps, and its parts have the content that they have alone."""
    first, second = quota("a/x", steps=2), quota("a/y")
    second = replace(second, steps=(*second.steps, *quota("a/y", size=2).steps))
    alone, (group,) = planned(first, second), in_questions(sized("kind"), first, second).batches
    assert [(step.step_id, step.after) for step in group.steps] == [
        ("b1.s01", ()),
        ("b1.s02", ()),
        ("b1.s03", ()),
        ("b1.s04", ("b1.s03",)),
    ]
    assert group.title == "a/x and 1 more namespace of tenant a: size quota (4 steps)"
    assert len(group.findings) == 1
    assert [content_digest(alone, part) for part in parts_of(group)] == [
        content_digest(alone, batch) for batch in alone.batches
    ]
    assert goals_in(goal_of(group)) == {goal_of(batch) for batch in alone.batches}


# -- from one observation to the next


def test_a_group_that_stands_is_not_asked_again_because_another_joins() -> None:
    """An open question about several namespaces stands when others are proposed, which get questions of their own."""
    book = Book(sized("kind"))
    book.publish(AX, AY)
    for batches in ((AX, AY, AZ), (AZ, AY, AX), (BX, AY, AZ, AX)):
        publication = book.publish(*batches, snapshot=f"with {len(batches)}")
        assert publication.questions.ended == ()
        assert 1 in publication.questions.confirmed
    assert book.asked == [("a/x", "a/y"), ("a/z",), ("b/x",)]


@cases(
    "batches, reason, expected",
    ("another value", (AX, quota("a/y", 2)), "changed", [("a/x", "a/y")]),
    ("one is gone", (AX,), "changed", [("a/x",)]),
    ("all are gone", (AZ,), "no_longer_proposed", [("a/z",)]),
)
def test_a_group_of_which_a_part_changed_is_asked_anew(
    batches: tuple[Batch, ...], reason: str, expected: list[tuple[str, ...]]
) -> None:
    book = Book(sized("kind"))
    book.publish(AX, AY)
    (end,) = book.publish(*batches).questions.ended
    assert (end.reason.value, end.by_batch_id) == (reason, "b1" if reason == "changed" else None)
    assert book.asked == expected


def test_questions_that_stand_keep_their_size_when_the_policy_changes() -> None:
    for before, after in (("namespace", "kind"), ("kind", "namespace")):
        book = Book(sized(before))
        book.publish(AX, AY)
        book.policy = sized(after)
        publication = book.publish(AX, AY, snapshot="later")
        assert (publication.ask, publication.questions.ended) == (False, ())


def test_a_rejected_group_silences_its_parts() -> None:
    """A rejected group silences each of its parts, alone or in another group, unless its value changes."""
    book = Book(sized("kind"))
    book.publish(AX, AY)
    book.reject()
    assert not book.publish(AX, AY, snapshot="same").ask
    assert book.asked == [("a/x", "a/y")]
    assert not book.publish(AX, snapshot="fewer").ask
    book.publish(AX, AY, AZ, snapshot="more")
    assert book.asked == [("a/z",)]
    book.publish(quota("a/x", 2), AY, AZ, snapshot="changed")
    assert book.asked == [("a/z",), ("a/x",)]


def test_a_snoozed_group_silences_its_namespaces() -> None:
    book = Book(sized("kind"))
    book.publish(AX, AY)
    book.snooze()
    assert not book.publish(quota("a/x", 2), AY, snapshot="other value").ask
    book.publish(AX, AY, AZ, snapshot="more")
    assert book.asked == [("a/x", "a/y"), ("a/z",)]
    worse = replace(AX, findings=(a_finding(Severity.CRITICAL),))
    book.publish(worse, AY, AZ, snapshot="worse")
    assert book.asked == [("a/x", "a/y"), ("a/z",), ("a/x",)]
    assert not book.publish(worse, AY, AZ, snapshot="as bad").ask


@pytest.mark.parametrize("more", [1, 2])
def test_a_namespace_of_a_snoozed_group_is_compared_with_itself(more: int) -> None:
    """A namespace of a snoozed group is asked about only if it would lose more than it would have lost itself."""
    book = Book(sized("kind"))
    book.publish(expiry("a/x", loss=Loss(messages=1, bytes=1)), expiry("a/y", loss=Loss(messages=9, bytes=9)))
    assert book.asked == [("a/x", "a/y")]
    book.snooze()
    loses_more = expiry("a/x", loss=Loss(messages=more, bytes=more))
    assert book.publish(loses_more, snapshot="later").ask is (more > 1)


def test_a_rejection_of_one_does_not_silence_a_group() -> None:
    """Namespaces that were not rejected are asked about as a group without the one that was."""
    book = Book(sized("namespace"))
    book.publish(AX)
    book.reject()
    book.policy = sized("kind")
    book.publish(AX, AY, AZ)
    assert book.asked == [("a/x",), ("a/y", "a/z")]


def test_a_group_that_timed_out_is_asked_anew_with_what_joined() -> None:
    book = Book(sized("kind"))
    book.publish(AX, AY)
    book.becomes(BatchState.UNANSWERED)
    (end,) = book.publish(AX, AY, AZ, snapshot="later").questions.ended
    assert (end.reason.value, end.by_batch_id) == ("asked_anew", "b1")
    assert book.asked == [("a/x", "a/y", "a/z")]


def test_nothing_is_asked_for_what_a_group_in_use_is_about() -> None:
    book = Book(sized("kind"))
    book.publish(AX, AY)
    book.becomes(BatchState.CHANGING)
    book.publish(quota("a/x", 2), AY, AZ)
    assert book.asked == [("a/x", "a/y"), ("a/z",)]


def test_a_partial_snapshot_that_shows_a_part_of_a_group_asks_nothing() -> None:
    """A partial snapshot with a part of a group leaves its question as it is, and with another value it ends it."""
    book = Book(sized("kind"))
    book.publish(AX, AY)
    publication = book.publish(AX, view=SnapshotView.PARTIAL)
    assert (publication.ask, publication.questions.confirmed, publication.questions.ended) == (False, (), ())
    assert book.asked == [("a/x", "a/y")]
    assert not book.publish(AX, AY, view=SnapshotView.PARTIAL, snapshot="whole").questions.ended
    (end,) = book.publish(quota("a/x", 2), view=SnapshotView.PARTIAL, snapshot="other").questions.ended
    assert end.reason.value == "changed"


def test_a_greater_loss_in_a_part_is_another_question() -> None:
    some, less, more = (expiry("a/x", loss=Loss(messages=n, bytes=9)) for n in (5, 4, 6))
    book = Book(sized("kind"))
    book.publish(some, expiry("a/y"))
    assert not book.publish(less, expiry("a/y")).ask
    (end,) = book.publish(more, expiry("a/y")).questions.ended
    assert end.reason.value == "changed"


def test_a_task_that_is_tried_again_makes_the_same_plan() -> None:
    """A retried task forms the same questions again, so that it makes the same plan and records no changes."""
    book = Book(sized("kind", most_steps=2))
    book.publish(AX, AY, snapshot="before")
    book.publish(AZ, quota("a/x", 2), BX, AY)
    plan = book.plan
    again = book.publish(AZ, quota("a/x", 2), BX, AY)
    assert book.plan.plan_id == plan.plan_id
    assert (again.ask, again.questions.asked, again.questions.ended) == (False, (), ())


NAMES = ("a/x", "a/y", "b/z")


def proposals(values: Iterable[int | None]) -> list[Batch]:
    """A quota of this size for each namespace that has one."""
    return [quota(name, value) for name, value in zip(NAMES, values, strict=True) if value is not None]


@pytest.mark.parametrize("policy", [sized("tenant"), sized("kind"), sized("kind", most_steps=2)])
@pytest.mark.parametrize("fate", [BatchState.WAITING, BatchState.CHANGING, BatchState.UNANSWERED, "rejected"], ids=str)
@pytest.mark.parametrize("view", SnapshotView)
def test_whatever_stood_and_whatever_is_seen(policy: Policy, fate: BatchState | str, view: SnapshotView) -> None:
    """Each proposal is in exactly one question unless it is silent, and the same plan once more changes no question."""
    for old, new in product(product((None, 1), repeat=3), product((None, 1, 2), repeat=3)):
        book, case = Book(policy), (old, new)
        book.publish(*proposals(old), snapshot="old")
        if isinstance(fate, BatchState):
            book.becomes(fate)
        else:
            book.reject()
        before = list(book.standing)
        publication = book.publish(*proposals(new), view=view)
        shown = [part.steps[0].change for batch in book.plan.batches for part in parts_of(batch)]
        assert sorted(map(str, shown)) == sorted(str(each.steps[0].change) for each in proposals(new)), case
        stand = [each for each in book.standing if each.state is BatchState.WAITING and each.batch is not None]
        places = [str(step.change) for each in stand if each.batch for step in each.batch.steps]
        assert len(places) == len(set(places)), case
        for batch in proposals(new):
            is_asked = str(batch.steps[0].change) in places
            was_asked = goal_of(batch) in {goal for each in before for goal in goals_in(each.goal)}
            same = any(
                batch.steps[0].change == step.change for each in before if each.batch for step in each.batch.steps
            )
            silent = (fate is BatchState.CHANGING and was_asked) or (fate == "rejected" and same)
            assert is_asked is not silent, (case, batch.title)
        if view is SnapshotView.COMPLETE:
            proposed = {str(batch.steps[0].change) for batch in proposals(new)}
            assert proposed.issuperset(places), case
        if fate is BatchState.CHANGING:
            assert publication.questions.ended == (), case
        questions, again = list(book.standing), book.publish(*proposals(new), view=view, snapshot="again")
        assert (again.questions.asked, again.questions.ended, book.standing) == ((), (), questions), case
