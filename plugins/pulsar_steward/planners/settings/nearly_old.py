"""Planner: raises a namespace's age quota if backlogs are near it, as a forecast requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.quotas_exceeded import BACKLOG_NEAR_QUOTA
from pulsar_steward.model.finding import QuotaFigures
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, TimeToLive
from pulsar_steward.model.units import HOUR, counted, seconds_in_words
from pulsar_steward.planners.base import Planner, Proposal, enumerated
from pulsar_steward.planners.settings.namespaces import (
    QUOTA_KIND,
    RETENTION_KIND,
    batches_of,
    facts_by_name,
    obstacle,
)
from pulsar_steward.planners.settings.sizes import ProposedQuota, above, below
from pulsar_steward.planners.settings.targets import TargetSettings, namespace_of, raise_retained_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal: its retention first, if the quota would not be below it."""
    if goal in planning.claimed_settings:
        note = f"{goal}: its age quota is not raised yet, as this plan changes other settings of it first."
        return Proposal(notes=(note,))
    fact = facts_by_name(planning)[goal]
    settings = {**planning.defaults, **fact.own}
    quota = settings.get(SettingName.AGE_QUOTA)
    ours, notes = _under(planning, findings, quota.limit_seconds if isinstance(quota, BacklogQuota) else -1)
    if not isinstance(quota, BacklogQuota) or not ours:
        return Proposal(notes=notes)
    remedy = planning.policy.backlog_quota_remedy
    answer = raised_age_quota(settings, quota, ours, remedy)
    if answer.quota is None:
        return Proposal(notes=(*notes, f"{goal}: its age quota is not raised: {answer.words}."))
    decided = TargetSettings(settings)
    decided.put(SettingName.AGE_QUOTA, answer.quota, ". ".join((answer.words, *planning.backlog_caveats)))
    kept = settings.get(SettingName.RETENTION)
    needed = above(answer.quota.limit_seconds, remedy.retention_margin_percent)
    if isinstance(kept, Retention) and 0 < kept.minutes * 60 < needed:
        raise_retained_time(decided, kept, answer.quota.limit_seconds, planning.policy)
    # With an age quota set, brokers report ages of backlogs: no step has to wait for them in a batch of its own.
    made = batches_of(planning, fact, decided, ours, together=True)
    return Proposal(batches=made.batches, notes=(*notes, *made.notes))


def _under(
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
        words += f"; but backlog_quota_remedy.raise_most_hours leaves {seconds_in_words(bound)}"
        if max(oldest, quota.limit_seconds) >= below(bound, room):
            return ProposedQuota(None, f"{words}, which would be reached at once, or is no longer than it is")
        need = bound
    ttl = settings.get(SettingName.TTL)
    if isinstance(ttl, TimeToLive) and 0 < ttl.seconds <= need:
        expiry = seconds_in_words(ttl.seconds)
        return ProposedQuota(None, f"{words}; but messages expire after {expiry}, before such a quota could act")
    return ProposedQuota(msgspec.structs.replace(quota, limit_seconds=need), words)


PLANNER = Planner(
    kinds=(QUOTA_KIND, RETENTION_KIND),
    answers=frozenset({BACKLOG_NEAR_QUOTA.check_id}),
    goal=lambda finding: namespace_of(finding) if QuotaFigures.of(finding).by_age else None,
    propose=propose,
    obstacle=obstacle,
    partial_note="",  # the planner of size quotas handles the same check, and has this note
    young_note="",  # its topics are reported by their own checks, and their consumers may only be late
)
