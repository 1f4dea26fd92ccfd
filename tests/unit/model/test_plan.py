"""A plan, its digests, its parts, and what it is worth."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import InFlight, Loss, TopicLoss
from pulsar_steward.model.plan import (
    ROLLBACK,
    Batch,
    Placement,
    Plan,
    TakenBack,
    approval_digest,
    content_digest,
    goal_of,
    is_about_several,
    loses_more,
    namespaces_of,
    parts_of,
    share_goal,
)
from pulsar_steward.model.risk import Worth, worth_of
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, SplitBundle, Step, Touched, UnloadBundle
from tests.builders import BUNDLE, IDENTITY, NOW, a_batch, a_finding, a_move, a_plan, a_split, a_step, broker
from tests.cases import cases, row_by_row
from tests.unit.model.builders import BUNDLES, move, plan, split
from tests.unit.model.processes import printed_by_hash_seed

if TYPE_CHECKING:
    from collections.abc import Callable

replace = msgspec.structs.replace


def with_batch(change: Callable[[Batch], Batch]) -> Plan:
    """The plan with its first batch changed."""
    whole = plan()
    return replace(whole, batches=(change(whole.batches[0]), *whole.batches[1:]))


def with_step(**fields: Any) -> Plan:
    """The plan with fields of its very first step changed."""
    return with_batch(lambda batch: replace(batch, steps=(replace(batch.steps[0], **fields), *batch.steps[1:])))


MOVED = UnloadBundle(namespace="pulsar/system", bundle=BUNDLES[0], source="a:8080", target="c:8080")

PROPOSED: dict[str, Plan] = {
    "cluster": replace(plan(), cluster="other"),
    "target": with_step(change=MOVED),
    "kind of change": with_step(change=split().change),
    "step left out": with_batch(lambda batch: replace(batch, steps=batch.steps[1:])),
    "steps in other order": with_batch(lambda batch: replace(batch, steps=batch.steps[::-1])),
    "batches in other order": replace(plan(), batches=plan().batches[::-1]),
    "batch left out": replace(plan(), batches=plan().batches[:1]),
}

SAID: dict[str, Plan] = {
    "snapshot": plan(snapshot_id="local-20260102T000000Z"),
    "policy": replace(plan(), policy_digest="1" * 64),
    "notes": replace(plan(), notes=()),
    "title": with_batch(lambda batch: replace(batch, title="Move")),
    "unit": with_batch(lambda batch: replace(batch, unit="topics")),
    "findings": with_batch(lambda batch: replace(batch, findings=())),
    "before": with_batch(lambda batch: replace(batch, before=())),
    "after": with_batch(lambda batch: replace(batch, after=batch.before)),
    "why": with_step(why="because"),
    "effect": with_step(effect="none"),
    "touched": with_step(touched=Touched(producers=0, consumers=4, topics=2, coordinators=2)),
    "guards": with_step(guards=()),
    "undo": with_step(undo=None),
    "undo note": with_step(undo_note="cannot be undone"),
    "steps before it": with_step(after=("b1.s02",)),
    "step id": with_step(step_id="b1.s09"),
}


@pytest.mark.parametrize("kind", [*PROPOSED, *SAID])
def test_every_field_counts_in_the_digest(kind: str) -> None:
    """A plan that differs in any field has another digest and another id."""
    other = {**PROPOSED, **SAID}[kind]
    assert other.digest != plan().digest
    assert other.plan_id != plan().plan_id


@pytest.mark.parametrize("kind", PROPOSED)
def test_another_change_is_another_proposal(kind: str) -> None:
    """A plan with other changes to the cluster, or in another order, has another proposal digest."""
    assert PROPOSED[kind].proposal_digest != plan().proposal_digest


@pytest.mark.parametrize("kind", SAID)
def test_other_words_are_the_same_proposal(kind: str) -> None:
    """A plan's proposal digest stays the same where only texts, figures, ids, snapshot or policy differ."""
    assert SAID[kind].proposal_digest == plan().proposal_digest


