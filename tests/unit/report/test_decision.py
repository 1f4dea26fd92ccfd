"""The decision card: at most 120 words above the ticks, for every kind of change and at the worst."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.changes.headline import headline
from pulsar_steward.facts.backlogs import Backlog, evicted
from pulsar_steward.ledger.rows import EndReason, QuestionEnd
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import NOTHING_LOST, InFlight, Loss, TopicLoss
from pulsar_steward.model.plan import BROKER_GROUP, ROLLBACK, Batch, Placement
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName
from pulsar_steward.model.step import AddPartitions, ChangeSetting, GuardResult, RaiseCoordinators, Touched
from pulsar_steward.report.approval import body, subject
from pulsar_steward.report.decision import DecisionCard, decision_of
from pulsar_steward.report.what_changed import Former
from tests.builders import (
    NOW,
    a_batch,
    a_deletion,
    a_finding,
    a_move,
    a_plan,
    a_policy,
    a_split,
    a_step,
    broker,
)
from tests.questions import FIRST
from tests.unit.changes.test_kinds import FEW, ISOLATION, NOBODY, REACH, group

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from tests.golden import Golden

MAX_WORDS = 120
NIGHT = a_policy(guards={"windows": [{"opens": "0 22 * * *", "minutes": 60}]})
LONG = " ".join(["word"] * 60)
LOST = Loss(
    topics=(TopicLoss(topic="persistent://shop/a/t", messages=640_001, bytes=4 << 30),), messages=640_001, bytes=4 << 30
)
EVICT = BacklogQuota(limit_bytes=1 << 30, policy=QuotaPolicy.EVICT)
MOVE = a_step(
    a_move(),
    undo=a_move(source=broker(1), target=broker(0)),
    in_flight=InFlight(again=120_000, volatile_topics=2, lost=13_000),
)


def evicting(number: int) -> ChangeSetting:
    """An evicting quota of the namespace with this number."""
    before = BacklogQuota(limit_bytes=number << 20, policy=QuotaPolicy.HOLD)
    return ChangeSetting(namespace=f"shop/n{number:02}", name=SettingName.SIZE_QUOTA, before=before, after=EVICT)


def retaining(number: int) -> ChangeSetting:
    """A longer retention of the namespace with this number."""
    before, after = Retention(minutes=number, megabytes=-1), Retention(minutes=60 * number, megabytes=-1)
    return ChangeSetting(namespace=f"shop/n{number:02}", name=SettingName.RETENTION, before=before, after=after)


def batch_of(*steps: Any, **fields: Any) -> Batch:
    """A batch with findings and a spread."""
    findings = (a_finding(evidence=LONG), a_finding())
    spread = (Placement(broker(0), 60), Placement(broker(1), 0))
    return a_batch(*steps, findings=findings, unit="topics", before=spread, after=spread[::-1], **fields)


KINDS = {
    "moves": batch_of(*[MOVE] * 60),
    "splits": batch_of(
        *[a_step(a_split(), touched=Touched(producers=1, consumers=1, topics=4000, coordinators=0))] * 3
    ),
    "splits with moves": batch_of(*[a_step(a_split())] * 30, *[MOVE] * 30),
    "coordinators": batch_of(a_step(RaiseCoordinators(before=16, after=20))),
    "partitions": batch_of(a_step(AddPartitions(namespace="a/b", topic="persistent://a/b/t", before=2, after=4))),
    "a group": batch_of(
        a_step(ISOLATION, undo=ISOLATION.inverse),
        *[a_step(a_move(), undo=None)] * 60,
        kind=BROKER_GROUP,
        title="Group shop: set its isolation policy, then move 60 bundles to its brokers",
    ),
    "a group that nobody can undo": batch_of(
        a_step(
            msgspec.structs.replace(
                ISOLATION,
                before=group("3", primary=("10.0.1.*", "10.0.2.*", "10.0.3.*"), secondary=("10.0.4.*",)),
                after=group("1", namespaces=("shop/.*", "store/.*", "stock/.*"), secondary=("10.0.5.*",)),
            ),
            reach=REACH,
            touched=NOBODY,
        ),
        *[a_step(a_move(namespace="shop/a"), undo=None, touched=FEW)] * 60,
        kind=BROKER_GROUP,
        title="Group shop: set its isolation policy, then move 60 bundles to its brokers",
    ),
    "a deletion": batch_of(a_step(a_deletion("persistent://shop/a/t"), loss=LOST)),
    "an eviction": batch_of(a_step(evicting(1), loss=LOST, undo=evicting(1).inverse)),
    "an unknown loss": batch_of(a_step(evicting(1), undo=evicting(1).inverse)),
    "40 namespaces": batch_of(
        *(a_step(each, loss=LOST, undo=each.inverse) for each in map(evicting, range(1, 41))), parts=(1,) * 40
    ),
    "an eviction with retentions": batch_of(
        a_step(evicting(1), loss=LOST, undo=evicting(1).inverse),
        *(a_step(each, undo=each.inverse) for each in map(retaining, range(1, 13))),
        parts=(1,) * 13,
    ),
    "a rollback": batch_of(*[MOVE] * 4, kind=ROLLBACK, title="Take back batch b1 of plan older, approved by operator"),
}

END = QuestionEnd(
    question_id=1,
    plan_id="older",
    batch_id="b1",
    at=NOW,
    reason=EndReason.CHANGED,
    by_plan_id="new",
    by_batch_id="b1",
    words="made up",
)
FORMER = Former(end=END, steps=(a_step(a_move(bundle="0x10000000_0x20000000")),))


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_has_few_words_above_the_ticks(kind: str, golden: Golden) -> None:
    """A second request, in place of a former one, outside of the window, whose findings and notes are long."""
    batch = KINDS[kind]
    plan = a_plan(batch, notes=(LONG, LONG))
    now = NOW - timedelta(hours=1)
    twice: dict[str, Any] = {"first": FIRST, "former": FORMER}
    for fields in ({}, twice):
        told = f"{subject(plan, batch)}\n\n{body(plan, batch, NIGHT, now=now, page='/x', **fields)}"
        assert sum(any(map(str.isalnum, each)) for each in told.split()) <= MAX_WORDS
        if not fields:
            golden(told.replace("\\", "").replace(plan.digest, "DIGEST").replace(plan.digest[:12], "DIGEST"))


def test_once_it_is_answered_nothing_is_said_of_an_answer() -> None:
    """The card of an answered batch says nothing of a rejection, of other values, or of the time for an answer."""
    batch = KINDS["an eviction"]
    card = decision_of(a_plan(batch), batch, NIGHT, now=NOW)
    answering = " ".join(set(card.lines) - set(card.lines_answered))
    assert all(words in answering for words in ("If rejected", "would evict nothing now", "No answer"))
    assert not any(words in " ".join(card.lines_answered) for words in ("If rejected", "No answer"))


def test_an_approval_that_no_window_would_meet_is_said_to_be_refused() -> None:
    batch = KINDS["an eviction"]
    told = decision_of(a_plan(batch), batch, NIGHT, now=NOW).when
    assert told.startswith("Approve after 2026-03-01 18:00 UTC, not now: the maintenance window opens 2026-03-01 22:00")


def test_a_headline_counts_namespaces_that_lose_messages_now() -> None:
    """Of a group whose other steps delete nothing at once, only the first one's namespace is in the headline."""
    later = [a_step(each, loss=NOTHING_LOST, undo=each.inverse) for each in map(evicting, range(2, 9))]
    first = a_step(evicting(1), loss=LOST, undo=evicting(1).inverse)
    assert headline(batch_of(first, *later, parts=(1,) * 8)).endswith(f"in {evicting(1).namespace}, now")


