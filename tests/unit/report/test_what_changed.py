"""What differs between two questions, and the report of what came of a run."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.past import MoveTimes
from pulsar_steward.ledger.rows import Decision, EndReason, Outcome, Proof, QuestionEnd, RecordedAnswer, StepOutcome
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.isolation import Reach
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.plan import ROLLBACK, Batch, Placement
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from pulsar_steward.outside_text import shown
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.markdown import bullets, table, text
from pulsar_steward.report.outcome import story, troubles
from pulsar_steward.report.what_changed import Former, what_changed
from pulsar_steward.report.when import gone_for, least_time, when
from pulsar_steward.report.worth import worth_in_brief, worth_in_words
from tests.builders import (
    NOW,
    a_batch,
    a_batch_run,
    a_finding,
    a_move,
    a_plan,
    a_policy,
    a_split,
    a_step,
    an_outcome,
    broker,
)
from tests.cases import cases, row_by_row
from tests.questions import question
from tests.unit.changes.test_kinds import ISOLATION

if TYPE_CHECKING:
    from pulsar_steward.ledger.batch_record import BatchRun
    from pulsar_steward.policy.approval import Terms
    from tests.golden import Golden

MOVE, OTHER = a_step(), a_step(a_move(bundle="0x10000000_0x20000000"), step_id="b1.s02")
BATCH = a_batch(MOVE, OTHER)


def former(*steps: Step, reason: EndReason = EndReason.CHANGED) -> Former:
    """A question with these steps that ended."""
    end = QuestionEnd(
        question_id=1,
        plan_id="p",
        batch_id="b1",
        at=NOW,
        reason=reason,
        by_plan_id="new",
        by_batch_id="b1",
        words="made up",
    )
    return Former(end=end, steps=steps)


def differences(*steps: Step) -> tuple[str, ...]:
    """Lines about the steps."""
    return what_changed(BATCH, former(*steps))[1:]


def test_steps_that_were_added_and_left_out() -> None:
    """Steps that were added or left out are listed by what they do, and unchanged ones are counted."""
    assert differences(MOVE) == (f"Added: b1.s02, {kind_of(OTHER.change).describe()}.", "1 step as before.")
    third = a_step(a_move(bundle="0x20000000_0x30000000"))
    assert differences(MOVE, OTHER, third) == (f"Left out: {kind_of(third.change).describe()}.", "2 steps as before.")


def test_namespaces_that_match_a_policy_by_now_are_named() -> None:
    then, now = (a_step(ISOLATION, reach=Reach(names)) for names in (("shop/a",), ("shop/a", "shop/b")))
    assert what_changed(a_batch(now), former(then))[1] == "Changed: b1.s01, 1 more namespace matches: shop/b."


def test_a_group_may_take_the_place_of_several_questions() -> None:
    both = msgspec.structs.replace(former(OTHER, MOVE), others=1)
    why, rest = what_changed(BATCH, both)
    assert "plan p, batch b1, and 1 other question" in why
    assert rest == "The steps are the same, with the same values."
    loses = a_batch(MOVE, msgspec.structs.replace(OTHER, loss=Loss(messages=1, bytes=0)))
    assert what_changed(loses, both)[1:] == ("More would be lost, or delivered again, than was asked before.",)


def test_another_value() -> None:
    """A changed step is listed with its new value and its former one."""
    was = a_step(a_move(target=broker(2)))
    said, _ = differences(was, OTHER)
    assert said == f"Changed: b1.s01, {kind_of(MOVE.change).describe()}; it was: {kind_of(was.change).describe()}."


def test_another_way_back_and_another_verdict() -> None:
    """A step whose undo or guard verdict changed is listed as changed."""
    undone = msgspec.structs.replace(MOVE, undo=a_move())
    assert differences(undone, OTHER)[0] == "Changed: b1.s01 cannot be undone by now."
    looked = msgspec.structs.replace(MOVE, guards=(GuardResult(guard="owner", passed=False, reason=""),))
    assert differences(looked, OTHER)[0] == "Changed: b1.s01 is judged otherwise by owner (objects)."


def test_more_would_be_lost() -> None:
    """A larger loss is named as the change if the steps are the same."""
    ttl = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    now, then = (a_step(ttl, loss=Loss(messages=number, bytes=1)) for number in (6, 5))
    assert what_changed(a_batch(now), former(then))[1:] == (
        "More would be lost, or delivered again, than was asked before.",
    )


@row_by_row(
    "reason, words",
    (EndReason.CHANGED, "It takes the place of plan p, batch b1"),
    (EndReason.ASKED_ANEW, "Asked before (plan p, batch b1), and not carried out"),
    (EndReason.POLICY_LOOSENED, "under a stricter policy: that answer"),
)
def test_why_it_is_asked_again(reason: EndReason, words: str) -> None:
    """The text gives the reason why a question is asked again, also if its steps are the same."""
    why, same = what_changed(BATCH, former(MOVE, OTHER, reason=reason))
    assert words in why
    assert same == "The steps are the same, with the same values."


def test_the_question_says_it() -> None:
    """The question has a section about changes only if it takes the place of a former question."""
    heading = "### What changed since it was asked before"
    plan = a_plan(BATCH)
    assert heading in question(plan, BATCH, Policy(), former=former(MOVE))
    assert heading not in question(plan, BATCH, Policy())


NIGHT = {"opens": "0 22 * * *", "minutes": 60}
NOON = {"opens": "0 12 * * *", "minutes": 60}


GRAVE = (Risk.HIGH, Risk.CRITICAL)


def terms(risk: Risk) -> Terms:
    """Terms of an approval of a batch of this risk, by the default policy."""
    return Policy().approval.terms(("retention",), risk)


LOW = terms(Risk.LOW)


def a_batch_of(steps: int, clients: int = 1) -> Batch:
    """A batch of so many moves of so many clients each."""
    step = a_step(touched=Touched(producers=clients, consumers=0, topics=1, coordinators=0))
    return a_batch(*[step] * steps)


def with_windows(*windows: dict[str, Any], **approval: Any) -> Policy:
    """A policy with these maintenance windows."""
    return a_policy(guards={"windows": list(windows)}, approval=approval)


def test_when_it_would_begin_and_end(golden: Golden) -> None:
    """The text tells when a batch begins and ends: at once, in an open or a later window, or too late."""
    long = a_batch_of(60 * 90)
    cases = {
        "no windows": (a_batch_of(3), Policy()),
        "no windows, long": (long, Policy()),
        "open": (a_batch_of(3), with_windows(NOON)),
        "open, and too short": (long, with_windows(NOON)),
        "tonight": (a_batch_of(120), with_windows(NIGHT)),
        "tonight, and too short": (long, with_windows(NIGHT)),
        "too late": (a_batch_of(3), with_windows(NIGHT, wait_for_window_minutes=60)),
        "a way back": (a_batch(kind=ROLLBACK), with_windows(NIGHT)),
    }
    told = {name: when(*case, LOW, NOW) for name, case in cases.items()}
    told |= {f"tonight, {risk} risk": when(a_batch_of(3), with_windows(NIGHT), terms(risk), NOW) for risk in GRAVE}
    golden("\n".join(f"{name}: {' '.join(words)}" for name, words in told.items()))


def test_how_long_it_takes_is_what_the_pace_makes_of_it() -> None:
    """A batch's least time follows its slower rate limit, by changes or by clients, after the first minute's share."""
    policy = a_policy(apply={"bundle_moves_per_minute": 10, "reconnecting_clients_per_minute": 1000})
    assert least_time(a_batch_of(10), policy) == timedelta()
    assert least_time(a_batch_of(30), policy) == timedelta(minutes=2)
    assert least_time(a_batch_of(30, clients=100), policy) == timedelta(minutes=2)
    assert least_time(a_batch_of(30, clients=200), policy) == timedelta(minutes=5)


def test_how_long_earlier_moves_took_is_said(golden: Golden) -> None:
    """The question about moves tells how long earlier moves took, and that about splits does not."""
    moved = MoveTimes(moves=34, middle=0.42, nine_in_ten=2.1, days=90)
    golden("\n".join(when(a_batch_of(120), Policy(), LOW, NOW, moved=moved)))
    split = a_batch(a_step(a_split()))
    assert list(when(split, Policy(), LOW, NOW, moved=moved)) == list(when(split, Policy(), LOW, NOW))


def test_how_long_moved_topics_are_gone_is_estimated(golden: Golden) -> None:
    full, small, empty = (
        a_step(touched=Touched(producers=1, consumers=1, topics=topics, coordinators=0)) for topics in (1_000, 20, 0)
    )
    slow = a_policy(failover_time={"topics_loaded_per_second_per_broker": 10})
    golden("\n".join(line for policy in (Policy(), slow) for line in gone_for(a_batch(small, full), policy)))
    assert list(gone_for(a_batch(empty), Policy())) == []
    assert list(gone_for(a_batch(a_step(a_split())), Policy())) == []


def test_what_it_is_worth(golden: Golden) -> None:
    """The worth of a batch is told in sentences and in brief, and the sentences say what is not known."""
    growing = msgspec.structs.replace(a_finding(Severity.CRITICAL), figures={"seconds_to_quota": 7000})
    cases = {
        "all": a_batch(
            a_step(averts=Loss(messages=12, bytes=1)),
            findings=(growing, a_finding()),
            before=(Placement(broker(1), 12), Placement(broker(2), 0)),
            after=(Placement(broker(1), 6), Placement(broker(2), 6)),
        ),
        "a quota, when is not known": a_batch(kind="backlog_quota"),
        "reached": a_batch(findings=(msgspec.structs.replace(growing, figures={"seconds_to_quota": -5}),)),
        "nothing": a_batch(findings=()),
        "a way back": a_batch(kind=ROLLBACK, findings=()),
    }
    golden("\n".join(f"{name}: {' '.join(worth_in_words(b))} [{worth_in_brief(b)}]" for name, b in cases.items()))


def test_a_question_says_when_where_the_time_is_known() -> None:
    batch = a_batch_of(3)
    assert "### When" in question(a_plan(batch), batch, Policy(), now=NOW)
    assert "### When" not in question(a_plan(batch), batch, Policy())


@row_by_row(
    "words, escaped",
    ("public/default", "public/default"),
    ("tenant_one/*ns*", r"tenant\_one/\*ns\*"),
    ("[click](http://evil)", "`[click](http://evil)`"),
    ("by alice@example.org today", "by `alice@example.org` today"),
    ("a|www.example.org|`b`", r"a\|`www.example.org`\|\`b\`"),
    ("<script>alert(1)</script>", r"\<script\>alert\(1\)\</script\>"),
    ("&lt;b&gt;", r"\&lt;b\&gt;"),
    ("a | b", r"a \| b"),
    ("two\nlines\t and  blanks", r"two\\nlines\\t and blanks"),
    ("- item", r"\- item"),
    ("1. item", r"1\. item"),
    ("===", r"\==="),
    ("16 of 16 - and 2.5", "16 of 16 - and 2.5"),
    ("`code` ~~no~~ # title", r"\`code\` \~\~no\~\~ \# title"),
    ("back\\slash", r"back\\slash"),
    (12, "12"),
)
def test_words_stay_words(words: object, escaped: str) -> None:
    """Characters with a meaning in Markdown are made harmless, and line breaks are spelled out."""
    assert text(words) == escaped


MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
PIECES = st.lists(st.sampled_from([*"`|\\*_[]()<>!#-=1.:/@&~ ", "www.", "https://", "a@b.c", "x"]), max_size=12)


@given(st.text() | PIECES.map("".join))
def test_a_reader_of_the_rendered_page_sees_the_words(words: str) -> None:
    """Rendered Markdown shows the words of a list item and of a table cell unchanged, apart from blanks."""
    for page, others in ((bullets([words]), ""), (table(("h",), [(words,)]), "h")):
        read = "".join(each.content for token in MARKDOWN.parse(page) for each in token.children or ())
        assert " ".join(read.split(" ")) == others + " ".join(filter(None, shown(words).split(" ")))


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_table_keeps_its_shape(rows: list[tuple[str, str]]) -> None:
    """Each row of a table is one line of two cells, whatever text the cells hold."""
    lines = table(("a", "b"), rows).split("\n")
    assert len(lines) == 2 + len(rows)
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in lines)


def test_columns_of_numbers_stand_to_the_right() -> None:
    assert table(("broker", "now"), [("b", 3)], numbers=frozenset({1})).split("\n") == [
        "| broker | now |",
        "| --- | --: |",
        "| b | 3 |",
    ]


def test_a_list_has_an_item_a_line() -> None:
    assert (
        bullets(["one", "two\n- three"])
        == r"""- one
