"""A command that cannot read a damaged ledger names the table and the row, in one line: it is no defect of Steward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pulsar_steward.cli.ledgers import LEDGER
from pulsar_steward.cli.main import run
from pulsar_steward.ledger.write import LedgerWriter
from tests.ledgers import ledger_at
from tests.unit.ledger.forging import filled, forging
from tests.unit.ledger.test_records import AT, PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

BAD_TIME = "UPDATE halts SET at = 'yesterday', halted = 1"
BAD_HEAD = "UPDATE chain_head SET sequence = 'x'"
BAD_LINK = "UPDATE chain SET sequence = sequence, row_key = x'ff' WHERE sequence = 2"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A ledger with a row in every table, which commands use."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    LedgerWriter(engine).record_plan(PLAN, AT)
    monkeypatch.setenv(LEDGER, str(engine.url))
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    yield filled(engine)
    engine.dispose()


@pytest.mark.parametrize(
    ("forge", "command", "code", "named"),
    [
        (BAD_TIME, ("halt",), 2, "row [1] of halts"),
        (BAD_TIME, ("ledger", "verify"), 1, "row [1] of halts"),
        ("UPDATE answers SET decision = 'yes'", ("show", PLAN.plan_id), 2, "row [1] of answers"),
        ("UPDATE intents SET change = '{'", ("show", PLAN.plan_id), 2, "row [1] of intents"),
        (BAD_HEAD, ("ledger", "verify"), 1, 'row ["ledger"] of chain_head'),
        (BAD_HEAD, ("doctor",), 1, "TAMPERED WITH"),
        (BAD_HEAD, ("metrics",), 2, 'row ["ledger"] of chain_head'),
        (BAD_LINK, ("ledger", "verify"), 1, "row [2] of chain"),
        (BAD_LINK, ("ledger", "export"), 2, "row [2] of chain"),
        ("UPDATE leases SET expires_at = 'soon'", ("ledger", "verify"), 1, "of leases"),
    ],
)
def test_what_is_damaged_is_named(
    engine: Engine, capsys: pytest.CaptureFixture[str], forge: str, command: tuple[str, ...], code: int, named: str
) -> None:
    """A value that cannot be read is named with its table and row, and the command is not said to have a defect."""
    with forging(engine) as connection:
        connection.execute(text(forge))
    assert run(list(command)) == code
    said = " ".join("".join(capsys.readouterr()).split())
    assert "Traceback" not in said
    assert named in said


def test_a_damaged_ledger_is_named_by_its_own_url(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A ledger whose file is damaged is named by the URL of that file, also by a command that only reads it."""
    engine.dispose()
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    assert run(["metrics"]) == 2
    assert f"the ledger at sqlite:///{tmp_path / 'ledger.db'} failed" in capsys.readouterr().err


def test_an_export_gives_a_damaged_value_as_it_is_held(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """An export of a damaged ledger is written, for whoever looks into it, with the value that the database holds."""
    with forging(engine) as connection:
        connection.execute(text(BAD_TIME))
    assert run(["ledger", "export"]) == 0
    assert '"at":"yesterday"' in capsys.readouterr().out
