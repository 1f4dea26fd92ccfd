"""A question that nobody was asked: the pages say so, since when, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.store import open_to_read
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.pages.app import make_app
from pulsar_steward.pages.sources import Sources
from tests.builders import NOW, a_batch, a_plan, a_step
from tests.ledgers import ledger_at
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import Telling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN = a_plan(a_batch(title="even out"), a_batch(a_step(step_id="b2.s01"), batch_id="b2", title="asked elsewhere"))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgerWriter]:
    """Writes a ledger with a plan of two batches, of which one is a question."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    writer = LedgerWriter(engine)
    question = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="goal")
    writer.record_plan(PLAN, NOW, questions=QuestionChanges(asked=(question,)))
    yield writer
    engine.dispose()


def a_client(folder: Path, *, paused: bool | None) -> Client:
    """Asks pages that know whether the DAG that asks is paused, or do not."""
    url = make_url(f"sqlite:///{folder / 'ledger.db'}")
    sources = Sources(
        lambda: open_to_read(url), str(folder / "snapshots"), lambda: NOW, asking_is_paused=lambda: paused
    )
    return Client(make_app(sources, lambda: None))


@pytest.mark.parametrize(
    ("paused", "why"),
    [
        (True, "pulsar_remediate is paused: unpause it"),
        (False, "no run of pulsar_remediate has asked: the next observation tries again"),
        (None, "no run of pulsar_remediate has asked: if that DAG is paused, unpause it"),
    ],
)
def test_it_is_said_why_nobody_was_asked(tmp_path: Path, writer: LedgerWriter, paused: bool | None, why: str) -> None:
    """The list, the cluster's page, the plan's and the API name the batch and the reason, until somebody was asked."""
    client, plan = a_client(tmp_path, paused=paused), f"/plans/{PLAN.plan_id}"
    for path in ("/", "/clusters/east", plan):
        assert client.get(path).text.count(why) == 1
    (card,) = client.get("/api/clusters").json()
    assert ([each["batch_id"] for each in card["unasked"]], card["why_unasked"][: len(why)]) == (["b1"], why)
    asked, elsewhere = client.get(f"/api{plan}").json()["batches"]
    assert (asked["state"], elsewhere["state"], elsewhere["why_unasked"]) == ("not asked", "asked elsewhere", None)
    assert asked["why_unasked"].startswith(why)

    Telling(writer).asked(PLAN, "b1", "pulsar_remediate/r/0", NOW)
    for path in ("/", "/clusters/east", plan):
        assert "Nobody was asked" not in client.get(path).text
    assert client.get(f"/api{plan}").json()["batches"][0]["why_unasked"] is None
