"""History as a file: no cell is a formula, and nothing is left out."""

from __future__ import annotations

import csv
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.pages.plan_data import COLUMNS, cell_of

if TYPE_CHECKING:
    from tests.unit.pages.conftest import Client


@pytest.mark.parametrize(
    ("value", "cell"),
    [
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
    ],
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
