"""Planners of namespaces' settings: quotas, retention, time to live, and persistence.

See docs/remediations/quotas-and-retention.md and docs/remediations/persistence.md. Changes of persistence are off by
default: no figure shows how many messages consumers can bear to get again, nor why somebody asked for more bookies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.cursors import ACK_STATE_OFTEN, ACK_STATE_SELDOM
from pulsar_steward.checks.delayed.delayed_past_ttl import CHECK as DELAYED_PAST_TTL
from pulsar_steward.checks.delayed.delayed_past_ttl import DelayFigures
from pulsar_steward.checks.resources.bookies import ENSEMBLE_TOO_LARGE
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import (
    DelayedDelivery,
    Persistence,
    Retention,
    SettingName,
    TimeToLive,
    in_words,
    writes_in_words,
)
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.model.units import HOUR, bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.base import Planner, Proposal, reasons_against
from pulsar_steward.planners.settings.facts import effect, undo_note, unread_loss
from pulsar_steward.planners.settings.sizes import above
from pulsar_steward.planners.settings.targets import (
    ANSWERED,
    TargetSettings,
    is_of_topic,
    namespace_of,
    target_settings,
)
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.remedies import DelayedDeliveryRemedy, PersistenceRemedy


ENDLESS = float("inf")

_LAST = {SettingName.TTL: 3, SettingName.DELAYED_DELIVERY: 4, SettingName.PERSISTENCE: 5}
"""Places of settings that brokers do not check against others: the time to live is raised before the delays."""


def in_order(changes: Iterable[ChangeSetting]) -> tuple[ChangeSetting, ...]:
    """The changes of one namespace in an order that the broker accepts: a higher retention comes first.

    A retention that is lower in time or size comes last, after the quotas that have to be below it.
    """
    return tuple(sorted(changes, key=lambda change: (_place(change), change.name)))


def raises(change: ChangeSetting) -> bool:
    """True if a change of retention keeps at least as much as before, in time and in size."""
    before, after = _limits(change.before), _limits(change.after)
    return all(now >= then for now, then in zip(after, before, strict=True))


def _place(change: ChangeSetting) -> int:
    if change.name in _LAST:
        return _LAST[change.name]
    if change.name is not SettingName.RETENTION:
        return 1
    return 0 if raises(change) else 2


def _limits(value: object) -> tuple[float, float]:
    """Minutes and megabytes; an unset retention counts as no limit, as the broker then compares nothing."""
    if not isinstance(value, Retention):
        return ENDLESS, ENDLESS
    return (ENDLESS if value.minutes <= 0 else value.minutes, ENDLESS if value.megabytes <= 0 else value.megabytes)


QUOTA_KIND = "backlog_quota"
RETENTION_KIND = "retention"
PERSISTENCE_KIND = "persistence"
OF_RETENTION = frozenset({SettingName.RETENTION, SettingName.TTL, SettingName.DELAYED_DELIVERY})

PARTIAL = "Settings: nothing is proposed, as the snapshot is partial without {all_missing}."

_APART = frozenset({SettingName.AGE_QUOTA})
"""Settings with a batch of their own. The age of a backlog is known only right before the call, and one guard's veto
stops a whole batch: the other settings must not wait for this one."""

_TOGETHER = frozenset(SettingName) - _APART


def propose_settings(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal, in an order that brokers accept; and another batch for its age quota."""
    fact = facts_by_name(planning)[goal]
    checks = frozenset(finding.check_id for finding in findings)
    decided = target_settings(fact, checks, planning.defaults, planning.policy)
    notes = tuple(f"{goal}: {note}." for note in decided.notes)
    made = batches_of(planning, fact, decided, findings)
    notes = (*notes, *made.notes)
    if not made.batches and not notes:
        notes = (f"{goal}: nothing is proposed, as no setting would be better.",)
    return Proposal(batches=made.batches, notes=notes)


