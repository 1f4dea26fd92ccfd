"""Worth of a batch: figures of its own plan, and None where there are none."""

from __future__ import annotations

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.plan import Placement
from pulsar_steward.model.risk import Worth, worth_of
from tests.builders import a_batch, a_finding, a_step, broker


def growing(seconds: int, severity: Severity = Severity.WARNING) -> object:
    """A finding about a backlog that reaches its quota in so many seconds."""
    return msgspec.structs.replace(a_finding(severity), figures={"seconds_to_quota": seconds})


def test_a_batch_of_which_nothing_is_known_is_worth_nothing_known() -> None:
    """The worth of a batch without findings counts none, and its other figures are not known."""
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
    """A batch whose placement is known on one side only has no spread on either side."""
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