- two\\n- three"""
    )


OUTCOME_BATCH = a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02"), title="Even_out")
PLAN = a_plan(OUTCOME_BATCH)
RUN = "dag/run/0"


def an_answer(decision: Decision = Decision.APPROVED, **fields: Any) -> RecordedAnswer:
    """An answer by a person, to both steps where it approves."""
    usual: dict[str, Any] = {
        "plan_id": PLAN.plan_id,
        "batch_id": "b1",
        "run": RUN,
        "answer_id": 1,
        "decision": decision,
        "answered_by": "operator",
        "answered_at": NOW,
        "reason": "made up",
        "step_ids": ("b1.s01", "b1.s02") if decision is Decision.APPROVED else (),
    }
    return RecordedAnswer(**{**usual, **fields})


def a_proof(*, proved: bool = True, **shown: Any) -> Proof:
    """A proof, as read back."""
    return Proof(plan_id=PLAN.plan_id, batch_id="b1", run=RUN, at=NOW, proved=proved, reason="as seen", shown=shown)


BOTH_DONE = (an_outcome(PLAN, "b1.s01"), an_outcome(PLAN, "b1.s02"))


def told(
    answer: RecordedAnswer | None, outcomes: tuple[StepOutcome, ...] = (), proof: Proof | None = None, **fields: Any
) -> BatchRun:
    """The story of the batch."""
    answers, proofs = (() if each is None else (each,) for each in (answer, proof))
    return a_batch_run(PLAN, RUN, answers=answers, outcomes=outcomes, proofs=proofs, **fields)


def ended(step_id: str, outcome: Outcome, reason: str) -> StepOutcome:
    """How a step of the batch ended."""
    return an_outcome(PLAN, step_id, outcome, reason=reason)


@cases(
    "batch, expected",
    ("all done and proved", told(an_answer(), BOTH_DONE, a_proof()), []),
    ("rejected", told(an_answer(Decision.REJECTED)), []),
    ("nobody answered", told(an_answer(Decision.NO_ANSWER), (), a_proof(proved=False)), []),
    ("no answer at all", told(None), ["no answer was recorded"]),
    ("its question ended", told(None, over="newer"), []),
    ("approved, and its question ended", told(an_answer(), over="newer"), []),
    (
        "called, and its question ended",
        told(an_answer(), over="newer", called=frozenset({1})),
        ["b1.s01: approved, and no outcome", "b1.s02: approved, and no outcome", "verification failed"],
    ),
    ("malformed", told(an_answer(Decision.MALFORMED)), ["malformed answer (made up)"]),
    ("a step is missing", told(an_answer(), BOTH_DONE[:1], a_proof()), ["b1.s02: approved, and no outcome"]),
    (
        "unknown",
        told(an_answer(), (BOTH_DONE[0], ended("b1.s02", Outcome.UNKNOWN, "dark")), a_proof(proved=False)),
        ["b1.s02 unknown: dark", "verification failed: as seen"],
    ),
    (
        "drifted",
        told(an_answer(), tuple(ended(each, Outcome.DRIFTED, "moved") for each in ("b1.s01", "b1.s02")), a_proof()),
        ["b1.s01 drifted: moved", "b1.s02 drifted: moved"],
    ),
    ("not verified", told(an_answer(), BOTH_DONE), ["verification failed: it was not verified"]),
    ("done, and not proved", told(an_answer(), BOTH_DONE, a_proof(proved=False)), ["verification failed: as seen"]),
    (
        "withdrawn while under way",
        told(an_answer(Decision.REJECTED), (ended("b1.s01", Outcome.UNKNOWN, "interrupted"),)),
        ["b1.s01 unknown: interrupted"],
    ),
)
def test_what_an_operator_has_to_look_at(batch: BatchRun, expected: list[str]) -> None:
    """Every trouble of a batch is named with its cluster and batch id, and a rejection is not among them."""
    assert len(troubles(batch)) == len(expected)
    for said, words in zip(troubles(batch), expected, strict=True):
        assert said.startswith("east b1: ")
        assert words in said


def test_a_story_tells_who_decided_what_came_of_it_and_where_things_are(golden: Golden) -> None:
    """The report holds the decision with name and comment, each step's outcome, the proof, and the placement."""
    placement = {"b-2": {"unread": "no connection"}, "b-1": {"bundles": 3, "coordinators": 5}}
    words = story([told(an_answer(comment="go ahead"), BOTH_DONE, a_proof(placement=placement))])
    assert words.startswith("## east: Even\\_out\n\n")
    golden(words.replace(PLAN.plan_id, "PLAN"))
    assert "Proved: as seen" in words


