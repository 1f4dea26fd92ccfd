"""The command line: its commands and exit codes.

No command changes a cluster: none has a client that could write. Commands write only files that the user asked for,
the ledger's tables on request, halts, which only prevent changes, and that something may be asked again, which permits
nothing.

Exit codes: 0 healthy or done, 1 findings or a ledger that was tampered with, 2 could not look or wrong arguments. A
defect of Steward itself ends with 2 as well, so that nobody takes a crash for a finding.
"""

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from pulsar_steward.cli.errors import COULD_NOT_LOOK, INTERRUPTED, help_without_command, in_one_line, told_wrong
from pulsar_steward.cli.output import tell
from pulsar_steward.errors import StewardError
from pulsar_steward.outside_text import shown_trace

COMMANDS = {
    "checkup": "checkup:checkup",
    "plan": "plan:plan",
    "explain": "explain:explain",
    "show": "show:show",
    "halt": "halt:halt",
    "resume": "halt:resume",
    "questions": "questions:app",
    "schema": "schema:schema",
    "ledger": "ledger:app",
    "metrics": "metrics:metrics",
    "notify": "notify:notify",
    "policy": "policy:app",
    "airflow": "airflow_setup:app",
    "doctor": "doctor.command:doctor",
}
"""Module of each command, and its function or group of commands there."""


class LazyCommands(TyperGroup):
    """Group that imports a command's module on demand: no command waits for what another one imports."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # for the list of commands and for "Did you mean"

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the same whatever the context
        """Command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"pulsar_steward.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(**STYLE)
            alone.command()(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
"""Settings of every application here: plain text, and errors reported by `run`."""

app = typer.Typer(name="steward", cls=LazyCommands, **STYLE)


def _say_version(*, asked: bool) -> None:
    if asked:
        from pulsar_steward.report.checkup.compose import steward_version  # noqa: PLC0415 - only this needs it

        typer.echo(f"steward {steward_version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda asked: _say_version(asked=asked),
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Looks at a Pulsar cluster, says what is wrong and what would be proposed. Never changes a cluster."""
    help_without_command(context)


def main() -> NoReturn:
    """Runs the command from this process's arguments, and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot display a letter is no reason to stop
    signal.signal(signal.SIGTERM, _end)
    code = INTERRUPTED
    try:
        code = run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else COULD_NOT_LOOK
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # Python would wait for threads that wait for a broker, which may take minutes.
        os._exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Runs a command, prints an expected error in one line, and returns the exit code.

    Args:
        arguments: Arguments of the command line; None: this process's.
    """
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except StewardError as error:
        return _failed(in_one_line(error))
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:
        if end.code == 1:  # typer and rich exit so where the reader of a pipe is gone; it would look like findings
            return COULD_NOT_LOOK
        raise
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the exit code must not be that of a finding
        if words := told_wrong(error):
            return _failed(words)
        typer.echo(shown_trace(error), err=True)
        return _failed("this is a defect of Steward: please report the lines above, which hold no token")


def _failed(words: str) -> int:
    tell(f"error: {words}", err=True)
    return COULD_NOT_LOOK


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """Signal handler that exits by an exception, so that jobs are ended and folders removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
