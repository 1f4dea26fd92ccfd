"""Planners: raise a size or age quota of a namespace if topics are near it, as a forecast requires."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.backlog_growing import CHECK as BACKLOG_GROWING
from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA
from pulsar_steward.model.finding import QuotaFigures
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.units import HOUR, MIB, bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.base import Planner, Proposal, enumerated, joined
from pulsar_steward.planners.settings.namespaces import (
    PARTIAL,
    QUOTA_KIND,
    RETENTION_KIND,
    batches_of,
    facts_by_name,
    obstacle,
)
from pulsar_steward.planners.settings.sizes import ProposedQuota, above, below
from pulsar_steward.planners.settings.targets import (
    TargetSettings,
    namespace_of,
    raise_retained,
    raise_retained_time,
    retained_bytes,
)
from pulsar_steward.planners.settings.topics import retains_more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import FullTopic, NamespaceFact
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy


def propose_of_full(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for each namespace, the most urgent first, as they share the additional bytes of the cluster."""
    by_namespace: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_namespace[namespace_of(finding)].append(finding)
    left = planning.policy.backlog_quota_remedy.raise_cluster_megabytes * MIB
    proposals = []
    worst = {name: max(finding.severity.rank for finding in ours) for name, ours in by_namespace.items()}
    for name in sorted(worst, key=lambda each: (-worst[each], each)):
        proposal, taken = _of_namespace(planning, name, tuple(by_namespace[name]), left)
        proposals.append(proposal)
        left -= taken
    return joined(proposals)


def _of_namespace(planning: PlanningFacts, name: str, findings: tuple[Finding, ...], left: int) -> tuple[Proposal, int]:
    """The proposal for a namespace, and the additional bytes that it allows its topics to store."""
    limits = [(each, QuotaFigures.of(each).limit_bytes) for each in findings]
    findings = tuple(each for each, limit_bytes in limits if limit_bytes is not None and limit_bytes >= 0)
    if not findings:  # without a size quota, `backlog-quota-missing` has the finding
        return Proposal(), 0
    if note := obstacle(planning, name):
        return Proposal(notes=(note,)), 0
    if name in planning.claimed_settings:
        note = f"{name}: its size quota is not raised yet, as this plan changes other settings of it first."
        return Proposal(notes=(note,)), 0
    fact = facts_by_name(planning)[name]
    quota = {**planning.defaults, **fact.own}.get(SettingName.SIZE_QUOTA)
    limit = quota.limit_bytes if isinstance(quota, BacklogQuota) else -1
    ours, notes = _under_size(planning, findings, limit)
    full = [topic for topic in fact.full if topic.topic in {finding.subject for finding in ours}]
    if not isinstance(quota, BacklogQuota) or not full:
        return Proposal(notes=notes), 0
    unlisted = sum(planning.unlisted_in(name, check_id) for check_id in NEARLY_FULL.answers)
    topics = len(full) + unlisted
    answer = raised_quota(fact, quota, full, planning.policy.backlog_quota_remedy, left, topics)
    if answer.quota is None:
        return Proposal(notes=(*notes, f"{name}: its size quota is not raised, as {answer.words}.")), 0
    decided = TargetSettings({**planning.defaults, **fact.own})
    decided.put(SettingName.SIZE_QUOTA, answer.quota, answer.words + _caveats(planning, fact, answer.quota))
    retained = retained_bytes(decided)
    margin = planning.policy.backlog_quota_remedy.retention_margin_percent
    if retained is not None and answer.quota.limit_bytes > below(retained, margin):
        raise_retained(decided, answer.quota.limit_bytes, planning.policy)
    made = batches_of(planning, fact, decided, ours, unlisted=unlisted)
    taken = (answer.quota.limit_bytes - limit) * topics if made.batches else 0
    return Proposal(batches=made.batches, notes=(*notes, *made.notes)), taken


