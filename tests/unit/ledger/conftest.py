"""Ledgers to test against: SQLite files, and PostgreSQL where it is installed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text

from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.verify import VerifiedChain, require_untampered
from pulsar_steward.ledger.write import LedgerWriter
from tests.ledgers import ledger_at
from tests.unit.ledger.forging import filled
from tests.unit.ledger.test_records import AT, PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
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
    engine = ledger_at(url)
    yield engine
    engine.dispose()


@pytest.fixture
def write(engine: Engine) -> LedgerWriter:
    return LedgerWriter(engine)


@pytest.fixture
def read(engine: Engine) -> LedgerReader:
    return LedgerReader(engine)


@dataclass(frozen=True)
class Filled:
    """A ledger with a row in every table, in SQLite's file.

    Attributes:
        file: The file.
        early: How it was found when it held the plan alone.
    """

    file: Path
    early: VerifiedChain

    def into(self, engine: Engine) -> None:
        """Copies it over an open, empty ledger in SQLite."""
        with closing(sqlite3.connect(self.file)) as source, engine.connect() as connection:
            own: Any = connection.connection.driver_connection
            source.backup(own)


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Written once: hundreds of tests begin with it."""
    file = tmp_path_factory.mktemp("filled") / "ledger.db"
    engine = ledger_at(URL.create("sqlite", database=str(file)))
    LedgerWriter(engine).record_plan(PLAN, AT)
    early = require_untampered(engine, PLAN.plan_id)
    filled(engine)
    engine.dispose()
    return Filled(file, early)


@pytest.fixture
def filled_early(engine: Engine, write: LedgerWriter, filled_once: Filled) -> VerifiedChain:
    """Fills the ledger; returns how it was found when it held the plan alone."""
    if engine.dialect.name == "sqlite":
        filled_once.into(engine)
        return filled_once.early
    write.record_plan(PLAN, AT)
    early = require_untampered(engine, PLAN.plan_id)
    filled(engine)
    return early


@pytest.fixture
def full(engine: Engine, filled_early: VerifiedChain) -> Engine:
    """A ledger with a row in every table."""
    del filled_early
    return engine
