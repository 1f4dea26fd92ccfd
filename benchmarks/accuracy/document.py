"""The result as `docs/accuracy.md`, written by the command and by nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from benchmarks.accuracy.outcome import total
from benchmarks.accuracy.table import VERDICTS, figures, found_of, percent, strays_of, verdict_of, wrongs
from lab.faults.fault import MadeUpFault, RealFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.accuracy.outcome import Outcome, SceneOutcome, Score
    from lab.faults.clients.work import Language

CLOCK_MINUTE = 60
TITLES: dict[Language, str] = {"python": "Python", "java": "Java", "go": "Go"}


@dataclass(frozen=True)
class Run:
    """All of one run.

    Attributes:
        scenes: With an outcome for each fault there is.
        scores: Of each check there is, by its id.
        date: ISO.
        versions: Of what took part, by name.
        seconds: That it took, the starts of labs included.
    """

    scenes: Sequence[SceneOutcome]
    scores: Mapping[str, Score]
    date: str
    versions: Mapping[str, str]
    seconds: float

    @property
    def outcomes(self) -> list[Outcome]:
        """Of all faults."""
        return [outcome for scene in self.scenes for outcome in scene.outcomes]


def markdown(run: Run) -> str:
    """The document."""
    field = [outcome for outcome in run.outcomes if outcome.fault.report is not None]
    own = [outcome for outcome in run.outcomes if outcome.fault.report is None]
    real = [outcome for outcome in own if outcome.kind == "real"]
    simulated = [outcome for outcome in own if outcome.kind == "simulated"]
    sections = [_summary(run, len(real), len(simulated), len(field)), field_section(field, run.date)]
    if real:
        sections.append(_clients([outcome.fault for outcome in real if isinstance(outcome.fault, RealFault)]))
    sections += [_checks(run.scores), _scenes(run.scenes), _faults("Made for real", real)]
    if simulated:
        sections.append(_faults("Simulated", simulated))
    return "\n\n".join(sections) + "\n"


FIELD = "## The field"


def with_field(document: str, section: str) -> str:
    """The document with another section about the field, which comes after the first one."""
    before, found, after = document.partition(f"{FIELD}\n")
    if not found:
        before, _, after = document.partition("\n## ")
        before, after = f"{before}\n", f"\n## {after}"
    rest = after.partition("\n## ")[2]
    return f"{before}{section}\n\n## {rest}"


def field_section(outcomes: Sequence[Outcome], date: str) -> str:
    """What came of the reports of others on a day, by verdict, and each with its address and the right answer."""
    verdicts = Counter(verdict_of(outcome) for outcome in outcomes)
    first = Counter(outcome.fault.report.unseen for outcome in outcomes if outcome.fault.report)
    unseen = sum(count for verdict, count in first.items() if verdict)
    rows = [f"| {verdict} | {verdicts[verdict]} | {first[verdict]} |" for verdict in VERDICTS]
    lines = [
        FIELD,
        "",
        "Situations that other people reported in public, made on a made-up cluster from their figures. The right",
        f"answer to each was written down before the product was asked. {unseen} of them were written by somebody who",
        "did not know the checks; the last column is their first run, before anything was mended for them.",
        "",
        "- found: all that is to be found is, and nothing else; where silence is right, silence.",
        "- half: the trouble is found, and its cause or its culprit is not named, or its remedy is not proposed.",
        "- missed: nothing is said of it. wrong: something else is said.",
        "- harmful: what makes it worse is said or proposed.",
        "",
        f"| verdict | of {len(outcomes)}, {date} | of {unseen} at first |",
        "|---|---|---|",
        *rows,
        "",
        "| report | what was made | right | verdict | found |",
        "|---|---|---|---|---|",
        *(
            f"| {outcome.fault.report.address} | {_cell(outcome.fault.about)} | {_cell(outcome.fault.report.right)} |"
            f" {verdict_of(outcome)} | {found_of(outcome)} |"
            for outcome in outcomes
            if outcome.fault.report
        ),
    ]
    return "\n".join(lines)


def _summary(run: Run, real: int, simulated: int, field: int) -> str:
    own = [outcome for outcome in run.outcomes if outcome.fault.report is None]
    score = total(run.scores.values())
    silent = [check_id for check_id, each in run.scores.items() if each.recall is None]
    healthy = [outcome.fault for outcome in own if not outcome.fault.expected]
    twins = sum(bool(fault.twin_of) for fault in healthy)
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    lines = [
        "# How well the checks find",
        "",
        "Written by `make accuracy`. Each fault is made, looked at with `collect` and `diagnose` at the default policy",
        "(or with the differences that its row tells), and held against its label: what has to be found, at warning or",
        "critical. Anything else that is reported at warning or critical is false, unless the label says why it is no",
        "mistake. Faults of one scene are in a cluster at the same time, each in a namespace of its own, and are",
        "looked at together: what is reported of a namespace counts for its fault, what is reported of brokers or the",
        "cluster for the faults that expect or allow it, and what then belongs to none is false. A fault that cannot",
        "be made is made once more by itself, and its row tells why.",
        "",
        f"{run.date}, {versions}, {run.seconds / CLOCK_MINUTE:.0f} minutes.",
        "",
        "| | |",
        "|---|---|",
        f"| faults | {len(own)}: {real} on real brokers, {simulated} simulated; {field} [reported](#the-field) |",
        f"| of these healthy | {len(healthy)}, {twins} of them the twin of a trouble that looks alike |",
        f"| expected findings | {score.found + score.missed}: {score.found} found, {score.missed} missed |",
        f"| false findings | {score.false} |",
        f"| precision, recall | {percent(score.precision)}, {percent(score.recall)} |",
        f"| checks that a fault expects | {len(run.scores) - len(silent)} of {len(run.scores)} |",
    ]
    if silent:
        words = f"No fault expects {', '.join(f'`{check_id}`' for check_id in silent)}."
        lines += ["", *wrap(words, 120, break_on_hyphens=False)]
    lines += [
        "",
        "But for the field, the labels were written by those who wrote the checks: this is a test that both hold.",
    ]
    return "\n".join(lines)


def _clients(faults: Sequence[RealFault]) -> str:
    counts = Counter((fault.client, fault.batches) for fault in faults)
    rows = [
        f"| {title} | {counts[language, True]} | {counts[language, False]} |"
        for language, title in TITLES.items()
        if counts[language, True] + counts[language, False]
    ]
    if without := counts[None, None]:
        rows.append(f"| none, as there are no messages | {without} | |")
    return "\n".join(
        [
            "## Clients",
            "",
            "Real faults by the library that sends and takes their messages, and by whether its producers batch. All",
            "other settings are the library's defaults where a row does not say otherwise. The Python client batches",
            "only when it is told to, the Java and the Go client unless they are told not to. The Node client is",
            "missing: its package holds no binary, and downloads one while it is installed.",
            "",
            "| client | batching | not batching |",
            "|---|---|---|",
            *rows,
        ]
    )


def _checks(scores: Mapping[str, Score]) -> str:
    rows = [f"| `{check_id}` | {' | '.join(figures(score))} |" for check_id, score in scores.items()]
    head = ["## Checks", "", "| check | found | missed | false | precision | recall |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _scenes(scenes: Iterable[SceneOutcome]) -> str:
    """Those of real faults; a simulated one is a scene of its own."""
    head = [
        "## Scenes",
        "",
        "| scene | brokers' settings | faults | looks | false of no fault | seconds |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        f"| {each.scene.name} | {_settings(each)} | {len(each.outcomes)} | {each.scene.observations} |"
        f" {_cell('; '.join(strays_of(each)) or '-')} | {each.seconds:.0f} |"
        for each in scenes
        if isinstance(each.scene.first, RealFault)
    ]
    return "\n".join([*head, *rows])


def _settings(outcome: SceneOutcome) -> str:
    return ", ".join(f"`{name}={value.rpartition('.')[2]}`" for name, value in outcome.scene.settings) or "-"


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
    if fault.twin_of:
        parts.append(f"Looks like {', '.join(f'`{name}`' for name in fault.twin_of)}.")
    if isinstance(fault, RealFault) and fault.client is not None:
        parts.append(f"{TITLES[fault.client]}, {'batching' if fault.batches else 'not batching'}.")
    if isinstance(fault, MadeUpFault):
        parts.append(f"Simulated: {fault.why}")
    if fault.policy:
        parts.append(f"Policy: `{fault.policy}`.")
    if outcome.at_first:
        parts.append(f"Made at the second try; at the first: {outcome.at_first}.")
    parts += [f"`{check_id}` may report it as well: {why}." for check_id, why in fault.allowed.items()]
    return _cell(" ".join(parts))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
