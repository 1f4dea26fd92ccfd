"""The ledger's tables from version to version: rows come through with their hashes, and nothing unknown is touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.migrations import migrate
from pulsar_steward.ledger.migrations.migrate import VERSIONS
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.tables import metadata
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from tests.unit.ledger.test_records import AT, PLAN

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import URL, Engine

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
