"""Outside text is shown as it is: names and reasons can be read whole, and what cannot be seen is spelled out alike."""

from __future__ import annotations

import io
import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.cli.output import tell_exactly
from pulsar_steward.errors import AdminError, ConfigurationError, PolicyError, StewardError
from pulsar_steward.model.notice import Event
from pulsar_steward.report import approval
from pulsar_steward.report.checkup.document import as_json
from tests.attacks.hostile import (
    FORGED,
    HOSTILE,
    MANY_LINES,
    ONE_LINE,
    READ,
    SCRIPTS,
    SPELLED,
    a_checkup_of,
    a_plan_of,
    broken,
    unseen,
)
from tests.builders import NOW, a_batch, a_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("outlet", MANY_LINES)
def test_what_cannot_be_seen_is_spelled_out_on_every_page(outlet: str, tmp_path: Path) -> None:
    """Every page and report spells out the hidden characters of a name, which begins no line of its own."""
    text = MANY_LINES[outlet](HOSTILE, tmp_path / "s")
    head = text.split("<script")[0]  # plotly's script, which no name gets into, has some of these characters
    assert unseen(head, lines=True) == set()
    assert [line for line in text.splitlines() if line.strip(" -*|").startswith(FORGED)] == []
    spelled = READ.replace("\\", "\\\\") if "approval" in outlet or "report" in outlet else READ
    assert spelled.replace("[", "\\[") in head or READ in head


def every_line(name: str) -> dict[str, str]:
    """A name as each outlet of one line shows it."""
    return {outlet: made(name) for outlet, made in ONE_LINE.items()}


@pytest.mark.parametrize("character", SPELLED, ids=lambda each: f"U+{ord(each):04X}")
def test_each_character_that_cannot_be_seen_is_spelled_out_in_a_line(character: str) -> None:
    """All outlets of one line spell out a character that cannot be seen in the same way."""
    for outlet, line in every_line(f"a{character}b").items():
        assert (outlet, f"a{SPELLED[character]}b" in line, unseen(line)) == (outlet, True, set())


def test_letters_of_any_script_stay_as_they_are() -> None:
    """Letters of any script, and the marks on them, are shown unchanged."""
    assert [outlet for outlet, line in every_line(SCRIPTS).items() if SCRIPTS not in line] == []


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("\u0338n", r"\u0338n"),
        ("n/\u0338n", r"n/\u0338n"),
        ("1\u0338", r"1\u0338"),
        ("\u200b\u0301n", r"\u200b\u0301n"),
        ("\u20ddn", r"\u20ddn"),
        ("\x00", r"\x00"),
        ("\ufe0f\u0301n", r"\ufe0f\u0301n"),
    ],
)
def test_a_mark_has_a_letter_to_stand_on(name: str, read: str) -> None:
    """A combining mark that does not follow a letter is spelled out."""
    assert [outlet for outlet, line in every_line(name).items() if read not in line] == []


@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDCE4)])
def test_half_a_character_is_spelled_out(half: str) -> None:
    """A lone surrogate is spelled out in errors and in the approval's subject."""
    told = [str(ConfigurationError(half)), str(PolicyError(half)), approval.subject(a_plan(cluster=half), a_batch())]
    assert [words for words in told if f"\\u{ord(half):04x}" not in words] == []


def test_marks_cannot_be_piled_up_over_other_lines() -> None:
    """The approval's subject shows six of fifty combining marks on one letter, and spells the others out."""
    subject = approval.subject(a_plan(cluster="a" + "\u0301" * 50), a_batch())
    assert "a" + "\u0301" * 6 + r"\u0301" * 44 in subject
    assert subject.count("\u0301") == 6


def an_event(name: str) -> Event:
    """An event about something of this name."""
    return Event(
        event="outcome",
        cluster=name,
        plan_id=name,
        batch_id="b1",
        run=name,
        at=NOW,
        result="done",
        reason=name,
        by=name,
        values={name: [name]},
        ledger_head="0:0",
    )


