"""No secret leaves the connection: not into the ledger, a log, an event, a path or a report."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pydantic import SecretStr

from lab.simulator import Answer, Drop, Fault, running_simulator
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.verify import verify
from tests.apply.worksite import SKEWED, Worksite, said
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pulsar_steward.model.event import Event

TOKEN = "eyJhbGciOiJIUzI1NiJ9.made-up-and-secret"


def test_a_token_shows_up_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A batch with a success, a reset connection and a failure leaves no trace of the token it was carried out with."""
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    with running_simulator(SKEWED, token=TOKEN) as simulator:
        engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
        site = Worksite(simulator, engine, token=SecretStr(TOKEN))
        plan = site.approved(site.move(0), site.move(1), site.move(2))
        simulator.faults.add(Fault(Drop(work_done=True), path=f"{site.tc_bundles[1]}/unload"))
        simulator.faults.add(Fault(Answer(403, "no"), path=f"{site.tc_bundles[2]}/unload"))
        with site.context() as context:
            text = rehearse(context, plan, plan.batch("b1"))
            text += repr(context)
        outcomes = site.carry_out(plan, listener=events.append)
        with site.context() as context:
            verify(context, plan.plan_id, "b1")
        engine.dispose()
    assert said(outcomes) == ["done", "done", "failed"]
    records = simulator.requests.all()
    assert all(record.had_authorization for record in records)
    ledger = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert plan.plan_id.encode() in ledger
    assert len(events) == 3
    for place in (ledger.decode(errors="replace"), caplog.text, repr(records), repr(events), repr(outcomes), text):
        assert TOKEN not in place
