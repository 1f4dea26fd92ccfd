"""Composition of a check-up's document from a diagnosed snapshot, and the plan that would follow from it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import msgspec

from pulsar_steward.changes.headline import headline
from pulsar_steward.checks.backlog.quotas import slowest_in
from pulsar_steward.checks.check import CheckWords
from pulsar_steward.checks.clients.client_numbers import SEEN
from pulsar_steward.checks.registry import BY_ID, GROUPS, checks_of
from pulsar_steward.errors import SnapshotError
from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.logs.patterns import SECTION as LOGS
from pulsar_steward.model.bundles import is_heartbeat
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import BUNDLES, KAFKA_GROUPS, NAMESPACES
from pulsar_steward.model.topics import namespace_in
from pulsar_steward.model.trouble import harm_of, is_topic, troubles_of
from pulsar_steward.model.units import bytes_in_words, counted
from pulsar_steward.planners.registry import PLANNERS
from pulsar_steward.planners.settings.targets import OF_FULL_TOPICS
from pulsar_steward.report.checkup.document import (
    FORMAT,
    VERSION,
    About,
    BySeverity,
    CheckReport,
    Checkup,
    CheckupOutcome,
    Counts,
    FindingReport,
    NoLongerJudged,
    Planning,
    ProposedBatch,
    TroubleReport,
    Unread,
    by_reason,
    pressing,
)
from pulsar_steward.report.checkup.measures import measures_of
from pulsar_steward.report.checkup.text import filled_in
from pulsar_steward.report.overview import STALE_AT_LEAST, span_in_words, summary_of
from pulsar_steward.snapshots.folder import LOOK_BACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.logs.reading import LogsRead
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.trouble import Trouble
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.overview import SnapshotSummary
    from pulsar_steward.snapshots.read import Snapshot


def checkup_of(snapshot: Snapshot, plan: Plan, policy: Policy, logs: LogsRead | None = None) -> Checkup:
    """The check-up of a diagnosed snapshot, with the plan that follows from it; logs are the last step of the guide.

    Raises:
        SnapshotError: If the snapshot cannot be read or was not diagnosed.
    """
    meta = snapshot.meta()
    verdicts = snapshot.verdicts()
    checks = check_reports(snapshot.findings(as_judged=True), verdicts, checks_of(meta.system), meta.servers)
    of_logs = check_reports(logs.findings, logs.verdicts, LOG_CHECKS) if logs is not None else ()
    every = (*checks, *of_logs)
    counts, about = counts_of(every), _about(snapshot)
    no_longer = no_longer_judged(snapshot, verdicts)
    told = [
        trouble_report(each, plan.batches, plan.notes, about.servers, cluster=about.cluster, partial=not about.complete)
        for each in troubles_found(every)
    ]
    return Checkup(
        format=FORMAT,
        version=VERSION,
        steward_version=steward_version(),
        policy_digest=plan.policy_digest,
        outcome=outcome_of(counts, no_longer),
        about=about,
        counts=counts,
        no_longer_judged=no_longer,
        troubles=pressing(told),
        information=tuple(each for each in told if each.severity is Severity.INFO),
        checks=every,
        planning=planning_of(plan, checks, policy),
        measures=measures_of(snapshot),
        since=None,
    )


def judged_at(checkup: Checkup, now: datetime) -> Checkup:
    """The check-up as it is reported now: what an old snapshot found stands, but that it found nothing is not known."""
    age = now - checkup.about.taken_at
    if age <= STALE_AT_LEAST:
        return checkup
    about = msgspec.structs.replace(checkup.about, stale_seconds=round(age.total_seconds()))
    found = checkup.outcome is CheckupOutcome.FINDINGS
    outcome = CheckupOutcome.FINDINGS if found else CheckupOutcome.COULD_NOT_LOOK
    return msgspec.structs.replace(checkup, about=about, outcome=outcome)


def no_longer_judged(
    snapshot: Snapshot, verdicts: Iterable[Verdict], summarised: Callable[[Snapshot], SnapshotSummary] = summary_of
) -> tuple[NoLongerJudged, ...]:
    """Checks that cannot judge a snapshot, and found a warning or worse in the last one before that they judged.

    Args:
        snapshot: The snapshot.
        verdicts: Its verdicts.
        summarised: Gives the summary of an earlier snapshot.
    """
    open_now = {each.check_id: each.reason for each in verdicts if each.outlook is Outlook.UNKNOWN}
    found = []
    for earlier in snapshot.diagnosed_before(LOOK_BACK) if open_now else ():
        try:
            then = summarised(earlier)
        except SnapshotError:
            continue  # it is damaged: those before it still count, as in `diagnose`
        judged_then = {each.check_id for each in then.verdicts if each.outlook is not Outlook.UNKNOWN}
        for check_id in sorted(open_now.keys() & judged_then):
            reason = open_now.pop(check_id)
            severities = [severity for (name, severity), each in then.found.items() if name == check_id and each.count]
            worst = max(severities, key=lambda each: each.rank, default=Severity.INFO)
            if worst is not Severity.INFO:
                found.append(
                    NoLongerJudged(check_id=check_id, severity=worst, taken_at=then.meta.taken_at, reason=reason)
                )
        if not open_now:
            break
    return tuple(sorted(found, key=lambda each: (-each.severity.rank, each.check_id)))


def outcome_of(counts: Counts, no_longer: Sequence[NoLongerJudged] = ()) -> CheckupOutcome:
    """Overall outcome: information is no problem, but health is not known unless at least one check is clear.

    Args:
        counts: Findings and checks.
        no_longer: Checks that found trouble before and cannot judge now: their findings stand.
    """
    if counts.critical or counts.warning or no_longer:
        return CheckupOutcome.FINDINGS
    return CheckupOutcome.HEALTHY if counts.checks_clear else CheckupOutcome.COULD_NOT_LOOK


def counts_of(checks: Sequence[CheckReport]) -> Counts:
    """Number of findings by severity, all and listed ones, and of checks by outlook."""
    severities = Counter(finding.severity for check in checks for finding in check.findings)
    outlooks = Counter(check.outlook for check in checks)
    every = {severity: sum(getattr(check.found, severity.value) for check in checks) for severity in Severity}
    return Counts(
        critical=every[Severity.CRITICAL],
        warning=every[Severity.WARNING],
        info=every[Severity.INFO],
        listed=BySeverity.of(severities),
        checks_clear=outlooks[Outlook.CLEAR],
        checks_unknown=outlooks[Outlook.UNKNOWN],
    )


def steward_version() -> str:
    """Installed version of Steward; ``unknown`` if it is only on the path."""
    try:
        return version("pulsar-steward")
    except PackageNotFoundError:
        return "unknown"


def _about(snapshot: Snapshot) -> About:
    meta, brokers = snapshot.meta(), snapshot.brokers()
    failures = {row.broker: row.failure for row in brokers}
    kind: Literal["namespace", "part"] = "namespace" if meta.system is System.PULSAR else "part"
    return About(
        snapshot_id=meta.snapshot_id,
        cluster=meta.cluster,
        pulsar_cluster=meta.pulsar_cluster,
        pulsar_version=meta.pulsar_version,
        configuration_store_id=meta.configuration_store_id,
        servers=meta.servers,
        load_manager=meta.load_manager.rpartition(".")[2],
        taken_at=meta.taken_at,
        span=span_in_words(meta),
        complete=not meta.unread,
        unread=(
            *(Unread(kind="broker", name=name, reason=failures.get(name)) for name in meta.unread_brokers),
            *(Unread(kind=kind, name=name, reason=None) for name in meta.unread_namespaces),
        ),
        brokers=len(brokers),
        brokers_read=sum(row.read for row in brokers),
        namespaces=snapshot.table(NAMESPACES, ["namespace"]).num_rows,
        bundles=sum(not is_heartbeat(each) for each in snapshot.table(BUNDLES, ["namespace"])["namespace"].to_pylist()),
        topics=sum(snapshot.topics_by_broker().values()),
        coordinators=meta.coordinators,
        client_versions=_client_versions(snapshot),
        system=meta.system,
        groups=snapshot.table(KAFKA_GROUPS, ["group_id"]).num_rows if meta.system is System.KAFKA else None,
    )


MAX_VERSIONS = 20
"""Number of clients' versions that a check-up names."""