def _under_size(
    planning: PlanningFacts, findings: tuple[Finding, ...], limit: int
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings about topics that are under their namespace's size quota and near it; notes on the others."""
    retaining = {fact.subject: fact for fact in planning.topics if SettingName.RETENTION in fact.own}
    ours: list[Finding] = []
    apart: list[str] = []
    short: list[str] = []
    for finding in findings:
        figures, own = QuotaFigures.of(finding), retaining.get(finding.subject)
        if figures.by_age:
            continue  # handled by the planner of age quotas
        if figures.limit_bytes != limit:
            apart.append(finding.subject)
        elif own is None:
            ours.append(finding)
        elif not isinstance(kept := own.own[SettingName.RETENTION], Retention) or not retains_more(own, kept):
            short.append(finding.subject)
    told = (
        (apart, "the size quota that is nearly full is the topic's own, and is to be raised by hand, if at all"),
        (short, "its own retention leaves no room for a larger size quota: raise that by hand first"),
    )
    return tuple(ours), tuple(f"{enumerated(sorted(set(names)))}: {words}." for names, words in told if names)


def raised_quota(
    fact: NamespaceFact,
    quota: BacklogQuota,
    full: Sequence[FullTopic],
    remedy: BacklogQuotaRemedy,
    left: int,
    topics: int,
) -> ProposedQuota:
    """A larger size quota, with its computation as text; without a quota, the reason why it is not raised.

    Args:
        fact: The namespace.
        quota: The quota in force.
        full: Topics that are near it or growing towards it.
        remedy: The policy.
        left: Additional bytes that this plan may still allow the cluster's topics to store.
        topics: Number of topics that share the policy's bytes: those, and unlisted ones that are or may be of this
            namespace.
    """
    hours = remedy.raise_headroom_hours
    fastest = max(full, key=lambda each: (each.after(hours * HOUR), each.topic))
    forecast, peak = fastest.after(hours * HOUR), fact.peak * (100 + remedy.peak_headroom_percent) // 100
    need = -(-max(above(forecast, remedy.room_percent), peak) // MIB) * MIB
    words = (
        f"{counted(len(full), 'topic')} {'is' if len(full) == 1 else 'are'} near the size quota of"
        f" {bytes_in_words(quota.limit_bytes)}, or will be soon; {_forecast(fastest, hours, quota)}; with"
        f" {remedy.room_percent} % free, and at least the largest backlog seen of {bytes_in_words(fact.peak)} +"
        f" {remedy.peak_headroom_percent} %, that is {bytes_in_words(need)}"
    )
    if need <= quota.limit_bytes:
        return ProposedQuota(None, f"it is large enough; {words}")
    bound, key = min(
        (remedy.raise_most_megabytes * MIB, "backlog_quota_remedy.raise_most_megabytes"),
        (
            quota.limit_bytes + remedy.raise_namespace_megabytes * MIB // topics,
            "backlog_quota_remedy.raise_namespace_megabytes",
        ),
        (quota.limit_bytes + max(left, 0) // topics, "backlog_quota_remedy.raise_cluster_megabytes"),
    )
    if need > bound:
        among = f" among up to {counted(topics, 'topic')}, as not all findings are listed" if topics > len(full) else ""
        raises = bound > quota.limit_bytes
        if not raises or max(fact.looks[0].peak, quota.limit_bytes) >= below(bound, remedy.room_percent):
            most = f"the policy allows at most {bytes_in_words(max(bound, 0))} ({key})"
            too_low = "already exceeds" if fact.looks[0].peak > bound else "would nearly fill at once"
            short = f"which today's backlog {too_low}" if raises else "no more than it is now"
            return ProposedQuota(
                None, f"it would have to be {bytes_in_words(need)}, and {most}, {short}: {words}{among}"
            )
        need, words = bound, f"{words}; but {key} allows {bytes_in_words(bound)} at most{among}"
    return ProposedQuota(msgspec.structs.replace(quota, limit_bytes=need), words)


def _forecast(topic: FullTopic, hours: int, quota: BacklogQuota) -> str:
    now, then = bytes_in_words(topic.backlog_bytes), bytes_in_words(topic.after(hours * HOUR))
    stops = quota.policy is not QuotaPolicy.EVICT and topic.backlog_bytes >= quota.limit_bytes
    if stops and topic.bytes_per_second <= 0:
        return f"{topic.topic} has a backlog of {now}; its quota keeps producers out, so that no growth can be foretold"
    if topic.seconds:
        grown = seconds_in_words(topic.seconds, rounded=True)
        rate = f"as it grew by {bytes_in_words(int(topic.bytes_per_second))}/s for {grown}"
    else:
        rate = f"as {bytes_in_words(int(topic.bytes_per_second))}/s come in, and what is consumed is not known yet"
    return f"{topic.topic} has a backlog of {now}, and in {hours} h, {rate}, of {then}"


def _caveats(planning: PlanningFacts, fact: NamespaceFact, raised: BacklogQuota) -> str:
    """Further sentences on the limits of the new quota's effect, and on the precision of its figures."""
    topics = fact.looks[0].topics
    full = (
        f"If all of its {counted(topics, 'loaded topic')} came to fill it, they would store"
        f" {bytes_in_words(topics * raised.limit_bytes)}, before copies"
    )
    said = [full]
    age = {**planning.defaults, **fact.own}.get(SettingName.AGE_QUOTA)
    if isinstance(age, BacklogQuota) and age.limit_seconds > 0:
        said.append(f"Its age quota of {seconds_in_words(age.limit_seconds)} stays as it is, and may act first")
    if any(fact.topic_quotas):
        said.append("Topics that set a quota themselves keep it")
    return "".join(f". {each}" for each in (*said, *planning.backlog_caveats))


NEARLY_FULL = Planner(
    kinds=(QUOTA_KIND, RETENTION_KIND),
    answers=frozenset({BACKLOG_NEAR_QUOTA.check_id, BACKLOG_GROWING.check_id}),
    goal=lambda _: "namespaces",
    propose=propose_of_full,
    partial_note=PARTIAL,
    young_note="",  # its topics are reported by their own checks, and their consumers may only be late
)


def propose_of_old(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal: its retention first, if the quota would not be below it."""
    if goal in planning.claimed_settings:
        note = f"{goal}: its age quota is not raised yet, as this plan changes other settings of it first."
        return Proposal(notes=(note,))
    fact = facts_by_name(planning)[goal]
    settings = {**planning.defaults, **fact.own}
    quota = settings.get(SettingName.AGE_QUOTA)
    ours, notes = _under_age(planning, findings, quota.limit_seconds if isinstance(quota, BacklogQuota) else -1)
    if not isinstance(quota, BacklogQuota) or not ours:
        return Proposal(notes=notes)
    remedy = planning.policy.backlog_quota_remedy
    answer = raised_age_quota(settings, quota, ours, remedy)
    if answer.quota is None:
        return Proposal(notes=(*notes, f"{goal}: its age quota is not raised, as {answer.words}."))
    decided = TargetSettings(settings)
    decided.put(SettingName.AGE_QUOTA, answer.quota, ". ".join((answer.words, *planning.backlog_caveats)))
    kept = settings.get(SettingName.RETENTION)
    needed = above(answer.quota.limit_seconds, remedy.retention_margin_percent)
    if isinstance(kept, Retention) and 0 < kept.minutes * 60 < needed:
        raise_retained_time(decided, kept, answer.quota.limit_seconds, planning.policy)
    # With an age quota set, brokers report ages of backlogs: no step has to wait for them in a batch of its own.
    made = batches_of(planning, fact, decided, ours, together=True)
    return Proposal(batches=made.batches, notes=(*notes, *made.notes))


def _under_age(
    planning: PlanningFacts, findings: tuple[Finding, ...], limit_seconds: int
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings about topics under a namespace's age quota and retention; notes on the others."""
    retaining = {fact.subject for fact in planning.topics if SettingName.RETENTION in fact.own}
    ours: list[Finding] = []
    apart: list[str] = []
    own: list[str] = []
    for finding in findings:
        if QuotaFigures.of(finding).limit_seconds != limit_seconds:
            apart.append(finding.subject)
        elif finding.subject in retaining:
            own.append(finding.subject)
        else:
            ours.append(finding)
    told = (
        (apart, "the age quota that is nearly reached is the topic's own, and is to be raised by hand, if at all"),
        (own, "its retention is its own, so that an age quota is to be raised on it by hand, below that"),
    )
    return tuple(ours), tuple(f"{enumerated(sorted(set(names)))}: {words}." for names, words in told if names)


def raised_age_quota(
    settings: Mapping[SettingName, Setting],
    quota: BacklogQuota,
    findings: tuple[Finding, ...],
    remedy: BacklogQuotaRemedy,
) -> ProposedQuota:
    """A longer age quota, with its computation as text; without a quota, the reason why it is not raised.

    The forecast: a backlog without consumption gets older by a second each second, whatever the inflow.

    Args:
        settings: Settings in force in the namespace.
        quota: The age quota in force.
        findings: Findings of topics near it; one or more.
        remedy: The policy.
    """
    hours, room = remedy.raise_headroom_hours, remedy.room_percent
    oldest, topic = max((QuotaFigures.of(each).oldest_backlog_age_seconds or 0, each.subject) for each in findings)
    need = -(-above(oldest + hours * HOUR, room) // HOUR) * HOUR
    words = (
        f"{counted(len(findings), 'topic')} {'is' if len(findings) == 1 else 'are'} near the age quota of"
        f" {seconds_in_words(quota.limit_seconds)}; the oldest message of {topic} is"
        f" {seconds_in_words(oldest, rounded=True)} old, and {hours} h older in {hours} h if it is not consumed; with"
        f" {room} % free, that is {seconds_in_words(need)}"
    )
    if need <= quota.limit_seconds:
        return ProposedQuota(None, f"it is long enough; {words}")
    bound = remedy.raise_most_hours * HOUR
    if need > bound:
        left = f"backlog_quota_remedy.raise_most_hours leaves {seconds_in_words(bound)}"
        if max(oldest, quota.limit_seconds) >= below(bound, room):
            short = "which would be reached at once, or is no longer than it is"
            return ProposedQuota(None, f"{left} of the {seconds_in_words(need)} needed, {short}: {words}")
        need, words = bound, f"{words}; but {left}"
    ttl = settings.get(SettingName.TTL)
    if isinstance(ttl, TimeToLive) and 0 < ttl.seconds <= need:
        expiry = seconds_in_words(ttl.seconds)
        return ProposedQuota(None, f"messages expire after {expiry}, before such a quota could act: {words}")
    return ProposedQuota(msgspec.structs.replace(quota, limit_seconds=need), words)


NEARLY_OLD = Planner(
    kinds=(QUOTA_KIND, RETENTION_KIND),
    answers=frozenset({BACKLOG_NEAR_QUOTA.check_id}),
    goal=lambda finding: namespace_of(finding) if QuotaFigures.of(finding).by_age else None,
    propose=propose_of_old,
    obstacle=obstacle,
    partial_note="",  # the planner of size quotas handles the same check, and has this note
    young_note="",  # its topics are reported by their own checks, and their consumers may only be late
)