def test_the_same_plan_is_the_same_bytes() -> None:
    """A plan has the same bytes and id in processes with different hash seeds."""
    code = (
        "import sys; from tests.unit.model.builders import plan;"
        " sys.stdout.buffer.write(plan().plan_id.encode() + plan().encoded())"
    )
    assert printed_by_hash_seed(code) == {plan().plan_id.encode() + plan().encoded()}
    assert plan().plan_id == f"{plan().snapshot_id}-{plan().digest[:12]}"


def test_a_plan_reads_back_as_it_is_written() -> None:
    """A plan that is encoded and decoded is the same plan, with the same digest and kinds of change."""
    again = Plan.decoded(plan().encoded())
    assert again == plan()
    assert again.digest == plan().digest
    assert isinstance(again.batch("b1").step("b1.s01").change, UnloadBundle)
    assert isinstance(again.batch("b2").step("b2.s01").change, SplitBundle)


@row_by_row(
    "document",
    b"{}",
    b"[]",
    plan().encoded().replace(b"unload_bundle", b"drop_bundle"),
    plan().encoded().replace(b'"b1.s02"', b'"b1.s01"'),
    plan().encoded().replace(b'"batch_id":"b2"', b'"batch_id":"b1"'),
)
def test_a_document_that_is_no_plan_is_refused(document: bytes) -> None:
    """A document is refused that lacks a field, has an unknown kind of change, or an id that stands twice."""
    with pytest.raises(msgspec.ValidationError):
        Plan.decoded(document)


@pytest.mark.parametrize("order", list(permutations(["b1.s01", "b1.s02", "b1.s03"])))
def test_the_order_of_ticks_does_not_count(order: tuple[str, ...]) -> None:
    """An approval's digest depends on the set of ticked steps, not on their order or repetition."""
    expected = approval_digest(plan(), "b1", ["b1.s01", "b1.s02", "b1.s03"])
    assert approval_digest(plan(), "b1", [*order, order[0]]) == expected


def test_every_choice_of_steps_is_another_approval() -> None:
    """Each selection of a batch's steps has a digest of its own, the empty selection included."""
    ids = [step.step_id for step in plan().batch("b1").steps]
    choices = [[each for bit, each in enumerate(ids) if number >> bit & 1] for number in range(8)]
    assert len({approval_digest(plan(), "b1", choice) for choice in choices}) == 8


@pytest.mark.parametrize("kind", [*PROPOSED, *SAID])
def test_an_approval_holds_for_its_plan_only(kind: str) -> None:
    """An approval's digest for the same step differs where the plan differs in any field."""
    other = {**PROPOSED, **SAID}[kind]
    assert approval_digest(other, "b1", ["b1.s02"]) != approval_digest(plan(), "b1", ["b1.s02"])


@row_by_row(
    "batch_id, step_ids, unknown",
    ("b9", [], "b9"),
    ("b1", ["b1.s01", "b1.s09"], "b1.s09"),
    ("b1", ["b2.s01"], "b2.s01"),
    ("b1", ["z", "y"], "y"),
)
def test_what_is_not_in_the_plan_cannot_be_approved(batch_id: str, step_ids: list[str], unknown: str) -> None:
    """An approval of an unknown batch, or of a step that the batch lacks, is an error that names it."""
    with pytest.raises(KeyError, match=unknown):
        approval_digest(plan(), batch_id, step_ids)


def test_a_step_that_a_batch_lacks_is_an_error() -> None:
    assert plan().batch("b1").step("b1.s02") == move(2)
    with pytest.raises(KeyError, match=r"b1\.s07"):
        plan().batch("b1").step("b1.s07")


def test_clients_are_producers_and_consumers() -> None:
    assert move(1).touched.clients == 7


