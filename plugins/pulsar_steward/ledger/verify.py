"""Verification of the ledger: finds a changed, removed or inserted row, and names it. Cannot write."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import and_, or_, select

from pulsar_steward.decoding import decode
from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.chain import (
    GENESIS,
    HEAD_NAME,
    ChainLink,
    Head,
    HeldRow,
    held_rows,
    key_columns,
    row_digest,
    row_key,
    stored_rows,
)
from pulsar_steward.ledger.past import GUARDED_BY, plans_changing_since
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.tables import CHAIN, CHAINED, HEAD, LEASES, PLANS, TOLD
from pulsar_steward.model.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, Select, Table

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
        noted: Ends of the chain from earlier records; the chain must still contain these links.

    Raises:
        LedgerError: If it cannot be read.
    """
    with one_moment(engine) as connection:
        return _verdict(connection, _chain(connection), noted)


def _verdict(connection: Connection, chain: _Chain, noted: Collection[Head]) -> IntegrityReport:
    links = chain.links
    if chain.odd:
        return IntegrityReport(head=_end(links), rows=0, tampered=chain.odd)
    found = [*_broken_links(links), *_wrong_end(connection, links)]
    # The chain holds no leases: only those that cannot be read are found.
    found += [_odd(LEASES, row) for row in held_rows(connection, LEASES, stored_rows(LEASES)) if row.odd]
    found += [each for head in noted for each in _not_as_noted(links, head)]
    rows = 0
    for table in CHAINED:
        known = {link.row_key: link for link in links if link.table_name == table.name}
        compared, wrong = _compared(connection, table, stored_rows(table), known)
        rows += compared
        found += wrong
    return IntegrityReport(head=_end(links), rows=rows, tampered=tuple(found))