MACHINES: dict[str, Callable[[str, Path], tuple[str, Callable[[Any], str]]]] = {
    "an event": lambda name, _: (an_event(name).encoded().decode(), lambda read: read["reason"]),
    "a check-up": lambda name, folder: (as_json(a_checkup_of(name, folder)), lambda read: read["about"]["cluster"]),
}


@pytest.mark.parametrize("outlet", MACHINES)
def test_json_shows_what_cannot_be_seen_and_means_the_same(outlet: str, tmp_path: Path) -> None:
    """JSON output spells out hidden characters and decodes to the original name."""
    text, name_in = MACHINES[outlet](HOSTILE, tmp_path / "s")
    assert unseen(text, lines=True) == set()
    assert name_in(json.loads(text)) == HOSTILE


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plans_very_bytes_are_for_programs_and_a_terminal_gets_them_escaped(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """A plan is printed byte for byte to a program, and with hidden characters escaped to a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    tell_exactly(a_plan_of(HOSTILE).encoded())
    out = capfdbinary.readouterr().out
    assert json.loads(out) == json.loads(a_plan_of(HOSTILE).encoded())
    assert (unseen(out.decode(), lines=True) == set()) is terminal
    assert (out == a_plan_of(HOSTILE).encoded() + b"\n") is not terminal


def test_json_keeps_letters_of_any_script() -> None:
    """The JSON of an event keeps letters of any script unescaped."""
    assert SCRIPTS in an_event(SCRIPTS).encoded().decode()


@pytest.mark.parametrize("name", ["pulsar_steward.pulsar.transport", "pulsar_steward.apply.perform", "steward_spark.x"])
@pytest.mark.parametrize("as_argument", [True, False], ids=["argument", "message"])
def test_no_reason_forges_a_line_of_the_log(name: str, *, as_argument: bool) -> None:
    """A hostile reason stays on one line of the log, with each of Steward's loggers."""
    written_down = io.StringIO()
    handler = logging.StreamHandler(written_down)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    log = logging.getLogger(name)
    log.addHandler(handler)
    try:
        if as_argument:
            log.warning("the broker says: %s", HOSTILE)
        else:
            log.warning(f"the broker says: {HOSTILE}")  # noqa: G004 - that is the case
    finally:
        log.removeHandler(handler)
    assert written_down.getvalue() == f"WARNING {name} the broker says: {READ}\n"


def test_no_error_forges_a_line_of_the_log() -> None:
    """A traceback in the log spells out the hidden characters of an error's message."""
    written_down = io.StringIO()
    handler = logging.StreamHandler(written_down)
    log = logging.getLogger("steward_spark.observing")
    log.addHandler(handler)
    try:
        broken()
    except KeyError:
        log.exception("a check is broken")
    finally:
        log.removeHandler(handler)
    told = written_down.getvalue()
    assert f"\nValueError: {READ}\n" in told
    assert told.endswith("KeyError: 'x'\n")
    assert unseen(told, lines=True) == set()


def test_a_log_line_that_cannot_be_put_together_is_told_as_always(capsys: pytest.CaptureFixture[str]) -> None:
    """A log call with too few arguments is reported on standard error and raises no exception."""
    log = logging.Logger("pulsar_steward.made_up")  # noqa: LOG001 - one that pytest does not listen to
    log.addHandler(logging.StreamHandler())
    words, arguments = "%s and %s", ("one",)
    log.warning(words, *arguments)
    assert "not enough arguments" in capsys.readouterr().err


def test_an_error_keeps_what_was_said_for_whoever_handles_it() -> None:
    """An error's reason keeps the broker's own text, and only its message has special characters spelled out."""
    error: StewardError = AdminError("GET", "/admin", "b:1", "a\nb")
    assert isinstance(error, AdminError)
    assert (error.reason, str(error)) == ("a\nb", r"GET /admin at b:1: a\nb")


def test_a_moment_is_not_taken_for_hostile() -> None:
    """An error message with visible characters, such as quotes and arrows, is shown unchanged."""
    told = f"{datetime(2026, 3, 1, 12, tzinfo=UTC):%Y-%m-%d %H:%M} UTC: 50 % of “x” → 1,024 KiB …"
    assert str(StewardError(told)) == told
