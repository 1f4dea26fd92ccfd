"""The result as `docs/reliability.md`, written by the command and by nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.chaos.faults import ANSWERS, FAULTS
from benchmarks.chaos.ground import MOST_COORDINATORS
from pulsar_steward.model.pulsar_versions import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.chaos.judging import Judged

CLOCK_MINUTE = 60
OUTCOMES = ("done", "refused", "drifted", "failed", "unknown")

WITH_AIRFLOW = (
    "## With the whole of Airflow",
    "",
    "`tests/live/test_airflow_faults.py` runs each of these with Airflow's scheduler, API and tasks, and a ledger in",
    "PostgreSQL; then request logs, cluster and ledger have to agree here too:",
    "",
    "- the task gets SIGKILL between intent and outcome: its retry looks what became of the call, and goes on;",
    "- the scheduler alone gets SIGKILL: the task ends its work, and the next scheduler goes on from there;",
    "- the scheduler gets SIGKILL with all its tasks: the next one starts the task anew, which ends the work;",
    "- two schedulers at once: every step is carried out once;",
    "- two runs of one plan, both approved, act at the same moment: one does, the other is refused with the reason;",
    "- two people have to approve: the first one's second yes is none, and only what both ticked is carried out;",
    "- who is not assigned cannot answer, and who started the run cannot approve it;",
    "- the variable `steward_halt` stops a batch that waits for its pace at once; without it a new plan goes through;",
    "- an approval that is widened in the database, digest included, after the gate looked at it: nothing is called,",
    "  and the task fails saying so;",
    "- the next observation works.",
)


@dataclass(frozen=True)
class Chaos:
    """All of one command.

    Attributes:
        seed: What everything was drawn from.
        runs: In order.
        checkups: Exit codes of `steward checkup`, run in between.
        date: ISO.
        versions: Of what took part, by name.
    """

    seed: int
    runs: Sequence[Judged]
    checkups: Sequence[int]
    date: str
    versions: Mapping[str, str]

    @property
    def violations(self) -> list[str]:
        """Broken contracts, each with its run."""
        return [f"run {each.scenario.number}: {words}" for each in self.runs for words in each.violations]


ON_OTHERS = "\n## On other versions\n\n"


def document(chaos: Chaos, pulsar: str | None, before: str) -> str:
    """The document after a command.

    Args:
        chaos: All of the command.
        pulsar: Another version of Pulsar than the document is about: it gets a line; None: of this one it is all.
        before: The document as it was, which keeps the lines of other versions.
    """
    whole, _, lines = before.partition(ON_OTHERS)
    others = [line for line in lines.splitlines() if pulsar is None or not line.startswith(f"- Pulsar {pulsar},")]
    if pulsar is None:
        whole = markdown(chaos)
    else:
        outcomes = [outcome for each in chaos.runs for outcome in each.outcomes]
        calls = f"{_calls(chaos.runs)} changing calls"
        if "done" in outcomes and not _calls(chaos.runs):
            calls = "request logs told no call to compare"
        others.append(
            f"- Pulsar {pulsar}, {chaos.date}, seed {chaos.seed}: {len(chaos.runs)} runs, {len(outcomes)} outcomes,"
            f" {len(chaos.violations)} violations; {calls}."
        )
    return whole + (ON_OTHERS + "\n".join(sorted(others)) + "\n" if others else "")


def markdown(chaos: Chaos) -> str:
    """The document on the version that labs are of by default."""
    versions = ", ".join(f"{name} {version}" for name, version in chaos.versions.items())
    minutes = sum(each.seconds for each in chaos.runs) / CLOCK_MINUTE
    met = sum(each.happened or each.scenario.fault.kind == "none" for each in chaos.runs)
    steps = sum(len(each.outcomes) for each in chaos.runs)
    refused = [each for each in chaos.runs if not each.scenario.permits]
    lines = [
        "# What holds when things go wrong",
        "",
        "Written by `make chaos`. Each run records a plan of one to three changes, answers it, carries it out on a",
        "real cluster in a process of its own (again, as Airflow would, where it died), and reads it back, while one",
        "fault befalls it at a point that its seed draws. Afterwards the brokers' own request logs, what the cluster",
        "shows and the ledger are compared:",
        "",
        "- every changing call that a broker answered has exactly one recorded intent, of a step that was approved;",
        "- no step is tried again after it was done, and none is done twice;",
        "- what was rejected, expired, superseded, tampered with or never asked has no call and no intent;",
        "- no setting, bundle or owner and no number of coordinators is other than before unless somebody intended it;",
        "- no subscription is gone unless somebody intended it, and those that stay have read nothing;",
        "- an archive that no broker has loaded, and what was never replicated, are as large as before;",
        "- what is recorded as done is what the cluster shows;",
        "- the ledger verifies, or, where it was tampered with, says so;",
        "- every worker ends in an outcome or an error of Steward's own, and the next observation works.",
        "",
        f"{chaos.date}, seed {chaos.seed}, {versions}, {minutes:.0f} minutes.",
        "",
        "| | |",
        "|---|---|",
        f"| runs | {len(chaos.runs)}, on real brokers; the fault came to pass in {met} |",
        f"| runs in which nothing was permitted, and their changing calls | {len(refused)}, {_calls(refused)} |",
        f"| steps that came to an outcome, and changing calls of all runs | {steps}, {_calls(chaos.runs)} |",
        f"| `steward checkup` in between (1: findings, 2: could not look) | {_codes(chaos.checkups)} |",
        f"| violations | {len(chaos.violations)} |",
        "",
        *_violations(chaos),
        "## By fault",
        "",
        "A fault that came to pass may do no harm: Steward asks again, or the point lies behind the last call.",
        "",
        f"| fault | what it is | runs | came to pass | {' | '.join(OUTCOMES)} | violations |",
        f"|---|---|{'---|' * (len(OUTCOMES) + 3)}",
        *(_row(f"{fault.name} | {fault.about}", _of(chaos.runs, fault.name)) for fault in FAULTS),
        "",
        "## By change",
        "",
        "A deletion loses the entries of a subscription that nobody uses. The number of coordinators is never lowered",
        f"again: each raise is by one, up to {MOST_COORDINATORS}.",
        "",
        f"| change | {' | '.join(OUTCOMES)} |",
        f"|---|{'---|' * len(OUTCOMES)}",
        *_by_operation(chaos.runs),
        "",
        "## By answer",
        "",
        f"| answer | runs | came to pass | {' | '.join(OUTCOMES)} | violations |",
        f"|---|{'---|' * (len(OUTCOMES) + 3)}",
        *(_row(name, [each for each in chaos.runs if each.scenario.answer == name]) for name, _ in ANSWERS),
        "",
        *WITH_AIRFLOW,
    ]
    return "\n".join(lines) + "\n"


def _calls(runs: Iterable[Judged]) -> int:
    return sum(len(each.calls) for each in runs)


def _codes(codes: Iterable[int]) -> str:
    return ", ".join(f"{count} times {code}" for code, count in sorted(Counter(codes).items())) or "not run"


def _violations(chaos: Chaos) -> list[str]:
    return [*(f"- {words}" for words in chaos.violations), ""] if chaos.violations else []


def _of(runs: Sequence[Judged], fault: str) -> list[Judged]:
    return [each for each in runs if each.scenario.fault.name == fault]


def _by_operation(runs: Sequence[Judged]) -> Iterator[str]:
    counts = Counter(step for each in runs for step in each.steps)
    for operation in Operation:
        cells = [counts[operation, outcome] for outcome in OUTCOMES]
        if any(cells):
            yield f"| {operation} | {' | '.join(map(str, cells))} |"


def _row(name: str, runs: Sequence[Judged]) -> str:
    outcomes = Counter(outcome for each in runs for outcome in each.outcomes)
    met, wrong = sum(each.happened for each in runs), sum(len(each.violations) for each in runs)
    cells = [len(runs), met, *(outcomes[outcome] for outcome in OUTCOMES), wrong]
    return f"| {name} | {' | '.join(str(cell) for cell in cells)} |"
