"""Report of a run's outcome, and of what an operator has to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.ledger.rows import Decision, Outcome, Proof, RecordedAnswer, StepOutcome
from pulsar_steward.report.outcome import story, troubles
from tests.builders import NOW, a_batch, a_batch_run, a_plan, a_step, an_outcome
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.ledger.batch_record import BatchRun
    from tests.golden import Golden

BATCH = a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02"), title="Even_out")
PLAN = a_plan(BATCH)
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
