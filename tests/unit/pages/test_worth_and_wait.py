"""Pages about questions: what they are worth, how long they waited, their stories, and that nobody was asked."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import make_url, update

from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.store import open_to_read
from pulsar_steward.ledger.tables import PLANS
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.finding import Severity
from pulsar_steward.pages.clusters import cluster_cards
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.plan_data import COLUMNS, cell_of
from pulsar_steward.pages.plans import plan_view
from pulsar_steward.pages.sources import Sources
from tests.builders import NOW, a_batch, a_finding, a_plan, a_policy, a_step
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at
from tests.unit.pages.conftest import Client, pages_of
from tests.unit.pages.scenes import Telling, quota_batch, sources_of, tc_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Batch, Plan


TONIGHT = NOW.replace(hour=22)
NIGHT = {"opens": "0 22 * * *", "minutes": 60}


def recorded(writer: LedgerWriter, *batches: Batch, windows: tuple[dict[str, Any], ...] = ()) -> tuple[Plan, Telling]:
    """A plan under a policy with these windows, and who tells on."""
    policy = a_policy(guards={"windows": list(windows)})
    plan = a_plan(*batches, policy_digest=policy.digest)
    writer.record_plan(plan, NOW, policy=policy)
    return plan, Telling(writer)


@cases(
    "windows, good_for, opens",
    ("waits", (NIGHT,), 11, TONIGHT),
    ("is over by then", (NIGHT,), 9, None),
    ("no windows", (), 11, None),
    ("open", ({"opens": "0 12 * * *", "minutes": 5},), 11, None),
)
def test_an_approved_batch_says_what_it_waits_for(
    tmp_path: Path, writer: LedgerWriter, windows: tuple[dict[str, Any], ...], good_for: float, opens: object
) -> None:
    """An approved batch shows when the next window opens, if it is shut now and the approval still counts then."""
    plan, telling = recorded(writer, tc_batch("east"), windows=windows)
    telling.asked(plan, "b1", "pulsar_remediate/r/0", NOW)
    answer = telling.answered(plan, "b1", "pulsar_remediate/r/0", NOW, Decision.APPROVED, hours=good_for)
    assert answer == 1
    (batch,) = plan_view(sources_of(tmp_path), plan.plan_id).batches
    assert batch.window_opens_at == opens
    page = pages_of(tmp_path).get(f"/plans/{plan.plan_id}").text
    assert ("waits for the maintenance window" in page) is (opens is not None)


def test_worth_and_risk_are_on_the_page(tmp_path: Path, writer: LedgerWriter) -> None:
    """A plan's page states the worth and the effect of its batches in sentences, and the API gives risk and worth."""
    plan, _ = recorded(writer, tc_batch("east"), quota_batch())
    client = pages_of(tmp_path)
    page = client.get(f"/plans/{plan.plan_id}").text
    assert "Transaction coordinators by broker: 0 to 16 now, 4 to 8 after all steps." in page
    assert "32 clients will reconnect" in page
    moves, quota = client.get(f"/api/plans/{plan.plan_id}").json()["batches"]
    assert (moves["risk"], moves["worth"]["spread_before"], moves["worth"]["spread_after"]) == ("medium", 16, 4)
    assert (quota["risk"], quota["worth"]["seconds_to_quota"]) == ("critical", None)


def test_what_waits_is_listed_by_its_worth(tmp_path: Path, writer: LedgerWriter) -> None:
    """Questions that wait are listed by their batches' worth, not by when they were asked; unreadable ones are last."""
    found = a_finding(Severity.CRITICAL)
    grave = msgspec.structs.replace(quota_batch(), findings=(found,))
    soon = a_batch(
        batch_id="b3", title="soon", findings=(msgspec.structs.replace(a_finding(), figures={"seconds_to_quota": 60}),)
    )
    plan, telling = recorded(writer, tc_batch("east"), grave, soon)
    for minute, batch_id in enumerate(("b1", "b3", "b2")):
        telling.asked(plan, batch_id, f"pulsar_remediate/r/{minute}", NOW - timedelta(minutes=9 - minute))
    unreadable, telling = recorded(writer, msgspec.structs.replace(grave, batch_id="b4"))
    telling.asked(unreadable, "b4", "pulsar_remediate/r/3", NOW - timedelta(minutes=10))
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    with engine.begin() as connection:
        connection.execute(update(PLANS).where(PLANS.c.plan_id == unreadable.plan_id).values(document="{}"))
    engine.dispose()
    (card,) = cluster_cards(sources_of(tmp_path))
    assert [each.batch_id for each in card.waiting] == ["b2", "b3", "b1", "b4"]