def batches_of(
    planning: PlanningFacts,
    fact: NamespaceFact,
    decided: TargetSettings,
    findings: tuple[Finding, ...],
    *,
    together: bool = False,
    unlisted: int = 0,
) -> Proposal:
    """Batches that give a namespace the decided settings, or a note on the guard that vetoes.

    If `together`, an age quota is in one batch with the others: the quota already in force allows it. `unlisted` is the
    number of further findings that the batches resolve, or may resolve.
    """
    goal = fact.namespace
    batches: list[Batch] = []
    for names in (_TOGETHER | _APART,) if together else (_TOGETHER, _APART):
        changes = _changes(fact, decided, names, planning.defaults)
        steps = tuple(_steps(planning, fact, decided, changes))
        # If one step is vetoed, the whole batch is dropped: the rest alone is not what was computed.
        if against := reasons_against(*steps):
            none = "no age quota" if names == _APART else "nothing"
            return Proposal(batches=tuple(batches), notes=(f"{goal}: {none} is proposed: {against}.",))
        if steps:
            targets = (f"{each.name} to {in_words(each.name, each.after)}" for each in changes)
            batches.append(
                Batch(
                    kind=_kind_of(frozenset(each.name for each in changes)),
                    title=f"{goal}: {', '.join(targets)}",
                    findings=findings,
                    steps=steps,
                    unlisted=unlisted or msgspec.UNSET,
                )
            )
    return Proposal(batches=tuple(batches))


def _kind_of(names: frozenset[SettingName]) -> str:
    if SettingName.PERSISTENCE in names:
        return PERSISTENCE_KIND
    return RETENTION_KIND if names & OF_RETENTION else QUOTA_KIND


def facts_by_name(planning: PlanningFacts) -> dict[str, NamespaceFact]:
    """Facts of namespaces, by name; they include each goal without an `obstacle`."""
    return {fact.namespace: fact for fact in planning.namespaces}


def obstacle(planning: PlanningFacts, goal: str) -> str | None:
    """A note for a namespace with unknown settings."""
    if goal in facts_by_name(planning):
        return None
    return f"{goal}: nothing is proposed, as its settings are not in the snapshot."


def _changes(
    fact: NamespaceFact, decided: TargetSettings, names: frozenset[SettingName], defaults: Mapping[SettingName, Setting]
) -> tuple[ChangeSetting, ...]:
    """The changes of these settings, in an order that brokers accept."""
    return in_order(
        ChangeSetting(
            namespace=fact.namespace,
            name=name,
            before=fact.own.get(name),
            after=value,
            inherited=msgspec.UNSET if name in fact.own else defaults.get(name),
        )
        for name, value in decided.target.items()
        if name in names and name in decided.why and fact.own.get(name) != value
    )


def _steps(
    planning: PlanningFacts, fact: NamespaceFact, decided: TargetSettings, changes: Sequence[ChangeSetting]
) -> Iterator[Step]:
    """A step for each change, with the results of all guards."""
    kept, averts = decided.target.get(SettingName.RETENTION), decided.averted
    for number, change in enumerate(changes, start=1):
        step = Step(
            change=change,
            why=decided.why[change.name],
            effect=effect(fact, change),
            touched=Touched(producers=0, consumers=0, topics=fact.looks[0].topics, coordinators=0),
            undo=change.inverse,
            undo_note=undo_note(change),
            averts=(averts if change.name is SettingName.TTL and averts and averts.topics else msgspec.UNSET),
        )
        yield guarded(step, planning, place_in_run=number, holder=fact, retention=kept)


NAMESPACE_SETTINGS = Planner(
    kinds=(QUOTA_KIND, RETENTION_KIND),
    answers=ANSWERED,
    goal=lambda finding: None if is_of_topic(finding) else namespace_of(finding),
    propose=propose_settings,
    obstacle=obstacle,
    partial_note=PARTIAL,
)