class _Version(msgspec.Struct, frozen=True):
    """Clients of one version; an empty one where their broker knows none."""

    client_version: str
    clients: int


def _client_versions(snapshot: Snapshot) -> tuple[str, ...]:
    rows = sorted(snapshot.select(SEEN, _Version), key=lambda each: (-each.clients, each.client_version))
    return tuple(each.client_version for each in rows if each.client_version)[:MAX_VERSIONS]


OTHER = "Other checks"
"""Section for checks unknown to this version, if another version diagnosed the snapshot."""

_EVERY: Mapping[str, CheckWords] = {**BY_ID, **LOG_CHECKS}

_SECTION_OF = {check.check_id: group.title for group in GROUPS for check in group.checks} | dict.fromkeys(
    LOG_CHECKS, LOGS
)


OF_PULSAR: Mapping[str, CheckWords] = checks_of(System.PULSAR)


def section_of(check_id: str) -> str:
    """Section of the guide for a check."""
    return _SECTION_OF.get(check_id, OTHER)


def check_reports(
    findings: Sequence[Finding],
    verdicts: Sequence[Verdict],
    catalog: Mapping[str, CheckWords] = OF_PULSAR,
    servers: str | None = None,
) -> tuple[CheckReport, ...]:
    """Reports in the catalog's order, then reports of checks that only the snapshot has.

    Args:
        findings: Of all checks.
        verdicts: Likewise.
        catalog: Words of checks.
        servers: Addresses of a Kafka cluster, for the commands in its advice.
    """
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.check_id].append(finding)
    said = {verdict.check_id: verdict for verdict in verdicts}
    ids = dict.fromkeys((*catalog, *sorted({*said, *found})))
    return tuple(_report(_words_of(each, catalog), said.get(each), found[each], servers) for each in ids)


