"""A check-up as lines for a terminal: the worst first, readable on 80 columns, without colour and in a pipe."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.model.finding import Outlook
from pulsar_steward.outside_text import shown
from pulsar_steward.report.checkup.document import Outcome
from pulsar_steward.report.checkup.text import STYLES, bullets, count, fitting, heading, numbered, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.report.checkup.document import About, CheckReport, Checkup, Counts, FindingReport, Planning

MOST_LISTED = 5
"""Findings of one check that are listed here; JSON and page have more."""

MOST_UNREAD = 20
"""Brokers and namespaces that are named one by one when they could not be read."""

SEVERITY_COLUMNS = 10


def lines(checkup: Checkup, width: int) -> Iterator[Text]:
    """The report, line by line.

    Args:
        checkup: What is said.
        width: Columns of the terminal.
    """
    width = fitting(width)
    yield from _header(checkup.about, width)
    yield from _summary(checkup, width)
    if not checkup.about.complete:
        yield from _partial(checkup.about, width)
    yield from _worst(checkup, width)
    yield from _found(checkup, width)
    yield from _quiet(checkup, Outlook.UNKNOWN, "Could not be judged", width)
    yield from _quiet(checkup, Outlook.CLEAR, "Clear", width)
    yield from _planning(checkup.planning, width)


def verdict(checkup: Checkup) -> str:
    """The whole in a sentence."""
    match checkup.outcome:
        case Outcome.FINDINGS:
            troubles = checkup.counts.critical + checkup.counts.warning
            return f"{count(troubles, 'finding')} to look at"
        case Outcome.HEALTHY:
            unknown = checkup.counts.checks_unknown
            rest = f", as far as could be seen: {count(unknown, 'check')} could not judge" if unknown else ""
            return f"healthy{rest}"
        case Outcome.COULD_NOT_LOOK:
            return "could not look: no check could say that it is clear, so nothing is known to be well"


def tally(counts: Counts) -> str:
    """The figures in a line."""
    return (
        f"{counts.critical:,} critical, {count(counts.warning, 'warning')}, {counts.info:,} info;"
        f" {count(counts.checks_clear, 'check')} clear, {counts.checks_unknown:,} unknown"
    )


def _header(about: About, width: int) -> Iterator[Text]:
    own = "" if about.pulsar_cluster == about.cluster else f" (calls itself {about.pulsar_cluster})"
    yield from wrapped(f"Check-up of {about.cluster}{own}, Pulsar {about.pulsar_version}", width, style="heading")
    figures = (
        f"{about.brokers_read:,} of {count(about.brokers, 'broker')} read, {count(about.topics, 'topic')} loaded,"
        f" {count(about.namespaces, 'namespace')} in {count(about.bundles, 'bundle')},"
        f" {count(about.coordinators, 'transaction coordinator')}; taken {about.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    yield from wrapped(figures, width)


def _summary(checkup: Checkup, width: int) -> Iterator[Text]:
    styles = {Outcome.HEALTHY: "clear", Outcome.FINDINGS: "warning", Outcome.COULD_NOT_LOOK: "unknown"}
    style = "critical" if checkup.counts.critical else styles[checkup.outcome]
    yield Text()
    yield from wrapped(f"RESULT: {verdict(checkup)}", width, style=style)
    yield from wrapped(tally(checkup.counts), width)


def _partial(about: About, width: int) -> Iterator[Text]:
    yield Text()
    yield from wrapped(
        f"PARTIAL: {len(about.unread):,} of what the cluster lists could not be read. What was found stands; whatever"
        " found nothing is unknown, not clear.",
        width,
        style="critical",
    )
    named = about.unread[:MOST_UNREAD]
    yield from bullets((f"{each.kind} {each.name}{_because(each.reason)}" for each in named), width, indent=4)
    if more := len(about.unread) - len(named):
        yield from bullets([f"and {more:,} more"], width, indent=4)


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


def _worst(checkup: Checkup, width: int) -> Iterator[Text]:
    """What was found in a line each, so that the length of what follows hides nothing."""
    found = checkup.worst_first()
    if not found:
        return
    yield from heading("What was found, the worst first")
    for check in found:
        severity = check.severity.value if check.severity else "found"
        words = f"{check.title} ({check.findings_in_all:,})"
        first = Text.assemble("  ", (severity.upper(), STYLES.get(severity, "")))
        yield from wrapped(words, width, first=first, indent=SEVERITY_COLUMNS + 2)


def _found(checkup: Checkup, width: int) -> Iterator[Text]:
    for section, checks in groupby(checkup.with_outlook(Outlook.FOUND), key=lambda check: check.section):
        yield from heading(section)
        for check in checks:
            yield from _check(check, width)


def _check(check: CheckReport, width: int) -> Iterator[Text]:
    yield Text()
    yield from wrapped(f"{check.title} [{check.check_id}]", width, style=check.severity or "")
    for finding in check.findings[:MOST_LISTED]:
        yield from _finding(finding, width)
    if (more := len(check.findings) - MOST_LISTED) > 0:
        yield from wrapped(f"and {more:,} more here: --html and --json list them", width, indent=4)
    if check.not_listed:
        yield from wrapped(f"and {check.not_listed:,} further ones that are less bad", width, indent=4)
    yield from wrapped("What to do:", width, indent=4)
    yield from numbered(check.advice, width, indent=6)
    yield from wrapped(remedy(check), width, indent=4)
    yield from wrapped(f"Source: {check.source or 'none is known'}", width, indent=4, style="quiet")


def remedy(check: CheckReport) -> str:
    """Whether Steward can help, in a sentence."""
    if check.remedied_by is None:
        return "Steward has no remedy for this: it takes a person."
    return f"Steward can propose a remedy ({check.remedied_by}), for a person to approve."


def standing(finding: FindingReport) -> str:
    """How long it has stood; nothing where only this snapshot shows it."""
    if finding.first_seen is None or finding.snapshots_in_a_row <= 1:
        return ""
    return (
        f"Stands since {finding.first_seen:%Y-%m-%d %H:%M} UTC, in {finding.snapshots_in_a_row:,} snapshots in a row."
    )


def _finding(finding: FindingReport, width: int) -> Iterator[Text]:
    style = STYLES[finding.severity]
    yield Text.assemble("  ", (finding.severity.upper().ljust(SEVERITY_COLUMNS), style), shown(finding.subject))
    yield from wrapped(finding.evidence, width, indent=4)
    if since := standing(finding):
        yield from wrapped(since, width, indent=4)


def _quiet(checkup: Checkup, outlook: Outlook, title: str, width: int) -> Iterator[Text]:
    checks = checkup.with_outlook(outlook)
    if not checks:
        return
    yield from heading(f"{title} ({len(checks)})")
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for check in checks:
        by_reason[check.reason].append(check.check_id)
    for reason, ids in by_reason.items():
        yield from wrapped(", ".join(ids), width, indent=2, style=outlook)
        yield from wrapped(reason, width, indent=4)


def _planning(planning: Planning, width: int) -> Iterator[Text]:
    yield from heading("What Steward would propose")
    if not planning.batches:
        yield from wrapped("Nothing, for these reasons:", width)
    for batch in planning.batches:
        back = "can be undone" if batch.undoable else "cannot be undone entirely"
        cost = f"{count(batch.steps, 'step')}, {count(batch.clients, 'client')} would reconnect; {back}"
        yield from bullets([f"{batch.title} ({cost}). `steward plan` shows the steps."], width)
    yield from bullets(planning.reasons, width)
