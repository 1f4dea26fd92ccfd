"""A row of the ledger that is dated ahead of the clock does not look like an approval that came too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.cli.doctor.here import ledger_lines
from pulsar_steward.cli.doctor.line import LineState
from tests.apply.refusals import assert_refused

if TYPE_CHECKING:
    from tests.apply.worksite import Worksite

AHEAD = r"newest row \(in plans\) is dated .*, 48\.0 h ahead of this machine's clock"


def test_a_row_that_is_ahead_is_named(site: Worksite) -> None:
    """A refusal by a row of another day names it and what to do, and `steward doctor` does as well."""
    site.clock.advance(hours=48)
    site.plan(site.move(2))
    site.clock.advance(hours=-48)
    assert_refused(site, site.approved(site.move(0)), f"has expired: .*{AHEAD}.*set the clocks of all machines right")
    lines = ledger_lines(site.engine.url.render_as_string(hide_password=False))
    (line,) = (each for each in lines if each.subject == "clocks")
    assert line.state is LineState.PROBLEM