def _report(info: CheckWords, verdict: Verdict | None, findings: Sequence[Finding], servers: str | None) -> CheckReport:
    worst_first = tuple(sorted(findings, key=lambda finding: -finding.severity.rank))
    if verdict is None:  # it is never "clear"
        unsaid = "The snapshot was diagnosed without this check: diagnose it again."
        outlook, reason = (Outlook.FOUND, worst_first[0].evidence) if findings else (Outlook.UNKNOWN, unsaid)
        verdict = Verdict(check_id=info.check_id, outlook=outlook, reason=reason)
    listed = Counter(finding.severity for finding in findings)
    beyond: defaultdict[Severity, dict[str, int]] = defaultdict(dict)
    for (severity, namespace), number in verdict.unlisted(listed).items():
        beyond[severity][namespace] = number
    return CheckReport(
        check_id=info.check_id,
        section=section_of(info.check_id),
        title=info.title,
        outlook=verdict.outlook,
        reason=verdict.reason,
        severity=worst_first[0].severity if worst_first else None,
        findings=tuple(
            FindingReport(
                severity=finding.severity,
                subject=finding.subject,
                evidence=finding.evidence,
                figures=finding.figures,
                first_seen=finding.first_seen,
                snapshots_in_a_row=finding.snapshots_in_a_row,
            )
            for finding in worst_first
        ),
        not_listed=verdict.more,
        not_graded=verdict.ungraded,
        not_listed_in=beyond,
        found=BySeverity.of(verdict.found(listed)),
        advice=tuple(filled_in(each, "", servers) for each in info.advice) if servers else info.advice,
        source=info.source,
        remedied_by=info.remedied_by,
    )


