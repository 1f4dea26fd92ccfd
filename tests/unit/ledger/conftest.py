"""Ledgers to test against: SQLite files, and PostgreSQL where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import URL, create_engine

from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.tables import metadata
from pulsar_steward.ledger.write import LedgerWriter
from tests.unit.ledger.servers import binaries, running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine


@pytest.fixture(scope="session")
def postgres() -> Iterator[URL]:
    """The URL of a PostgreSQL server for the whole run; skips where none is installed."""
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL here: install it (Debian: apt-get install postgresql) to test the ledger on it")
    with running_postgres(folder) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """The URL of a database without tables: a file of the test's own, or the server's."""
    if request.param == "sqlite":
        return URL.create("sqlite", database=str(tmp_path / "ledger.db"))
    server: URL = request.getfixturevalue("postgres")
    engine = create_engine(server)
    metadata.drop_all(engine)
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
