"""Outside text in a terminal: neither a report nor a command lets a name steer it or forge a line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from pulsar_steward.cli import main
from pulsar_steward.cli.output import progress
from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.ledger.write import LedgerWriter
from tests.attacks.hostile import FORGED, HOSTILE, MANY_LINES, READ, a_plan_of, broken, unseen
from tests.builders import NOW
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path


RICH = [
    "[red]x[/red]",
    "[link=https://evil.example]x[/link]",
    "[/]",
    "[bold",
    ":smiley:",
    "\\[red]",
    "[@click=app.quit]x[/]",
    "https://evil.example",
]
ESCAPES = [
    "\x1b[2J",
    "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x90q\x9c",
    "\x1bc",
    "\r\x1b[K",
]
IN_A_TERMINAL = [name for name in MANY_LINES if "terminal" in name]


@pytest.mark.parametrize("outlet", IN_A_TERMINAL)
@pytest.mark.parametrize("name", RICH)
def test_no_name_becomes_markup_in_a_terminal(outlet: str, name: str, tmp_path: Path) -> None:
    """A name that holds Rich's markup is shown letter by letter in a terminal."""
    assert name in MANY_LINES[outlet](name, tmp_path / "s")


@pytest.mark.parametrize("outlet", IN_A_TERMINAL)
@pytest.mark.parametrize("name", ESCAPES)
def test_no_name_steers_a_terminal(outlet: str, name: str, tmp_path: Path) -> None:
    """The text for a terminal holds no control characters but line feeds, also for names with escape sequences."""
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", MANY_LINES[outlet](name, tmp_path / "s")) is None


def test_progress_of_a_job_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The progress of a job is written to standard error with the hostile characters spelled out."""
    with progress() as say:
        say(HOSTILE)
    assert capsys.readouterr().err == f"{READ}\n"


class Ledger:
    """A ledger whose every name is hostile."""

    def __init__(self, folder: Path, name: str) -> None:
        self.url = f"sqlite:///{folder / 'ledger.db'}"
        self.engine = ledger_at(self.url)
        writer = LedgerWriter(self.engine)
        self.plan = a_plan_of(name)
        writer.record_plan(self.plan, NOW)
        writer.record_answer(
            Answer(
                plan_id=self.plan.plan_id,
                batch_id="b1",
                run=name,
                decision=Decision.REJECTED,
                answered_by=name,
                answered_at=NOW,
                reason=name,
                comment=name,
            )
        )


HOSTILE_FILE = HOSTILE.replace("\uffff", "")[:90]
LIKE_YAML = "ann\": #b' - {c: [d, &e !f ]} yes | > %"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own settings."""
    for variable in ("STEWARD_ADMIN_TOKEN", "STEWARD_LEDGER", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)


