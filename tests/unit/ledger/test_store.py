"""Ledgers are opened, checked, and brought to the newest schema."""

from __future__ import annotations

import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import URL, Engine, create_engine, inspect, text

from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger import store
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.migrations import migrate
from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.tables import metadata
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from tests.cases import row_by_row
from tests.unit.ledger.test_records import AT, PLAN
from tests.unit.model.builders import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from alembic.config import Config

TABLES = frozenset({*metadata.tables, VERSIONS})


def test_a_ledger_opens_with_its_tables(engine: Engine, url: URL) -> None:
    open_ledger(url).dispose()
    assert set(inspect(engine).get_table_names()) == TABLES


def test_a_new_ledger_is_opened_by_several_at_once(url: URL) -> None:
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
    urls = [f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(20) for _ in range(3)]
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])  # else each process loads it
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        assert set(pool.map(_tables_of, urls)) == {TABLES}


def _tables_of(url: str) -> frozenset[str]:
    engine = open_ledger(url)
    names = frozenset(inspect(engine).get_table_names())
    engine.dispose()
    return names


@row_by_row(
    "url",
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
)
def test_a_url_that_cannot_work_is_refused(url: str | URL) -> None:
    """An unusable URL is refused, and the error and its causes do not repeat any secret part of it."""
    with pytest.raises(ConfigurationError, match="the ledger's") as caught:
        open_ledger(url)
    assert "hid" not in "".join(traceback.format_exception(caught.value))


@row_by_row(
    "url",
    "postgresql+psycopg://user:hidden@127.0.0.1:1/db",
    "postgresql+psycopg://user@127.0.0.1:1/db?password=hidden",
    "sqlite:////no/such/folder/ledger.db",
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


@pytest.mark.postgres
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


@pytest.mark.postgres
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_waiting_for_the_ledger_ends(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write to a locked ledger fails with a `LedgerError` after the lock timeout."""
    monkeypatch.setattr(store, "MAX_LOCK_SECONDS", 1)

    with appending(engine), pytest.raises(LedgerError, match="lock timeout"):
        LedgerWriter(engine).record_plan(plan(), datetime.now(UTC))


LATER = """
from alembic import op
from sqlalchemy import Column, Integer

revision, down_revision = "v9999", "v0001"


def upgrade():
    op.add_column("plans", Column("later", Integer))
"""


@pytest.fixture
def later(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """A ledger with a plan, opened by a Steward whose next version has a column more."""
    LedgerWriter(engine).record_plan(PLAN, AT)
    (tmp_path / "later.py").write_text(LATER, encoding="utf-8")
    folders = (Path(migrate.__file__).parent / "versions", tmp_path)
    config_now = migrate._config

    def config() -> Config:
        with_later = config_now()
        with_later.set_main_option("path_separator", "os")
        with_later.set_main_option("version_locations", ":".join(map(str, folders)))
        return with_later

    monkeypatch.setattr(migrate, "_config", config)
    for name in ("_scripts", "_versions"):
        monkeypatch.setattr(migrate, name, getattr(migrate, name).__wrapped__)
    return engine


@pytest.mark.usefixtures("later")
def test_a_ledger_of_an_earlier_release_is_brought_up_to_date(url: URL) -> None:
    """An upgrade adds what is new, keeps the rows, and their hashes verify."""
    engine = open_ledger(url)
    assert "later" in {column["name"] for column in inspect(engine).get_columns("plans")}
    assert LedgerReader(engine).plan(PLAN.plan_id) == PLAN
    assert verify_ledger(engine).tampered == ()
    engine.dispose()


def test_who_only_reads_brings_nothing_up_to_date(later: Engine, url: URL) -> None:
    """Opening an earlier ledger without an upgrade is refused with the command to upgrade it, and changes no tables."""
    with pytest.raises(ConfigurationError, match="steward ledger upgrade"):
        open_ledger(url, make=False)
    assert "later" not in {column["name"] for column in inspect(later).get_columns("plans")}


@pytest.mark.parametrize("version", ["v9999", "0009"])
def test_a_version_that_is_not_known_is_left_alone(engine: Engine, url: URL, version: str) -> None:
    """A ledger of a later release, or of a time before the first one, is refused with a remedy, and stays as it is."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE steward_version SET version_num = :version"), {"version": version})
    with pytest.raises(ConfigurationError, match=f"version {version}, which this Steward does not know.*empty data"):
        open_ledger(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM steward_version")) == version


def test_tables_without_a_version_are_left_alone(url: URL) -> None:
    """A database with a table of the ledger's, and without a version, is refused with a remedy and stays as it is."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE plans (plan_id VARCHAR(200))"))
    with pytest.raises(ConfigurationError, match=r"tables without a version \(plans\).*empty database"):
        open_ledger(url)
    assert inspect(engine).get_table_names() == ["plans"]
    engine.dispose()


def test_the_versions_lead_to_the_tables_that_are_used(engine: Engine) -> None:
    """The migrations create exactly the tables that the code defines."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS, "compare_type": True})
        assert compare_metadata(context, metadata) == []