def quota(limit: int, policy: QuotaPolicy) -> BacklogQuota:
    """A size quota in GiB."""
    return BacklogQuota(limit_bytes=limit << 30, policy=policy)


def of_quotas(before: BacklogQuota, after: BacklogQuota, **fields: Any) -> Batch:
    """One step that changes a namespace's size quota."""
    change = ChangeSetting(namespace="shop/a", name=SettingName.SIZE_QUOTA, before=before, after=after)
    return batch_of(a_step(change, undo=change.inverse, **fields))


def card(batch: Batch, **fields: Any) -> DecisionCard:
    """The card of a batch in its plan."""
    return decision_of(a_plan(batch, notes=fields.pop("notes", ())), batch, NIGHT, now=NOW, **fields)


def test_a_raised_quota_that_evicts_is_not_said_to_stop_producers() -> None:
    """It evicts less than before; without it brokers go on, and a trouble that nothing averts stays."""
    raised = card(of_quotas(quota(20, QuotaPolicy.EVICT), quota(40, QuotaPolicy.EVICT)))
    assert raised.beware == ()
    assert raised.rejected == "If rejected, brokers go on evicting unread messages over the present limit."
    held = card(of_quotas(quota(20, QuotaPolicy.HOLD), quota(40, QuotaPolicy.HOLD)))
    assert held.rejected == "If rejected, the trouble stays."