def troubles_found(checks: Sequence[CheckReport]) -> tuple[Trouble, ...]:
    """Findings of checks, joined into troubles, the worst first."""
    more = {check.check_id: check.not_listed_in for check in checks if check.findings}
    findings = [
        Finding(check_id=check.check_id, **msgspec.structs.asdict(each)) for check in checks for each in check.findings
    ]
    return troubles_of(findings, more, _EVERY)


def troubles_shown(snapshot: Snapshot) -> tuple[TroubleReport, ...]:
    """Troubles of a snapshot without what is proposed for them, the worst first.

    Raises:
        SnapshotError: If it cannot be read or was not diagnosed.
    """
    meta = snapshot.meta()
    checks = check_reports(snapshot.findings(as_judged=True), snapshot.verdicts(), checks_of(meta.system))
    partial = bool(meta.unread)
    return tuple(
        trouble_report(each, (), servers=meta.servers, cluster=meta.cluster, partial=partial)
        for each in troubles_found(checks)
    )


def trouble_report(
    trouble: Trouble,
    batches: Sequence[Batch],
    notes: Sequence[str] = (),
    servers: str | None = None,
    *,
    cluster: str = "",
    partial: bool = False,
) -> TroubleReport:
    """A trouble in words.

    Args:
        trouble: The trouble.
        batches: The planners' result for the same findings.
        notes: Their notes.
        servers: Addresses of a Kafka cluster, for its commands.
        cluster: Name of the cluster, which is the subject of what meets all of it.
        partial: True if the snapshot is, so that it may meet more than were seen.
    """
    batch_id, proposal = _proposal(trouble, batches, notes)
    root, harmful = (_words_of(each, _EVERY) for each in (trouble.root, trouble.harmful))
    worst = trouble.met[0]
    about = _with_subscription(worst.subject, slowest_in(worst.evidence))
    because, advice = "", [filled_in(each, about, servers) for each in harmful.advice]
    if trouble.causes:
        more = f" and {len(trouble.causes) - 1:,} more" if len(trouble.causes) > 1 else ""
        because = f"{root.title}: {trouble.causes[0]}{more}"
        advice += [filled_in(each, trouble.causes[0], servers) for each in root.advice]
    words = [_words_of(each.check_id, _EVERY).beware.get(harm_of(each, _EVERY), "") for each in trouble.findings]
    return TroubleReport(
        trouble_id=trouble.trouble_id,
        harm=trouble.harm,
        headline=harmful.headlines.get(trouble.harm, harmful.title),
        where=("the whole cluster" if trouble.where == cluster else trouble.where)
        + (", as far as it was read" if partial and trouble.affected > 1 else ""),
        affected=trouble.affected,
        bytes=trouble.bytes,
        because=because,
        beware=" ".join(filter(None, dict.fromkeys(words))),
        since=trouble.since,
        severity=trouble.severity,
        found=BySeverity.of(trouble.found),
        check_ids=tuple(dict.fromkeys((trouble.root, trouble.harmful, *(each.check_id for each in trouble.findings)))),
        subjects=tuple(each.subject for each in trouble.met),
        to_do=tuple(dict.fromkeys(advice)),
        proposal=proposal,
        batch_id=batch_id,
    )


def _with_subscription(subject: str, subscription: str | None) -> str:
    """A topic with the only subscription that its evidence names, for the commands of the advice."""
    return f"{subject} subscription {subscription}" if subscription and is_topic(subject) else subject


