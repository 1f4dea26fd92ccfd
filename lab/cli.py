"""The command line of the lab, ``python -m lab``: start a cluster, look at it, break it, stop it."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from lab import report
from lab.cluster import Lab, labs_dir
from lab.errors import LabError
from lab.model import VERSIONS, Advertised, Auth, Hosts, Listeners
from lab.simulator.cli import serve

app = typer.Typer(
    help="A real Apache Pulsar cluster on loopback, each part a process of its own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Option(help="Names the lab; several may run at once.")]
Folder = Annotated[
    Path | None,
    typer.Option("--dir", envvar="STEWARD_LAB_HOME", help="Holds the labs.  [default: var/labs in the project]"),
]
BrokerId = Annotated[str, typer.Argument(help="host:webport, or its name, such as broker-1.")]


def main() -> None:
    """Runs the command of this process's arguments, and ends the process."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A command that is told to end cleans up as it does after Ctrl-C.
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    # A shell that starts a command with `&` has it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run(sys.argv[1:])


def run(arguments: list[str]) -> NoReturn:
    """Runs a command; an error of the lab is one message on standard error and exit code 1.

    Raises:
        SystemExit: With the exit code, however it ended.
    """
    try:
        app(arguments)
        sys.exit(0)
    except LabError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        sys.exit(1)


@app.command()
def start(  # noqa: PLR0913 - one for each option of the command
    *,
    name: Name = "lab",
    pulsar_version: Annotated[str, typer.Option(help=f"One of {', '.join(VERSIONS)}.")] = VERSIONS[0],
    broker_version: Annotated[list[str] | None, typer.Option(help="NUMBER=VERSION of one; may be repeated.")] = None,
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers.")] = 3,
    auth: Annotated[Auth, typer.Option(help="By a token, an issuer's, a client certificate (tls), or none.")] = "none",
    listeners: Annotated[Listeners, typer.Option(help="Ports for plain text, for TLS, or for both.")] = "plain",
    advertised: Annotated[Advertised, typer.Option(help="name: brokers list names that nobody resolves.")] = "address",
    hosts: Annotated[Hosts, typer.Option(help="distinct: broker N on 127.0.0.N.")] = "same",
    base_port: Annotated[int | None, typer.Option(min=1024, max=65000, help="Counts ports from here.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="KEY=VALUE for broker.conf; may be repeated.")] = None,
    directory: Folder = None,
) -> None:
    """Starts a cluster that runs until `stop`."""
    lab = Lab.start(
        name,
        home=_absolute(directory),
        progress=_clock(),
        pulsar_version=pulsar_version,
        broker_versions=dict(map(_number_and_version, broker_version or [])),
        brokers=brokers,
        auth=auth,
        listeners=listeners,
        advertised=advertised,
        hosts=hosts,
        base_port=base_port,
        broker_settings=dict(map(_key_and_value, setting or [])),
    )
    report.show(report.status(lab))


@app.command()
def stop(name: Name = "lab", directory: Folder = None) -> None:
    """Ends every process of the lab and removes its data; its logs stay."""
    _attached(name, directory, _clock()).stop()


@app.command()
def status(
    *,
    name: Name = "lab",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    directory: Folder = None,
) -> None:
    """Shows the parts, their processes, and what each broker holds."""
    seen = report.status(_attached(name, directory))
    if as_json:
        typer.echo(json.dumps(seen, indent=2))
    else:
        report.show(seen)


@app.command()
def add_broker(name: Name = "lab", directory: Folder = None) -> None:
    """Starts one more broker."""
    typer.echo(_attached(name, directory, _clock()).add_broker().broker_id)


@app.command()
def kill_broker(broker: BrokerId, name: Name = "lab", directory: Folder = None) -> None:
    """Ends a broker at once (SIGKILL)."""
    _attached(name, directory).kill_broker(broker)


@app.command()
def stop_broker(broker: BrokerId, name: Name = "lab", directory: Folder = None) -> None:
    """Ends a broker gracefully (SIGTERM): it gives its bundles up first."""
    _attached(name, directory).stop_broker(broker)


@app.command()
def start_broker(
    broker: BrokerId,
    name: Name = "lab",
    pulsar_version: Annotated[str | None, typer.Option(help="Another than before.")] = None,
    directory: Folder = None,
) -> None:
    """Starts an ended broker again, on the same ports."""
    _attached(name, directory, _clock()).start_broker(broker, pulsar_version)


@app.command()
def pause_broker(broker: BrokerId, name: Name = "lab", directory: Folder = None) -> None:
    """Freezes a broker (SIGSTOP): it accepts connections and answers nothing."""
    _attached(name, directory).pause_broker(broker)


@app.command()
def resume_broker(broker: BrokerId, name: Name = "lab", directory: Folder = None) -> None:
    """Lets a paused broker go on (SIGCONT)."""
    _attached(name, directory).resume_broker(broker)


@app.command()
def pile_up_tcs(
    broker: Annotated[str | None, typer.Argument(help="Where to.  [default: the first that runs]")] = None,
    name: Name = "lab",
    directory: Folder = None,
) -> None:
    """Moves every transaction coordinator onto one broker."""
    typer.echo(_attached(name, directory).pile_up_tcs(broker))


app.command(name="simulate")(serve)


def _attached(name: str, directory: Path | None, progress: Callable[[str], None] | None = None) -> Lab:
    home = _absolute(directory)
    return Lab.attach(name, home=home, progress=progress) if progress else Lab.attach(name, home=home)


def _absolute(directory: Path | None) -> Path:
    return labs_dir() if directory is None else directory.absolute()


def _key_and_value(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not (key and equals):
        raise LabError(f"--setting {setting!r}: write KEY=VALUE")
    return key, value


def _number_and_version(broker: str) -> tuple[int, str]:
    number, _, version = broker.partition("=")
    if not number.isdecimal():
        raise LabError(f"--broker-version {broker!r}: write NUMBER=VERSION")
    return int(number), version


def _clock() -> Callable[[str], None]:
    """A progress that puts the seconds since now before each line, on standard error."""
    began = time.monotonic()
    return lambda message: typer.echo(f"{time.monotonic() - began:6.1f} s  {message}", err=True)
