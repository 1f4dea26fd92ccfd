"""The command line of the simulator, ``python -m lab.simulator``: runs until SIGTERM or SIGINT."""

import json
import signal
from dataclasses import replace
from typing import Annotated

import typer

from lab.simulator.cluster import running_simulator
from lab.simulator.scale import ScaleFault, large_cluster
from lab.simulator.spec import ClusterSpec


def serve(
    *,
    cluster: Annotated[str, typer.Option(help="The cluster's own name.")] = "local",
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers.")] = 3,
    coordinators: Annotated[int, typer.Option(min=1, help="How many transaction coordinators.")] = 16,
    token: Annotated[str | None, typer.Option(envvar="SIMULATOR_TOKEN", help="What every request must bear.")] = None,
    piled_up: Annotated[bool, typer.Option(help="All transaction coordinators on the first broker.")] = False,
    partitions: Annotated[int, typer.Option(min=0, help="About so many, in topics of a hundred.")] = 0,
    seed: Annotated[int, typer.Option(help="What the topics are drawn from.")] = 0,
    fault: Annotated[ScaleFault, typer.Option(help="What is wrong with the topics.")] = "none",
) -> None:
    """Runs a made-up Pulsar cluster; prints its addresses as one line of JSON."""
    # Blocked before any thread starts: a signal is to reach sigwait and nobody else.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    spec = ClusterSpec(brokers=brokers, coordinators=coordinators)
    if partitions:
        spec = large_cluster(partitions, brokers, seed, coordinators=coordinators, fault=fault)
    if piled_up:
        spec = replace(spec, tc_owner=0)
    with running_simulator(replace(spec, cluster=cluster), token=token, keep_log=False) as simulator:
        typer.echo(json.dumps({"cluster": simulator.cluster, "admin_urls": simulator.admin_urls}))
        signal.sigwait(ends)


def main() -> None:
    """Runs the command."""
    typer.run(serve)