def test_whose_rules_apply_to_a_batch() -> None:
    """Splits with moves come under the rules of both kinds, and a rollback under those of rollbacks besides."""
    splits = Batch(kind="bundle_split", title="", findings=(), steps=(split(),))
    both = replace(splits, steps=(split(), move(1)))
    back = replace(both, kind=ROLLBACK, takes_back=TakenBack(kind=both.planned_as))
    told = [(each.answered_as, each.kinds_in_words) for each in (splits, both, back, replace(both, kind="tc_balance"))]
    assert told == [
        (("bundle_split",), "bundle_split"),
        (("bundle_split", "bundle_balance"), "bundle_split and bundle_balance"),
        ((ROLLBACK, "bundle_split", "bundle_balance"), "rollback of a bundle_split and bundle_balance"),
        (("tc_balance",), "tc_balance"),
    ]


STEPS = tuple(
    a_step(ChangeSetting(namespace=name, name=SettingName.TTL, before=None, after=None), step_id=f"b1.s0{number}")
    for number, name in enumerate(("a/x", "a/y", "a/y"), start=1)
)
GROUP = a_batch(*STEPS, parts=(1, 2))


def test_a_group_has_its_steps_by_part() -> None:
    assert [part.steps for part in parts_of(GROUP)] == [STEPS[:1], STEPS[1:]]
    assert all(parts_of(part) == (part,) for part in parts_of(GROUP))
    assert parts_of(a_batch(*STEPS)) == (a_batch(*STEPS),)


def test_parts_are_recorded_with_the_plan() -> None:
    """Only a plan with a group records the key `parts`, and decoding it gives the same plan."""
    plan = a_plan(GROUP)
    assert Plan.decoded(plan.encoded()) == plan
    assert b"parts" in plan.encoded()
    assert b"parts" not in a_plan(a_batch(*STEPS)).encoded()


@cases(
    "batch, namespaces, several",
    ("a group", GROUP, ("a/x", "a/y"), True),
    ("no group", a_batch(*STEPS), ("a/x", "a/y"), False),
    ("the rollback of one", a_batch(*STEPS, kind=ROLLBACK), ("a/x", "a/y"), True),
    ("a group in one namespace", a_batch(*STEPS[1:], parts=(1, 1)), ("a/y",), False),
    ("moves between brokers", a_batch(a_step(), a_step(a_move(namespace="a/x")), kind=ROLLBACK), (), False),
)
def test_namespaces_may_be_left_out_of_some(batch: Batch, namespaces: tuple[str, ...], several: bool) -> None:
    """A group in several namespaces, or its rollback, is about several; moves between brokers are about none."""
    assert (namespaces_of(batch), is_about_several(batch)) == (namespaces, several)


def growing(seconds: int, severity: Severity = Severity.WARNING) -> object:
    """A finding about a backlog that reaches its quota in so many seconds."""
    return msgspec.structs.replace(a_finding(severity), figures={"seconds_to_quota": seconds})


def test_a_batch_of_which_nothing_is_known_is_worth_nothing_known() -> None:
    assert worth_of(a_batch(findings=())) == Worth(critical=0, warnings=0)


def test_everything_that_is_known_is_told() -> None:
    """A batch's worth has its findings by severity, the first quota, the spread before and after, and kept messages."""
    batch = a_batch(
        a_step(averts=Loss(messages=7, bytes=1)),
        a_step(averts=Loss(messages=5, bytes=1)),
        a_step(averts=Loss(messages=None, bytes=1)),
        findings=(growing(7200), growing(3600, Severity.CRITICAL), a_finding(Severity.INFO)),
        before=(Placement(broker(1), 12), Placement(broker(2), 0)),
        after=(Placement(broker(1), 6), Placement(broker(2), 6)),
    )
    assert worth_of(batch) == Worth(
        critical=1, warnings=1, seconds_to_quota=3600, spread_before=12, spread_after=0, kept_messages=12
    )


