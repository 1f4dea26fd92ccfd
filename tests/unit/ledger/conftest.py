"""Ledgers to test against: SQLite files, and PostgreSQL where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import URL, create_engine, make_url, text

from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from tests.unit.ledger.forging import filled
from tests.unit.ledger.test_records import AT, PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """The URL of a database without tables: a file of the test's own, or the server's."""
    if request.param == "sqlite":
        return URL.create("sqlite", database=str(tmp_path / "ledger.db"))
    server = make_url(request.getfixturevalue("postgres").url())
    engine = create_engine(server)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return server


@pytest.fixture
def engine(url: URL) -> Iterator[Engine]:
    """An open, empty ledger."""
    engine = open_ledger(url)
    yield engine
    engine.dispose()


@pytest.fixture
def write(engine: Engine) -> LedgerWriter:
    """A writer of the ledger."""
    return LedgerWriter(engine)


@pytest.fixture
def read(engine: Engine) -> LedgerReader:
    """A reader of the same ledger."""
    return LedgerReader(engine)


@pytest.fixture
def full(engine: Engine, write: LedgerWriter) -> Engine:
    """A ledger with a row in every table."""
    write.record_plan(PLAN, AT)
    return filled(engine)
