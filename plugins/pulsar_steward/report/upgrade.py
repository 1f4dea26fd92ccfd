"""Upgrade of a cluster as text and as JSON: what is in the way, what changes, and the order to do it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.units import counted, named
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.planners.upgrade.model import HOLDING, TARGET, Part
from pulsar_steward.report.checkup.text import bullets, heading, numbered, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.text import Text

    from pulsar_steward.planners.upgrade.model import UpgradeLine, UpgradeReport

RESULTS = {
    State.STOP: "RESULT: not yet. {stops} first; {unknown} told.",
    State.UNKNOWN: "RESULT: not known. Nothing was found that stops it, but {unknown} told.",
    State.NOTE: "RESULT: nothing stops it.",
}
MARKS = {State.STOP: "STOP ", State.UNKNOWN: "NOT TOLD ", State.NOTE: ""}
CAVEAT = (
    "A broker tells the values in force, not where they are from. A value that is the old default changes only where"
    " broker.conf, the environment and the dynamic configuration do not write it: files of 4.x write many."
)


def document(report: UpgradeReport) -> dict[str, Any]:
    """The report for programs."""
    lines = [msgspec.to_builtins(each) | {"part": each.part.name.lower()} for each in report.lines]
    return {
        "cluster": report.cluster,
        "snapshot": report.snapshot_id,
        "from": list(report.versions),
        "to": TARGET,
        "state": report.state.value,
        "unread": list(report.unread),
        "lines": lines,
    }


def lines(report: UpgradeReport, width: int) -> Iterator[Text]:
    """The report for people, on at most so many columns; addresses stay whole."""
    yield from wrapped(f"Upgrade of {report.cluster} from {named(report.versions)} to {TARGET}", width, style="heading")
    yield from wrapped(f"Snapshot {report.snapshot_id}", width, style="quiet")
    yield from wrapped(upgrade_result(report), width, style="critical" if report.state is State.STOP else "")
    if report.unread:
        yield from wrapped(f"Not read, and not judged: {named(report.unread)}.", width, style="unknown")
    every = dict.fromkeys(source for each in report.lines for source in each.sources)
    numbers = {source: number for number, source in enumerate(every, 1)}
    for part in Part:
        of_part = [each for each in report.lines if each.part is part]
        if not of_part:
            continue
        yield from heading(part.value)
        if part is Part.CHANGES:
            yield from wrapped(CAVEAT, width, style="quiet")
        untold = [each for each in of_part if each.state is State.UNKNOWN and part is Part.CHANGES]
        idle = [each for each in of_part if each.idle and each not in untold]
        texts = [_text(each, numbers) for each in of_part if each not in untold and each not in idle]
        if idle:
            cited = sorted({numbers[source] for each in idle for source in each.sources})
            names = ", ".join(each.subject for each in idle)
            texts.append(f"does not touch this cluster: {names}. {''.join(f'[{number}]' for number in cited)}")
        yield from numbered(texts, width, 0) if part is Part.ORDER else bullets(texts, width)
        if untold:
            told = counted(len(untold), "setting is", "settings are")
            names = ", ".join(each.subject for each in untold)
            yield from bullets(
                [f"NOT TOLD: the value of {told} not in the snapshot, of all or some brokers: {names}."], width
            )
    yield from heading("Sources")
    for source, number in numbers.items():
        yield from wrapped(source, width, first=f"[{number}] ", indent=5)


def upgrade_result(report: UpgradeReport) -> str:
    """The result in a sentence."""
    states = [each.state for each in report.lines if each.part in HOLDING]
    return RESULTS[report.state].format(
        stops=counted(states.count(State.STOP), "thing has to be done", "things have to be done"),
        unknown=counted(states.count(State.UNKNOWN), "thing is not", "things are not"),
    )


def line_text(line: UpgradeLine) -> str:
    """A line without its sources."""
    before, after = ("unset" if value == "" else _value(value or "") for value in (line.before, line.after))
    change = ""
    if line.state is not State.UNKNOWN:
        change = {
            Part.CHANGES: f" {before} -> {after}",
            Part.KEPT: f" {before} stays, 5.0 would have {after}",
            Part.NEW: f" {after}",
            Part.GONE: f" {before}" if line.before else "",
        }.get(line.part, "")
    subject = f"{MARKS[line.state]}{line.subject}{change}: " if line.subject else ""
    return f"{subject}{line.words}".removesuffix(": ")


def _text(line: UpgradeLine, numbers: Mapping[str, int]) -> str:
    return f"{line_text(line)} {''.join(f'[{numbers[each]}]' for each in line.sources)}"


def _value(value: str) -> str:
    """A value for people: numbers in groups, classes without their package."""
    if value.isdecimal():
        return f"{int(value):,}"
    return value.rpartition(".")[2] if value.startswith("org.apache.") else value
