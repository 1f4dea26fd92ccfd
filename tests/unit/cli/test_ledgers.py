"""How the command line opens a ledger: only one that is there, of this Steward, and named without its password."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from sqlalchemy import create_engine, inspect, text
from typer.core import TyperGroup

from pulsar_steward.cli import main
from pulsar_steward.ledger.halts import Halt, say
from tests.builders import NOW, a_plan
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import skewed, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import Steward


CLI = Path(main.__file__).parent

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

SIGNS = {
    "doctor": ("", "as written: "),
    "halt": ("", "west was halted by bob"),
    "ledger dry-runs": ("PLAN", "no dry run of"),
    "ledger export": ("", '"table_name":"plans"'),
    "ledger upgrade": ("", "have version"),
    "ledger verify": ("", "as written: "),
    "metrics": ("", 'steward_plans_total{cluster="east"} 1.0'),
    "notify": ("--dry-run", "all changes are halted"),
    "plan": ("--snapshot SNAPSHOT --json", '"batches":['),
    "questions ask-again": ("1 --reason tests", "answer 1"),
    "questions silent": ("", "nothing is silent"),
    "resume": ("west", "the halt of cluster west is over"),
    "show": ("PLAN", "b1"),
}
"""Of every command with a ledger: its arguments, and what it says once it found one."""


def commands(found: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command of the command line, by its whole name."""
    group = found or typer.main.get_command(main.app)
    if not isinstance(group, TyperGroup):
        yield name, group
        return
    context = typer.Context(group)
    for part in group.list_commands(context):
        yield from commands(group.get_command(context, part), f"{name} {part}".strip())


def test_every_command_finds_the_ledger_in_one_way() -> None:
    options = {
        name: each
        for name, command in commands()
        for each in command.params
        if each.name == "ledger" or "--ledger" in each.opts
    }
    assert options.keys() == SIGNS.keys()
    assert {(each.name, tuple(each.opts), each.envvar) for each in options.values()} == {
        ("ledger", ("--ledger",), "STEWARD_LEDGER")
    }
    opening = [file.name for file in CLI.rglob("*.py") if re.search(r"\bopen_(ledger|to_read)\b", file.read_text())]
    assert opening == ["ledgers.py"]


@pytest.mark.parametrize("way", ["option", "variable", "home"])
@pytest.mark.parametrize("command", SIGNS)
def test_the_ledger_is_named_or_the_one_in_stewards_home(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, way: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "policy.yaml").write_text("notify: {recipients: {ops: {connection: steward_notify_x, kind: webhook}}}")
    monkeypatch.setenv("STEWARD_HOME", str(home))
    monkeypatch.setenv("STEWARD_CLUSTER", "west")
    url = f"sqlite:///{(home if way == 'home' else tmp_path) / 'ledger.db'}"
    engine = ledger_at(url)
    record_move(engine, "0x00000000_0x10000000", NOW)
    say(engine, Halt(cluster="west", at=NOW, halted=True, said_by="bob", reason="tests"))
    engine.dispose()
    if way == "variable":
        monkeypatch.setenv("STEWARD_LEDGER", url)
    arguments, sign = SIGNS[command]
    if "SNAPSHOT" in arguments:
        arguments = arguments.replace("SNAPSHOT", written(tmp_path / "snapshot", **skewed()))
    words = arguments.replace("PLAN", a_plan().plan_id).split()

    ended = steward(*command.split(), *words, *(["--ledger", url] if way == "option" else []))

    assert sign in ended.out + ended.err
    assert "no ledger" not in ended.out + ended.err


@pytest.mark.parametrize("command", ALL)
def test_a_ledger_of_airflows_own_is_never_mistaken(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Where Airflow's runs use a ledger elsewhere, a file in Steward's home is not taken for it."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_STEWARD_LEDGER", "postgresql://ledger.example.org/steward")
    ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()

    ended = steward(*command.split())

    assert (ended.code, "the connection steward_ledger names" in ended.err) == (2, True)


@pytest.mark.parametrize("command", ALL)
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "by --ledger or STEWARD_LEDGER, or set STEWARD_HOME"),
        ("", "--ledger is empty"),
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

    ended = steward(*command.split(), *([] if url is None else ["--ledger", url]))

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
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE steward_version SET version_num = '9999'"))
    engine.dispose()

    ended = steward(*command.split(), "--ledger", url)

    assert (ended.code, ended.out) == (2, "")
    assert "the ledger's tables have version 9999, which this Steward does not know" in ended.err


@pytest.mark.parametrize("url", ["/some/ledger.db", "postgresql://u:hidden@h:99x/x", "postgresql://[::1/x", " "])
def test_the_doctor_says_that_a_url_cannot_be_read(steward: Steward, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A ledger's URL that cannot be read is a line of the doctor with its remedy, and is not quoted."""
    monkeypatch.setenv("STEWARD_LEDGER", url)
    ended = steward("doctor", "--json")
    words = {line["subject"]: line["words"] for line in json.loads(ended.out)["lines"]}
    assert ended.code == 2
    assert "expected dialect+driver://user:password@host:port/database" in words["ledger"]
    assert "hidden" not in ended.out + ended.err