def test_a_placement_of_one_side_alone_has_no_spread() -> None:
    worth = worth_of(a_batch(before=(Placement(broker(1), 12),)))
    assert (worth.spread_before, worth.spread_after) == (None, None)


def test_what_is_worth_most_comes_first() -> None:
    """Critical findings rank first, then the time left, kept messages and the spread; no figures rank last."""
    ranked = [
        Worth(critical=2, warnings=0),
        Worth(critical=1, warnings=0, seconds_to_quota=0),
        Worth(critical=1, warnings=9, seconds_to_quota=60),
        Worth(critical=1, warnings=0),
        Worth(critical=0, warnings=1, seconds_to_quota=3600),
        Worth(critical=0, warnings=1, kept_messages=5),
        Worth(critical=0, warnings=1, spread_before=9, spread_after=1),
        Worth(critical=0, warnings=0),
    ]
    backwards = ranked[::-1]
    assert sorted(backwards, key=lambda worth: worth.rank) == ranked


OWNER = GuardResult(guard="owner", passed=True, reason="broker-00 owns it")
FIRST = a_step(undo=a_move(source=broker(1), target=broker(0)), guards=(OWNER,))
SECOND = a_step(a_move(bundle="0x10000000_0x20000000"), step_id="b1.s02", after=("b1.s01",))
BATCH = a_batch(FIRST, SECOND)
TTL = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))


def content(batch: Batch, **fields: Any) -> str:
    """The digest of a batch in a plan of its own."""
    plan = a_plan(batch, **{"pulsar_cluster": IDENTITY, **fields})
    return content_digest(plan, batch)


def with_first(**fields: Any) -> Batch:
    """The batch with another first step."""
    return a_batch(msgspec.structs.replace(FIRST, **fields), SECOND)


@cases(
    "same",
    ("words", a_batch(FIRST, SECOND, title="five bundles move", findings=(), unit="bundles")),
    ("reasons and effects", with_first(why="for once", effect="all is well")),
    ("clients", with_first(touched=Touched(producers=9, consumers=9, topics=9, coordinators=9))),
    ("a guard's words", with_first(guards=(msgspec.structs.replace(OWNER, reason="it does"),))),
    ("what is lost", with_first(loss=Loss(messages=3, bytes=100))),
    (
        "its place in the plan",
        a_batch(
            msgspec.structs.replace(FIRST, step_id="b7.s01"),
            msgspec.structs.replace(SECOND, step_id="b7.s02", after=("b7.s01",)),
            batch_id="b7",
        ),
    ),
)
def test_what_moves_with_every_look_is_no_content(same: Batch) -> None:
    """Words, figures, losses and the place in the plan do not change the digest of a batch's content."""
    assert content(same) == content(BATCH)


def test_the_snapshot_and_the_policy_are_no_content() -> None:
    """The snapshot, its time and the policy do not change the digest of a batch's content."""
    later = {"snapshot_id": "later", "taken_at": NOW + timedelta(hours=1), "policy_digest": "0" * 64, "notes": ("n",)}
    assert content(BATCH, **later) == content(BATCH)


@cases(
    "other",
    ("another target", with_first(change=a_move(target=broker(2)))),
    ("another value before", with_first(change=a_move(source=broker(2)))),
    ("no way back", with_first(undo=None)),
    ("a guard's verdict", with_first(guards=(msgspec.structs.replace(OWNER, passed=False),))),
    ("one guard more", with_first(guards=(OWNER, msgspec.structs.replace(OWNER, guard="limits")))),
    ("a step that it takes back", with_first(undoes="plan/b1.s01")),
    ("a step less", a_batch(FIRST)),
    ("another order", a_batch(FIRST, msgspec.structs.replace(SECOND, after=()))),
    ("another kind", a_batch(FIRST, SECOND, kind="bundle_balance")),
)
def test_what_would_be_done_is_content(other: Batch) -> None:
    """A batch that would do something else has another digest of its content."""
    assert content(other) != content(BATCH)


