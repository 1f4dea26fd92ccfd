"""The result as `docs/accuracy.md`, written by the command and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.accuracy.outcome import total
from benchmarks.accuracy.table import figures, found_of, percent, wrongs
from lab.faults.fault import SimulatedFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.accuracy.outcome import Outcome, Score

CLOCK_MINUTE = 60


@dataclass(frozen=True)
class Run:
    """All of one run.

    Attributes:
        outcomes: One for each fault there is.
        scores: Of each check there is, by its id.
        date: ISO.
        versions: Of what took part, by name.
    """

    outcomes: Sequence[Outcome]
    scores: Mapping[str, Score]
    date: str
    versions: Mapping[str, str]


def markdown(run: Run) -> str:
    """The document."""
    real = [outcome for outcome in run.outcomes if outcome.kind == "real"]
    simulated = [outcome for outcome in run.outcomes if outcome.kind == "simulated"]
    sections = [_summary(run, len(real), len(simulated)), _checks(run.scores)]
    sections.append(_faults("Made for real", real))
    if simulated:
        sections.append(_faults("Simulated", simulated))
    return "\n\n".join(sections) + "\n"


def _summary(run: Run, real: int, simulated: int) -> str:
    score = total(run.scores.values())
    silent = [check_id for check_id, each in run.scores.items() if each.recall is None]
    healthy = sum(not outcome.fault.expected for outcome in run.outcomes)
    minutes = sum(outcome.seconds for outcome in run.outcomes) / CLOCK_MINUTE
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    lines = [
        "# How well the checks find",
        "",
        "Written by `make accuracy`. Each fault is made, looked at with `collect` and `diagnose` at the default policy",
        "(or with the differences that its row tells), and held against its label: what has to be found, at warning or",
        "critical. Anything else that is reported at warning or critical is false, unless the label says why it is no",
        "mistake.",
        "",
        f"{run.date}, {versions}, {minutes:.0f} minutes.",
        "",
        "| | |",
        "|---|---|",
        f"| faults | {len(run.outcomes)}: {real} on real brokers, {simulated} simulated; {healthy} of them healthy |",
        f"| expected findings | {score.found + score.missed}: {score.found} found, {score.missed} missed |",
        f"| false findings | {score.false} |",
        f"| precision, recall | {percent(score.precision)}, {percent(score.recall)} |",
        f"| checks that a fault expects | {len(run.scores) - len(silent)} of {len(run.scores)} |",
    ]
    if silent:
        lines += ["", f"No fault expects {', '.join(f'`{check_id}`' for check_id in silent)}."]
    lines += [
        "",
        "The labels were written by those who wrote the checks: this is a test that both hold, no field study.",
    ]
    return "\n".join(lines)


def _checks(scores: Mapping[str, Score]) -> str:
    rows = [f"| `{check_id}` | {' | '.join(figures(score))} |" for check_id, score in scores.items()]
    head = ["## Checks", "", "| check | found | missed | false | precision | recall |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _faults(title: str, outcomes: Iterable[Outcome]) -> str:
    head = [f"## {title}", "", "| fault | what it is | found | wrong | seconds |", "|---|---|---|---|---|"]
    rows = [
        f"| `{each.fault.name}` | {_about(each)} | {found_of(each)} |"
        f" {_cell('; '.join(wrongs(each)) or '-')} | {each.seconds:.0f} |"
        for each in outcomes
    ]
    return "\n".join([*head, *rows])


def _about(outcome: Outcome) -> str:
    fault = outcome.fault
    parts = [fault.about]
    if isinstance(fault, SimulatedFault):
        parts.append(f"Simulated: {fault.why}")
    if fault.policy:
        parts.append(f"Policy: `{fault.policy}`.")
    parts += [f"`{check_id}` may report it as well: {why}." for check_id, why in fault.allowed.items()]
    return _cell(" ".join(parts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
