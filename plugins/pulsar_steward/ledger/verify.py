"""Verification of the ledger: finds a changed, removed or inserted row, and names it. Cannot write."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import and_, or_, select

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.chain import GENESIS, HEAD_NAME, ChainLink, Head, key_columns, row_digest, row_key
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.tables import CHAIN, CHAINED, HEAD, TOLD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, Select, Table

ROWS_PER_QUERY = 1000
KEYS_AT_ONCE = 200

_NONE = Head(0, GENESIS)
"""End of a chain without links."""


class Damage(StrEnum):
    """Kind of damage to a row or link."""

    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"


class Tampering(msgspec.Struct, frozen=True, kw_only=True):
    """One row or link that was tampered with.

    Attributes:
        damage: Kind of damage.
        table: The table; ``chain`` for a link of the chain itself.
        key: The row's key as a JSON list, or the link's number.
        sequence: The link's number in the chain; None for a row without a link.
        words: The damage in a sentence.
    """

    damage: Damage
    table: str
    key: str
    sequence: int | None
    words: str


class IntegrityReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a verification.

    Attributes:
        head: The chain's end.
        rows: Number of rows compared.
        tampered: Rows and links that were tampered with.
    """

    head: Head
    rows: int
    tampered: tuple[Tampering, ...]


def verify_ledger(engine: Engine, *, noted: Collection[Head] = ()) -> IntegrityReport:
    """Compares every row with its link, and every link with the one before it.

    Args:
        engine: An open ledger.
        noted: Ends of the chain that were recorded at some time; it must still contain these very links.

    Raises:
        LedgerError: If it cannot be read.
    """
    with one_moment(engine) as connection:
        return _verdict(connection, list(_links(connection)), noted)


def _verdict(connection: Connection, links: Sequence[ChainLink], noted: Collection[Head]) -> IntegrityReport:
    found = [*_broken_links(links), *_wrong_end(links, _head(connection))]
    found += [each for head in noted for each in _not_as_noted(links, head)]
    rows = 0
    for table in CHAINED:
        known = {link.row_key: link for link in links if link.table_name == table.name}
        compared, wrong = _compared(connection, table, select(table), known)
        rows += compared
        found += wrong
    return IntegrityReport(head=_end(links), rows=rows, tampered=tuple(found))


