"""``python -m benchmarks.chaos``: seeded faults at random points of remediations on a real cluster, and what held.

Exit code 0 only when every contract held in every run.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from rich.console import Console

from benchmarks.chaos.detour import Detour
from benchmarks.chaos.document import Chaos, document
from benchmarks.chaos.faults import FAULTS, Scenario, at_each_line, scenarios
from benchmarks.chaos.ground import Ground
from benchmarks.chaos.holdings import SMALL_LEDGERS, holdings
from benchmarks.chaos.running import ChaosRun, Servers
from benchmarks.telling import sayer, versions
from lab.bookie import ADMIN_API
from lab.cluster import running_lab
from lab.errors import PrerequisiteMissingError
from lab.faults.real.ground import COMMON_SETTINGS
from lab.model import VERSIONS, LabOptions
from lab.postgres import binaries, restartable_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.chaos.judging import Judged
    from benchmarks.chaos.worker import Line

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
RUNS = 240
CHECKUP_EVERY = 60
COULD_NOT_LOOK = 2
WALKS = 6
LINES = 80


def main(argv: Sequence[str] | None = None) -> int:
    """Runs them; returns the exit code."""
    arguments = _parser().parse_args(argv)
    chosen = [
        each
        for each in scenarios(arguments.seed, arguments.runs)
        if not arguments.only or each.fault.name in arguments.only or str(each.number) in arguments.only
    ]
    console = Console()

    say = sayer(console)
    began, checkups = time.monotonic(), list[int]()
    with tempfile.TemporaryDirectory(prefix="chaos-") as home:
        runs = list(
            run_all(
                chosen,
                Path(home),
                say,
                checkups,
                pulsar=arguments.pulsar,
                lines=None if arguments.only else arguments.lines,
                verbose=arguments.verbose,
            )
        )
    date, pulsar = datetime.now(UTC).date().isoformat(), arguments.pulsar
    chaos = Chaos(arguments.seed, runs, checkups, date, versions(Pulsar=pulsar))
    say(f"{len(runs)} runs in {(time.monotonic() - began) / 60:.0f} min, {len(chaos.violations)} violations")
    if not arguments.only:
        before = arguments.out.read_text(encoding="utf-8") if arguments.out.exists() else ""
        text = document(chaos, None if pulsar == VERSIONS[0] else pulsar, before)
        arguments.out.write_text(text, encoding="utf-8")
        say(f"written: {arguments.out}")
    return 1 if chaos.violations or COULD_NOT_LOOK in checkups else 0


def run_all(
    chosen: Sequence[Scenario],
    home: Path,
    say: Callable[[str], None],
    checkups: list[int] | None = None,
    *,
    pulsar: str = VERSIONS[0],
    lines: int | None = None,
    verbose: bool = False,
) -> Iterator[Judged]:
    """Runs these, one after the other, on one lab and one PostgreSQL.

    Args:
        chosen: What is to happen.
        home: A folder for the lab and the ledgers.
        say: Told what happens, a line at a time.
        checkups: Gets the exit codes of `steward checkup`, run now and then; None: it is not run.
        pulsar: The brokers' version.
        lines: A worker is killed at so many lines between an intent and its outcome as well, 0: at each; None: not.
        verbose: Whether what workers said is told of every run, and not only where something did not hold.
    """
    folder = binaries()
    if folder is None:
        raise PrerequisiteMissingError("PostgreSQL is needed: install its package, such as Debian's `postgresql`")
    with ExitStack() as open_parts:
        # On 5.0.1 the topic that is never replicated was gone after two minutes, perhaps as one that nobody uses.
        kept = {"brokerDeleteInactiveTopicsEnabled": "false"}
        brokers, bookie = dict(COMMON_SETTINGS) | SMALL_LEDGERS | kept, ADMIN_API
        options = LabOptions(hosts="distinct", broker_settings=brokers, bookie_settings=bookie, pulsar_version=pulsar)
        lab = open_parts.enter_context(running_lab("chaos", home=home, **options))
        postgres, program = open_parts.enter_context(restartable_postgres(folder))
        detour = Detour()
        open_parts.callback(detour.close)
        ground = Ground(lab, open_parts.enter_context(holdings(lab)))
        servers = Servers(home, folder, postgres, program)
        ground.heal()
        for place, scenario in enumerate(chosen, start=1):
            verdict = ChaosRun(scenario, ground, detour, servers).judged()
            _tell(verdict, f"{place}/{len(chosen)}", say, verbose=verbose)
            if checkups is not None and place % CHECKUP_EVERY == 0:
                checkups.append(_checkup(lab.admin_urls[0]))
                say(f"  steward checkup: exit code {checkups[-1]}")
            yield verdict
        for scenario in (
            _each_line((ground, detour, servers), len(chosen), lines or 0, say) if lines is not None else ()
        ):
            verdict = ChaosRun(scenario, ground, detour, servers).judged()
            _tell(verdict, str(scenario.line), say, verbose=verbose)
            yield verdict


def _each_line(
    place: tuple[Ground, Detour, Servers], before: int, most: int, say: Callable[[str], None]
) -> list[Scenario]:
    """A run for each line that lies between an intent and its outcome, as walks without a fault find them.

    Args:
        place: Where it happens.
        before: How many runs there were already.
        most: Lines that are tried at most, spread over all of them; 0: each.
        say: Told how many there are.
    """
    lines: dict[Line, None] = {}
    calm = next(fault for fault in FAULTS if fault.kind == "none")
    for number in range(WALKS):
        scenario = Scenario(-number, calm, "approved", postgres=False, random=Random(number))
        walk = ChaosRun(scenario, *place, walk=True)
        walk.judged()
        lines.update({line: None for report in walk.reports if report for line in report.lines})
    chosen = list(lines)[:: -(-len(lines) // most)] if most else list(lines)
    say(f"{len(lines)} lines lie between an intent and its outcome, {len(chosen)} are tried")
    return at_each_line(chosen, seed=before, first=before + 1)


def _tell(verdict: Judged, place: str, say: Callable[[str], None], *, verbose: bool) -> None:
    scenario = verdict.scenario
    said = f"{place} {scenario.fault.name}, {scenario.answer}, {verdict.seconds:.0f} s"
    met = "" if verdict.happened or scenario.fault.kind == "none" else " (came not to pass)"
    say(f"{said}: {', '.join(verdict.outcomes) or 'nothing'}{met}")
    for words in verdict.violations:
        say(f"  VIOLATION in run {scenario.number}: {words}")
    if verdict.violations or verbose:
        say(f"  {verdict.told}\n  {verdict.calls}")


def _checkup(url: str) -> int:
    """Looks at the cluster with Spark, as an operator would."""
    steward = shutil.which("steward", path=str(Path(sys.executable).parent)) or "steward"
    return subprocess.run([steward, "checkup", "--admin-url", url], capture_output=True, check=False).returncode


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__.partition("\n")[0])
    made.add_argument("--runs", type=int, default=RUNS, help=f"how many (default: {RUNS})")
    made.add_argument("--seed", type=int, default=1, help="what everything is drawn from (default: 1)")
    names = ", ".join(fault.name for fault in FAULTS)
    made.add_argument("--only", nargs="+", metavar="FAULT", help=f"only runs of these numbers or faults: {names}")
    made.add_argument(
        "--lines", type=int, default=LINES, help=f"at which a worker is killed, 0: each (default: {LINES})"
    )
    made.add_argument(
        "--pulsar",
        default=VERSIONS[0],
        choices=VERSIONS,
        help="the brokers' version; another one gets a line",
    )
    made.add_argument("--verbose", action="store_true", help="tell what workers said")
    made.add_argument("--out", type=Path, default=DOCUMENT, metavar="FILE", help="written unless --only is given")
    return made


if __name__ == "__main__":
    sys.exit(main())