def test_a_larger_quota_tells_what_it_costs() -> None:
    """How much more each topic may store; a smaller one costs nothing."""
    for before, after, told in (
        (20, 40, "Each topic may store up to 20 GiB more."),
        (20, 9, ""),
    ):
        assert card(of_quotas(quota(before, QuotaPolicy.HOLD), quota(after, QuotaPolicy.HOLD))).costs == told
    unlimited = BacklogQuota(limit_bytes=-1, policy=QuotaPolicy.HOLD)
    assert card(of_quotas(quota(20, QuotaPolicy.HOLD), unlimited)).costs == "Topics may store without a limit."


def near(topic: str, backlog: int) -> Finding:
    """A topic over a quota that holds its producers, with a backlog of so many GiB."""
    figures = {"backlog_bytes": backlog << 30, "bytes_percent": 120, "holds_producers": 1}
    return a_finding(
        Severity.CRITICAL,
        check_id="backlog-near-quota",
        subject=f"persistent://shop/a/{topic}",
        evidence="It is full.",
        figures=figures,
    )


def test_the_largest_finding_is_the_reason_and_names_its_subject() -> None:
    """A card without the name of a topic sends nobody anywhere."""
    batch = msgspec.structs.replace(KINDS["moves"], findings=(near("small", 1), near("large", 9), near("middle", 3)))
    assert card(batch).why == "Why: persistent://shop/a/large: It is full."


def test_a_rejection_names_the_harm_that_goes_on() -> None:
    """Where a finding cuts clients off now; of any other the trouble stays."""
    raised = of_quotas(quota(20, QuotaPolicy.HOLD), quota(40, QuotaPolicy.HOLD))
    outage = msgspec.structs.replace(raised, findings=(*raised.findings, near("t", 30)))
    assert card(outage).rejected == "If rejected, this goes on: PRODUCERS CUT OFF."


def test_a_lower_quota_stops_only_those_over_it() -> None:
    """A guard has compared the largest backlog: where it passes, no producer is stopped now."""
    room = GuardResult(guard="quota_room", passed=True, reason="the largest backlog is 1 GiB")
    for guards, more in (((room,), "; none is over it now"), ((), "")):
        lowered = of_quotas(quota(20, QuotaPolicy.HOLD), quota(9, QuotaPolicy.HOLD), guards=guards)
        assert card(lowered).beware == (f"Stops producers of topics over the new limit{more} (1 step).",)


def test_a_partial_snapshot_is_on_the_card() -> None:
    """Before the changes that were planned from it, however little room there is."""
    for unread, words in (((broker(2),), f"{broker(2)} was"), ((broker(2), "a/b"), f"{broker(2)} and 1 more were")):
        plan = msgspec.structs.replace(a_plan(KINDS["moves"]), unread=unread)
        shown = decision_of(plan, KINDS["moves"], NIGHT, now=NOW)
        assert shown.lines_of_request[0] == f"The snapshot is partial: {words} not read."


def test_findings_that_are_only_counted_are_not_left_out() -> None:
    """A batch solves at least what is listed."""
    batch = msgspec.structs.replace(KINDS["moves"], findings=(near("t", 9),), unlisted=183)
    assert card(batch).worth.endswith("fixes at least 1 critical finding.")


def test_a_quota_without_loss_is_named_only_where_there_is_one() -> None:
    """It is beyond the largest backlog by more than brokers' nine tenths; another loss beside it is not avoided so."""
    evicts = of_quotas(quota(9, QuotaPolicy.HOLD), quota(1, QuotaPolicy.EVICT), loss=LOST)
    size = float(card(evicts).without_loss.removeprefix("A quota of ").partition(" ")[0])
    assert not evicted([Backlog(topic="t", bytes=4 << 30)], int(size * 2**30)).loss.exceeds(NOTHING_LOST)
    beside = a_step(a_deletion("persistent://shop/a/t"), loss=LOST)
    assert card(batch_of(*evicts.steps, beside)).without_loss == ""
    assert card(msgspec.structs.replace(evicts, kind=ROLLBACK)).without_loss == ""


