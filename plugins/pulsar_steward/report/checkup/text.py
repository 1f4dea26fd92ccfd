"""Lines for a terminal, wrapped between words only; names from outside cannot control the terminal."""

from __future__ import annotations

import re
import shlex
import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.headline import headline
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.finding import by_size
from pulsar_steward.model.topics import namespace_of
from pulsar_steward.model.units import counted
from pulsar_steward.outside_text import shown
from pulsar_steward.report.approval_group import further
from pulsar_steward.report.worth import levels, worth_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step

WIDEST = 100
"""Largest width in columns; longer lines are hard to read, however wide the terminal is."""

MAX_LISTED = 3
"""Number of findings of a check or a batch that are listed by default; page and JSON have more."""

NARROWEST = 40
"""Smallest width in columns that lines are wrapped to."""

STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "clear": "green",
    "unknown": "magenta",
    "heading": "bold underline",
    "quiet": "dim",
}
"""Styles; each only adds to the meaning of the words."""


def fitting(width: int) -> int:
    """Width to write in, for a terminal of this width."""
    return max(NARROWEST, min(width, WIDEST))


def wrapped(words: object, width: int, *, first: str | Text = "", indent: int = 0, style: str = "") -> Iterator[Text]:
    """A paragraph; a name longer than a line stays whole, so that it can be copied.

    Args:
        words: The text, unescaped.
        width: Columns.
        first: Text before the first line, in place of its indentation.
        indent: Columns before every line.
        style: One of `STYLES`, for the words, or none.
    """
    lines = textwrap.wrap(shown(words), max(width - indent, 1), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        before = Text.assemble(first if number == 0 else "")
        before.pad_right(indent - len(before))
        yield Text.assemble(before, (line, STYLES.get(style, "")))


def heading(words: str) -> Iterator[Text]:
    """Heading, with an empty line before it."""
    yield Text()
    yield Text(shown(words), STYLES["heading"])


def numbered(steps: Iterable[str], width: int, indent: int) -> Iterator[Text]:
    """Numbered list."""
    for number, step in enumerate(steps, start=1):
        yield from wrapped(step, width, first=f"{' ' * indent}{number}. ", indent=indent + 3)


def bullets(items: Iterable[str], width: int, indent: int = 2) -> Iterator[Text]:
    """Bulleted list."""
    for item in items:
        yield from wrapped(item, width, first=f"{' ' * (indent - 2)}- ", indent=indent)


def filled_in(advice: str, subject: str, servers: str | None = None) -> str:
    """Advice with the names of its commands filled in, as far as a subject, or a Kafka cluster's servers, tell them.

    A name with a blank or a backtick, or one that begins like an option, is left to the person: it could be read as
    something else.
    """
    names: dict[str, str | None] = {}
    if match := re.fullmatch(r"((?:non-)?persistent://\S+)(?: subscription ([^\s-]\S*))?", subject):
        names = {"TOPIC": match[1], "NS": namespace_of(match[1]), "SUB": match[2]}
    elif match := re.fullmatch(r"([^/\s-][^/\s]*/[^/\s]+)(?:/(0x\w+))?", subject):
        names = {"NS": match[1], "RANGE": match[2]}
    elif match := re.fullmatch(r"broker (\d+)|group ([^\s-]\S*)", subject):
        names = {"BROKER": match[1], "GROUP": match[2]}
    names |= {"NAMESPACE": names.get("NS"), "SUBSCRIPTION": names.get("SUB"), "SERVERS": servers}

    def filled(match: re.Match[str]) -> str:
        name = names.get(match[0])
        return match[0] if name is None or "`" in name else shlex.quote(name)

    return re.sub(rf"\b(?:{'|'.join(names)})\b", filled, advice)


def plan_lines(plan: Plan, reasons: Sequence[str], width: int) -> Iterator[Text]:
    """A whole plan, with the reasons why no further batches are proposed."""
    width = fitting(width)
    yield from wrapped(f"Plan {plan.plan_id}", width, style="heading")
    yield from wrapped(f"SHA-256 {plan.digest}", width, style="quiet")
    if not plan.batches:
        yield from wrapped("Nothing would be proposed, for these reasons:", width)
    for batch in plan.batches:
        yield from batch_lines(plan, batch, width)
    if plan.batches and reasons:
        yield from heading("Why nothing else is proposed")
    yield from bullets(reasons, width)


def batch_lines(plan: Plan, batch: Batch, width: int) -> Iterator[Text]:
    """One batch of a plan: the steps that a person would be asked to approve together, their worth and their risk."""
    yield Text()
    yield from wrapped(f"Batch {batch.batch_id}: {headline(batch)}", width, style="heading")
    for finding in by_size(batch.findings)[:MAX_LISTED]:
        words = f"{finding.severity.upper()} {finding.check_id}: {finding.in_words(plan.cluster)}"
        yield from bullets([words], width)
    yield from bullets(further(len(batch.findings) - MAX_LISTED, "more finding"), width)
    yield from bullets(worth_in_words(batch), width)
    risk = risk_of(plan, batch)
    yield from wrapped(f"Risk: {risk.level}", width, style="heading")
    yield from bullets((f"{reason.level}: {reason.words}" for reason in risk.reasons), width)
    if places := levels(batch):
        broad = max(len(shown(broker)) for broker, _, _ in places)
        yield Text(f"  {shown(batch.unit)} by broker, now and after all steps:")
        for broker, now, then in places:
            yield Text(f"    {shown(broker).ljust(broad)}  {now:>5,} -> {then:,}")
    for step in batch.steps:
        yield from _step(step, width)


def _step(step: Step, width: int) -> Iterator[Text]:
    yield Text()
    yield from wrapped(f"{step.step_id}  {kind_of(step.change).describe()}", width, indent=2, style="info")
    touched = step.touched
    disturbs = (
        f"{counted(touched.producers, 'producer')} and {counted(touched.consumers, 'consumer')} reconnect,"
        f" {counted(touched.coordinators, 'coordinator')} pause"
    )
    said = {
        "why": step.why,
        "effect": step.effect,
        "disturbs": disturbs,
        "after": ", ".join(step.after),
        "vetoed": "; ".join(f"{each.guard}: {each.reason}" for each in step.guards if not each.passed),
        "back": step.undo_note,
    }
    for name, words in said.items():
        if words:
            yield from wrapped(words, width, first=f"      {name}", indent=16)
    yield Text(f"      call      {shown(kind_of(step.change).call())}")