@cases(
    "batch",
    ("no answer recorded", told(None)),
    ("nobody answered", told(an_answer(Decision.NO_ANSWER, answered_by=None))),
    ("not proved", told(an_answer(), BOTH_DONE, a_proof(proved=False))),
)
def test_a_story_without_a_happy_end(batch: BatchRun, golden: Golden) -> None:
    """The report states that no answer was recorded, that nobody answered, or that the batch was not proved."""
    golden(story([batch]).replace(PLAN.plan_id, "PLAN"))


def test_a_run_without_batches_had_nothing_to_do() -> None:
    assert story([]) == "There was nothing to do."


def test_a_comment_stays_a_comment() -> None:
    """A person's comment is shown with its Markdown and HTML escaped."""
    words = story([told(an_answer(comment="<b>[x](y)</b>"))])
    assert r"\<b\>\[x\]\(y\)\</b\>" in words


@cases(
    "batch, said",
    ("done", told(an_answer(), BOTH_DONE, a_proof()), (False, False, True)),
    ("unknown", told(an_answer(), (BOTH_DONE[0], an_outcome(PLAN, "b1.s02", Outcome.UNKNOWN))), (True, True, True)),
    ("drifted", told(an_answer(), (an_outcome(PLAN, "b1.s01", Outcome.DRIFTED),)), (True, False, False)),
    ("rejected", told(an_answer(Decision.REJECTED)), (False, False, False)),
    ("not answered", told(None), (False, False, False)),
)
def test_the_report_says_how_to_go_on_and_back(batch: BatchRun, said: tuple[bool, bool, bool]) -> None:
    """The report says how to go on after a batch that stopped, and how to take back the steps that are done."""
    report = story([batch])
    assert tuple(words in report for words in ("**To go on**", "**Look first**", "**To go back**")) == said
    if said[2]:
        assert "undoes b1.s01" in report
