"""Upgrade of a ledger's tables, on one connection and in its transaction."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import column, inspect, select, table

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSIONS = "steward_version"
"""Table with the version. Not Alembic's usual name, which Airflow's own uses where both share a database."""


@cache
def _scripts() -> ScriptDirectory:
    """This Steward's migrations; read once, as every task of a DAG opens the ledger."""
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


@cache
def _versions() -> frozenset[str]:
    return frozenset(each.revision for each in _scripts().walk_revisions())


class Migrations:
    """Migrations from a database's version of the tables to this Steward's.

    Args:
        connection: Connection to the database.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._config = _config()
        self._config.attributes["connection"] = connection

    def complete(self) -> bool:
        """True if the tables are those of this Steward; False if there are none, or those of an earlier release.

        Raises:
            ConfigurationError: If a later release made them, or a version from before the first one.
        """
        # In one look: another process may be making all of them.
        there = frozenset(inspect(self._connection).get_table_names())
        present = self._present() if VERSIONS in there else None
        if present is None and (tables := metadata.tables.keys() & there):
            raise ConfigurationError(
                f"the ledger's database has tables without a version ({', '.join(sorted(tables))}): no release of"
                " Steward made them, and none reads them; name an empty database"
            )
        if present is not None and present not in _versions():
            raise ConfigurationError(
                f"the ledger's tables have version {present}, which this Steward does not know: a later one made them,"
                " or one before 0.2.0, the first release; use that later one, or name an empty database"
            )
        return present == _scripts().get_current_head()

    def _present(self) -> str | None:
        # Alembic's own way logs two lines about the database, here for every task.
        return self._connection.execute(select(column("version_num")).select_from(table(VERSIONS))).scalar()

    def run(self) -> None:
        """Upgrades the tables to the newest version.

        Raises:
            ConfigurationError: As `complete` does.
        """
        if not self.complete():
            command.upgrade(self._config, "head")
