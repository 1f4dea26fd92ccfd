"""``steward may-restart``: whether a broker may be restarted now, and why not."""

import json as plain_json
from datetime import UTC, datetime
from typing import Annotated

import typer

from pulsar_steward.cli.option_groups import with_option_groups
from pulsar_steward.cli.options import Source, snapshot_of
from pulsar_steward.cli.output import print_lines, tell_exactly, width
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import broker_meant, restart_verdict
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.policy.load import load_policy
from pulsar_steward.report.checkup.text import fitting
from pulsar_steward.report.restart import document, judged_at, lines

MOST_COLUMNS = 80
EXIT_CODES = {State.NOTE: 0, State.STOP: 1, State.UNKNOWN: 2}

Broker = Annotated[str, typer.Argument(metavar="BROKER", help="host:webport as the cluster lists it, or its host.")]
AsJson = Annotated[bool, typer.Option("--json", help="Prints the same for programs.")]


@with_option_groups
def may_restart(broker: Broker, *, source: Source, json: AsJson = False) -> None:
    """Says whether a broker may be restarted now, and why not. Changes nothing."""
    policy = load_policy(source.policy)
    with snapshot_of(source, policy, lambda listed: broker_meant(broker, listed)) as seen:
        facts = restart_facts(seen)
    verdict = judged_at(restart_verdict(facts, broker, policy.for_cluster(facts.meta.cluster)), datetime.now(UTC))
    if json:
        tell_exactly(plain_json.dumps(document(verdict), indent=2).encode())
    else:
        print_lines(lines(verdict, min(fitting(width()), MOST_COLUMNS)))
    raise typer.Exit(EXIT_CODES[verdict.state])