@row_by_row(
    "value, cell",
    ('=HYPERLINK("x")', '\'=HYPERLINK("x")'),
    *((f"{sign}1", f"'{sign}1") for sign in "=+-@\uff1d\uff0b\uff0d\uff20"),
    ("  =1", "'  =1"),
    ("\tx", r"\tx"),
    ("\r=1", r"\r=1"),
    ("\n=1", r"\n=1"),
    ("\u00a0=1", r"\xa0=1"),
    ("a=1", "a=1"),
    (" a", " a"),
    ("", ""),
    (None, ""),
    (7, "7"),
)
def test_no_cell_begins_as_a_formula_does(value: object, cell: str) -> None:
    """A cell that begins as a formula does, also behind blanks, gets an apostrophe, and any other stays as it is.

    Line ends, tabs and further blanks are spelled out, so that no formula follows them.
    """
    assert cell_of(value) == cell


def test_the_file_has_every_event(client: Client) -> None:
    """The CSV file has the events of the JSON file with all their columns, one a line, without hidden characters."""
    answer = client.get("/history.csv")
    rows = list(csv.reader(answer.text.splitlines()))
    events = client.get("/history.json").json()
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(events) + 1
    for event in events:
        event["at"] = datetime.fromisoformat(event["at"]).isoformat()
    assert rows[1:] == [[cell_of(event[name]) for name in COLUMNS] for event in events]
    assert 'filename="steward-history.csv"' in answer.headers["content-disposition"]
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert all("\u202e" not in cell for row in rows for cell in row)
    (comment,) = [row for row in rows if "HYPERLINK" in row[-1]]
    assert comment[-1].startswith("approved")


def test_a_file_of_one_cluster(client: Client) -> None:
    """The CSV file has only the events of the cluster in its filter."""
    rows = list(csv.reader(client.get("/history.csv?cluster=north").text.splitlines()))
    assert [row[COLUMNS.index("cluster")] for row in rows[1:]] == ["north", "north"]


PLAN = a_plan(a_batch(title="even out"), a_batch(a_step(step_id="b2.s01"), batch_id="b2", title="asked elsewhere"))


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[LedgerWriter]:
    """Writes a ledger with a plan of two batches, of which one is a question."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    asking = LedgerWriter(engine)
    question = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="goal")
    asking.record_plan(PLAN, NOW, questions=QuestionChanges(asked=(question,)))
    yield asking
    engine.dispose()


def a_client(folder: Path, *, paused: bool | None) -> Client:
    """Asks pages that know whether the DAG that asks is paused, or do not."""
    url = make_url(f"sqlite:///{folder / 'ledger.db'}")
    sources = Sources(lambda: open_to_read(url), str(folder / "snapshots"), lambda: NOW, is_paused=lambda _: paused)
    return Client(make_app(sources, lambda: None))


@row_by_row(
    "paused, why",
    (True, "pulsar_remediate is paused: unpause it"),
    (False, "no run of pulsar_remediate has asked: the next observation tries again"),
    (None, "no run of pulsar_remediate has asked: if that DAG is paused, unpause it"),
)
def test_it_is_said_why_nobody_was_asked(tmp_path: Path, asking: LedgerWriter, paused: bool | None, why: str) -> None:
    """The list, the cluster's page, the plan's and the API name the batch and the reason, until somebody was asked."""
    client, plan = a_client(tmp_path, paused=paused), f"/plans/{PLAN.plan_id}"
    for path in ("/", "/clusters/east", plan):
        assert client.get(path).text.count(why) == 1
    (card,) = client.get("/api/clusters").json()
    assert ([each["batch_id"] for each in card["unasked"]], card["why_unasked"][: len(why)]) == (["b1"], why)
    asked, elsewhere = client.get(f"/api{plan}").json()["batches"]
    assert (asked["state"], elsewhere["state"], elsewhere["why_unasked"]) == ("not asked", "asked elsewhere", None)
    assert asked["why_unasked"].startswith(why)

    Telling(asking).asked(PLAN, "b1", "pulsar_remediate/r/0", NOW)
    for path in ("/", "/clusters/east", plan):
        assert "Nobody was asked" not in client.get(path).text
    assert client.get(f"/api{plan}").json()["batches"][0]["why_unasked"] is None


def test_a_way_back_that_would_wait_says_so(shown_folder: Path, plans: dict[str, Plan]) -> None:
    """Beside the parameters of a rollback it is said that its DAG is paused, and nothing where it is not."""
    words = "pulsar_rollback is paused: a run of it stays queued"
    for paused, told in ((True, 1), (False, 0), (None, 0)):
        client = a_client(shown_folder, paused=paused)
        back = [each for plan in plans.values() for each in batches(client, plan) if each["can_go_back"]]
        assert back
        assert [str(each["why_back_waits"]).startswith(words) for each in back] == [bool(told)] * len(back)
        texts = [client.get(f"/plans/{plan.plan_id}").text for plan in plans.values()]
        assert sum(text.count(words) for text in texts) == told * len(back)


def batches(client: Client, plan: Plan) -> list[dict[str, Any]]:
    """Batches of a plan as the API tells them."""
    told: list[dict[str, Any]] = client.get(f"/api/plans/{plan.plan_id}").json()["batches"]
    return told
