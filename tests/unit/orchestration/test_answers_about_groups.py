"""An answer to a question about several namespaces: all but some of them, read strictly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.rows import Answer, Decision, RecordedAnswer
from pulsar_steward.model.plan import approval_digest
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import LEFT_OUT, LOSS
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step
from tests.unit.orchestration.answering import GONE, IDS, POLICY, RUN, answer_to, event

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step


def expiring(namespace: str, number: int, after: TimeToLive | None) -> Step:
    """A step that has a namespace's messages expire, or never."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=TimeToLive(seconds=90), after=after)
    return a_step(change, step_id=f"b1.s{number:02d}")


LATER, SOONER = TimeToLive(seconds=900), TimeToLive(seconds=9)
GROUP = a_plan(
    a_batch(expiring("shop/a", 1, LATER), expiring("shop/a", 2, LATER), expiring("shop/b", 3, LATER), parts=(2, 1))
)
ABOUT_GROUP = ApprovalQuestion(plan=GROUP, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)


def group_answer(asked: ApprovalQuestion = ABOUT_GROUP, /, **fields: Any) -> Answer:
    """Answer recorded for an approval, with every step ticked and these fields of its form."""
    form = {"steps": [step.step_id for step in asked.steps], "comment": "", LEFT_OUT: [], **fields}
    given_event = event(params_input={name: value for name, value in form.items() if value is not GONE})
    return interpret(given_event, asked, POLICY, NOW)


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        pytest.param({}, IDS, id="none"),
        pytest.param({LEFT_OUT: None}, IDS, id="a field that was cleared"),
        pytest.param({LEFT_OUT: ["shop/a"]}, IDS[2:], id="the first"),
        pytest.param({LEFT_OUT: ["shop/b"]}, IDS[:2], id="the second"),
        pytest.param({LEFT_OUT: ["shop/b"], "steps": ["b1.s02", "b1.s03"]}, IDS[1:2], id="ticks beside it"),
    ],
)
def test_all_but_some_namespaces_are_approved(fields: dict[str, Any], steps: tuple[str, ...]) -> None:
    """A step counts if it is ticked and its namespace is not left out; digest and reason are of exactly that."""
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids) == (Decision.APPROVED, steps)
    assert answer.digest == approval_digest(GROUP, "b1", steps)
    assert [name for name in ABOUT_GROUP.namespaces if name in answer.reason] == (fields.get(LEFT_OUT) or [])


@pytest.mark.parametrize(
    ("fields", "decision"),
    [
        pytest.param({LEFT_OUT: ["shop/a", "shop/b"]}, Decision.REJECTED, id="all"),
        pytest.param({LEFT_OUT: ["shop/a"], "steps": ["b1.s01"]}, Decision.REJECTED, id="the only one that is ticked"),
        pytest.param({LEFT_OUT: GONE}, Decision.MALFORMED, id="field missing"),
        pytest.param({LEFT_OUT: "shop/a"}, Decision.MALFORMED, id="a text"),
        pytest.param({LEFT_OUT: {"shop/a": True}}, Decision.MALFORMED, id="an object"),
        pytest.param({LEFT_OUT: ["shop/c"]}, Decision.MALFORMED, id="another namespace"),
        pytest.param({LEFT_OUT: ["shop"]}, Decision.MALFORMED, id="the tenant"),
        pytest.param({LEFT_OUT: ["shop/a", "shop/a"]}, Decision.MALFORMED, id="one twice"),
        pytest.param({LEFT_OUT: [["shop/a"]]}, Decision.MALFORMED, id="a list in a list"),
        pytest.param({LEFT_OUT: ["shop/a", 1]}, Decision.MALFORMED, id="a number"),
        pytest.param({LEFT_OUT: ["b1.s01"]}, Decision.MALFORMED, id="a step"),
        pytest.param({LEFT_OUT: ["shop/a"] * 100_000}, Decision.MALFORMED, id="without end"),
    ],
)
def test_what_is_left_out_is_read_strictly(fields: dict[str, Any], decision: Decision) -> None:
    """An approval is malformed when its field of excluded namespaces is anything but a list of the batch's namespaces.

    It is a rejection when no ticked step remains.
    """
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids, answer.digest) == (decision, (), None)
    assert len(answer.reason) < 500


def test_namespaces_are_left_out_only_where_that_is_asked() -> None:
    """An answer that leaves out a namespace is malformed where the batch is about one namespace."""
    form = {"steps": list(IDS), "comment": "", LEFT_OUT: ["pulsar/system"]}
    assert answer_to(event(params_input=form)).decision is Decision.MALFORMED


def test_a_second_person_leaves_out_what_the_first_one_kept() -> None:
    """A second approver is asked only about namespaces that the first one kept, and may leave out some of them."""
    first = RecordedAnswer(answer_id=1, **msgspec.structs.asdict(group_answer(**{LEFT_OUT: ["shop/a"]})))
    second = msgspec.structs.replace(
        ABOUT_GROUP, voice=2, first=msgspec.structs.replace(first, answered_by="alice", answered_by_id="8")
    )
    assert (second.namespaces, [step.step_id for step in second.steps]) == (("shop/b",), ["b1.s03"])
    assert group_answer(second).step_ids == ("b1.s03",)
    assert group_answer(second, **{LEFT_OUT: ["shop/a"]}).decision is Decision.MALFORMED
    assert group_answer(second, **{LEFT_OUT: ["shop/b"]}).decision is Decision.REJECTED


def test_the_tick_for_loss_is_for_what_counts() -> None:
    """A loss needs no confirmation where the namespace that would lose messages is left out."""
    plan = a_plan(a_batch(expiring("shop/a", 1, SOONER), expiring("shop/b", 2, LATER), parts=(1, 1)))
    asked = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    assert group_answer(asked).decision is Decision.REJECTED
    assert group_answer(asked, **{LOSS: True}).step_ids == ("b1.s01", "b1.s02")
    assert group_answer(asked, **{LEFT_OUT: ["shop/a"]}).step_ids == ("b1.s02",)
