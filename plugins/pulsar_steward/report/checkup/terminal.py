"""A check-up as lines for a terminal: the worst first, readable on 80 columns, without colour and in a pipe.

It is for a person in trouble: the findings, the advice, and then one line for each clear section of the guide. Three
details are added on request, and always in the JSON and on the page: why a check is clear, why a check could not judge,
and why nothing is proposed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.model.finding import Outlook, Severity, with_subject
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words
from pulsar_steward.report.checkup.document import MOST_NAMED, CheckupOutcome, by_reason, pressing
from pulsar_steward.report.checkup.text import (
    MAX_LISTED,
    STYLES,
    bullets,
    filled_in,
    fitting,
    heading,
    numbered,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.report.checkup.document import (
        About,
        CheckReport,
        Checkup,
        Counts,
        FindingReport,
        NoLongerJudged,
        Planning,
        TroubleReport,
    )

MOST_TROUBLES = 5
"""Maximum number of troubles on the first screen."""

MAX_UNREAD = 20
"""Maximum number of unread brokers and namespaces that are named one by one."""

SEVERITY_COLUMNS = 10
SECTION_COLUMNS = 12


def lines(checkup: Checkup, width: int, *, verbose: bool = False) -> Iterator[Text]:
    """The report, line by line.

    Args:
        checkup: The check-up.
        width: Columns of the terminal.
        verbose: True: with every finding, reason and source.
    """
    width = fitting(width)
    yield from _beginning(checkup, checkup.about, width)
    yield from _troubles(checkup, width)
    yield from _found(checkup, width, verbose=verbose)
    yield from _advice(checkup, width, verbose=verbose)
    yield from _planning(checkup, width, verbose=verbose)
    if verbose:
        yield from _reasons(checkup, Outlook.UNKNOWN, "Could not be judged", width)
        yield from _reasons(checkup, Outlook.CLEAR, "Clear", width)
    else:
        yield from _in_short(checkup, width)


def verdict(outcome: CheckupOutcome, counts: Counts, troubles: Sequence[TroubleReport]) -> str:
    """Overall result in a sentence."""
    match outcome:
        case CheckupOutcome.FINDINGS:
            findings, listed = counts.critical + counts.warning, counts.listed.pressing
            shorter = f" ({listed:,} listed)" if listed < findings else ""
            return f"{counted(len(pressing(troubles)), 'trouble')}, {counted(findings, 'finding')}{shorter}"
        case CheckupOutcome.HEALTHY:
            unknown = counts.checks_unknown
            rest = f", as far as could be seen: {counted(unknown, 'check')} could not judge" if unknown else ""
            return f"healthy{rest}"
        case CheckupOutcome.COULD_NOT_LOOK:
            return "could not look: no check could say that it is clear, so nothing is known to be well"


def result(checkup: Checkup) -> str:
    """The same of a check-up: first its age if it is stale, and which checks can no longer judge."""
    outcome, counts, stale = checkup.outcome, checkup.counts, checkup.about.stale_seconds
    words = verdict(outcome, counts, checkup.troubles)
    if stale is not None and outcome is CheckupOutcome.COULD_NOT_LOOK and counts.checks_clear:
        words = "it was healthy then, and how it is now is not known"
    words = with_no_longer_judged(words, counts, checkup.no_longer_judged)
    return words if stale is None else f"STALE, {seconds_in_words(stale, rounded=True)} old: {words}"


def with_no_longer_judged(words: str, counts: Counts, no_longer: Sequence[NoLongerJudged]) -> str:
    """A result after the checks that found trouble before and cannot judge now."""
    if not no_longer:
        return words
    told = [each.words.rstrip(".") for each in no_longer[:MOST_NAMED]]
    told += [f"So with {more:,} more" for more in [len(no_longer) - MOST_NAMED] if more > 0]
    return ". ".join([*told, *([f"Found now: {words}"] if counts.critical or counts.warning else [])])


def in_a_line(trouble: TroubleReport) -> str:
    """What is wrong, where, since when, why, what not to do, and whether there is a plan."""
    return f"{trouble.headline}{after_headline(trouble)}"


def after_headline(trouble: TroubleReport) -> str:
    """The same without what is wrong."""
    return f"{before_proposal(trouble)} {trouble.proposal}"


def before_proposal(trouble: TroubleReport) -> str:
    """The same without plans."""
    because = f" {trouble.because}." if trouble.because else ""
    beware = f" {trouble.beware}" if trouble.beware else ""
    return f": {trouble.where}{since(trouble)}.{because}{beware}"


def since(trouble: TroubleReport) -> str:
    """Since when snapshots show a trouble; empty: only this one does."""
    return f", since {time_in_words(trouble.since)}" if trouble.since else ""


def tally(counts: Counts) -> str:
    """Counts of findings, listed or not, and of checks in a line."""
    found = ", ".join(_severity(each, getattr(counts, each.value)) for each in reversed(Severity))
    return f"{found}; {counted(counts.checks_clear, 'check')} clear, {counts.checks_unknown:,} unknown"


def _severity(severity: Severity, number: int) -> str:
    return counted(number, "warning") if severity is Severity.WARNING else f"{number:,} {severity.value}"


def _beginning(checkup: Checkup, about: About, width: int) -> Iterator[Text]:
    """The cluster, the overall result, how old it is, and what could not be read."""
    own = "" if about.pulsar_cluster == about.cluster else f" (calls itself {about.pulsar_cluster})"
    yield from wrapped(f"Check-up of {about.cluster}{own}, {about.runs}", width, style="heading")
    taken = about.span or f"taken {time_in_words(about.taken_at, seconds=True)}"
    read = f"{about.brokers_read:,} of {counted(about.brokers, 'broker')} read"
    if about.groups is None:
        holds = (
            f"{counted(about.topics, 'topic')} loaded, {counted(about.namespaces, 'namespace')} in"
            f" {counted(about.bundles, 'bundle')}, {counted(about.coordinators, 'transaction coordinator')}"
        )
    else:
        holds = f"{counted(about.topics, 'partition')} with a leader, {counted(about.groups, 'consumer group')}"
    yield from wrapped(f"{read}, {holds}; {taken}", width)
    styles = {
        CheckupOutcome.HEALTHY: "clear",
        CheckupOutcome.FINDINGS: "warning",
        CheckupOutcome.COULD_NOT_LOOK: "unknown",
    }
    is_critical = checkup.counts.critical or any(it.severity is Severity.CRITICAL for it in checkup.no_longer_judged)
    yield Text()
    style = "critical" if is_critical else styles[checkup.outcome]
    yield from wrapped(f"RESULT: {result(checkup)}", width, style=style)
    if checkup.worst_first():
        yield from wrapped(tally(checkup.counts), width)
    if checkup.since:
        yield from wrapped(checkup.since.words, width)
        yield from bullets(checkup.since.lines, width, indent=4)
    if about.complete:
        return
    kinds = Counter(each.kind for each in about.unread)
    unread = " and ".join(counted(number, kind) for kind, number in kinds.items())
    yield Text()
    yield from wrapped(
        f"PARTIAL: {unread} could not be read. What was found stands; whatever found nothing is unknown, not clear.",
        width,
        style="critical",
    )
    named = about.unread[:MAX_UNREAD]
    yield from bullets((each.words for each in named), width, indent=4)
    if more := len(about.unread) - len(named):
        yield from bullets([f"and {more:,} more"], width, indent=4)


def _troubles(checkup: Checkup, width: int) -> Iterator[Text]:
    """The worst troubles, each with its harm."""
    troubles = checkup.troubles
    if not troubles:
        return
    yield from heading("Troubles, the worst first")
    listed = (f"{in_a_line(each)}{_checks_of(each)}" for each in troubles[:MOST_TROUBLES])
    yield from numbered(listed, width, indent=2)
    if len(troubles) > MOST_TROUBLES:
        yield from wrapped(f"and {len(troubles) - MOST_TROUBLES:,} more below", width, indent=5)


def _checks_of(trouble: TroubleReport) -> str:
    """The checks whose findings are one trouble, if they are several: each of them is listed below by itself."""
    return f" One trouble of {', '.join(trouble.check_ids)}." if len(trouble.check_ids) > 1 else ""


def _found(checkup: Checkup, width: int, *, verbose: bool) -> Iterator[Text]:
    """Checks with findings, the worst first, with their worst findings."""
    found = checkup.worst_first()
    if not found:
        return
    yield from heading("What was found, the worst first")
    for check in found:
        worst = check.severity.value if check.severity else "found"
        first = Text.assemble((worst.upper(), STYLES.get(worst, "")))
        yield Text()
        yield from wrapped(f"{check.title} [{check.check_id}]", width, first=first, indent=SEVERITY_COLUMNS)
        told = check.findings if verbose else check.findings[:MAX_LISTED]
        for finding in told:  # with severity and subject where the check's line and the evidence do not have them
            severity = "" if finding.severity is check.severity else f"{finding.severity.upper()} "
            evidence = with_subject(finding.subject, finding.evidence, checkup.about.cluster)
            words = f"{severity}{evidence} {standing(finding)}"
            yield from bullets([words.rstrip()], width, indent=4)
        if more := len(check.findings) - len(told):
            yield from wrapped(f"and {more:,} more, which --verbose, --html and --json list", width, indent=4)
        if check.not_listed:
            yield from wrapped(f"and {unlisted(check)}", width, indent=4)


def _advice(checkup: Checkup, width: int, *, verbose: bool) -> Iterator[Text]:
    """Advice for each check with findings, in the same order; for information only on request."""
    found = checkup.worst_first()
    if not found:
        return
    told = [check for check in found if verbose or not _is_quiet(check)]
    yield from heading("What to do")
    for check in told:
        # The proposal says it for all others, once.
        helped = f": {remedy(check, checkup.planning)}" if check.remedied_by else ""
        yield Text()
        yield from wrapped(f"{check.check_id}{helped}", width)
        yield from numbered(advice_of(check), width, indent=2)
        if verbose:
            yield from wrapped(f"Source: {check.source or 'none is known'}", width, indent=2, style="quiet")
    if rest := [check.check_id for check in found if check not in told]:
        if told:
            yield Text()
        yield from wrapped(f"Nothing at once about {', '.join(rest)}: --verbose has advice.", width)


def advice_of(check: CheckReport) -> list[str]:
    """Advice of a check, with its worst subject in the commands."""
    worst = check.findings[0].subject if check.findings else ""
    return [filled_in(each, worst) for each in check.advice]


def _is_quiet(check: CheckReport) -> bool:
    """True if a check found no problem: no finding, or only information."""
    return check.outlook is not Outlook.FOUND or check.severity is Severity.INFO


def remedy(check: CheckReport, planning: Planning) -> str:
    """Sentence on whether Steward proposes a remedy."""
    if check.remedied_by is None:
        return "Steward has no remedy for this: it takes a person."
    if planning.proposes_for(check):
        return f"Steward proposes a remedy ({check.remedied_by}), for a person to approve."
    if check.severity is Severity.INFO:
        return f"Steward proposes a remedy ({check.remedied_by}) from a warning on."
    return f'Steward proposes nothing ({check.remedied_by}) now: "What Steward would propose" says why.'


def unlisted(check: CheckReport) -> str:
    """Number of findings of a check that are not listed, by severity."""
    least = min((finding.severity for finding in check.findings), key=lambda each: each.rank, default=Severity.INFO)
    more = check.unlisted - Counter({least: check.not_graded})
    words = [_severity(each, more[each]) for each in reversed(Severity) if more[each]]
    if check.not_graded:
        words.append(f"{check.not_graded:,} that count as {least.value}, like the least bad one listed, at most")
    return f"{check.not_listed:,} more, not listed: {', '.join(words)}"


def standing(finding: FindingReport) -> str:
    """Age of a finding; empty if only this snapshot has it."""
    if finding.first_seen is None or finding.snapshots_in_a_row <= 1:
        return ""
    return (
        f"Stands since {time_in_words(finding.first_seen)}, in {counted(finding.snapshots_in_a_row, 'snapshot')} in a"
        " row."
    )


def _in_short(checkup: Checkup, width: int) -> Iterator[Text]:
    """Checks that could not judge, and the number of clear checks in each section of the guide."""
    if checks := checkup.with_outlook(Outlook.UNKNOWN):
        yield from heading(f"Could not be judged ({len(checks)})")
        ids = ", ".join(check.check_id for check in checks)
        yield from wrapped(f"{ids} (--verbose says why)", width, indent=2, style=Outlook.UNKNOWN)
    clear = Counter(check.section for check in checkup.with_outlook(Outlook.CLEAR))
    if not clear:
        return
    yield from heading(f"Clear ({clear.total()} of {len(checkup.checks)})")
    for section, number in Counter(check.section for check in checkup.checks).items():
        style = "clear" if clear[section] == number else ""
        first = Text(f"  {clear[section]:>2} of {number:>2}", STYLES.get(style, ""))
        yield from wrapped(section, width, first=first, indent=SECTION_COLUMNS, style=style)


def _reasons(checkup: Checkup, outlook: Outlook, title: str, width: int) -> Iterator[Text]:
    """Checks of an outlook with their reasons; checks with the same reason are listed together."""
    checks = checkup.with_outlook(outlook)
    if not checks:
        return
    yield from heading(f"{title} ({len(checks)})")
    for reason, ids in by_reason(checks).items():
        yield from wrapped(", ".join(ids), width, indent=2, style=outlook)
        yield from wrapped(reason, width, indent=4)


def _planning(checkup: Checkup, width: int, *, verbose: bool) -> Iterator[Text]:
    """Proposed batches, and the reasons why there are no more."""
    planning, reasons = checkup.planning, why_no_more(checkup, verbose=verbose)
    yield from heading("What Steward would propose")
    for batch in planning.batches:
        back = "can be undone" if batch.undoable else "cannot be undone entirely"
        cost = f"{counted(batch.steps, 'step')}, {counted(batch.clients, 'client')} would reconnect; {back}"
        yield from bullets([f"{batch.title} ({cost})"], width)
    if not planning.batches:
        nothing = "Nothing, for these reasons:" if reasons else "Nothing: no trouble was found that it could remedy."
        yield from wrapped(nothing, width)
    yield from bullets(reasons, width)
    if planning.batches:
        yield from wrapped("`steward plan` shows every step.", width)


def why_no_more(checkup: Checkup, *, verbose: bool) -> list[str]:
    """Reasons why no more is proposed, except reasons that repeat the report on clear or unknown checks.

    Reasons about checks below their thresholds, or with information only, are added on request.
    """
    clear = ", ".join(check.check_id for check in checkup.with_outlook(Outlook.CLEAR))
    unknown = checkup.with_outlook(Outlook.UNKNOWN)
    told = unknown if verbose else tuple(check for check in checkup.checks if _is_quiet(check))
    repeated = (f" {clear}.", *(check.reason for check in told if check.reason))
    return [reason for reason in checkup.planning.reasons if not reason.endswith(repeated)]