def _proposal(trouble: Trouble, batches: Sequence[Batch], notes: Sequence[str]) -> tuple[str | None, str]:
    """The batch that solves most of a trouble, and for how much of it there are batches; or None, and why not."""
    of_cause = [each for each in trouble.findings if each.check_id in {trouble.root, trouble.harmful}]
    own = {(each.check_id, each.subject) for each in of_cause}
    solved = {
        batch.batch_id: {subject for _, subject in own & {(each.check_id, each.subject) for each in batch.findings}}
        for batch in batches
    }
    solving = [batch for batch in batches if solved[batch.batch_id]]
    solving.sort(key=lambda each: -len(solved[each.batch_id]))
    if solving:
        of_all, listed = len(set().union(*solved.values())), len(trouble.met)
        whole = f"{trouble.affected:,}" if trouble.affected <= listed else f"the {listed:,} listed"
        part = f" for {of_all:,} of {whole}" if of_all < trouble.affected else ""
        words = "Plan" if len(solving) == 1 else f"{len(solving):,} plans"
        such_as = ", such as" if len(solving) > 1 else ""
        left = [each for each in trouble.met if each.subject not in set().union(*solved.values())]
        rest = next(_reasons(left, notes), None) if part else None
        why = f" None for the others: {_reason_of(rest)}." if rest else ""
        return solving[0].batch_id, f"{words}{part}{such_as}: {headline(solving[0])}.{why}"
    remedied = any(_words_of(each.check_id, _EVERY).remedied_by for each in trouble.findings)
    if not remedied:
        return None, "No plan: people have to act."
    note = next(_reasons(of_cause, notes), None) or next(_reasons(trouble.findings, notes), None)
    return None, f"No plan: {_reason_of(note)}." if note else "No plan now."


def _reasons(findings: Sequence[Finding], notes: Sequence[str]) -> Iterator[str]:
    """Planners' notes on why nothing is proposed for some findings.

    A note on a namespace is about its quotas; one on anything else names the goal of its planner.
    """
    full = {namespace_in(each.subject) for each in findings if each.check_id in OF_FULL_TOPICS}
    goals = {planner: planner.answered(findings) for planner in PLANNERS} if notes else {}
    begins = [f"{goal}: " for each in goals.values() for goal in each if "/" not in goal]
    begins += [planner.partial_note.partition("{")[0] for planner, each in goals.items() if each]
    begun = tuple(filter(None, begins))
    return (each for each in notes if each.partition(": ")[0] in full or each.startswith(begun))


def _reason_of(note: str) -> str:
    """The reason in a planner's note, to its first stop, with the key of the policy that it names."""
    said, key = note.partition(": ")[2], re.search(r"\b[a-z_]+\.[a-z_]+\b", note)
    words = re.split(r"[:;.](?: |$)", said, maxsplit=1)[0]
    words = words.partition(", as ")[2] or words
    return f"{words} ({key[0]})" if key and key[0] not in words else words


def _words_of(check_id: str, catalog: Mapping[str, CheckWords]) -> CheckWords:
    advice = ("Look at it with the version of Steward that found it: this one does not know the check.",)
    return catalog.get(check_id) or CheckWords(check_id=check_id, title=check_id, advice=advice, source="")


NOTHING_LOOKED_AT = "No check said anything of this snapshot: diagnose it again."

_OWN_QUOTAS = (
    "a size quota of its own is proposed only for a topic that itself retains more than its namespace, and a larger"
    " one of the namespace only where topics under it are near it; for any other the advice says what a person can do."
)

_THRESHOLDS = ("minimum_", "warning_", "critical_")
"""Prefixes of threshold names in a policy; its other keys are about remedies."""


