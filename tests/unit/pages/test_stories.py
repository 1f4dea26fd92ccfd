"""History as a file: no cell is a formula, and nothing is left out."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.pages.stories import COLUMNS, cell_of

if TYPE_CHECKING:
    from tests.unit.pages.conftest import Client


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("x")', "+1", "-1", "@SUM(A1)", "\tx", "\r=1", "\n=1", "\uff1d1", " =1", "a=1", ""]
)
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    """A cell never begins as a formula does, also behind characters that spreadsheets skip."""
    assert not cell_of(text).lstrip(" \t\r\n").startswith(("=", "+", "-", "@", "\uff1d"))


def test_the_file_has_every_event(client: Client) -> None:
    """The CSV file has the same events as the JSON file, one on each line, without hidden characters."""
    answer = client.get("/history.csv")
    rows = list(csv.reader(answer.text.splitlines()))
    events = client.get("/history.json").json()
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(events) + 1
    assert [int(row[0]) for row in rows[1:]] == [event["sequence"] for event in events]
    assert 'filename="steward-history.csv"' in answer.headers["content-disposition"]
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert all("\u202e" not in cell for row in rows for cell in row)
    (comment,) = [row for row in rows if "HYPERLINK" in row[-1]]
    assert comment[-1].startswith("approved")


def test_a_file_of_one_cluster(client: Client) -> None:
    """The CSV file has only the events of the cluster in its filter."""
    rows = list(csv.reader(client.get("/history.csv?cluster=north").text.splitlines()))
    assert [row[COLUMNS.index("cluster")] for row in rows[1:]] == ["north"]
