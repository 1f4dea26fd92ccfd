"""Decisions on a new plan's batches, on the questions that stand, and which proposal is worse than another."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.rows import EndReason
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.isolation import Reach
from pulsar_steward.model.loss import InFlight, Loss
from pulsar_steward.model.plan import Batch, Plan, content_digest, goal_of, loses_more, numbered
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Touched
from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch
from pulsar_steward.orchestration.contents import got_worse
from pulsar_steward.orchestration.publish import Publication, SnapshotView, decide
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.builders import NOW, a_batch, a_finding, a_move, a_plan, a_step, broker
from tests.cases import cases
from tests.unit.changes.test_kinds import ISOLATION

if TYPE_CHECKING:
    from collections.abc import Iterable

POLICY = ApprovalPolicy(response_timeout_minutes=60, ask_again_minutes=120)
STATES = (BatchState.NOT_ASKED, BatchState.WAITING, BatchState.CHANGING, BatchState.UNANSWERED)
"""States that a decision tells apart: approved is as good as waiting, and all others are over."""


def setting(namespace: str, seconds: int, **fields: Any) -> Batch:
    """A batch that sets a TTL; `fields` are those of its step."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=seconds))
    return a_batch(a_step(change, **fields), kind="retention", title=f"{namespace}: {seconds} s")


SHOP, SHOP_LATER = setting("shop/orders", 60), setting("shop/orders", 90)
SHOP_LOSES, SHOP_LOSES_MORE = (setting("shop/orders", 60, loss=Loss(messages=n, bytes=9)) for n in (5, 6))
BANK = setting("bank/live", 60)
MOVE, OTHER_MOVE = a_batch(), a_batch(a_step(a_move(target=broker(2))))


def a_new_plan(*batches: Batch, snapshot: str = "new", **fields: Any) -> Plan:
    """A plan of these batches, numbered in order."""
    return msgspec.structs.replace(a_plan(snapshot_id=snapshot, **fields), batches=numbered(batches), taken_at=NOW)


def asked(number: int, about: Batch, state: BatchState = BatchState.WAITING, **fields: Any) -> AskedBatch:
    """A question about a batch, asked in a plan of its own."""
    plan = a_new_plan(about, snapshot=f"earlier-{number}")
    usual = AskedBatch(
        question_id=number,
        plan_id=plan.plan_id,
        batch_id="b1",
        content=content_digest(plan, plan.batches[0]),
        goal=goal_of(about),
        batch=plan.batches[0],
        state=state,
        risk=risk_of(plan, plan.batches[0]).level,
    )
    return msgspec.structs.replace(usual, **fields)


def rejected(batch: Batch, minutes: int) -> RejectedBatch:
    """A batch that was rejected so many minutes ago."""
    plan = a_new_plan(batch, snapshot="rejected")
    content = content_digest(plan, plan.batches[0])
    return RejectedBatch(plan_id="rejected", content=content, batch=batch, at=NOW - timedelta(minutes=minutes))


def decided(
    batches: Iterable[Batch],
    standing: Iterable[AskedBatch] = (),
    rejections: Iterable[RejectedBatch] = (),
    *,
    view: SnapshotView = SnapshotView.COMPLETE,
) -> Publication:
    """Decision on a plan of these batches."""
    return decide(a_new_plan(*batches), view, tuple(standing), tuple(rejections))


def in_short(publication: Publication) -> tuple[list[str], list[int], list[tuple[int, str, str | None]]]:
    """The batches that are asked, the questions that are confirmed, and those that end with what takes their place."""
    changes = publication.questions
    ended = [(each.question_id, each.reason.value, each.by_batch_id) for each in changes.ended]
    return [each.batch_id for each in changes.asked], list(changes.confirmed), ended


def rests_by(no: Batch | None, new: Batch) -> bool:
    """True if the rejection of a batch has a new one rest: it is the same, and loses no more."""
    same = no is not None and content_digest(a_new_plan(no), no) == content_digest(a_new_plan(new), new)
    return same and no is not None and not loses_more(new, no)


WAITS = asked(1, SHOP)
MOVE_DISTURBS = a_batch(a_step(touched=Touched(producers=6000, consumers=5000, topics=1, coordinators=0)))
"""Asks the same as `MOVE`, with 11,000 clients in place of a few."""

MOVE_WAITS = asked(1, MOVE)


LOOSENED = asked(1, SHOP, answerable=False)
UNREADABLE = asked(1, SHOP, answerable=False, batch=None)
SHOP_UNASKED, MOVE_UNASKED = (asked(1, each, BatchState.NOT_ASKED) for each in (SHOP, MOVE))
OTHER_CHANGES = asked(2, OTHER_MOVE, BatchState.CHANGING)
CHANGED: tuple[list[str], list[int], list[Any]] = (["b1"], [], [(1, "changed", "b1")])