def planning_of(plan: Plan, checks: Sequence[CheckReport], policy: Policy) -> Planning:
    """Summary of a plan, and why it has no more: notes of planners and guards, then the reasons by check."""
    reasons = [*plan.notes, *_not_remedied(plan, checks, policy)]
    if ids := [check.check_id for check in checks if _is_trouble(check) and check.remedied_by is None]:
        reasons.append(f"Steward has no remedy of its own for {', '.join(ids)}: the advice says what a person can do.")
    if not plan.batches:
        unknown = by_reason(check for check in checks if check.outlook is Outlook.UNKNOWN)
        reasons += (f"Not judged: {', '.join(ids)}. {reason}" for reason, ids in unknown.items())
        # Where there is nothing else: finding nothing differs from not looking.
        clear = [check.check_id for check in checks if check.outlook is Outlook.CLEAR]
        if clear and not any(map(_is_trouble, checks)):
            reasons.append(f"Clear, with nothing to change: {', '.join(clear)}.")
    return Planning(
        batches=tuple(
            ProposedBatch(
                batch_id=batch.batch_id,
                kind=batch.kind,
                title=headline(batch),
                check_ids=tuple(dict.fromkeys(finding.check_id for finding in batch.findings)),
                steps=len(batch.steps),
                clients=sum(step.touched.clients for step in batch.steps),
                undoable=all(step.undo is not None for step in batch.steps),
            )
            for batch in plan.batches
        ),
        reasons=tuple(reasons) if reasons or plan.batches else (NOTHING_LOOKED_AT,),
    )


def _not_remedied(plan: Plan, checks: Sequence[CheckReport], policy: Policy) -> Iterator[str]:
    """A reason for each check that a planner could remedy but no batch resolves."""
    for check in checks:
        if check.remedied_by is None or _is_answered(check, plan):
            continue
        if _is_trouble(check):
            yield from _found_but_unplanned(check, policy, plan.notes)
        elif plan.batches or check.outlook is Outlook.UNKNOWN:
            continue  # with a plan, clear checks need no line; unknown ones are listed with the others
        elif check.severity is Severity.INFO:
            yield (
                f"{check.check_id} is information only, and a remedy is proposed from a warning on"
                f"{_thresholds(check, policy)}: {check.reason}"
            )
        else:
            yield f"{check.check_id} is below its thresholds{_thresholds(check, policy)}: {check.reason}"


def _is_answered(check: CheckReport, plan: Plan) -> bool:
    """True if a batch resolves a check; topics near a quota must all be in a batch, as planners skip most."""
    findings = (finding for batch in plan.batches for finding in batch.findings)
    answered = {finding.subject for finding in findings if finding.check_id == check.check_id}
    if check.check_id not in OF_FULL_TOPICS:
        return bool(answered)
    troubled = {finding.subject for finding in check.findings if finding.severity.rank >= Severity.WARNING.rank}
    return bool(answered) and troubled <= answered and not check.not_listed


def _found_but_unplanned(check: CheckReport, policy: Policy, notes: Sequence[str]) -> Iterator[str]:
    """Reason for a finding without a plan, unless the planners' notes explain it."""
    needed, of_topics = policy.plan.standing_snapshots, check.check_id in OF_FULL_TOPICS
    stood = max(finding.snapshots_in_a_row for finding in check.findings)
    namespaces = {namespace_in(each.subject) for each in check.findings}
    if any(each.partition(": ")[0] in namespaces for each in notes) if of_topics else notes:
        return
    if stood < needed:
        yield (
            f"{check.check_id} has stood for {stood} of the {counted(needed, 'snapshot')} in a row of"
            " plan.standing_snapshots."
        )
    elif of_topics:
        yield f"{check.check_id}: {_OWN_QUOTAS}"
    else:
        yield f"{check.remedied_by} found no step that would improve on {check.check_id} within the policy's limits."


def _thresholds(check: CheckReport, policy: Policy) -> str:
    """Thresholds in force, in parentheses; empty if the check has none."""
    section = getattr(policy, check.check_id.replace("-", "_"), None)
    values = section.model_dump() if section is not None else {}
    named = [
        f"{name} {bytes_in_words(value) if name.endswith('_bytes') else value}"
        for name, value in values.items()
        if name.startswith(_THRESHOLDS)
    ]
    return f" ({', '.join(named)})" if named else ""


def _is_trouble(check: CheckReport) -> bool:
    return check.severity is not None and check.severity.rank >= Severity.WARNING.rank