class VerifiedChain(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that was verified up to its end at that time.

    Attributes:
        plan_id: The plan whose rows were compared.
        head: The chain's end.
        links: Links of the plan's rows, and of tables without plans.
    """

    plan_id: str
    head: Head
    links: tuple[ChainLink, ...]


def require_untampered(engine: Engine, plan_id: str, *, noted: Collection[Head] = ()) -> VerifiedChain:
    """Checks that no row of the ledger was tampered with, not even one of another plan.

    Args:
        engine: An open ledger.
        plan_id: The plan that is acted on, for later checks.
        noted: Ends of the chain that were recorded at some time.

    Raises:
        LedgerTampered: Names the first such row.
        LedgerError: If the ledger cannot be read.
    """
    with one_moment(engine) as connection:
        links = list(_links(connection))
        verdict = _verdict(connection, links, noted)
    _refuse(verdict.tampered)
    kept = tuple(link for link in links if _concerns(link, plan_id))
    return VerifiedChain(plan_id=plan_id, head=verdict.head, links=kept)


def require_still_untampered(engine: Engine, walked: VerifiedChain, tables: Collection[Table] = CHAINED) -> None:
    """Repeats the check some time later, by the rows added since: the chain's growth does not slow it down.

    It compares the rows of the plan and of tables without plans, and whatever was added since. Earlier rows of other
    plans, and of what people were told, are not compared again.

    Args:
        engine: An open ledger.
        walked: Result of the earlier check.
        tables: Restricts the comparison of the plan's earlier rows to these tables.

    Raises:
        LedgerTampered: Names the first such row.
        LedgerError: If the ledger cannot be read.
    """
    theirs = (CHAIN.c.plan_id == walked.plan_id) | CHAIN.c.table_name.in_(_OF_NO_PLAN)
    with one_moment(engine) as connection:
        links = list(_links(connection, theirs | (CHAIN.c.sequence >= walked.head.sequence)))
        kept = [link for link in links if _concerns(link, walked.plan_id)]
        added = [link for link in links if link.sequence > walked.head.sequence]
        found = [
            *_not_as_noted(links, walked.head),
            *_not_as_walked(kept, walked),
            *_broken_links(added, walked.head),
            *_wrong_end(links, _head(connection)),
            *_wrong_added(connection, added),
            *_wrong_in(connection, tables, walked.plan_id, kept),
        ]
    _refuse(found)


_OF_NO_PLAN = tuple(table.name for table in CHAINED if "plan_id" not in table.c and table not in TOLD)


def _concerns(link: ChainLink, plan_id: str) -> bool:
    return link.plan_id == plan_id or link.table_name in _OF_NO_PLAN


def _refuse(found: Collection[Tampering]) -> None:
    for first in found:
        raise LedgerTampered(
            f"the ledger was tampered with: {first.words}; nothing is changed (`steward ledger verify` says more)"
        )


def exported(engine: Engine) -> Iterator[bytes]:
    """Yields the chain from its beginning, one JSON object per link, with its row (null: removed).

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


def _links(connection: Connection, *which: ColumnElement[bool]) -> Iterator[ChainLink]:
    query = select(CHAIN).where(*which).order_by(CHAIN.c.sequence)
    return (from_row(row, ChainLink) for row in _rows(connection, query))


def _rows(connection: Connection, query: Select[Any]) -> Iterator[RowMapping]:
    yield from connection.execution_options(yield_per=ROWS_PER_QUERY).execute(query).mappings()


def _head(connection: Connection) -> Head | None:
    row = connection.execute(select(HEAD.c.sequence, HEAD.c.hash).where(HEAD.c.name == HEAD_NAME)).first()
    return None if row is None else Head(*row)


def _broken_links(links: Collection[ChainLink], begin: Head = _NONE) -> Iterator[Tampering]:
    """Yields wrong hashes and gaps; the link after a wrong one is compared with the stored hash."""
    before, expected = begin.hash, begin.sequence + 1
    for link in links:
        if link.sequence != expected:
            missing = f"{expected}" if link.sequence == expected + 1 else f"{expected} to {link.sequence - 1}"
            yield _of_link(Damage.REMOVED, expected, f"link {missing} of the chain is missing")
        if link.sequence == expected and link.hash != link.expected_hash(before):
            said = f"link {link.sequence} of the chain ({link.table_name} {link.row_key}) does not follow from the one"
            yield _of_link(Damage.CHANGED, link.sequence, f"{said} before it: it or its forerunner was changed")
        before, expected = link.hash, link.sequence + 1


def _end(links: Sequence[ChainLink]) -> Head:
    return Head(links[-1].sequence, links[-1].hash) if links else _NONE


def _wrong_end(links: Sequence[ChainLink], head: Head | None) -> Iterator[Tampering]:
    end = _end(links)
    if head is None:
        yield _of_link(Damage.REMOVED, end.sequence, "the chain's head is missing")
    elif head != end:
        words = f"the chain ends at link {end.sequence}, and its head says {head.sequence}"
        damage = Damage.REMOVED if head.sequence > end.sequence else Damage.CHANGED
        yield _of_link(damage, end.sequence, f"{words}: links were removed or added at its end")


def _not_as_walked(links: Iterable[ChainLink], walked: VerifiedChain) -> Iterator[Tampering]:
    now = {link.sequence: link for link in links if link.sequence <= walked.head.sequence}
    then = {link.sequence: link for link in walked.links}
    for sequence in sorted({*now, *then}):
        if now.get(sequence) != then.get(sequence):
            damage = Damage.CHANGED if sequence in now else Damage.REMOVED
            words = f"link {sequence} of the chain is not the one that was there when the batch began"
            yield _of_link(damage, sequence, words)


def _not_as_noted(links: Sequence[ChainLink], noted: Head) -> Iterator[Tampering]:
    if noted == _NONE:
        return
    at = next((link for link in links if link.sequence == noted.sequence), None)
    if at is None or at.hash != noted.hash:
        words = (
            f"link {noted.sequence} of the chain is not the one that was noted: the chain was written anew or cut, or"
            " an older ledger was put back"
        )
        yield _of_link(Damage.CHANGED, noted.sequence, words)


def _of_link(damage: Damage, sequence: int, words: str) -> Tampering:
    return Tampering(damage=damage, table=CHAIN.name, key=str(sequence), sequence=sequence, words=words)


class _Stored(NamedTuple):
    """A row as the database holds it: the hash of its content, and its plan."""

    digest: str
    plan_id: str | None


def _compared(
    connection: Connection, table: Table, query: Select[Any], links: Mapping[str, ChainLink]
) -> tuple[int, list[Tampering]]:
    """Number of a table's rows that were compared with their links, and the wrong ones."""
    try:
        stored = {row_key(table, row): _Stored(row_digest(row), row.get("plan_id")) for row in _rows(connection, query)}
    except (TypeError, ValueError) as error:  # SQLite accepts a value of any type in any column
        words = f"a row of {table.name} holds a value that Steward never writes there: {error}"
        return 0, [Tampering(damage=Damage.CHANGED, table=table.name, key="", sequence=None, words=words)]
    return len(stored), list(_wrong_rows(table.name, links, stored))


def _wrong_in(
    connection: Connection, tables: Iterable[Table], plan_id: str, links: Collection[ChainLink]
) -> Iterator[Tampering]:
    """Yields rows of a plan, and of tables without plans, that do not match their links; what was told is left out."""
    for table in tables:
        if table in TOLD:
            continue
        query = select(table)
        if "plan_id" in table.c:
            query = query.where(table.c.plan_id == plan_id)
        known = {link.row_key: link for link in links if link.table_name == table.name}
        yield from _compared(connection, table, query, known)[1]


def _wrong_added(connection: Connection, links: Sequence[ChainLink]) -> Iterator[Tampering]:
    """Yields rows that do not match these links, whichever plan the links name."""
    by_name = {table.name: table for table in CHAINED}
    for name in dict.fromkeys(link.table_name for link in links):
        known = {link.row_key: link for link in links if link.table_name == name}
        table = by_name.get(name)
        if table is None:
            words = f"the chain holds rows of {name}, which is no table of the ledger"
            yield Tampering(damage=Damage.INSERTED, table=name, key="", sequence=None, words=words)
            continue
        keys = list(known)
        for start in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[start : start + KEYS_AT_ONCE]
            query = select(table).where(or_(*(_has_key(table, key) for key in some)))
            yield from _compared(connection, table, query, {key: known[key] for key in some})[1]


def _has_key(table: Table, key: str) -> ColumnElement[bool]:
    values = msgspec.json.decode(key, type=list[Any])
    return and_(*(table.c[name] == value for name, value in zip(key_columns(table), values, strict=True)))


def _wrong_rows(table: str, links: Mapping[str, ChainLink], stored: Mapping[str, _Stored]) -> Iterator[Tampering]:
    for key, link in links.items():
        if key not in stored:
            words = f"row {key} of {table} (link {link.sequence}) was removed"
            yield Tampering(damage=Damage.REMOVED, table=table, key=key, sequence=link.sequence, words=words)
        elif stored[key].digest != link.row_digest:
            words = f"row {key} of {table} (link {link.sequence}) was changed after it was written"
            yield Tampering(damage=Damage.CHANGED, table=table, key=key, sequence=link.sequence, words=words)
        elif stored[key].plan_id != link.plan_id:
            words = f"link {link.sequence} of the chain says that row {key} of {table} is of plan {link.plan_id}"
            yield _of_link(Damage.CHANGED, link.sequence, f"{words}, and it is of {stored[key].plan_id}")
    for key in stored:
        if key not in links:
            words = f"row {key} of {table} was inserted by another hand: the chain does not know it"
            yield Tampering(damage=Damage.INSERTED, table=table, key=key, sequence=None, words=words)
