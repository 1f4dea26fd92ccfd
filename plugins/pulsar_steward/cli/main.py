"""The command line: its commands and exit codes.

No command changes a cluster: none has a client that could write. Commands write only files that the user asked for,
the ledger's tables on request, halts, which only prevent changes, and that something may be asked again, which permits
nothing.

Exit codes: 0 healthy or done, 1 findings or a ledger that was tampered with, 2 could not look or wrong arguments. A
defect of Steward itself ends with 2 as well, so that nobody takes a crash for a finding.
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup

from pulsar_steward.cli.errors import COULD_NOT_LOOK, INTERRUPTED, help_without_command, in_one_line, told_wrong
from pulsar_steward.cli.output import flush_streams, prepare_streams, require_output, tell
from pulsar_steward.errors import ConfigurationError, StewardError
from pulsar_steward.outside_text import shown, shown_trace


class ListedCommand(NamedTuple):
    """Command as the list of commands shows it, so that the list imports none of them."""

    place: str
    words: str


COMMANDS = {
    "checkup": ListedCommand("checkup:checkup", "Looks at a cluster and says what is wrong."),
    "plan": ListedCommand("plan:plan", "Says what would be proposed, and why it is no more."),
    "explain": ListedCommand(
        "explain:explain", "Explains a check: what it means, what to do, where that was learned, and its thresholds."
    ),
    "whatif": ListedCommand(
        "whatif:whatif", "Says how full the members of a logical cluster are, and what a change would do."
    ),
    "move-namespace": ListedCommand(
        "move_namespace:move_namespace", "Looks at each stage of moving a namespace, and changes nothing."
    ),
    "upgrade": ListedCommand(
        "upgrade:upgrade",
        "Says what an upgrade would change on a cluster, what is in its way, and in which order.",
    ),
    "may-restart": ListedCommand("may_restart:may_restart", "Says whether a broker may be restarted now, and why not."),
    "show": ListedCommand(
        "plan:show", "Shows a recorded plan: its steps, the answers, the outcomes and what the brokers showed."
    ),
    "halt": ListedCommand("halt:halt", "Stops all changes of a cluster until it is resumed."),
    "resume": ListedCommand(
        "halt:resume", "Ends the halt of a cluster; --all ends the halt of every cluster, not those of single ones."
    ),
    "questions": ListedCommand(
        "questions:app", "Batches that nobody is asked about for the time being: rejected, snoozed or never wanted."
    ),
    "schema": ListedCommand("main:schema", "Prints the JSON schema of `checkup --json`."),
    "ledger": ListedCommand(
        "ledger:app", "The record of what was proposed, answered and done: whether it is what was written."
    ),
    "metrics": ListedCommand(
        "metrics:metrics",
        "Writes the metrics of all clusters, or of some, for Prometheus: to be collected as a file, once a minute.",
    ),
    "notify": ListedCommand(
        "notify:notify", "Prints the messages that would be sent now, by the policies in STEWARD_HOME."
    ),
    "policy": ListedCommand("policy:app", "Thresholds and limits: whether a file holds up, and what is in force."),
    "airflow": ListedCommand(
        "airflow_setup:app", "Brings Steward's DAGs and Spark jobs to an Airflow: as files, or as a DAG bundle."
    ),
    "doctor": ListedCommand("doctor.command:doctor", "Says what is missing before Steward can look or act."),
}
"""Each command: its module with its function or group there, and the first sentence of its help."""


class LazyCommands(TyperGroup):
    """Group that imports a command's module on demand: no command waits for what another one imports."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # for the list of commands and for "Did you mean"

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.words) for name, listed in COMMANDS.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
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
        from pulsar_steward.report.checkup.compose import steward_version

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


def schema() -> None:
    """Prints the JSON schema of `checkup --json`."""
    from pulsar_steward.report.checkup.schema import schema_text

    typer.echo(schema_text(), nl=False)


def main() -> NoReturn:
    """Runs the command from this process's arguments, and ends the process."""
    prepare_streams()
    signal.signal(signal.SIGTERM, _end)
    code = INTERRUPTED
    try:
        code = run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else COULD_NOT_LOOK
    finally:
        flush_streams()
        # Python would wait for threads that wait for a broker, which may take minutes.
        os._exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Exit code of a command, by this process's arguments or others; an expected error is printed in one line."""
    try:
        require_output()
        given = checked_arguments(sys.argv[1:] if arguments is None else arguments)
        return int(app(given, standalone_mode=False) or 0)
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
        return _failed(
            "this is a defect of Steward: give the lines above, which hold no token, and what `steward --version` says"
            " to whoever runs Steward for you"
        )


_REASON = "--reason"
"""Free text for people. A halt is kept whatever bytes its reason holds."""


def checked_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments, bytes in a reason that are no UTF-8 escaped.

    Raises:
        ConfigurationError: If another one has such bytes, or is empty: as a path it would name the current folder.
    """
    checked = []
    for before, argument in pairwise(["", *arguments]):
        is_text = not any("\ud800" <= letter <= "\udfff" for letter in argument)  # so Python has bytes that are none
        if before == _REASON or argument.startswith(f"{_REASON}="):
            checked.append(argument if is_text else shown(argument))
            continue
        option = argument[:-1] if argument.startswith("--") and argument.endswith("=") else before
        if argument in {"", f"{option}="}:
            empty = option if argument or before.startswith("--") else "an argument"
            raise ConfigurationError(f"{empty} is empty: name something, or leave it out")
        if not is_text:
            raise ConfigurationError(f"the argument {shown(argument)} is not valid UTF-8: nothing has such a name")
        checked.append(argument)
    return checked


def _failed(words: str) -> int:
    tell(f"error: {words}", err=True)
    return COULD_NOT_LOOK


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """Signal handler that exits by an exception, so that jobs are ended and folders removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
