"""Opening of the ledger for readers, who cannot change anything in it, not even a file's mode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, event

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.store import open_ledger

if TYPE_CHECKING:
    from sqlalchemy import Engine


def open_to_read(url: URL) -> Engine:
    """Opens an existing ledger; the database itself refuses every change by this engine.

    Raises:
        ConfigurationError: If there is no ledger yet, or another version of Steward made it.
        LedgerError: If it cannot be reached.
    """
    if url.get_backend_name() == "sqlite":
        return open_ledger(_only_read(url), make=False)
    engine = open_ledger(url, make=False)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _refuse_changes)
        engine.dispose()  # connections from before the listener
    return engine


def _only_read(url: URL) -> URL:
    file = Path(url.database or "")
    if not file.is_file():
        raise ConfigurationError(f"there is no ledger {str(file)!r} yet: the first run of a DAG makes it")
    return URL.create("sqlite", database=file.absolute().as_uri(), query={"mode": "ro", "uri": "true"})


def _refuse_changes(connection: Any, _record: Any) -> None:
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    connection.commit()
