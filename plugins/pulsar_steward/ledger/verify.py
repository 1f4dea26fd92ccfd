"""Whether the ledger is what was written: finds a changed, removed or inserted row, and names it. Cannot write."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.chain import GENESIS, HEAD_NAME, Entry, Head, row_digest, row_key
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.tables import CHAIN, CHAINED, HEAD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import Connection, Engine, RowMapping, Select, Table

AT_ONCE = 1000


class Damage(StrEnum):
    """What happened to a row or link that is not what was written."""

    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"


class Tampering(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the ledger is not what was written.

    Attributes:
        damage: What happened.
        table: The table; ``chain`` where it is the chain itself.
        key: The row's key as a JSON list, or the link's number.
        sequence: The link's number in the chain; None for a row that has none.
        words: The same in a sentence.
    """

    damage: Damage
    table: str
    key: str
    sequence: int | None
    words: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification came to.

    Attributes:
        head: Where the chain ends.
        rows: How many rows were compared.
        tampered: Where the ledger is not what was written; empty: nowhere.
    """

    head: Head
    rows: int
    tampered: tuple[Tampering, ...]


def verify_ledger(engine: Engine, *, noted: Head | None = None) -> Verdict:
    """Compares every row with its link, and every link with the one before it.

    Args:
        engine: An open ledger.
        noted: Where the chain was seen to end at some time; it must have had that very link then.

    Raises:
        LedgerError: If it cannot be read.
    """
    with one_moment(engine) as connection:
        links = list(_links(connection))
        head = _head(connection)
        found = [*_broken_links(links), *_wrong_end(links, head), *_not_as_noted(links, noted)]
        rows = 0
        for table in CHAINED:
            known = {link.row_key: link for link in links if link.table_name == table.name}
            compared, wrong = _compared(connection, table, select(table), known)
            rows += compared
            found += wrong
    end = Head(links[-1].sequence, links[-1].hash) if links else Head(0, GENESIS)
    return Verdict(head=end, rows=rows, tampered=tuple(found))


def require_untampered(engine: Engine, plan_id: str, tables: Collection[Table] = CHAINED) -> None:
    """Refuses a plan of which a row is not what was written; and any, where the chain itself is broken.

    Args:
        engine: An open ledger.
        plan_id: The plan whose rows are compared; of a table that knows no plans, such as that of halts, all are.
        tables: Only rows of these.

    Raises:
        LedgerTampered: With the first of them named.
        LedgerError: If the ledger cannot be read.
    """
    with one_moment(engine) as connection:
        links = list(_links(connection))
        found = [*_broken_links(links), *_wrong_end(links, _head(connection))]
        for table in tables:
            query, of_table = select(table), [link for link in links if link.table_name == table.name]
            if "plan_id" in table.c:
                query = query.where(table.c.plan_id == plan_id)
                of_table = [link for link in of_table if link.plan_id == plan_id]
            found += _compared(connection, table, query, {link.row_key: link for link in of_table})[1]
    if found:
        raise LedgerTampered(
            f"the ledger was tampered with: {found[0].words}; nothing is changed (`steward ledger verify` says more)"
        )


def exported(engine: Engine) -> Iterator[bytes]:
    """The chain from its beginning, one JSON object a link, with the row that it stands for (null: removed).

    Raises:
        LedgerError: If it cannot be read.
    """
    by_name = {table.name: table for table in CHAINED}
    with one_moment(engine) as connection:
        rows = {
            (table.name, row_key(table, row)): dict(row)
            for table in by_name.values()
            for row in _rows(connection, select(table))
        }
        for link in _links(connection):
            row = rows.get((link.table_name, link.row_key))
            named = None if row is None else {str(name): value for name, value in row.items()}
            yield msgspec.json.encode({**msgspec.to_builtins(link), "row": named})


def _links(connection: Connection) -> Iterator[Entry]:
    return (from_row(row, Entry) for row in _rows(connection, select(CHAIN).order_by(CHAIN.c.sequence)))


def _rows(connection: Connection, query: Select[Any]) -> Iterator[RowMapping]:
    yield from connection.execution_options(yield_per=AT_ONCE).execute(query).mappings()


def _head(connection: Connection) -> Head | None:
    row = connection.execute(select(HEAD.c.sequence, HEAD.c.hash).where(HEAD.c.name == HEAD_NAME)).first()
    return None if row is None else Head(*row)


def _broken_links(links: Collection[Entry]) -> Iterator[Tampering]:
    """Links whose hash is not theirs, and gaps; after one that is wrong the next is compared with what is there."""
    before, expected = GENESIS, 1
    for link in links:
        if link.sequence != expected:
            missing = f"{expected}" if link.sequence == expected + 1 else f"{expected} to {link.sequence - 1}"
            yield _of_link(Damage.REMOVED, expected, f"link {missing} of the chain is missing")
        if link.sequence == expected and link.hash != link.expected_hash(before):
            said = f"link {link.sequence} of the chain ({link.table_name} {link.row_key}) does not follow from the one"
            yield _of_link(Damage.CHANGED, link.sequence, f"{said} before it: it or its forerunner was changed")
        before, expected = link.hash, link.sequence + 1


def _wrong_end(links: list[Entry], head: Head | None) -> Iterator[Tampering]:
    end = Head(links[-1].sequence, links[-1].hash) if links else Head(0, GENESIS)
    if head is None:
        yield _of_link(Damage.REMOVED, end.sequence, "the chain's head is missing")
    elif head != end:
        words = f"the chain ends at link {end.sequence}, and its head says {head.sequence}"
        damage = Damage.REMOVED if head.sequence > end.sequence else Damage.CHANGED
        yield _of_link(damage, end.sequence, f"{words}: links were removed or added at its end")


def _not_as_noted(links: list[Entry], noted: Head | None) -> Iterator[Tampering]:
    if noted is None or noted == Head(0, GENESIS):
        return
    at = next((link for link in links if link.sequence == noted.sequence), None)
    if at is None or at.hash != noted.hash:
        words = f"link {noted.sequence} of the chain is not the one that was noted: the chain was written anew or cut"
        yield _of_link(Damage.CHANGED, noted.sequence, words)


def _of_link(damage: Damage, sequence: int, words: str) -> Tampering:
    return Tampering(damage=damage, table=CHAIN.name, key=str(sequence), sequence=sequence, words=words)


def _compared(
    connection: Connection, table: Table, query: Select[Any], links: Mapping[str, Entry]
) -> tuple[int, list[Tampering]]:
    """How many rows of a table were compared with their links, and which are wrong."""
    try:
        stored = {row_key(table, row): row_digest(row) for row in _rows(connection, query)}
    except (TypeError, ValueError) as error:  # SQLite takes a value of any type in any column
        words = f"a row of {table.name} holds a value that Steward never writes there: {error}"
        return 0, [Tampering(damage=Damage.CHANGED, table=table.name, key="", sequence=None, words=words)]
    return len(stored), list(_wrong_rows(table.name, links, stored))


def _wrong_rows(table: str, links: Mapping[str, Entry], stored: Mapping[str, str]) -> Iterator[Tampering]:
    for key, link in links.items():
        if key not in stored:
            words = f"row {key} of {table} (link {link.sequence}) was removed"
            yield Tampering(damage=Damage.REMOVED, table=table, key=key, sequence=link.sequence, words=words)
        elif stored[key] != link.row_digest:
            words = f"row {key} of {table} (link {link.sequence}) was changed after it was written"
            yield Tampering(damage=Damage.CHANGED, table=table, key=key, sequence=link.sequence, words=words)
    for key in stored:
        if key not in links:
            words = f"row {key} of {table} was inserted by another hand: the chain does not know it"
            yield Tampering(damage=Damage.INSERTED, table=table, key=key, sequence=None, words=words)
