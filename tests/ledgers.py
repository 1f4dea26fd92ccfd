"""Ledgers for tests: a new SQLite file begins as a copy of an empty ledger, as making the tables takes 0.1 s.

Engines of SQLite share what SQLAlchemy compiled: each test opens its own, and a statement takes 2 ms to compile.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, make_url

from pulsar_steward.ledger.store import open_ledger

if TYPE_CHECKING:
    from sqlalchemy import URL, Dialect, Engine


def ledger_at(url: str | URL) -> Engine:
    """Opens a ledger as `open_ledger` does."""
    place = make_url(url)
    if place.get_backend_name() == "sqlite" and place.database and not place.query:
        file = Path(place.database)
        if not file.exists():
            file.touch(mode=0o600)
            file.write_bytes(_empty())
    return open_ledger(url)


@cache
def _empty() -> bytes:
    """The content of a ledger's file that was just made."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        open_ledger(f"sqlite:///{file}").dispose()
        return file.read_bytes()


def engine_that_shares(url: URL, **options: Any) -> Engine:
    """Makes an engine as SQLAlchemy does; those of SQLite have one dialect, and one store of compiled statements."""
    engine = create_engine(url, **options)
    if engine.dialect.name == "sqlite":
        engine.dialect, engine._compiled_cache = _compiling()
    return engine


@cache
def _compiling() -> tuple[Dialect, Any]:
    """The dialect that SQLite's engines share, which has seen a database, and its statements."""
    engine = create_engine("sqlite://", query_cache_size=2000)
    engine.connect().close()
    engine.dispose()
    return engine.dialect, engine._compiled_cache
