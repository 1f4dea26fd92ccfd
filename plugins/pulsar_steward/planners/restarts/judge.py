"""Judges whether a broker may be restarted now, by the findings of checks and by the room of the other brokers.

It works nothing out that a check has judged: a restart is harmful where a check says so of the broker itself, of a
topic or namespace that it serves, or of those that would take over.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pulsar_steward.checks.delayed.waiting import brokers_by_host
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.facts.room import limits_after_loss
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.finding import Outlook, QuotaFigures, Severity
from pulsar_steward.model.topics import namespace_of
from pulsar_steward.model.trouble import is_topic
from pulsar_steward.model.units import counted, named, seconds_in_words, time_in_words
from pulsar_steward.planners.restarts.model import UNREACHABLE, RestartReason, RestartVerdict, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.restarts.facts import RestartFacts
    from pulsar_steward.policy.schema import Policy


class Whom(Enum):
    """Whose findings of a check bear on a restart."""

    ALL = auto()
    """All: they are about the whole cluster, or its bookies."""
    OWN = auto()
    """Those of the broker, or of what it serves."""
    OTHERS = auto()
    """Those of brokers that would take over."""
    MOST_COORDINATORS = auto()
    """All, if no broker has more transaction coordinators."""


class RestartRisk(NamedTuple):
    """How the findings of a check bear on a restart.

    Attributes:
        why: The harm, as a sentence.
        whom: Whose findings matter.
        stops: The least severity at which a restart does harm now; None: none, they only have time until an upgrade.
        needed: False if a restart can be judged without the check.
        harmed: Figure with the number of clients that are harmed, by which the check's findings are sorted; those
            without any do not matter.
        about: What is checked, after *whether*; empty: the title of the check.
    """

    why: str
    whom: Whom = Whom.OWN
    stops: Severity | None = Severity.WARNING
    needed: bool = True
    harmed: str = ""
    about: str = ""


_AGAIN = "Acknowledged messages come again each time their topic moves."
_REFUSED = "Producers are refused after a restart."
_ROOM = "The others may have no room for a stopped broker's load."
_CROWD = "Thousands of clients connect at once after each restart."

PLACEMENT = "cluster-placement"
FAILOVER = "failover-time"
FULL = "producer-hold-restart-risk"

RISKS = {
    # The restart of a broker takes no copy away, so that it can be judged without.
    "ledgers-under-replicated": RestartRisk(
        "Ledgers lack copies: one more loss may take the last one.", Whom.ALL, needed=False, about="ledgers lack copies"
    ),
    "ensemble-too-large": RestartRisk("With a bookie away, new ledgers cannot be made.", Whom.ALL),
    "bundle-without-owner": RestartRisk(
        "Topics do not load even now.", Whom.ALL, needed=False, about="every bundle that had clients has an owner"
    ),
    "ack-holes": RestartRisk(_AGAIN, stops=Severity.CRITICAL),
    "cursor-not-persistable": RestartRisk(_AGAIN),
    # A broker that ends orderly writes all that was acknowledged.
    "ack-state-seldom": RestartRisk("Acknowledged messages come again where a broker dies.", stops=None),
    FULL: RestartRisk(_REFUSED),
    "limit-reached": RestartRisk("Clients beyond a limit may be refused after a restart.", harmed="shut_out"),
    "quota-stuck": RestartRisk("Producers are refused by no backlog; a restart brings back none of them.", stops=None),
    "backlog-near-quota": RestartRisk("Producers are refused once the quota is full.", stops=None),
    "delayed-index-memory": RestartRisk("Delayed messages are read again each time their topic moves."),
    FAILOVER: RestartRisk("Topics of a stopped broker are away for long."),
    PLACEMENT: RestartRisk(_ROOM, needed=False),
    "cpu-busy": RestartRisk(_ROOM, Whom.OTHERS, needed=False),
    "direct-memory-pressure": RestartRisk(_ROOM, Whom.OTHERS, needed=False),
    "heap-pressure": RestartRisk(_ROOM, Whom.OTHERS, needed=False),
    "consumer-fanout": RestartRisk(_CROWD, stops=Severity.CRITICAL, about="one partition has thousands of consumers"),
    "producer-fanout": RestartRisk(_CROWD, stops=Severity.CRITICAL, about="one partition has thousands of producers"),
    # Each restart of a row of them piles up coordinators on the others.
    "tc-skew": RestartRisk("Most transactions stand still meanwhile.", Whom.MOST_COORDINATORS, stops=None),
}
"""Checks whose findings bear on a restart, in the order of reports."""

_PAGE = "docs/restart.md"


def restart_verdict(facts: RestartFacts, broker: str, policy: Policy) -> RestartVerdict:
    """Whether a broker may be restarted now.

    Args:
        facts: The snapshot.
        broker: ``host:webport``, or a host with one broker.
        policy: Limits of room, and brokers that are draining.

    Raises:
        ConfigurationError: If the cluster lists no such broker.
    """
    broker = broker_meant(broker, facts.brokers)
    reasons = [*_others(facts, broker, policy)]
    if facts.brokers[broker].read:
        of_checks = list(reasons_of_checks(facts, broker))
        reasons += [*_joined(of_checks, facts), *_of_broker(facts, broker), *_takers(facts, broker, policy)]
    else:
        failure = (facts.brokers[broker].failure or "no answer").removesuffix(".")
        words = f"It is down or cannot be reached ({failure}). What it holds is not known."
        cure = "If it hangs, it serves nothing, and a restart is the cure."
        reasons.append(_reason(UNREACHABLE, f"{words} {cure}", State.UNKNOWN))
    order = list(State)
    return RestartVerdict(
        broker=broker,
        snapshot_id=facts.meta.snapshot_id,
        taken_at=facts.meta.taken_at,
        reasons=tuple(sorted(reasons, key=lambda each: order.index(each.state))),
    )


def reasons_of_checks(facts: RestartFacts, broker: str | None = None) -> Iterator[RestartReason]:
    """Reasons by `RISKS`; None: those of any broker's restart, also of checks without which one can be judged."""
    for check_id, risk in RISKS.items():
        if risk.whom is Whom.MOST_COORDINATORS and not facts.coordinators and not facts.meta.unread:
            continue  # none is loaded, so that no transaction stands still
        verdict, source = facts.verdicts.get(check_id), f"docs/checks/{check_id}.md"
        listed = [each for each in facts.findings.get(check_id, ()) if _harms(each, risk)]
        found = [each for each in listed if broker is None or _matters(each, risk, broker, facts)]
        if found:
            stopping = [each for each in found if _stops(each, risk)]
            worst, uncounted = (stopping or found)[0], _uncounted(check_id, risk, broker, facts)
            words = f"{risk.why} {worst.in_words(facts.meta.cluster)}{_also(len(found) - 1, uncounted, broker)}"
            # No broker keeps its coordinators at a restart, and each broker of a row has its turn.
            only_told = broker is not None and risk.whom is Whom.MOST_COORDINATORS
            state = State.STOP if stopping else State.NOTE if only_told else State.SOON
            yield RestartReason(subject=check_id, state=state, words=words, source=source)
        elif verdict is None or verdict.outlook is Outlook.UNKNOWN:
            needed = broker is None or (risk.needed and risk.stops)
            if needed or risk.whom is Whom.ALL:
                reason = verdict.reason if verdict else "The snapshot was diagnosed without this check."
                title = BY_ID[check_id].title
                words = f"We could not check whether {risk.about or title[0].lower() + title[1:]}. {reason}"
                words += "" if needed else " This does not block the restart."
                state = State.UNKNOWN if needed else State.NOTE
                yield RestartReason(subject=check_id, state=state, words=words, source=source)
        elif broker is not None and (more := _uncounted(check_id, risk, broker, facts)):
            words = f"{risk.why} Up to {counted(more, 'finding')} that are only counted may be about its topics."
            yield RestartReason(subject=check_id, state=State.UNKNOWN, words=words, source=source)