def test_changes_are_never_cut() -> None:
    """A second person sees the old and the new value of a question asked before, whatever else has to go."""
    batch = of_quotas(quota(20, QuotaPolicy.HOLD), quota(4, QuotaPolicy.EVICT), loss=LOST)
    lines = card(batch, first=FIRST, former=FORMER).lines_of_request
    changed = "20 GiB; when exceeded, hold producers → 4 GiB; when exceeded, evict oldest unread"
    assert any(each.endswith(changed) for each in lines)
    back = msgspec.structs.replace(KINDS["a rollback"], steps=KINDS["a rollback"].steps[:1])
    lines = card(back, first=FIRST, notes=(LONG,) * 7).lines_of_request
    assert any(each.startswith("Not taken back: 7 steps") for each in lines)


def test_changes_that_are_not_shown_are_counted_by_kind() -> None:
    """Also where the words are too few for the second change."""
    batch = KINDS["an eviction with retentions"]
    for lines in (card(batch).lines_of_request, card(batch, first=FIRST, former=FORMER).lines_of_request):
        assert "And 12 changes of retention." in lines
    two = msgspec.structs.replace(batch, steps=batch.steps[:2])
    assert card(two).lines_of_request[1].startswith("shop/n01: retention: ")
    assert "And 1 change of retention." in card(two, first=FIRST, former=FORMER).lines_of_request


def test_both_policies_of_a_group_are_told_however_long_they_are() -> None:
    """Of a policy with a hundred patterns the card tells how many come and go, and the new minimum."""
    many = tuple(f"shop/{number:03}" for number in range(100))
    longer = group("1", namespaces=(*many[1:], "stock/.*"), primary=("10.0.2.*",))
    change = msgspec.structs.replace(ISOLATION, before=group("3", namespaces=many), after=longer)
    batch = batch_of(a_step(change, reach=REACH, touched=NOBODY), *[a_step(a_move(), undo=None)] * 60)
    lines = card(batch, first=FIRST, former=FORMER).lines_of_request
    told = "namespaces +stock/.* -shop/000, primary +10.0.2.* -10.0.1.*, at least 3 → 1"
    assert any(each.endswith(f"isolation policy {change.policy}: {told}") for each in lines)
    new = msgspec.structs.replace(change, before=None)
    lines = card(msgspec.structs.replace(batch, steps=(a_step(new, undo=None), *batch.steps[1:]))).lines_of_request
    assert any(each.endswith("none → shop/001 and 99 more on 10.0.2.* (1 at least)") for each in lines)
    assert "And 60 moves." in lines


def test_the_topic_of_a_deletion_is_told_first() -> None:
    """A subscription's name may hold another topic; the topic's last subscription is said to be the last."""
    change = a_deletion("persistent://shop/a/t", subscription="old of persistent://shop/a/test " + "x" * 300)
    batch = batch_of(a_step(change, loss=LOST))
    told = card(batch)
    assert told.changes[0].startswith("persistent://shop/a/t: delete subscription “old of")
    assert len(told.changes[0]) < 160
    assert headline(batch).startswith("Deletes 1 subscription, the last of 1 topic, with up to 640,001 unread entries")


def test_many_warnings_and_long_names_fit() -> None:
    long = msgspec.structs.replace(FIRST, answered_by="a" * 500)
    lines = card(KINDS["an eviction"], first=long).lines_of_request
    assert max(map(len, lines)) < 300


def test_a_pace_longer_than_the_approval_is_told() -> None:
    policy = a_policy(apply={"bundle_moves_per_minute": 1})
    batch = KINDS["moves"]
    assert "It takes" not in decision_of(a_plan(batch), batch, policy, now=NOW).when
    many = batch_of(*[MOVE] * 100)
    assert "the rest is refused" in decision_of(a_plan(many), many, policy, now=NOW).when


def test_what_is_known_of_a_loss_is_told() -> None:
    """Beside a step whose loss is not known, the others' is the least; of none at all, only that it is not known."""
    known = a_step(evicting(1), loss=LOST, undo=evicting(1).inverse)
    unknown = a_step(evicting(2), undo=evicting(2).inverse)
    lost = "at least 640,001 unread entries of 1 topic (4 GiB), how many in all is not known"
    assert headline(batch_of(known, unknown)) == f"Evicts {lost}, in 2 namespaces, now"
    assert headline(batch_of(unknown)) == "Evicts messages, how many is not known, in shop/n02, now"
