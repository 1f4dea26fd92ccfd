"""Worth of a batch, when it would begin and how long it would take, as a person reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.ledger.moves import MoveTimes
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.plan import ROLLBACK, Placement
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.step import Touched
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body
from pulsar_steward.report.when import gone_for, least_time, when
from pulsar_steward.report.worth import worth_in_brief, worth_in_words
from tests.builders import NOW, a_batch, a_finding, a_plan, a_policy, a_split, a_step, broker

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.approval_terms import Terms
    from tests.golden import Golden

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
    """The time that moved topics are gone is estimated for the fullest bundle, and left out if no topic moves."""
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
    """The question has a section on its time only if the present time is given."""
    batch = a_batch_of(3)
    assert "### When" in body(a_plan(batch), batch, Policy(), now=NOW)
    assert "### When" not in body(a_plan(batch), batch, Policy())