def _harms(finding: Finding, risk: RestartRisk) -> bool:
    return finding.severity is not Severity.INFO and finding.figures.get(risk.harmed) != 0


def _stops(finding: Finding, risk: RestartRisk) -> bool:
    """True if a restart now does the harm. A full topic without producers has none that would not come back."""
    if risk.stops is None or finding.severity.rank < risk.stops.rank:
        return False
    return finding.check_id != FULL or QuotaFigures.of(finding).producers != 0


def _matters(finding: Finding, risk: RestartRisk, broker: str, facts: RestartFacts) -> bool:
    """True if a finding bears on the restart of this broker."""
    match risk.whom:
        case Whom.ALL:
            return True
        case Whom.OTHERS:
            return finding.subject in facts.brokers and finding.subject != broker
        case Whom.MOST_COORDINATORS:
            return facts.coordinators.get(broker, 0) == max(facts.coordinators.values(), default=0) > 0
        case Whom.OWN if finding.check_id == PLACEMENT:
            # Of the load of one broker `_Takers` judges, but where several share a host and its processors.
            of_one = finding.figures.get("brokers_lost") == 1
            return of_one and _share_hosts(facts) and _may_have(finding, broker, facts)
        case Whom.OWN:
            return facts.is_about(finding.subject, broker)


