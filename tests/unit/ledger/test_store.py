"""Opening a ledger: URLs of all kinds, several at once, and failures that say no password."""

from __future__ import annotations

import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import URL, inspect

from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger import store
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.tables import metadata
from pulsar_steward.ledger.write import LedgerWriter
from tests.unit.model.builders import plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Engine

TABLES = frozenset({*metadata.tables, VERSIONS})


def test_a_ledger_opens_with_its_tables(engine: Engine, url: URL) -> None:
    """A ledger has all its tables after it is opened, also when it is opened again."""
    open_ledger(url).dispose()
    assert set(inspect(engine).get_table_names()) == TABLES


def test_a_new_ledger_is_opened_by_several_at_once(url: URL) -> None:
    """Several tasks can open a new ledger at the same time, and each finds all tables."""
    together = Barrier(4)

    def opened(_: int) -> set[str]:
        together.wait(timeout=30)
        engine = open_ledger(url)
        names = set(inspect(engine).get_table_names())
        engine.dispose()
        return names

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened, range(4))) == [set(TABLES)] * 4


def test_a_new_file_is_made_by_many_processes_at_once(tmp_path: Path) -> None:
    """Several processes can create the same ledger file at once, without an error about a locked database."""
    urls = [f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(40) for _ in range(4)]
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert set(pool.map(_tables_of, urls)) == {TABLES}


def _tables_of(url: str) -> frozenset[str]:
    engine = open_ledger(url)
    names = frozenset(inspect(engine).get_table_names())
    engine.dispose()
    return names


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hidden",
        "//user:hidden@host/db",
        "postgresql+psycopg://user:hidden@host:port/db",
        "postgresql+psycopg://user:hid/den@host:5432:1/db",
        "nosuchdatabase://user:hidden@host/db",
        "postgresql+nosuchdriver://user:hidden@host/db",
        "mysql+mysqldb://user:hidden@host/db",
        "postgresql+psycopg://user:pass@hidden@host/db",
        "postgresql+psycopg://user:pass@hidden/more@host/db",
        "postgresql+psycopg://user:pass@hidden?more@host/db",
        URL.create("postgresql+psycopg", "user", "pass", "hidden@host"),
        "sqlite:////no/such/ledger.db?password=hidden",
        "sqlite:////no/such/ledger.db?timeout=x",
    ],
)
def test_a_url_that_cannot_work_is_refused(url: str | URL) -> None:
    """An unusable URL is refused, and the error and its causes do not repeat any secret part of it."""
    with pytest.raises(ConfigurationError, match="the ledger's") as caught:
        open_ledger(url)
    assert "hid" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://user:hidden@127.0.0.1:1/db",
        "postgresql+psycopg://user@127.0.0.1:1/db?password=hidden",
        "sqlite:////no/such/folder/ledger.db",
    ],
)
def test_a_ledger_that_cannot_be_reached_is_named(url: str) -> None:
    """The error for a ledger that cannot be reached names the place, but not the password."""
    with pytest.raises(LedgerError, match=r"^the ledger at (postgresql\+psycopg|sqlite)://.* failed: .+") as caught:
        open_ledger(url)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("secret", ["user:hidden@hidden:1/db", "hidden:1/db?password=hidden"])
def test_a_driver_that_quotes_a_password_is_masked(secret: str) -> None:
    """A password that the driver's own words would quote is masked."""
    with pytest.raises(LedgerError, match="failed to resolve host '\\*\\*\\*'"):
        open_ledger(f"postgresql+psycopg://{secret}")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """A file that is no database is refused and left as it is."""
    file = tmp_path / "ledger.db"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError, match="not a database"):
        open_ledger(f"sqlite:///{file}")
    assert file.read_bytes() == b"not a database" * 100


def test_a_ledger_that_lost_its_tables_is_an_error(engine: Engine) -> None:
    """A failure of the database during a write is raised as a `LedgerError` with a message of one line."""
    metadata.drop_all(engine)
    now = datetime.now(UTC)
    write = LedgerWriter(engine)
    attempts: list[Callable[[], object]] = [
        lambda: write.record_plan(plan(), now),
        lambda: write.use_answer(1, "run", now),
    ]
    for attempt in attempts:
        with pytest.raises(LedgerError, match=r"the ledger at .* failed: ") as caught:
            attempt()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_writer_that_is_held_up_keeps_nobody_out(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer can add to the ledger while another one is held up in a transaction, which then fails."""
    monkeypatch.setattr(store, "MAX_IDLE_SECONDS", 1)
    other = open_ledger(engine.url)

    held_up = appending(engine)
    held_up.__enter__()
    LedgerWriter(other).record_plan(plan(), datetime.now(UTC))
    with pytest.raises(LedgerError, match="failed: "):
        held_up.__exit__(None, None, None)

    other.dispose()
    assert LedgerReader(engine).plan(plan().plan_id) == plan()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_waiting_for_the_ledger_ends(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write to a locked ledger fails with a `LedgerError` after the lock timeout."""
    monkeypatch.setattr(store, "MAX_LOCK_SECONDS", 1)

    with appending(engine), pytest.raises(LedgerError, match="lock timeout"):
        LedgerWriter(engine).record_plan(plan(), datetime.now(UTC))
