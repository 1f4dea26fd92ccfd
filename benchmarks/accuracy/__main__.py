"""``python -m benchmarks.accuracy``: makes labelled faults, many at a time, and says how well the checks find them.

Exit code 0 only when of our own faults nothing was missed, nothing was found falsely and every one could be made, and
nothing harmful is said of a report.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from rich.console import Console

from benchmarks.accuracy.document import Run, field_section, markdown, with_field
from benchmarks.accuracy.outcome import scores
from benchmarks.accuracy.running import Workbench
from benchmarks.accuracy.table import checks_table, faults_table, field_table, found_of, strays_of, verdict_of, wrongs
from benchmarks.telling import sayer, versions
from lab.faults.clients.languages import unavailable
from lab.faults.fault import MadeUpFault, RealFault, RealKafkaFault
from lab.faults.registry import FAULTS
from lab.kafka import KAFKA_VERSION
from lab.model import VERSIONS
from pulsar_steward.checks.registry import checks_of
from pulsar_steward.model.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.accuracy.outcome import SceneOutcome
    from lab.faults.registry import AnyFault

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__.partition("\n")[0])
    kind = made.add_mutually_exclusive_group()
    kind.add_argument("--real", action="store_true", help="only faults on real brokers")
    kind.add_argument("--simulated", action="store_true", help="only simulated ones")
    kind.add_argument(
        "--field", action="store_true", help="only those that others reported; all of them write their part"
    )
    made.add_argument("--quick", action="store_true", help="only those that the tests run")
    made.add_argument("--only", nargs="+", metavar="NAME", help="only these")
    made.add_argument("--pulsar-version", default=VERSIONS[0], choices=VERSIONS, help="of the real brokers")
    made.add_argument("--out", type=Path, default=DOCUMENT, metavar="FILE", help="written when all faults were run")
    made.add_argument("--home", type=Path, metavar="FOLDER", help="for labs and snapshots (default: a passing one)")
    return made


def chosen(arguments: argparse.Namespace) -> list[AnyFault]:
    """The faults that were asked for.

    Raises:
        SystemExit: A name is unknown.
    """
    unknown = set(arguments.only or ()) - {fault.name for fault in FAULTS}
    if unknown:
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}")
    return [fault for fault in FAULTS if _is_asked_for(fault, arguments)]


def _is_asked_for(fault: AnyFault, arguments: argparse.Namespace) -> bool:
    return (
        (not arguments.real or not isinstance(fault, MadeUpFault))
        and (not arguments.simulated or isinstance(fault, MadeUpFault))
        and (not arguments.field or fault.report is not None)
        and (not arguments.quick or fault.quick)
        and (not arguments.only or fault.name in arguments.only)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; returns the exit code."""
    arguments = parser().parse_args(argv)
    faults = chosen(arguments)
    console = Console()
    say = sayer(console)
    possible = [fault for fault in faults if _can_be_made(fault, say)]
    began = time.monotonic()
    if arguments.home is not None:
        outcomes = _outcomes(possible, Workbench(arguments.home, say, arguments.pulsar_version), say)
    else:
        with tempfile.TemporaryDirectory(prefix="accuracy-") as home:
            outcomes = _outcomes(possible, Workbench(Path(home), say, arguments.pulsar_version), say)
    seconds = time.monotonic() - began
    own = [
        replace(scene, outcomes=tuple(each for each in scene.outcomes if not each.fault.report)) for scene in outcomes
    ]
    of_checks = scores(own, check_ids())
    every = [outcome for scene in outcomes for outcome in scene.outcomes]
    console.print(faults_table(outcomes), checks_table(of_checks), field_table(every))
    say(f"{seconds:.0f} s in all")
    if len(possible) == len(FAULTS) and arguments.pulsar_version == VERSIONS[0]:
        run = Run(
            outcomes,
            of_checks,
            datetime.now(UTC).date().isoformat(),
            versions(Pulsar=VERSIONS[0], Kafka=KAFKA_VERSION, DuckDB=duckdb.__version__),
            seconds,
        )
        arguments.out.write_text(markdown(run), encoding="utf-8")
        console.print(f"written: {arguments.out}")
    elif {fault.name for fault in FAULTS if fault.report} <= {fault.name for fault in possible}:
        written = arguments.out.read_text(encoding="utf-8")
        arguments.out.write_text(
            with_field(written, field_section(every, datetime.now(UTC).date().isoformat())), encoding="utf-8"
        )
        console.print(f"written: {arguments.out}")
    harmful = any(verdict_of(outcome) == "harmful" for outcome in every)
    return 0 if all(scene.right for scene in own) and not harmful else 1


def check_ids() -> list[str]:
    """Of every check, those of Kafka last."""
    return [check_id for system in System for check_id in checks_of(system)]


def _can_be_made(fault: AnyFault, say: Callable[[str], None]) -> bool:
    """True if there are clients in its language here, or of Kafka."""
    why = unavailable(fault.client) if isinstance(fault, RealFault) and fault.client is not None else None
    if isinstance(fault, RealKafkaFault) and find_spec("confluent_kafka") is None:
        why = "confluent-kafka is not installed"
    if why is not None:
        say(f"{fault.name} is left out: {why}")
    return why is None


def _outcomes(faults: Sequence[AnyFault], workbench: Workbench, say: Callable[[str], None]) -> list[SceneOutcome]:
    outcomes = []
    for scene in workbench.outcomes(faults):
        outcomes.append(scene)
        done = sum(len(each.outcomes) for each in outcomes)
        say(f"{done}/{len(faults)} {scene.scene.name}, {scene.seconds:.0f} s")
        for outcome in scene.outcomes:
            told = "\n    ".join([found_of(outcome), *wrongs(outcome)])
            say(f"  {outcome.fault.name}, {outcome.seconds:.0f} s: {told}")
        for stray in strays_of(scene):
            say(f"  of none: {stray}")
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