def _may_have(finding: Finding, broker: str, facts: RestartFacts) -> bool:
    """True if the brokers of a finding of `cluster-placement` are all, or this one is among them."""
    if finding.subject == facts.meta.cluster or isinstance(facts.isolation, Unknown):
        return True
    return broker in facts.isolation.left_to(finding.subject)


def _share_hosts(facts: RestartFacts) -> bool:
    return any(len(names) > 1 for names in brokers_by_host(facts.brokers).values())


def _also(listed: int, uncounted: int, broker: str | None) -> str:
    """A sentence on further findings: those listed, and those that are only counted, which may be another broker's."""
    if broker is None or not uncounted:
        more = listed + uncounted
        return f" And {more:,} more." if more else ""
    if not listed:
        return f" Up to {uncounted:,} more, which are only counted."
    return f" And {listed:,} more, up to {listed + uncounted:,} with those that are only counted."


def _uncounted(check_id: str, risk: RestartRisk, broker: str | None, facts: RestartFacts) -> int:
    """Number of findings that are only counted, and may be of this broker and severe enough to stop its restart.

    They are at most as many as it has topics or subscriptions that are not listed. Without a broker, the number of all.
    """
    verdict, listed = facts.verdicts.get(check_id), facts.findings.get(check_id, [])
    if verdict is None or any(each.figures.get(risk.harmed) == 0 for each in listed):  # less bad ones harm nobody
        return 0
    if broker is None:
        return verdict.more
    if risk.whom is not Whom.OWN or risk.stops is None:
        return 0
    severities = [each.severity for each in listed]
    unlisted: Counter[str] = Counter()
    for (severity, namespace), number in verdict.unlisted({it: severities.count(it) for it in Severity}).items():
        unlisted[namespace] += number if severity.rank >= risk.stops.rank else 0
    of_topics = bool(listed) and all(is_topic(each.subject) and " subscription " not in each.subject for each in listed)
    served = [each for each in facts.served if each.broker == broker]
    has = {each.namespace: each.topics if of_topics else each.subscriptions for each in served}
    own = Counter(namespace_of(each.subject) for each in listed if facts.is_about(each.subject, broker))
    left = Counter(has) - own
    return min(unlisted.pop("", 0) + sum(min(number, left[name]) for name, number in unlisted.items()), left.total())


def broker_meant(broker: str, listed: Collection[str]) -> str:
    """The listed broker that is meant.

    Args:
        broker: ``host:webport``, or a host with one broker.
        listed: The brokers that the cluster lists.

    Raises:
        ConfigurationError: If it is none of them, or the host has several.
    """
    if broker in listed:
        return broker
    scheme, divider, place = broker.partition("://")
    if divider:
        raise ConfigurationError(f"{broker!r}: leave {scheme}:// out: {place.rstrip('/')}")
    on_host = brokers_by_host(listed).get(broker, ())
    if len(on_host) == 1:
        return on_host[0]
    if on_host:
        many = counted(len(on_host), "broker runs", "brokers run")
        raise ConfigurationError(f"{many} on {broker}: name one with its port. Listed are {named(on_host)}")
    raise ConfigurationError(
        f"{broker!r}: the cluster lists no such broker. Listed are {named(sorted(listed)) or 'none'}"
    )


def _reason(subject: str, words: str, state: State = State.NOTE) -> RestartReason:
    return RestartReason(subject=subject, state=state, words=words, source=_PAGE)


def _joined(reasons: list[RestartReason], facts: RestartFacts) -> Iterator[RestartReason]:
    """The reasons; those that are not told as something could not be read are one."""
    unknown = [each.subject for each in reasons if each.state is State.UNKNOWN]
    if not facts.meta.unread or len(unknown) < 2:  # noqa: PLR2004 - one is no list
        yield from reasons
        return
    yield from (each for each in reasons if each.state is not State.UNKNOWN)
    words = f"{named(facts.meta.unread)} could not be read, so {counted(len(unknown), 'check')} cannot tell:"
    yield _reason("partial", f"{words} {', '.join(unknown)}.", State.UNKNOWN)


