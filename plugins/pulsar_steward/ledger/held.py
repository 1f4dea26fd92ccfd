"""Rows as the database stores them: finds values stored in another form than Steward writes.

SQLite accepts any value in any column, and its reader is tolerant: 2 is read as true, and a time may contain a tab. SQL
compares the stored value. So a changed row could read as if unchanged, but no query would find it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import type_coerce
from sqlalchemy.types import NullType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Column, Connection, Dialect, Select, Table

ROWS_PER_QUERY = 1000


class HeldRow(NamedTuple):
    """A row, and its columns with a value in another form than Steward writes.

    Attributes:
        values: The values by column, as Steward reads them; in `odd` columns, as the database stores them.
        odd: Names of columns with a value that cannot be read, or that Steward would write in another form.
    """

    values: dict[str, Any]
    odd: tuple[str, ...]


class _Form:
    """Reader and writer of a column's values for one kind of database."""

    def __init__(self, column: Column[Any], dialect: Dialect) -> None:
        kind = column.type.dialect_impl(dialect)
        self.name = column.name
        self._type = column.type.python_type
        self._read: Callable[[Any], Any] | None = kind.result_processor(dialect, None)
        self._write: Callable[[Any], Any] | None = kind.bind_processor(dialect)

    def read(self, held: object) -> object:
        """The value as Steward reads it.

        Raises:
            ValueError: If Steward would write it in another form, or cannot read it.
        """
        value = held if self._read is None else self._read(held)
        written = value if self._write is None else self._write(value)
        # 1, 1.0 and true are equal in Python, but not in the queries of every database.
        if type(written) is not type(held) or written != held or not isinstance(value, self._type):
            raise ValueError(f"{held!r} is not how Steward writes {self.name}")
        return value


def held_rows(connection: Connection, table: Table, query: Select[Any]) -> Iterator[HeldRow]:
    """Yields the rows of a query for all columns of one table."""
    forms = [_Form(column, connection.dialect) for column in table.columns]
    bare = query.with_only_columns(*(type_coerce(column, NullType()) for column in table.columns))
    for row in connection.execute(bare.execution_options(yield_per=ROWS_PER_QUERY)):
        yield _read(forms, row)


def _read(forms: list[_Form], row: Any) -> HeldRow:
    values: dict[str, Any] = {}
    odd: list[str] = []
    for form, held in zip(forms, row, strict=True):
        try:
            values[form.name] = None if held is None else form.read(held)
        except (TypeError, ValueError, AttributeError):
            values[form.name] = held
            odd.append(form.name)
    return HeldRow(values, tuple(odd))