def propose_for_delays(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal: the time to live first, then the maximum delay."""
    if goal in planning.claimed_settings:
        return _none(goal, "as this plan changes other settings of it first")
    fact = facts_by_name(planning)[goal]
    decided = _decided(planning, fact, findings)
    return _none(goal, decided) if isinstance(decided, str) else batches_of(planning, fact, decided, findings)


def _none(goal: str, reason: str) -> Proposal:
    return Proposal(notes=(f"{goal}: neither a longer time to live nor a bound of delays is proposed, {reason}.",))


def _decided(planning: PlanningFacts, fact: NamespaceFact, findings: tuple[Finding, ...]) -> TargetSettings | str:
    """The settings that the namespace should have, or the reason why they are not changed."""
    remedy, now = planning.policy.delayed_delivery_remedy, {**planning.defaults, **fact.own}
    ttl, delays = now.get(SettingName.TTL), now.get(SettingName.DELAYED_DELIVERY)
    if not isinstance(ttl, TimeToLive) or ttl.seconds <= 0:
        return "as it has no time to live any more"
    bound = max(DelayFigures.of(finding).longest_delay_seconds for finding in findings)
    longest, words = (bound, f"delays up to {seconds_in_words(bound)} are allowed") if bound else _bound(fact, remedy)
    if not longest:
        return words
    decided = TargetSettings(now)
    if not bound:
        if not isinstance(delays, DelayedDelivery) or not delays.active:
            return "as brokers do not tell that they deliver messages delayed there, or in which ticks"
        after = msgspec.structs.replace(delays, longest_milliseconds=longest * 1000)
        why = f"nothing bounds the delay that a producer may ask for; {words}"
        decided.put(SettingName.DELAYED_DELIVERY, after, why)
    seconds, sum_words = _time_to_live(fact, longest, remedy)
    if seconds > remedy.most_ttl_hours * HOUR:
        most = seconds_in_words(remedy.most_ttl_hours * HOUR)
        return f"as {words}; {sum_words}, and it is raised to {most} at most: decide by hand"
    if seconds > ttl.seconds:
        expire = f"messages expire {seconds_in_words(ttl.seconds)} after they are published, whatever their delay"
        decided.put(SettingName.TTL, TimeToLive(seconds=seconds), f"{expire}; {words}; {sum_words}")
        decided.averted = unread_loss(fact, fact.delayed_topics)
    return decided if decided.why else f"as its time to live is longer already: {words}"


def _bound(fact: NamespaceFact, remedy: DelayedDeliveryRemedy) -> tuple[int, str]:
    """Maximum delay in seconds, and its computation as text; 0 and the reason if there should be none."""
    if not remedy.longest_delay_hours:
        return 0, (
            "as nothing bounds the delay that a producer may ask for, and the policy names no bound"
            " (delayed_delivery_remedy.longest_delay_hours)"
        )
    usual, oldest = remedy.longest_delay_hours * HOUR, fact.ages.oldest_seconds
    waited = -(-oldest * (100 + remedy.age_headroom_percent) // (100 * HOUR)) * HOUR
    words = f"{seconds_in_words(max(usual, waited))} are to be enough (delayed_delivery_remedy.longest_delay_hours"
    if waited <= usual:
        return usual, f"{words})"
    return waited, (
        f"{words} is {seconds_in_words(usual)}, but a message of {fact.ages.topic} waits for"
        f" {seconds_in_words(oldest, rounded=True)} already, + {remedy.age_headroom_percent} %)"
    )


def _time_to_live(fact: NamespaceFact, longest: int, remedy: DelayedDeliveryRemedy) -> tuple[int, str]:
    """Time to live in seconds (whole hours), and its computation as text."""
    least = max(longest, fact.ages.oldest_seconds)
    seconds = -(-above(least, remedy.ttl_margin_percent) // HOUR) * HOUR
    oldest = "" if least == longest else f", and a backlog is {seconds_in_words(least, rounded=True)} old"
    return seconds, (
        f"with {remedy.ttl_margin_percent} % left for consumers once they are due{oldest}, a time to live of"
        f" {seconds_in_words(seconds)} is needed"
    )


DELAYS = Planner(
    kinds=(RETENTION_KIND,),
    answers=frozenset({DELAYED_PAST_TTL.check_id}),
    goal=namespace_of,
    propose=propose_for_delays,
    obstacle=obstacle,
    partial_note=PARTIAL,
)


Decided = tuple[Persistence, str] | str | None
"""The policy with one part changed, and the reason; or why it is not changed; None: no finding is about that part."""


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch of one step for a namespace, the goal, as Pulsar keeps all of it in one policy."""
    fact, remedy = facts_by_name(planning)[goal], planning.policy.persistence_remedy
    now = {**planning.defaults, **fact.own}
    value = now.get(SettingName.PERSISTENCE)
    if not isinstance(value, Persistence):
        return Proposal(notes=(_not_proposed(goal, "brokers do not tell which E, Qw, Qa and rate apply"),))
    why, notes = list[str](), list[str]()
    found = {finding.check_id: finding for finding in findings}
    for decide in (_rate, _ensemble):
        match decide(value, found, remedy):
            case str() as reason:
                notes.append(_not_proposed(goal, reason))
            case (changed, reason):
                value = changed
                why.append(reason)
    if not why:
        return Proposal(notes=tuple(notes))
    target = TargetSettings(now)
    target.put(SettingName.PERSISTENCE, value, "; ".join(why))
    made = batches_of(planning, fact, target, findings)
    return Proposal(batches=made.batches, notes=(*notes, *made.notes))


def _not_proposed(goal: str, reason: str) -> str:
    return f"{goal}: no other persistence is proposed, as {reason}."


def _rate(now: Persistence, found: Mapping[str, Finding], remedy: PersistenceRemedy) -> Decided:
    """The rate of writing cursors: raised to what brokers do by default, or lowered."""
    seldom, often = found.get(ACK_STATE_SELDOM.check_id), found.get(ACK_STATE_OFTEN.check_id)
    if seldom is None and often is None:
        return None
    if not remedy.propose_rate:
        return "the policy says so of how often cursors are written (policy key persistence_remedy.propose_rate)"
    if now.writes_per_second < 0 or (seldom is not None and often is not None):
        both = "its cursors are written too often for bookies, and too seldom for consumers"
        below = "a rate below 0 is no limit on some versions, and the brokers' default on others"
        return f"{below if now.writes_per_second < 0 else both}: decide by hand"
    words = f"its cursors are written {writes_in_words(now.writes_per_second)}"
    seconds = remedy.seldom_seconds if seldom is not None else remedy.often_seconds
    limited = now.writes_per_second > 0
    if seldom is None and limited and now.writes_per_second <= 1 / seconds:
        return f"{words} already: it needs fewer cursors, or fewer ack holes"
    if seldom is not None and not (limited and now.writes_per_second < 1 / seconds):
        return f"{words} already, and once in {seconds_in_words(seconds)} would be no oftener (seldom_seconds)"
    if seldom is not None:
        again = counted(seldom.figures.get("messages", 0), "message")
        words += f", so that up to {again} come again where its brokers die"
    elif often is not None:
        words += (
            f"{_written(often)}. Where a broker dies, what was acknowledged in the last {seconds_in_words(seconds)}"
            " comes again"
        )
    return msgspec.structs.replace(now, rate=repr(1 / seconds)), words


def _written(often: Finding) -> str:
    """What is written of cursors, as far as it is known."""
    writes, states = (often.figures.get(name) for name in ("cursor_writes_per_second", "state_bytes_per_second"))
    percent = often.figures.get("percent")
    words = (
        ""
        if writes is None or percent is None
        else (f" at most, {counted(writes, 'time')} a second in all: {percent} % of what is written to bookies")
    )
    if not states:
        return words
    return f"{words}; large ack states are written whole each time, about {bytes_in_words(states)} a second"


def _ensemble(now: Persistence, found: Mapping[str, Finding], remedy: PersistenceRemedy) -> Decided:
    """E lowered to Qw, which keeps as many copies of each entry."""
    finding = found.get(ENSEMBLE_TOO_LARGE.check_id)
    if finding is None:
        return None
    if not remedy.propose_ensemble:
        return "the policy says so of how many bookies ledgers take (policy key persistence_remedy.propose_ensemble)"
    bookies = finding.figures.get("bookies", 0)
    if now.write_quorum > bookies:
        return f"Qw is {now.write_quorum}, and there are {counted(bookies, 'bookie')}: fewer copies are for people"
    words = (
        f"new ledgers need {now.ensemble} bookies, and there are {bookies}: on {now.write_quorum} each entry has as"
        " many copies as before, and a ledger has no more bookies than copies"
    )
    return msgspec.structs.replace(now, ensemble=now.write_quorum), words


PERSISTENCE = Planner(
    kinds=(PERSISTENCE_KIND,),
    answers=frozenset(check.check_id for check in (ACK_STATE_SELDOM, ACK_STATE_OFTEN, ENSEMBLE_TOO_LARGE)),
    # A finding without a namespace is about the brokers' default, for which they have to restart.
    goal=lambda finding: finding.subject if "/" in finding.subject else None,
    propose=propose,
    obstacle=obstacle,
    partial_note=PARTIAL,
)
