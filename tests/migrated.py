"""New ledgers of tests get their tables as migrations made them before; migrations of their own take ten times as long.

What migrations do to a database without tables is seen once in each process. Ledgers with tables already are migrated
as they are outside of tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event, inspect

from pulsar_steward.ledger.migrations.migrate import Migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

_migrated = Migrations.run
_SEEN: dict[str, list[tuple[str, Any]]] = {}
"""Statements that change something, with their parameters, by the dialect of the database."""


def _seen(connection: Connection) -> list[tuple[str, Any]]:
    """Migrates a database, and returns what changed it."""
    found: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA")):
            found.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    _migrated(Migrations(connection))
    event.remove(connection, "before_cursor_execute", note)
    return found


def _repeated_or_migrated(self: Migrations, version: str = "head") -> None:
    connection = self._connection
    if version != "head" or inspect(connection).get_table_names():
        _migrated(self, version)
    elif connection.dialect.name in _SEEN:
        for statement, parameters in _SEEN[connection.dialect.name]:
            connection.exec_driver_sql(statement, parameters)
    else:
        _SEEN[connection.dialect.name] = _seen(connection)


@pytest.fixture(scope="session", autouse=True)
def _repeated_migrations() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Migrations, "run", _repeated_or_migrated)
        yield