class VerifiedChain(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that was verified up to its end at that time.

    Attributes:
        plan_id: The plan to be carried out.
        lately: Other plans that changed its cluster lately.
        head: The chain's end.
        links: Links of the rows that are compared again: see `require_still_untampered`.
    """

    plan_id: str
    lately: frozenset[str]
    head: Head
    links: tuple[ChainLink, ...]

    def concerns(self, link: ChainLink) -> bool:
        """True if a row is compared again."""
        return (
            link.table_name in _OF_NO_PLAN
            or link.plan_id == self.plan_id
            or (link.plan_id in self.lately and link.table_name in _OF_OTHERS)
        )


def require_untampered(
    engine: Engine, plan_id: str, *, noted: Collection[Head] = (), since: datetime | None = None
) -> VerifiedChain:
    """Checks that no row of the ledger was tampered with, not even one of another plan.

    Args:
        engine: An open ledger.
        plan_id: The plan to be carried out, for later checks.
        noted: Ends of the chain from earlier records.
        since: Earliest time of other plans' changes that guards and the pace use; None: they use none.

    Raises:
        LedgerTampered: Names the first such row.
        LedgerError: If the ledger cannot be read.
    """
    with one_moment(engine) as connection:
        chain = _chain(connection)
        verdict = _verdict(connection, chain, noted)
        _refuse(verdict.tampered)
        lately = frozenset() if since is None else _changing_lately(connection, plan_id, since)
    walked = VerifiedChain(plan_id=plan_id, lately=lately, head=verdict.head, links=())
    return msgspec.structs.replace(walked, links=tuple(link for link in chain.links if walked.concerns(link)))


def require_still_untampered(engine: Engine, walked: VerifiedChain) -> None:
    """Repeats the check some time later, by the rows added since: the chain's growth does not slow it down.

    It compares all rows that a permit, guards and the pace use: rows of the plan, rows of tables without plans, recent
    changes of the cluster by other plans, and all rows added since. Other rows of other plans, and messages to people,
    are not compared again.

    Args:
        engine: An open ledger.
        walked: Result of the earlier check.

    Raises:
        LedgerTampered: Names the first such row.
        LedgerError: If the ledger cannot be read.
    """
    theirs = CHAIN.c.plan_id.in_({walked.plan_id, *walked.lately}) | CHAIN.c.table_name.in_(_OF_NO_PLAN)
    with one_moment(engine) as connection:
        links, odd = _chain(connection, theirs | (CHAIN.c.sequence >= walked.head.sequence))
        kept = [link for link in links if walked.concerns(link)]
        added = [link for link in links if link.sequence > walked.head.sequence]
        found = [
            *odd,
            *_not_as_noted(links, walked.head),
            *_not_as_walked(kept, walked),
            *_broken_links(added, walked.head),
            *_wrong_end(connection, links),
            *_wrong_added(connection, added),
            *_wrong_in(connection, walked, kept),
        ]
    _refuse(found)


_OF_NO_PLAN = tuple(table.name for table in CHAINED if "plan_id" not in table.c and table not in TOLD)
_OF_OTHERS = tuple(table.name for table in GUARDED_BY)


def _changing_lately(connection: Connection, plan_id: str, since: datetime) -> frozenset[str]:
    """Other plans that changed a plan's cluster since `since`; none for a plan that cannot be decoded."""
    document = connection.execute(select(PLANS.c.document).where(PLANS.c.plan_id == plan_id)).scalar()
    try:
        cluster = Plan.decoded(document or "").named_cluster
    except msgspec.MsgspecError:
        return frozenset()
    return plans_changing_since(connection, cluster, since) - {plan_id}


def _refuse(found: Collection[Tampering]) -> None:
    for first in found:
        raise LedgerTampered(
            f"the ledger was tampered with: {first.words}; nothing is changed (`steward ledger verify` says more)"
        )


def exported(engine: Engine) -> Iterator[bytes]:
    """Yields the chain from its beginning, one JSON object per link, with its row (null: removed).

    A value that Steward never writes is exported as the database stores it.

    Raises:
        LedgerTampered: If a link cannot be read.
        LedgerError: If it cannot be read.
    """
    by_name = {table.name: table for table in CHAINED}
    with one_moment(engine) as connection:
        rows = {
            (table.name, _key(table, row)): row.values
            for table in by_name.values()
            for row in held_rows(connection, table, stored_rows(table))
        }
        links, odd = _chain(connection)
        _refuse(odd)
        for link in links:
            row = rows.get((link.table_name, link.row_key))
            yield msgspec.json.encode({**msgspec.to_builtins(link), "row": row})


class _Chain(NamedTuple):
    """Links in order, and unreadable links, which are stored in another form than Steward writes."""

    links: list[ChainLink]
    odd: tuple[Tampering, ...]


def _chain(connection: Connection, *which: ColumnElement[bool]) -> _Chain:
    query = stored_rows(CHAIN).where(*which).order_by(CHAIN.c.sequence)
    rows = list(held_rows(connection, CHAIN, query))
    links = [from_row(row.values, ChainLink) for row in rows if not row.odd]
    return _Chain(links, tuple(_odd(CHAIN, row) for row in rows if row.odd))


def _odd(table: Table, row: HeldRow, link: ChainLink | None = None) -> Tampering:
    key, sequence = _key(table, row), None if link is None else link.sequence
    of_link = "" if link is None else f" (link {sequence})"
    words = f"row {key} of {table.name}{of_link} holds a value that Steward never writes there: in {', '.join(row.odd)}"
    return Tampering(damage=Damage.CHANGED, table=table.name, key=key, sequence=sequence, words=words)


def _key(table: Table, row: HeldRow) -> str:
    """The row's key; if a value cannot be read, the key as the database stores it."""
    try:
        return row_key(table, row.values)
    except TypeError:  # a float
        return str([row.values[name] for name in key_columns(table)])


def _broken_links(links: Collection[ChainLink], begin: Head = _NONE) -> Iterator[Tampering]:
    """Yields wrong hashes and gaps; the link after a wrong one is compared with the wrong one's stored hash."""
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


def _wrong_end(connection: Connection, links: Sequence[ChainLink]) -> Iterator[Tampering]:
    end = _end(links)
    rows = list(held_rows(connection, HEAD, stored_rows(HEAD).where(HEAD.c.name == HEAD_NAME)))
    row = rows[0] if rows else None
    if row is None:
        yield _of_link(Damage.REMOVED, end.sequence, "the chain's head is missing")
    elif row.odd:
        yield _odd(HEAD, row)
    elif (head := Head(row.values["sequence"], row.values["hash"])) != end:
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
    """A row in the database: the hash of its content, and its plan."""

    digest: str
    plan_id: str | None


def _compared(
    connection: Connection, table: Table, query: Select[Any], links: Mapping[str, ChainLink]
) -> tuple[int, list[Tampering]]:
    """Number of a table's rows that were compared with their links, and the damaged rows."""
    stored: dict[str, _Stored] = {}
    odd: dict[str, HeldRow] = {}
    wrong = []
    for row in held_rows(connection, table, query):
        key = _key(table, row)
        if key in stored or key in odd:  # somebody removed the unique constraint
            words = f"row {key} of {table.name} is there twice: one was inserted by another hand"
            wrong.append(Tampering(damage=Damage.INSERTED, table=table.name, key=key, sequence=None, words=words))
        elif row.odd:
            odd[key] = row
        else:
            stored[key] = _Stored(row_digest(row.values), row.values.get("plan_id"))
    wrong += [_odd(table, row, links.get(key)) for key, row in odd.items()]
    known = {key: link for key, link in links.items() if key not in odd}
    return len(stored) + len(odd), [*wrong, *_wrong_rows(table.name, known, stored)]


def _wrong_in(connection: Connection, walked: VerifiedChain, links: Collection[ChainLink]) -> Iterator[Tampering]:
    """Yields rows of `require_still_untampered` that do not match their links."""
    for table in CHAINED:
        if table in TOLD:
            continue
        query = stored_rows(table)
        if "plan_id" in table.c:
            plans = {walked.plan_id, *(walked.lately if table in GUARDED_BY else ())}
            query = query.where(table.c.plan_id.in_(plans))
        known = {link.row_key: link for link in links if link.table_name == table.name}
        yield from _compared(connection, table, query, known)[1]


def _wrong_added(connection: Connection, links: Sequence[ChainLink]) -> Iterator[Tampering]:
    """Yields rows that do not match these links, for all plans."""
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
            values = [zip(key_columns(table), decode(key, list[Any]), strict=True) for key in some]
            query = stored_rows(table).where(or_(*(and_(*(table.c[n] == v for n, v in key)) for key in values)))
            yield from _compared(connection, table, query, {key: known[key] for key in some})[1]


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