@pytest.mark.parametrize(
    "fields", [{"cluster": "west"}, {"pulsar_cluster": ClusterIdentity(name="local", metadata_id="f" * 16)}]
)
def test_the_cluster_is_content(fields: dict[str, Any]) -> None:
    """The same batch in a plan of another or unknown cluster has another digest of its content."""
    assert content(BATCH, **fields) != content(BATCH)


@cases(
    "steps, goal",
    ("moves are about brokers", (a_step(), a_step(a_move(namespace="a/b"))), "tc_balance"),
    ("split", (a_step(a_split(namespace="a/b")), a_step(a_move(namespace="a/b"))), "tc_balance a/b"),
    ("a setting", (a_step(TTL),), "tc_balance a/b"),
    ("moves to a group are about the group", (a_step(a_move(namespace="a/b"), group="shop"),), "tc_balance shop"),
)
def test_a_goal_is_a_kind_and_what_it_is_about(steps: tuple[Step, ...], goal: str) -> None:
    """A goal is the kind of a batch, with the namespace or group unless it only moves bundles between brokers."""
    assert goal_of(a_batch(*steps)) == goal


@row_by_row(
    "goal, other, share",
    ("tc_balance", "tc_balance", True),
    ("tc_balance", "bundle_balance", False),
    ("retention a/b", "retention a/b", True),
    ("retention a/b a/c", "retention a/c a/d", True),
    ("retention a/b a/c", "retention a/d", False),
    ("retention a/b", "backlog_quota a/b", False),
    ("retention a/b", "retention a/bc", False),
    ("bundle_split", "bundle_split a/b", False),
)
def test_goals_are_shared_namespace_by_namespace(goal: str, other: str, share: bool) -> None:
    assert share_goal(goal, other) is share
    assert share_goal(other, goal) is share


@row_by_row(
    "now, then, more",
    (Loss(messages=5, bytes=10), Loss(messages=5, bytes=10), False),
    (Loss(messages=4, bytes=9), Loss(messages=5, bytes=10), False),
    (Loss(messages=6, bytes=10), Loss(messages=5, bytes=10), True),
    (Loss(messages=5, bytes=11), Loss(messages=5, bytes=10), True),
    (Loss(messages=None, bytes=10), Loss(messages=5, bytes=10), True),
    (Loss(messages=1, bytes=10), Loss(messages=None, bytes=10), False),
    (Loss(messages=5, bytes=None), Loss(messages=5, bytes=10), True),
    (msgspec.UNSET, Loss(messages=5, bytes=10), False),
    (Loss(messages=1, bytes=0), msgspec.UNSET, True),
    (
        Loss(topics=(TopicLoss(topic="t", messages=1, bytes=1),), messages=5, bytes=10),
        Loss(messages=5, bytes=10),
        False,
    ),
)
def test_a_greater_loss_is_another_question(
    now: Loss | msgspec.UnsetType, then: Loss | msgspec.UnsetType, more: bool
) -> None:
    """A batch that loses one message or byte more than before, or nobody knows how many, counts as losing more."""
    step = a_step(a_move(bundle=BUNDLE))
    batches = [a_batch(a_step(), msgspec.structs.replace(step, loss=loss)) for loss in (now, then)]
    assert loses_more(*batches) is more


@row_by_row(
    "now, more",
    (InFlight(again=30_000, volatile_topics=1, lost=30_000), False),
    (InFlight(again=30_001, volatile_topics=1), True),
    (InFlight(volatile_topics=2), True),
    (InFlight(volatile_topics=1, lost=30_001), True),
)
def test_a_move_that_outgrew_what_was_said_is_another_question(now: InFlight, *, more: bool) -> None:
    """A question stands while the messages in flight fit the room that was left for them."""
    then = InFlight(again=10_000, volatile_topics=1, lost=10_000)
    batches = [a_batch(a_step(in_flight=each)) for each in (now, then)]
    assert loses_more(*batches) is more
