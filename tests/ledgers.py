"""Ledgers for tests: a new SQLite file begins as a copy of an empty ledger, as making the tables takes 0.1 s."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from pulsar_steward.ledger.store import open_ledger

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine


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
