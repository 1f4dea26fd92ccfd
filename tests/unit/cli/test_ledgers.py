"""How the command line opens a ledger: only one that is there, of this Steward, and named without its password."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect, text

from pulsar_steward.ledger.store import open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

    Steward = Callable[..., Ended]

READING = [
    "show x",
    "ledger verify",
    "ledger export",
    "ledger dry-runs x",
    "halt",
    "halt east --reason tests",
    "resume east",
]
"""Commands that make no tables."""

ALL = [*READING, "ledger upgrade"]


@pytest.mark.parametrize("command", ALL)
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "name the ledger by --ledger"),
        ("sqlite:///such.db", "there is no ledger 'such.db'"),
        ("nonsense", "the ledger's URL cannot be read"),
        ("postgresql+psycopg://u:hush@h/d", "set STEWARD_LEDGER instead"),
    ],
)
def test_a_ledger_that_cannot_be_opened(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, url: str | None, words: str
) -> None:
    """Each command refuses a ledger that is not there, without making it, and a URL with a password, unshown."""
    monkeypatch.chdir(tmp_path)

    ended = steward(*command.split(), *(["--ledger", url] if url else []))

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert "hush" not in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READING)
def test_only_an_upgrade_makes_tables(steward: Steward, tmp_path: Path, command: str) -> None:
    """Every command but the upgrade leaves a ledger without tables as it is, and names the upgrade as the remedy."""
    (tmp_path / "ledger.db").touch()
    url = f"sqlite:///{tmp_path / 'ledger.db'}"

    ended = steward(*command.split(), "--ledger", url)
    engine = create_engine(url)
    made = inspect(engine).get_table_names()
    engine.dispose()

    assert (ended.code, ended.out, made) == (2, "", [])
    assert "no tables" in ended.err
    assert "`steward ledger upgrade`" in ended.err
    assert steward("ledger", "upgrade", "--ledger", url).code == 0
    assert "no tables" not in steward(*command.split(), "--ledger", url).err


@pytest.mark.parametrize("command", ALL)
def test_a_ledger_of_a_later_steward_is_left_alone(steward: Steward, tmp_path: Path, command: str) -> None:
    """Every command, the upgrade included, refuses a ledger of a later version of Steward."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = open_ledger(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE steward_version SET version_num = '9999'"))
    engine.dispose()

    ended = steward(*command.split(), "--ledger", url)

    assert (ended.code, ended.out) == (2, "")
    assert "of a later Steward (its tables have version 9999)" in ended.err
