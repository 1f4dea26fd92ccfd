"""The hash chain: every added row is chained by hash to the row before it, so that a change of any row is detected.

A row's hash covers its table, its key, its content and the previous hash::

    hash(n) = SHA-256( n · table · key · SHA-256(content) · hash(n - 1) )

A person who can write to the database can also rewrite the whole chain. An earlier hash detects this: each published
event contains one, and `steward ledger verify` prints the last one.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import String, UniqueConstraint, cast, insert, literal, select, type_coerce, update
from sqlalchemy.types import NullType

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import CHAIN, HEAD
from pulsar_steward.model.canonical import canonical_json, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Column, ColumnElement, Connection, Dialect, Engine, ScalarSelect, Select, Table

GENESIS = "0" * 64
"""Hash before the first row."""

HEAD_NAME = "ledger"


class Head(msgspec.Struct, frozen=True):
    """End of the chain: the number of its rows, and the last one's hash."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """One link: its row, and the hash of the row's content; `hash` covers both, and the link before."""

    sequence: int
    table_name: str
    row_key: str
    row_digest: str
    plan_id: str | None
    hash: str

    def expected_hash(self, before: str) -> str:
        """Hash that the link must have if the previous link has the given hash."""
        return link_hash(self.sequence, self.table_name, self.row_key, self.row_digest, before)


def link_hash(sequence: int, table: str, key: str, content: str, before: str) -> str:
    """Hash of one link, 64 hexadecimal digits."""
    return hashlib.sha256("\n".join((str(sequence), table, key, content, before)).encode()).hexdigest()


def key_columns(table: Table) -> tuple[str, ...]:
    """Columns that identify a row: the primary key, or else the first unique constraint."""
    names = tuple(column.name for column in table.primary_key.columns)
    if names:
        return names
    unique = next(each for each in table.constraints if isinstance(each, UniqueConstraint))
    return tuple(column.name for column in unique.columns)


def row_key(table: Table, row: Mapping[Any, Any]) -> str:
    """Key of a row within its table, as a JSON list."""
    return canonical_json([row[name] for name in key_columns(table)]).decode()


def place_of(table: Table, number: int | ColumnElement[int]) -> ScalarSelect[int]:
    """Position of a row in the order in which all rows were added, which clocks cannot tell.

    Args:
        table: A table with one number as the key of a row.
        number: The row's number, or the column that contains it.
    """
    key = literal("[") + cast(number, String) + literal("]")  # as `row_key` writes it
    place = select(CHAIN.c.sequence).where(CHAIN.c.table_name == table.name, CHAIN.c.row_key == key)
    return place.correlate(table).scalar_subquery()


def row_digest(row: Mapping[Any, Any]) -> str:
    """SHA-256 of a row's content, as given or as read back; null values are left out."""
    plain = {
        str(name): value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for name, value in row.items()
        if value is not None
    }
    return digest(plain)


class Appending:
    """Adds rows in one transaction; no other transaction can add at the same time.

    Args:
        connection: A connection within that transaction.
        head: The chain's end, locked by this transaction.
    """

    def __init__(self, connection: Connection, head: Head) -> None:
        self.connection = connection
        self.head = head

    def add(self, table: Table, row: Mapping[str, Any]) -> int:
        """Adds a row and its link; returns the row's number if the database generated one, else 0.

        The hash covers the values as given, not as the database stored them.

        Raises:
            LedgerTampered: If the database stored other values than it was given, for example because of a trigger.
        """
        made = self.connection.execute(insert(table), row).inserted_primary_key
        names = key_columns(table)
        number = made[0] if made is not None and len(made) == 1 and isinstance(made[0], int) else 0
        given = {**row, **(dict(zip(names, made, strict=True)) if made else {})}
        stored = stored_rows(table).where(*(table.c[name] == given[name] for name in names))
        kept = list(held_rows(self.connection, table, stored))
        if [(row_digest(row.values), row.odd) for row in kept] != [(row_digest(given), ())]:
            raise LedgerTampered(
                f"the database did not keep row {row_key(table, given)} of {table.name} as it was given: a trigger or"
                " rule changes rows of the ledger; nothing was kept"
            )
        self.chain(table, given)
        return number

    def chain(self, table: Table, row: Mapping[Any, Any]) -> None:
        """Chains a row that is stored already.

        Raises:
            LedgerTampered: If the chain has a row with the same key already: rows are never removed.
        """
        sequence, key, content = self.head.sequence + 1, row_key(table, row), row_digest(row)
        known = select(CHAIN.c.sequence).where(CHAIN.c.table_name == table.name, CHAIN.c.row_key == key)
        if (before := self.connection.execute(known).scalar()) is not None:
            raise LedgerTampered(
                f"row {key} of {table.name} was there before (link {before}) and removed by another hand; nothing is"
                " added in its place (`steward ledger verify` says more)"
            )
        link = link_hash(sequence, table.name, key, content, self.head.hash)
        values = {"sequence": sequence, "table_name": table.name, "row_key": key, "row_digest": content, "hash": link}
        self.connection.execute(insert(CHAIN), {**values, "plan_id": row.get("plan_id")})
        self.head = Head(sequence, link)
        self.connection.execute(update(HEAD).where(HEAD.c.name == HEAD_NAME).values(sequence=sequence, hash=link))


