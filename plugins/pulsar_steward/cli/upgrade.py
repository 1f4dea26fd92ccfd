"""``steward upgrade``: what an upgrade would change on a cluster, what is in its way, and the order to do it in."""

import json as plain_json
from typing import Annotated

import typer

from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.options import Source, snapshot_of
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.compose import upgrade_report
from pulsar_steward.planners.upgrade.facts import upgrade_facts
from pulsar_steward.planners.upgrade.model import TARGET
from pulsar_steward.policy.load import load_policy
from pulsar_steward.report.checkup.text import fitting
from pulsar_steward.report.upgrade import document, lines

MOST_COLUMNS = 80
EXIT_CODES = {State.NOTE: 0, State.STOP: 1, State.UNKNOWN: 2}

To = Annotated[str, typer.Option("--to", metavar="VERSION", help=f"The line of releases to upgrade to: {TARGET}.")]
AsJson = Annotated[bool, typer.Option("--json", help="Prints the same for programs.")]


@with_option_groups
def upgrade(*, to: To, source: Source, json: AsJson = False) -> None:
    """Says what an upgrade would change on a cluster, what is in its way, and in which order. Changes nothing."""
    if to != TARGET and not to.startswith(f"{TARGET}."):
        raise ConfigurationError(f"--to {to!r}: only an upgrade to {TARGET} is known")
    with snapshot_of(source, load_policy(source.policy)) as seen:
        report = upgrade_report(upgrade_facts(seen))
    if json:
        tell_exactly(plain_json.dumps(document(report), indent=2).encode())
    else:
        print_lines(lines(report, min(fitting(width()), MOST_COLUMNS)))
    raise typer.Exit(EXIT_CODES[report.state])
