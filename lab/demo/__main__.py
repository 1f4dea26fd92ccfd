"""``python -m lab.demo``: what ``make demo`` runs."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.demo.play import Answer, play
from lab.demo.scenarios import SCENARIOS
from lab.demo.stages import Stages
from lab.errors import LabError

FLEET = "fleet"
"""The scenario of several clusters, in which nothing is healed."""

DEFAULT_HOME = Path(__file__).resolve().parents[2] / "var" / "demo"


def main(
    scenario: Annotated[str, typer.Option(help=f"What is broken: {', '.join((*SCENARIOS, FLEET))}.")] = "tc",
    answer: Annotated[Answer, typer.Option(help="Who answers: a person in the browser, or the demo itself.")] = "ask",
    home: Annotated[Path, typer.Option(help="Holds everything of the demo; made anew.")] = DEFAULT_HOME,
    port: Annotated[int | None, typer.Option(help="Of Airflow's pages; a free one by default.")] = None,
    *,
    simulator: Annotated[bool, typer.Option(help="Use the simulator though a real Pulsar could run.")] = False,
) -> None:
    """Breaks a cluster, and has Pulsar Steward propose, ask, heal and prove."""
    if scenario not in {*SCENARIOS, FLEET}:
        raise typer.BadParameter(f"{scenario!r} is none of {', '.join((*SCENARIOS, FLEET))}", param_hint="--scenario")
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    stages = Stages()
    try:
        if scenario == FLEET:
            from lab.demo.fleet import play_fleet  # noqa: PLC0415 - needs Kafka's client

            well = play_fleet(home, stages, port=port)
        else:
            well = play(SCENARIOS[scenario], answer, home, stages, port=port, simulated=simulator)
    except LabError as error:
        stages.failed(str(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        stages.say("ended.")
        raise typer.Exit(130) from None
    raise typer.Exit(0 if well else 1)


if __name__ == "__main__":
    typer.run(main)