class ChainWriter:
    """Adds to a ledger; every addition is committed before its method returns.

    Attributes:
        head: The chain's end after this writer's last addition.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.head = Head(0, GENESIS)

    @contextmanager
    def _appending(self) -> Iterator[Appending]:
        with appending(self._engine) as chain:
            yield chain
        self.head = chain.head


@contextmanager
def appending(engine: Engine) -> Iterator[Appending]:
    """Opens a transaction that adds to the ledger; it excludes other writers, and is committed at the end.

    Raises:
        LedgerTampered: If the chain's last link is not the one in its head.
        LedgerError: For any error of the database; then nothing was stored.
    """
    with transaction(engine) as connection:
        yield Appending(connection, locked_head(connection))


def locked_head(connection: Connection) -> Head:
    """Returns the chain's end and locks it: other writers wait until this transaction is over.

    Raises:
        LedgerTampered: If the chain's last link is not the one in its head.
    """
    # An update to the same value changes nothing, but locks the row in every database (SQLite: the whole file).
    mine = HEAD.c.name == HEAD_NAME
    if connection.execute(update(HEAD).where(mine).values(sequence=HEAD.c.sequence)).rowcount != 1:
        raise LedgerTampered("the ledger's chain has no head: somebody removed it (`steward ledger verify` says more)")
    head = Head(*connection.execute(select(HEAD.c.sequence, HEAD.c.hash).where(mine)).one())
    last = connection.execute(select(CHAIN.c.sequence, CHAIN.c.hash).order_by(CHAIN.c.sequence.desc()).limit(1)).first()
    if head != (Head(*last) if last else Head(0, GENESIS)):
        raise LedgerTampered(
            "the ledger's chain does not end where its head says: rows were removed or added by another hand"
            " (`steward ledger verify` says which)"
        )
    return head


# SQLite accepts any value in any column, and its reader is tolerant: 2 is read as true, and a time may contain a
# tab. SQL compares the stored value. So a changed row could read as if unchanged, but no query would find it.


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


@cache
def stored_rows(table: Table) -> Select[*tuple[Any, ...]]:
    """Query for a table's rows as the database stores them.

    It is made once, as rows are compared before each change of a cluster, and this takes longer than reading them.
    """
    query = select(table).with_only_columns(*(type_coerce(column, NullType()) for column in table.columns))
    return query.execution_options(yield_per=ROWS_PER_QUERY)


@lru_cache(256)
def _forms(table: Table, dialect: Dialect) -> tuple[_Form, ...]:
    return tuple(_Form(column, dialect) for column in table.columns)


def held_rows(connection: Connection, table: Table, query: Select[*tuple[Any, ...]]) -> Iterator[HeldRow]:
    """Yields the rows of a query, which is `stored_rows` of the table with conditions."""
    forms = _forms(table, connection.dialect)
    for row in connection.execute(query):
        values: dict[str, Any] = {}
        odd: list[str] = []
        for form, held in zip(forms, row, strict=True):
            try:
                values[form.name] = None if held is None else form.read(held)
            except (TypeError, ValueError, AttributeError):
                values[form.name] = held
                odd.append(form.name)
        yield HeldRow(values, tuple(odd))