@cases(
    "batches, standing, expected",
    ("the first", [SHOP], [], (["b1"], [], [])),
    ("the same waits", [SHOP], [WAITS], ([], [1], [])),
    ("only what is new is asked", [BANK, SHOP], [WAITS], (["b1"], [1], [])),
    ("another value", [SHOP_LATER], [WAITS], CHANGED),
    ("another namespace", [BANK], [WAITS], (["b1"], [], [(1, "no_longer_proposed", None)])),
    ("healed by itself", [], [WAITS], ([], [], [(1, "no_longer_proposed", None)])),
    ("one of two changed", [OTHER_MOVE, SHOP], [MOVE_WAITS, asked(2, SHOP)], (["b1"], [2], [(1, "changed", "b1")])),
    ("less is lost", [SHOP_LOSES], [asked(1, SHOP_LOSES_MORE)], ([], [1], [])),
    ("more is lost", [SHOP_LOSES_MORE], [asked(1, SHOP_LOSES)], CHANGED),
    ("it would be refused", [SHOP], [LOOSENED], (["b1"], [], [(1, "policy_loosened", "b1")])),
    ("and it is gone", [BANK], [LOOSENED], (["b1"], [], [(1, "policy_loosened", None)])),
    ("its plan cannot be read", [SHOP], [UNREADABLE], (["b1"], [], [(1, "policy_loosened", "b1")])),
    ("timed out", [SHOP], [asked(1, SHOP, BatchState.UNANSWERED)], (["b1"], [], [(1, "asked_anew", "b1")])),
    ("the same is being carried out", [SHOP], [asked(1, SHOP, BatchState.CHANGING)], ([], [], [])),
    ("the goal is being worked at", [SHOP_LATER], [asked(1, SHOP, BatchState.CHANGING)], ([], [], [])),
    ("another goal is worked at", [BANK], [asked(1, SHOP, BatchState.CHANGING)], (["b1"], [], [])),
    ("nothing is left while it is carried out", [], [asked(1, SHOP, BatchState.CHANGING)], ([], [], [])),
    ("another part of a goal that is worked at", [MOVE, BANK], [MOVE_WAITS, OTHER_CHANGES], (["b2"], [1], [])),
    ("one of two can be answered", [SHOP], [LOOSENED, asked(2, SHOP)], ([], [2], [(1, "policy_loosened", None)])),
    ("the same with a higher risk", [MOVE_DISTURBS], [MOVE_WAITS], CHANGED),
    ("the same with a lower risk", [MOVE], [asked(1, MOVE_DISTURBS)], ([], [1], [])),
    ("its risk rises as it is carried out", [MOVE_DISTURBS], [asked(1, MOVE, BatchState.CHANGING)], ([], [], [])),
    ("its risk rises before anybody is asked", [MOVE_DISTURBS], [MOVE_UNASKED], CHANGED),
    ("another value before anybody is asked", [SHOP_LATER], [SHOP_UNASKED], CHANGED),
)
def test_each_batch_is_asked_once(
    batches: list[Batch], standing: list[AskedBatch], expected: tuple[list[str], list[int], list[Any]]
) -> None:
    """A question stands when its batch is proposed again, has a successor when it differs, and ends when it is gone."""
    publication = decided(batches, standing)
    assert in_short(publication) == expected
    assert publication.ask is bool(expected[0])
    assert publication.record is bool(expected[0] or expected[2] or not batches)


@pytest.mark.parametrize("view", SnapshotView)
def test_what_nobody_was_asked_is_published_again_where_it_stands(view: SnapshotView) -> None:
    """Every observation that confirms it publishes its own plan, beside what is new; nothing else is recorded."""
    unasked = asked(1, SHOP, BatchState.NOT_ASKED)
    publication = decided([SHOP], [unasked], view=view)
    assert (publication.publish, publication.record) == ((unasked.plan_id,), False)
    assert in_short(publication) == ([], [1], [])
    assert "asks the same and was asked of nobody" in publication.reason
    plan, more = a_new_plan(SHOP, BANK, MOVE), (unasked, asked(2, MOVE, BatchState.NOT_ASKED))
    assert decide(plan, view, more, ()).publish == (plan.plan_id, *(each.plan_id for each in more))


def test_what_nobody_was_asked_ends_where_somebody_said_no_meanwhile() -> None:
    """A rejection of the same elsewhere holds for it: it is not asked for the first time, and ends."""
    publication = decided([SHOP], [asked(1, SHOP, BatchState.NOT_ASKED)], [rejected(SHOP, 5)])
    assert (publication.publish, in_short(publication)) == ((), ([], [], [(1, "no_longer_proposed", None)]))
    (end,) = publication.questions.ended
    assert end.words.startswith("nobody was asked, and nobody will be: the same was rejected at")


