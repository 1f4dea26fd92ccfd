"""Silent goals, snoozed or never wanted: until their time, until they get worse, or for good."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import goal_of
from pulsar_steward.orchestration.asked import AskedBatch, SilencedGoal
from pulsar_steward.orchestration.publish import Publication, SnapshotView, decide
from tests.builders import NOW, a_finding
from tests.unit.orchestration.test_publish import (
    BANK,
    MOVE,
    OTHER_MOVE,
    SHOP,
    SHOP_LATER,
    SHOP_LOSES,
    STATES,
    a_new_plan,
    asked,
    in_short,
    rejected,
)

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch

WORSE = msgspec.structs.replace(SHOP_LATER, findings=(a_finding(Severity.CRITICAL),))


def silenced(batch: Batch | None, days: int | None = 7, *, until_worse: bool = True, **fields: Any) -> SilencedGoal:
    """A goal that was snoozed just now for so many days, or for good."""
    usual = SilencedGoal(
        plan_id="earlier",
        goal=goal_of(batch or SHOP),
        batch=batch,
        at=NOW,
        until=None if days is None else NOW + timedelta(days=days),
        until_worse=until_worse and days is not None,
    )
    return msgspec.structs.replace(usual, **fields)


def decided(
    batches: list[Batch],
    *silences: SilencedGoal,
    standing: tuple[AskedBatch, ...] = (),
    view: SnapshotView = SnapshotView.COMPLETE,
) -> Publication:
    """Decision on a plan of these batches."""
    return decide(a_new_plan(*batches), view, standing, (), silences)


@pytest.mark.parametrize(
    ("batch", "silence", "asks"),
    [
        pytest.param(SHOP, silenced(SHOP), False, id="the same"),
        pytest.param(SHOP_LATER, silenced(SHOP), False, id="another value"),
        pytest.param(BANK, silenced(SHOP), True, id="another namespace"),
        pytest.param(OTHER_MOVE, silenced(MOVE), False, id="another move between brokers"),
        pytest.param(WORSE, silenced(SHOP), True, id="worse"),
        pytest.param(WORSE, silenced(SHOP, until_worse=False), False, id="worse, and that does not matter"),
        pytest.param(SHOP_LOSES, silenced(SHOP), True, id="more is lost"),
        pytest.param(SHOP, silenced(None), True, id="nobody knows whether it is worse"),
        pytest.param(SHOP, silenced(None, until_worse=False), False, id="that does not matter"),
        pytest.param(WORSE, silenced(SHOP, days=None), False, id="never, however bad"),
        pytest.param(SHOP_LOSES, silenced(None, days=None), False, id="never, whatever it was"),
        pytest.param(BANK, silenced(SHOP, days=None), True, id="never of another namespace"),
    ],
)
@pytest.mark.parametrize("view", SnapshotView)
def test_what_is_silent_is_not_asked(batch: Batch, silence: SilencedGoal, asks: bool, view: SnapshotView) -> None:
    """A batch of a silenced goal is neither asked nor recorded, unless the silence ends as the goal may be worse."""
    publication = decided([batch], silence, view=view)
    assert (publication.ask, publication.record) == (asks, asks)


def test_one_that_holds_is_enough() -> None:
    """A goal is silent as long as one of several answers `snoozed` or `never` holds for it."""
    over = silenced(SHOP, days=0)
    assert not decided([WORSE], silenced(SHOP), silenced(SHOP, days=None)).ask
    assert not decided([SHOP], over, silenced(SHOP)).ask
    assert decided([WORSE], over, silenced(SHOP)).ask


def test_the_question_that_was_snoozed_is_left_until_it_is_asked_again() -> None:
    """A snoozed question stands until its goal is asked again as worse or is no longer proposed."""
    question = asked(1, SHOP, BatchState.UNANSWERED)
    assert in_short(decided([SHOP_LATER], silenced(SHOP), standing=(question,))) == ([], [], [])
    publication = decided([WORSE], silenced(SHOP), standing=(question,))
    assert in_short(publication) == (["b1"], [], [(1, "worse", "b1")])
    assert "tc-skew of" in publication.questions.ended[0].words
    assert in_short(decided([], silenced(SHOP), standing=(question,))) == ([], [], [(1, "no_longer_proposed", None)])
    assert in_short(decided([SHOP_LATER], standing=(question,))) == (["b1"], [], [(1, "changed", "b1")])


def test_a_question_that_waits_goes_on() -> None:
    """A waiting question goes on although another proposal for its goal is silenced and not asked."""
    waits = asked(1, MOVE)
    assert in_short(decided([MOVE, OTHER_MOVE], silenced(OTHER_MOVE), standing=(waits,))) == ([], [1], [])


def test_the_same_plan_once_more_does_not_ask_what_was_snoozed() -> None:
    """A retried task that records the same plan again does not ask about a batch that was snoozed meanwhile."""
    plan = a_new_plan(SHOP)
    question = asked(1, SHOP, BatchState.UNANSWERED, plan_id=plan.plan_id)
    assert decide(plan, SnapshotView.COMPLETE, (question,), ()).ask
    assert not decide(plan, SnapshotView.COMPLETE, (question,), (), (silenced(SHOP),)).ask


def test_it_is_said_who_wants_it_so_and_why() -> None:
    """The reason for not asking names the person and the comment, for a snooze, a `never` and a rejection."""
    person: dict[str, Any] = {"by": "alice", "comment": "after the fair"}
    no = msgspec.structs.replace(rejected(BANK, 5), **person)
    silences = (silenced(SHOP, **person), silenced(MOVE, days=None, **person))
    publication = decide(a_new_plan(SHOP, MOVE, BANK), SnapshotView.COMPLETE, (), (no,), silences)
    reasons = publication.reason.split("; ")
    assert [("by alice" in each, '"after the fair"' in each) for each in reasons] == [(True, True)] * 3


def test_whatever_was_said_and_whatever_is_seen() -> None:
    """In every combination a batch is asked exactly if no snooze or `never` holds for its goal.

    A question that waits for the same is confirmed all the same; one that is over stands while its goal is silent; one
    that nobody was asked ends.
    """
    batches = (None, SHOP, SHOP_LATER, WORSE, BANK)
    noes = (None, silenced(SHOP), silenced(SHOP, until_worse=False), silenced(SHOP, days=None))
    for old, state, new, first, second, view in product(batches, STATES, batches, noes, noes, SnapshotView):
        standing = () if old is None else (asked(1, old, state),)
        silences = [each for each in (first, second) if each is not None]
        publication = decided([] if new is None else [new], *silences, standing=standing, view=view)
        asks, confirmed, ended = in_short(publication)
        case = (old, state, new, first, second, view)
        of_shop = new is not None and goal_of(new) == goal_of(SHOP)
        in_force = [each for each in silences if not (each.until_worse and new is WORSE)]
        without = decided([] if new is None else [new], standing=standing, view=view)
        if of_shop and in_force:
            assert (asks, confirmed) == ([], [] if state is BatchState.NOT_ASKED else in_short(without)[1]), case
            over = old is not None and state is BatchState.UNANSWERED and goal_of(old) == goal_of(SHOP)
            stands = (
                old is None or state is BatchState.CHANGING or over or bool(confirmed) or view is SnapshotView.PARTIAL
            )
            assert ended == ([] if stands else [(1, "no_longer_proposed", None)]), case
        else:
            assert (asks, confirmed) == in_short(without)[:2], case
            assert [(number, by) for number, _, by in ended] == [(n, by) for n, _, by in in_short(without)[2]], case
        assert not (confirmed and ended), case
