"""``steward ledger``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, delete, insert, text, update

from pulsar_steward.ledger import tables
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.write import LedgerWriter
from tests.builders import CLUSTER, NOW
from tests.cases import cases
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Executable

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
    """Dry runs are printed with their run and time, the oldest first, and control characters are escaped."""
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


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("there", "is there already"),
        ("no/such", "cannot be written: No such"),
        ("x" * 300, "cannot be written: File name"),
    ],
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
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    (tmp_path / "ledger.db").touch()

    upgraded = steward("ledger", "upgrade", "--ledger", url)

    assert upgraded.code == 0
    assert re.fullmatch(r"the ledger's tables have version v\d{4}, which is this Steward's\n", upgraded.out)
    assert steward("ledger", "upgrade", "--ledger", url) == upgraded
    assert steward("ledger", "verify", "--ledger", url).code == 0