def test_a_higher_risk_names_both_levels() -> None:
    """The end of the question says under which level it was asked, and which one it has by now."""
    (end,) = decided([MOVE_DISTURBS], [MOVE_WAITS]).questions.ended
    assert end.words.startswith("its risk is high by now, and it was asked as medium; batch b1 of plan new-")


def test_what_no_task_waits_for_names_the_run() -> None:
    (end,) = decided([SHOP], [asked(1, SHOP, BatchState.UNANSWERED, gone="dag/run/0")]).questions.ended
    assert end.words.startswith("run dag/run/0 does not wait for an answer any more, and recorded none; batch b1 of")


@cases("batch, asks", ("the same", SHOP, False), ("something else", SHOP_LATER, True))
@pytest.mark.parametrize("stands", [True, False])
def test_what_was_rejected_rests(batch: Batch, asks: bool, stands: bool) -> None:
    """A batch that was rejected in an earlier plan is not asked again, and one with another content is."""
    standing = [asked(1, SHOP, BatchState.UNANSWERED)] if stands else []
    publication = decided([batch], standing, [rejected(SHOP, 1)])
    assert publication.ask is asks
    assert bool(publication.questions.ended) is (stands and asks)


GROUP, WIDER_GROUP = (
    a_batch(a_step(ISOLATION, reach=Reach(names, ("10.0.1.1:8080",)))) for names in (("shop/a",), ("shop/a", "shop/b"))
)


def test_a_group_that_matches_others_by_now_is_asked_anew_unless_it_was_rejected() -> None:
    """An approval is of the namespaces and brokers that matched; a rejection is of the policy, whatever matches."""
    assert not decided([GROUP], [asked(1, GROUP)]).ask
    assert decided([WIDER_GROUP], [asked(1, GROUP)]).ask
    assert not decided([WIDER_GROUP], [], [rejected(GROUP, 1)]).ask


def test_a_greater_loss_than_was_rejected_is_asked() -> None:
    assert decided([SHOP_LOSES_MORE], [], [rejected(SHOP_LOSES, 1)]).ask
    assert not decided([SHOP_LOSES], [], [rejected(SHOP_LOSES_MORE, 1)]).ask


def test_the_same_plan_once_more_asks_what_nobody_was_asked() -> None:
    """A plan that is decided on again is handed on only if one of its questions was not requested yet."""
    plan = a_new_plan(SHOP, BANK, MOVE)
    here = [
        asked(n, batch, plan_id=plan.plan_id, batch_id=f"b{n}", state=state)
        for n, (batch, state) in enumerate(
            [(SHOP, BatchState.NOT_ASKED), (BANK, BatchState.WAITING), (MOVE, BatchState.CHANGING)], start=1
        )
    ]
    publication = decide(plan, SnapshotView.COMPLETE, here, ())
    assert (publication.ask, in_short(publication)) == (True, ([], [], []))
    assert not decide(plan, SnapshotView.COMPLETE, here[1:], (rejected(SHOP, 1),)).ask


@cases(
    "batches, expected",
    ("nothing", [], ([], [], [])),
    ("something else", [BANK], (["b1"], [], [])),
    ("the same", [SHOP], ([], [1], [])),
    ("the same goal", [SHOP_LATER], (["b1"], [], [(1, "changed", "b1")])),
)
def test_a_partial_snapshot_proves_nothing_absent(
    batches: list[Batch], expected: tuple[list[str], list[int], list[Any]]
) -> None:
    """A partial snapshot ends a question only where it proposes something else for the same goal."""
    publication = decided(batches, [WAITS], view=SnapshotView.PARTIAL)
    assert in_short(publication) == expected


