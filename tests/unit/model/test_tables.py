"""The tables of a snapshot, and the words of findings."""

from __future__ import annotations

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.tables import COLLECTED, DIAGNOSED, Table


@pytest.mark.parametrize("table", [*COLLECTED, *DIAGNOSED], ids=lambda table: table.name)
def test_a_table_says_what_it_holds(table: Table) -> None:
    """A table's column names are unique and in snake case, and every column has a meaning."""
    assert len(set(table.names)) == len(table.names)
    assert all(name.isidentifier() and name == name.lower() for name in table.names)
    assert all(column.meaning for column in table.columns)
    assert table.rows.startswith("one row")


def test_tables_have_names_of_their_own() -> None:
    """A table's name is its folder, so no two share one."""
    names = [table.name for table in (*COLLECTED, *DIAGNOSED)]
    assert len(set(names)) == len(names)


def test_severities_rise() -> None:
    """The ranks of severities rise from info to critical."""
    ranks = [Severity.INFO.rank, Severity.WARNING.rank, Severity.CRITICAL.rank]
    assert ranks == [0, 1, 2]


@pytest.mark.parametrize("check_id", BY_ID)
def test_a_check_has_words(check_id: str) -> None:
    """Every check is listed under its own id, with advice and a source."""
    info = BY_ID[check_id]
    assert info.check_id == check_id
    assert info.title
    assert info.source
    assert all(info.advice)
