"""``steward ledger``, and how every command opens a ledger: only one that is there, named without its password."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from sqlalchemy import Executable, create_engine, delete, insert, inspect, text, update
from typer.core import TyperGroup

from pulsar_steward.cli import main
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.write import LedgerWriter
from tests.builders import CLUSTER, NOW, a_plan
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.report_checkup.snapshots import skewed, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import Steward


ROWS = 7
"""A plan, its batch, the name of its cluster, a request, an answer and an intent."""

DATABASE = {"ledger.db", "ledger.db-wal", "ledger.db-shm"}
"""Its files."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger with one move, named in the environment as well."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    engine = ledger_at(url)
    record_move(engine, "0x00000000_0x10000000", NOW)
    engine.dispose()
    monkeypatch.setenv("STEWARD_LEDGER", url)
    return url


def tamper(url: str, statement: Executable) -> None:
    """Does what somebody with access to the database can do: without foreign keys too."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(statement)
    engine.dispose()


def head_of(steward: Steward) -> str:
    """The head of the chain, as a person would note it."""
    found = re.search(r"^head: (\d+:[0-9a-f]{64})$", steward("ledger", "verify").out, re.MULTILINE)
    assert found
    return found[1]


def test_a_ledger_as_it_was_written(steward: Steward, url: str) -> None:
    """The verification of an intact ledger prints the number of compared rows and the head of the chain."""
    ended = steward("ledger", "verify", "--ledger", url)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"as written: {ROWS} rows compared\n")
    assert f"\nhead: {ROWS}:" in ended.out


def test_dry_runs_can_be_read_again(steward: Steward, url: str) -> None:
    engine = ledger_at(url)
    (plan,) = LedgerReader(engine).plans(CLUSTER)
    assert steward("ledger", "dry-runs", plan.plan_id).out.endswith(f"no dry run of {plan.plan_id}\n")
    for said in ("b1: one\n  PUT /one", "b1: \x1b[2J"):
        LedgerWriter(engine).record_dry_run(plan.plan_id, "pulsar_remediate/manual__2/0", said, NOW)
    engine.dispose()

    ended = steward("ledger", "dry-runs", plan.plan_id)

    header = f"dry run at {NOW:%Y-%m-%d %H:%M:%S} UTC by pulsar_remediate/manual__2/0"
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [header, "b1: one", "  PUT /one", header, "b1: \\x1b[2J"]


def test_dry_runs_of_no_plan(steward: Steward, url: str) -> None:
    """The dry runs of an unknown plan are an error with exit code 2."""
    ended = steward("ledger", "dry-runs", "no-such-plan")

    assert (ended.code, ended.out) == (2, "")
    assert "the ledger holds no plan 'no-such-plan'" in ended.err


def test_a_noted_head_stays_in_a_chain_that_grew(steward: Steward, url: str) -> None:
    noted = head_of(steward)
    assert steward("halt", "east", "--reason", "tests").code == 0

    ended = steward("ledger", "verify", "--noted", f" {noted.upper()} ")

    assert ended.code == 0
    assert f"as written: {ROWS + 1} rows compared, link {ROWS} " in ended.out


@cases(
    "statement, words",
    ("changed", update(tables.ANSWERS).values(answered_by="mallory"), "answers (link 6) was changed"),
    ("removed", delete(tables.INTENTS), "intents (link 7) was removed"),
    (
        "inserted",
        insert(tables.HALTS).values(cluster="\x1b[2J", at=NOW, halted=False, said_by="x", reason="x"),
        "row [1] of halts was inserted",
    ),
    ("unlinked", delete(tables.CHAIN).where(tables.CHAIN.c.sequence == 2), "link 2 of the chain"),
    ("steering the terminal", update(tables.BATCHES).values(batch_id="\x9b2J"), r'"\x9b2J"] of batches was inserted'),
)
def test_tampering_ends_with_1(steward: Steward, url: str, statement: Executable, words: str) -> None:
    """Tampering ends the verification with exit code 1 and a line for each place, and no head is printed."""
    tamper(url, statement)

    ended = steward("ledger", "verify")

    assert ended.code == 1
    assert ended.out.startswith("TAMPERED WITH: ")
    assert words in ended.out
    assert "head: " not in ended.out
    assert len(ended.out.splitlines()) == 1 + int(re.findall(r"(\d+) places? not", ended.out)[0])


def test_a_chain_written_anew_is_not_the_one_that_was_noted(steward: Steward, url: str, tmp_path: Path) -> None:
    noted = head_of(steward)
    (tmp_path / "ledger.db").unlink()
    engine = ledger_at(url)
    record_move(engine, "0x10000000_0x20000000", NOW)
    engine.dispose()

    assert steward("ledger", "verify").code == 0
    ended = steward("ledger", "verify", "--noted", noted)

    assert ended.code == 1
    assert f"link {ROWS} of the chain is not" in ended.out


@pytest.mark.parametrize("noted", ["4", "4:abc", f"-4:{'0' * 64}", f"4:{'g' * 64}", f"4 {'0' * 64}"])
def test_a_head_that_is_none_ends_with_2(steward: Steward, url: str, noted: str) -> None:
    ended = steward("ledger", "verify", f"--noted={noted}")

    assert (ended.code, ended.out) == (2, "")
    assert "expected SEQUENCE:HASH" in ended.err


def test_a_damaged_database_ends_with_2(steward: Steward, tmp_path: Path, url: str) -> None:
    """A ledger that cannot be read ends verification and export with exit code 2, and no export file is left."""
    tamper(url, text("DROP TABLE halts"))

    verified = steward("ledger", "verify")
    exported = steward("ledger", "export", "--output", tmp_path / "out.jsonl")

    assert (verified.code, exported.code) == (2, 2)
    assert "no such table: halts" in verified.err
    assert {path.name for path in tmp_path.iterdir()} <= DATABASE


def test_an_export_is_the_same_in_a_file_and_on_standard_output(steward: Steward, tmp_path: Path, url: str) -> None:
    """An export has one JSON object a line in the order of the chain, and only its owner can read its file."""
    file = tmp_path / "out.jsonl"

    printed = steward("ledger", "export")
    written = steward("ledger", "export", "--output", file)

    assert (printed.code, written.code, written.out) == (0, 0, "")
    assert f"written: {file}, {ROWS} rows" in written.err
    assert file.read_text(encoding="utf-8") == printed.out
    assert file.stat().st_mode & 0o077 == 0
    assert [json.loads(line)["sequence"] for line in printed.out.splitlines()] == [*range(1, ROWS + 1)]
    assert json.loads(printed.out.splitlines()[5])["row"]["answered_by"] == "alice"


@row_by_row(
    "place, words",
    ("there", "is there already"),
    ("no/such", "cannot be written: No such"),
    ("x" * 300, "cannot be written: File name"),
)
def test_a_file_that_an_export_cannot_make(steward: Steward, tmp_path: Path, url: str, place: str, words: str) -> None:
    """An export that cannot make its file ends with exit code 2 and leaves an existing file as it is."""
    (tmp_path / "there").write_text("earlier", encoding="utf-8")

    ended = steward("ledger", "export", "--output", tmp_path / place)

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert (tmp_path / "there").read_text(encoding="utf-8") == "earlier"
    assert {path.name for path in tmp_path.iterdir()} <= {"there", *DATABASE}


def test_an_upgrade_makes_the_tables(steward: Steward, tmp_path: Path) -> None:
    """An upgrade makes the tables of this Steward's version, and a second upgrade reports the same."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    (tmp_path / "ledger.db").touch()

    upgraded = steward("ledger", "upgrade", "--ledger", url)

    assert upgraded.code == 0
    assert re.fullmatch(r"the ledger's tables have version v\d{4}, which is this Steward's\n", upgraded.out)
    assert steward("ledger", "upgrade", "--ledger", url) == upgraded
    assert steward("ledger", "verify", "--ledger", url).code == 0


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
@row_by_row(
    "url, words",
    (None, "by --ledger or STEWARD_LEDGER, or set STEWARD_HOME"),
    ("", "--ledger is empty"),
    ("sqlite:///such.db", "there is no ledger 'such.db'"),
    ("nonsense", "the ledger's URL cannot be read"),
    ("postgresql+psycopg://u:hush@h/d", "set STEWARD_LEDGER instead"),
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