def test_whatever_stood_and_whatever_is_seen() -> None:
    """In every combination no waiting question is asked twice, none in use is ended, and no outdated one is left."""
    batches = (None, SHOP, SHOP_LATER, SHOP_LOSES, BANK)
    states = STATES
    for old, state, answerable, new, also, no, view in product(
        batches, states, (True, False), batches, (None, MOVE), (None, SHOP, SHOP_LOSES), SnapshotView
    ):
        standing = [] if old is None else [asked(1, old, state, answerable=answerable)]
        proposed = [batch for batch in (new, also) if batch is not None]
        rejections = [] if no is None else [rejected(no, 5)]
        publication = decided(proposed, standing, rejections, view=view)
        asks, confirmed, ended = in_short(publication)
        case = (old, state, answerable, new, also, no, view)
        for question in standing:
            is_same = (
                new is not None
                and question.content == content_digest(a_new_plan(new), a_new_plan(new).batches[0])
                and not loses_more(new, old or new)
            )
            assert not (confirmed and ended), case
            if state is BatchState.CHANGING:
                same_goal = new is not None and goal_of(new) == question.goal
                assert (ended, "b1" in asks and same_goal) == ([], False), case
            elif state in {BatchState.WAITING, BatchState.NOT_ASKED} and answerable and is_same:
                refused = state is BatchState.NOT_ASKED and new is not None and rests_by(no, new)
                assert "b1" not in asks, case
                assert confirmed == ([] if refused else [1]), case
                assert publication.publish.count(question.plan_id) == (state is BatchState.NOT_ASKED and not refused)
            else:
                assert confirmed == [], case
                rests = is_same and no is not None and state is BatchState.UNANSWERED and "b1" not in asks
                partly = view is SnapshotView.PARTIAL and (not proposed or not any(by for *_, by in ended))
                assert rests or ended or partly, case
                assert not (rests and ended), case
        if view is SnapshotView.PARTIAL and not proposed:
            assert publication == Publication(record=False, reason="a partial snapshot changes nothing"), case
        for _, reason, by in ended:
            assert by is None or by in asks, case
            said_no = state is BatchState.NOT_ASKED and no is not None
            assert view is SnapshotView.COMPLETE or by or reason == EndReason.POLICY_LOOSENED or said_no, case


def found(check_id: str = "ttl-before-quota", severity: Severity = Severity.WARNING, **fields: Any) -> Finding:
    """A finding about a namespace."""
    return msgspec.structs.replace(a_finding(severity, check_id=check_id), subject="shop/orders", **fields)


def proposal(*findings: Finding, seconds: int = 60, **fields: Any) -> Batch:
    """A batch that sets a time to live; `fields` are those of its step."""
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=seconds)
    )
    return a_batch(a_step(change, **fields), kind="retention", findings=findings or (found(),))


def messages(number: int) -> Loss:
    """A loss of so many messages."""
    return Loss(messages=number, bytes=0)


def stored(size: int) -> Loss:
    """A loss of so many stored bytes."""
    return Loss(messages=0, bytes=size)


@cases(
    "now, then, words",
    ("the same", proposal(), proposal(), None),
    ("another value", proposal(seconds=90), proposal(), None),
    ("more of it", proposal(found(evidence="5 more", figures={"backlog": 9})), proposal(), None),
    ("more severe", proposal(found(severity=Severity.CRITICAL)), proposal(), "is critical by now"),
    ("less severe", proposal(), proposal(found(severity=Severity.CRITICAL)), None),
    ("a new one", proposal(found(), found("quota-stuck")), proposal(), "quota-stuck of shop/orders"),
    ("one is gone", proposal(), proposal(found(), found("quota-stuck")), None),
    ("messages are lost", proposal(loss=messages(1)), proposal(), "more would be lost"),
    ("more messages", proposal(loss=messages(2)), proposal(loss=messages(1)), "more would be lost"),
    ("more bytes", proposal(loss=stored(2)), proposal(loss=stored(1)), "more would be lost"),
    ("as much is lost", proposal(loss=messages(1)), proposal(loss=messages(1)), None),
    ("more by another value", proposal(seconds=9, loss=stored(2)), proposal(loss=stored(1)), "more would be lost"),
    ("nothing is lost any more", proposal(), proposal(loss=stored(1)), None),
    (
        "more comes again than there is room for",
        proposal(in_flight=InFlight(again=30_001)),
        proposal(in_flight=InFlight(again=10_000)),
        "more messages are in flight",
    ),
    (
        "as much as there is room for",
        proposal(in_flight=InFlight(again=30_000)),
        proposal(in_flight=InFlight(again=10_000)),
        None,
    ),
    ("what was asked cannot be read", proposal(), None, "cannot be read"),
)
def test_worse(now: Batch, then: Batch | None, words: str | None) -> None:
    """A proposal is worse by a new or more severe finding or by a greater loss, and not by other figures."""
    why = got_worse(now, then)
    assert (why is None) == (words is None)
    assert (words or "") in (why or "")


def test_a_loss_that_moves_to_another_setting_is_greater_there() -> None:
    """A proposal is worse when the loss of one setting grows, however much the loss of another one shrinks."""
    other = ChangeSetting(namespace="shop/carts", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    now = a_batch(a_step(proposal().steps[0].change, loss=stored(1)), a_step(other, loss=stored(5)))
    then = a_batch(a_step(proposal().steps[0].change, loss=stored(9)), a_step(other, loss=stored(4)))
    assert got_worse(now, then) is not None
    assert got_worse(then, now) is not None