LEDGER, PLAN_ID, POLICY, GOOD, BROKEN, NAMED = "LEDGER", "PLAN-ID", "POLICY", "GOOD", "BROKEN", "NAMED"
"""Stand for what the fixture `placed` makes."""
COMMANDS = {
    "an unknown command": [HOSTILE],
    "an unknown option": ["checkup", f"--{HOSTILE}"],
    "an unknown check": ["explain", HOSTILE],
    "an unknown plan": ["show", HOSTILE, "--ledger", LEDGER],
    "a plan": ["show", PLAN_ID, "--ledger", LEDGER],
    "a halt": ["halt", HOSTILE, "--reason", HOSTILE, "--ledger", LEDGER],
    "a ledger that is not there": ["halt", "--ledger", f"sqlite:///{HOSTILE}"],
    "no ledger at all": ["halt", "--ledger", HOSTILE],
    "a head": ["ledger", "verify", "--noted", HOSTILE, "--ledger", LEDGER],
    "an export to no folder": ["ledger", "export", "--output", f"{HOSTILE}/x", "--ledger", LEDGER],
    "an export": ["ledger", "export", "--ledger", LEDGER],
    "a policy that is not there": ["checkup", "--policy", HOSTILE],
    "a policy's keys": ["policy", "check", POLICY],
    "a policy's keys on the way": ["checkup", "--snapshot", "x", "--policy", POLICY],
    "a policy's values": ["policy", "show", "--policy", GOOD],
    "no YAML": ["policy", "check", BROKEN],
    "a policy's file": ["policy", "check", NAMED],
    "a policy's file, in force": ["policy", "show", "--policy", NAMED],
    "a cluster's name": ["policy", "show", HOSTILE],
    "a namespace's name": ["policy", "show", "east", HOSTILE],
    "an address": ["checkup", "--admin-url", HOSTILE],
    "a snapshot": ["checkup", "--snapshot", HOSTILE],
    "a token's file": ["checkup", "--admin-url", "http://127.0.0.1:1", "--token-file", HOSTILE],
    "a place for a page": ["checkup", "--snapshot", "x", "--html", f"{HOSTILE}/x"],
}
"""Commands that are given hostile names, or find them."""


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A ledger and policies with hostile names, by what stands for them."""
    tmp_path = tmp_path_factory.mktemp("hostile")
    ledger = Ledger(tmp_path, HOSTILE)
    texts = {
        POLICY: yaml.safe_dump({HOSTILE: {HOSTILE: HOSTILE}, "tc_skew": {HOSTILE: 1}}),
        GOOD: yaml.safe_dump({"approval": {"assigned_users": [LIKE_YAML]}}),
        BROKEN: "a: 'b\nc: \u202e\x1b[31m",
        NAMED: "tc_skew: {}",
    }
    files = {name: tmp_path / f"{HOSTILE_FILE if name == NAMED else name}.yaml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text, encoding="utf-8")
    return {LEDGER: ledger.url, PLAN_ID: ledger.plan.plan_id, **{name: str(file) for name, file in files.items()}}


def ran(command: str, placed: dict[str, str]) -> int:
    """Exit code of a command of `COMMANDS`."""
    return main.run([placed.get(word, word) for word in COMMANDS[command]])


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_command_says_steers_the_terminal(
    command: str, placed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The output and errors of a command hold no invisible characters and no line that a hostile name adds."""
    code = ran(command, placed)
    said = capsys.readouterr()
    assert code in {0, 2}
    assert said.out + said.err
    assert unseen(said.out + said.err, lines=True) == set()
    assert [line for line in (said.out + said.err).splitlines() if line.strip(" -#").startswith(FORGED)] == []


def test_a_defect_is_told_without_steering_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected error ends with exit code 2, and its message has hidden characters spelled out."""
    monkeypatch.setattr(main, "app", broken)
    assert main.run(["checkup"]) == 2
    said = capsys.readouterr().err
    assert f"ValueError: {READ}" in said
    assert unseen(said, lines=True) == set()


def test_a_policy_that_is_shown_is_one_with_the_same_names(
    placed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The output of `policy show` is YAML from which a name that looks like YAML is read back unchanged."""
    assert ran("a policy's values", placed) == 0
    assert yaml.safe_load(capsys.readouterr().out)["approval"]["assigned_users"] == [LIKE_YAML]


def test_an_export_of_the_ledger_means_the_same(placed: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A hostile comment is read back unchanged from the decoded export of the ledger."""
    assert ran("an export", placed) == 0
    rows = [json.loads(line)["row"] for line in capsys.readouterr().out.splitlines()]
    assert [row["comment"] for row in rows if "comment" in row] == [HOSTILE]


def test_a_ledger_that_was_tampered_with_says_so_in_lines_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ledger verify` fails on inserted rows with hostile keys, which forge no line of its output."""
    ledger = Ledger(tmp_path, "name")
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(
            "INSERT INTO plans (plan_id, cluster, snapshot_id, created_at, digest, proposal_digest, document,"
            " asked_by_batch) VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
            (HOSTILE, HOSTILE, HOSTILE, "2026-03-01 12:00:00.000000", HOSTILE, HOSTILE, HOSTILE),
        )
        connection.exec_driver_sql(
            "INSERT INTO batches (plan_id, batch_id, position, kind, title, steps) VALUES (?, ?, 0, ?, ?, 1)",
            (HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        )

    assert main.run(["ledger", "verify", "--ledger", ledger.url]) == 1
    said = capsys.readouterr().out
    assert unseen(said, lines=True) == set()
    lines = said.splitlines()
    assert [line for line in lines if not re.match(r"TAMPERED|head:|- ", line)] == []
    assert lines[0].startswith("TAMPERED")
    (inserted,) = [line for line in lines if " of batches was inserted by another hand" in line]
    assert inserted.startswith(r'- row ["a\u200ea\u200f')  # a key is JSON, and its escapes are those of JSON
    assert rf"\n{FORGED}\u202e\u001b[31m" in inserted