def _others(facts: RestartFacts, broker: str, policy: Policy) -> Iterator[RestartReason]:
    """Other brokers that are away already, or do not answer."""
    silent = [each.broker for each in facts.brokers.values() if not each.read and each.broker != broker]
    if silent:
        words = f"{named(silent)} did not answer: see to that first. Two brokers would be away at once."
        yield _reason("others", words, State.STOP)
    away = [each for each in facts.away if each not in policy.brokers.draining]
    window = timedelta(minutes=policy.broker_draining.window_minutes)
    if facts.before is None or facts.meta.taken_at - facts.before > window:
        age = seconds_in_words(window.total_seconds(), rounded=True)
        look = f"earlier look of the last {age}" if facts.before else "earlier look"
        words = f"There is no {look} to compare with, so a broker that is down right now could be missed."
        yield _reason("others", f"{words} Run it twice with `--keep FOLDER`.", State.UNKNOWN)
    elif away:
        words = f"{named(away)} was listed at {time_in_words(facts.before)} and is not now: wait until it is back."
        yield _reason("others", f"{words} If it is gone for good, look again.", State.STOP)


def _of_broker(facts: RestartFacts, broker: str) -> Iterator[RestartReason]:
    """What comes with the restart: for how long topics are gone, clients, coordinators, leadership."""
    row, away = facts.brokers[broker], facts.failovers.get(broker)
    if away is not None and facts.topics.get(broker):
        ended, lost = (seconds_in_words(each, rounded=True) for each in (away.ended_seconds, away.lost_seconds))
        delayed = counted(away.delayed_messages, "delayed message is", "delayed messages are")
        again = f" {delayed} read again." if away.delayed_messages else ""
        topics = counted(facts.topics[broker], "topic is", "topics are")
        words = f"{topics} gone for about {ended} after a clean shutdown (SIGTERM), {lost} after a crash.{again}"
        yield _reason("time", words)
    producers, consumers = row.producers or 0, row.consumers or 0
    if producers + consumers:
        words = f"{counted(producers, 'producer')} and {counted(consumers, 'consumer')} connect again."
        yield _reason("clients", words)
    if held := facts.coordinators.get(broker):
        every = counted(facts.meta.coordinators, "transaction coordinator")
        words = f"{held:,} of {every} {'is' if held == 1 else 'are'} on it."
        yield _reason("coordinators", f"{words} Their transactions go on once another broker has read their logs.")
    if row.leader:
        words = "It leads the cluster: of several that are to be restarted take it last. No bundle gets an owner until"
        yield _reason("leader", f"{words} another one leads, which adds a few seconds.")


def _takers(facts: RestartFacts, broker: str, policy: Policy) -> Iterator[RestartReason]:
    """Reasons against a restart for lack of room, or who takes over."""
    if isinstance(facts.isolation, Unknown):
        yield _reason("room", f"{facts.isolation.reason.capitalize()}.", State.UNKNOWN)
        return
    now = msgspec.structs.replace(facts.isolation, stopping=frozenset(policy.brokers.draining))
    own, then = now.loads[broker], now.without(broker)
    held = [name for name, topics in (own.topics or {}).items() if topics]
    if own.topics is not None and not held:
        yield _reason("room", "It has no topic loaded: nobody has to take anything over.")
        return
    if not then.running:
        yield _reason("room", "No other broker runs: everything is gone until it is back.", State.STOP)
        return
    if alone := sorted(name for name in held if not then.left_to(name)):
        words = f"{named(alone)} may be on no other broker: gone until it is back."
        yield _reason("room", words, State.STOP)
    limits = limits_after_loss(policy)
    if _share_hosts(facts):
        apart = tuple(each for each in limits.resources if each != "cpu")
        limits = msgspec.structs.replace(limits, resources=apart)
        words = "Brokers share a host and its processors: the CPU of those that take over is not judged."
        yield _reason("room", words, State.UNKNOWN)
    # What a broker has that is draining, or outside of a group, counts too.
    sides = then.sides([name for name in now.namespaces if name in held or broker in now.left_to(name)])
    if not sides and (own.topics is None or {*held} - {*alone}):
        yield _reason("room", "Who takes over is not known.", State.UNKNOWN)
    for side in sides:
        who, burden = named(sorted(side)), then.burden(side)
        short = list(burden.judged(limits, who))
        if not short:
            yield _reason("room", f"{who} take over: on average {burden.words(limits)}.")
        for words, known in short:
            told = f"No room for its load: {words}." if known else f"{words}."
            yield _reason("room", told, State.STOP if known else State.UNKNOWN)
