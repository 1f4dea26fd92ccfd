"""Load of brokers: far more than the others', next to none, and what is left on draining ones."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median_high
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import MEGABYTE, counted, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


# A full broker is compared with the median of the others. So idle brokers, as after a scale-out, do not make all
# others full, and several full brokers do not hide each other.
class BrokerLoadSkewPolicy(Section):
    """Thresholds for brokers with far more load than the others, or none."""

    warning_times_others: int = number(
        2, "what a broker carries, as a multiple of the median of the others; shedders bear less too", ge=2
    )
    minimum_topics: int = number(500, "topics on a broker; one with fewer is not full")
    minimum_bundles: int = number(
        125, "bundles on a broker, its heartbeats among them; so many get owners while 500 topics load"
    )
    minimum_throughput_megabytes: int = number(20, "bytes in and out, 10^6 a second; the same")
    minimum_clients: int = number(1000, "producers and consumers on a broker; the same")
    empty_percent: int = percent(5, "a broker with at most this share of the others' topics counts as empty", ge=0)
    critical_cpu_percent: int = percent(
        85, "CPU of a full broker; as `loadBalancerBrokerOverloadedThresholdPercentage`"
    )


UNITS = {"topics": "topics", "bundles": "bundles", "megabytes": "MB/s", "clients": "producers and consumers"}
"""Unit of each kind of load, for sentences."""

OTHERS_MEDIAN = "others_median_"
"""Begin of the names of figures that only findings of full brokers have."""

REST_AT_MOST = 2
"""Clients of a broker without its crowded topic, as a multiple of the others' median: more is a skew of its own."""

LOADS = f"""
select broker, read, cpu_percent, topics, bundles,
    (throughput_in_bytes + throughput_out_bytes) / {MEGABYTE} as megabytes, producers + consumers as clients
from brokers
"""
"""Load of each broker, null if not known.

There are never many brokers, so each is compared with the others in Python.
"""


@dataclass(frozen=True)
class _Load:
    """Load of one broker, if known; megabytes are 10^6 bytes in and out per second."""

    broker: str
    cpu_percent: float | None
    carries: dict[str, float]


def judge_load_skew(queried: Queried, context: CheckContext[BrokerLoadSkewPolicy]) -> Judgement:
    """A full broker is a warning, critical if its CPU is at the limit; a nearly empty one is a warning."""
    limits, draining = context.limits, context.policy.brokers.draining
    listed = [row for row in queried["loads"].rows if row["broker"] not in draining]
    loads = [
        _Load(row["broker"], row["cpu_percent"], {each: float(row[each]) for each in UNITS if row[each] is not None})
        for row in listed
        if row["read"]
    ]
    if len(loads) <= 1:  # one broker has nobody to be compared with
        words = (
            f"{len(loads)} of {counted(len(listed), 'broker')} could be read, draining ones aside: there is nothing to"
            " compare."
        )
        return Judgement(quiet=words) if len(listed) == 1 and loads else Judgement(cannot_tell=words)
    full = [each for load in loads if (each := _full(load, loads, limits))]
    full.sort(key=lambda each: (-len(each.figures), each.subject))
    empty = [each for load in loads if (each := _empty(load, loads, limits))]
    spans = []
    for name, unit in UNITS.items():
        values = [load.carries[name] for load in loads if name in load.carries]
        if values:
            spans.append(f"{min(values):,.0f} to {max(values):,.0f} {unit}")
    aside = f", {len(draining)} draining aside," if draining else ""
    quiet = f"{counted(len(loads), 'broker')}{aside} carry {', '.join(spans) or 'nothing that is known'}."
    return Judgement(findings=(*full, *empty), quiet=quiet)


def _of_others(load: _Load, loads: Sequence[_Load], name: str) -> list[float]:
    return [each.carries[name] for each in loads if each is not load and name in each.carries]


def _full(load: _Load, loads: Sequence[_Load], limits: BrokerLoadSkewPolicy) -> Finding | None:
    least = {
        "topics": limits.minimum_topics,
        "bundles": limits.minimum_bundles,
        "megabytes": limits.minimum_throughput_megabytes,
        "clients": limits.minimum_clients,
    }
    words, figures, medians = [], {}, {}
    for name, value in load.carries.items():
        if not (others := _of_others(load, loads, name)):
            continue
        middle = median_high(others)
        if value >= max(least[name], limits.warning_times_others * middle):
            words.append(f"{value:,.0f} {UNITS[name]}, the median of the others is {middle:,.0f}")
            figures[name], medians[f"{OTHERS_MEDIAN}{name}"] = int(value), int(middle)
    if not words:
        return None
    hot = load.cpu_percent is not None and load.cpu_percent >= limits.critical_cpu_percent
    cpu = "" if load.cpu_percent is None else f"; its CPU is at {load.cpu_percent:.0f} %"
    figures |= medians
    return BROKER_LOAD_SKEW.finding(
        severity=Severity.CRITICAL if hot else Severity.WARNING,
        subject=load.broker,
        evidence=f"{load.broker} carries {'; '.join(words)}{cpu}.",
        figures=figures if load.cpu_percent is None else figures | {"cpu_percent": int(load.cpu_percent)},
    )


def names_full_broker(finding: Finding) -> bool:
    """True if a finding of `broker-load-skew` is about a broker with too much; False: about one with next to none."""
    return any(name.startswith(OTHERS_MEDIAN) for name in finding.figures)


def _empty(load: _Load, loads: Sequence[_Load], limits: BrokerLoadSkewPolicy) -> Finding | None:
    topics, others = load.carries.get("topics"), _of_others(load, loads, "topics")
    if topics is None or not others:
        return None
    # The mean if most of the others are empty too, else the median: other empty brokers do not lower it.
    usual = max(fmean(others), median_high(others))
    if usual < limits.minimum_topics or topics * 100 > limits.empty_percent * usual:
        return None
    return BROKER_LOAD_SKEW.finding(
        severity=Severity.WARNING,
        subject=load.broker,
        evidence=(
            f"{load.broker} holds {counted(topics, 'topic')}, and {usual:,.0f} are usual on"
            f" {counted(len(others), 'other')}:"
            " it is new, or nothing has moved to it."
        ),
        figures={"others_usual_topics": int(usual), "topics": int(topics)},
    )


def _by_crowd(cause: Finding, finding: Finding) -> bool:
    """True if a crowded topic of the broker makes up for all that it carries more than the others: clients alone."""
    over = [name for name in finding.figures if name.startswith(OTHERS_MEDIAN)]
    if over != [f"{OTHERS_MEDIAN}clients"] or finding.subject not in cause.evidence.split():
        return False
    crowd = cause.figures.get("consumers", 0) + cause.figures.get("producers", 0)
    return finding.figures["clients"] - crowd <= REST_AT_MOST * finding.figures[f"{OTHERS_MEDIAN}clients"]


BROKER_LOAD_SKEW = Check(
    check_id="broker-load-skew",
    harm=Harm.SLOW,
    explained_by=("consumer-fanout", "producer-fanout"),
    tied=_by_crowd,
    order=30,
    title="A broker carries far more than the others, or next to nothing",
    advice=(
        "Balance the transaction coordinators first (check tc-skew), so that the two do not undo each other.",
        "See whether the brokers' own shedding is on (`loadBalancerSheddingEnabled`), and with which strategy.",
        "A bundle with more than a broker's share is split first (check hot-bundle): moving it evens nothing.",
        "Move smaller ones by hand: `pulsar-admin namespaces unload NS --bundle RANGE --destinationBroker HOST:PORT`.",
        "Count the clients of a bundle before you move it: all of them reconnect at once.",
        "See whether isolation policies keep an empty broker empty: `pulsar-admin ns-isolation-policy list CLUSTER`.",
    ),
    source="docs/knowledge.md C: partitions uneven over brokers; apache/pulsar#12230",
    remedied_by="bundle_balance",
    policy=BrokerLoadSkewPolicy,
    cluster={"loads": Query(LOADS)},
    judge=judge_load_skew,
)


class BrokerDrainingPolicy(Section):
    """Window that tells a draining broker that was shut down from a misspelt name."""

    window_minutes: int = number(
        360, "a broker that was listed within these was shut down since; any other name is a question"
    )


HELD = """
with held as (
    select owner as broker, count(*) filter (coalesce(topics, 0) > 0) as bundles,
        count(*) filter (coalesce(topics, 0) = 0) as idle_bundles, coalesce(sum(topics), 0)::bigint as topics,
        coalesce(sum(coalesce(producers, 0) + coalesce(consumers, 0)), 0)::bigint as clients
    from bundles where owner is not null and not is_heartbeat(namespace) group by owner),
holders as (
    select broker, count(*) as coordinators from transaction_coordinators where broker is not null group by broker)
select broker, read, coalesce(held.bundles, 0) as bundles, coalesce(idle_bundles, 0) as idle_bundles,
    coalesce(held.topics, 0) as topics, coalesce(clients, 0) as clients, coalesce(coordinators, 0) as coordinators
from brokers left join held using (broker) left join holders using (broker)
"""
"""Each listed broker with its load, heartbeats left out; a bundle without a loaded topic counts as idle."""


def judge_draining(queried: Queried, context: CheckContext[BrokerDrainingPolicy]) -> Judgement:
    """A warning for a draining broker that owns something, or for an unknown name; information for an empty broker."""
    draining = context.policy.brokers.draining
    if not draining:
        return Judgement(quiet="No broker is marked as draining (policy key brokers.draining).")
    listed = {row["broker"]: row for row in queried["held"].rows}
    before = {row["broker"] for row in queried["listed_before"].rows}
    unread = [name for name in sorted(set(draining)) if name in listed and not listed[name]["read"]]
    findings = []
    for name in sorted({*draining}.difference(unread)):
        severity, words = _state_of(name, listed, before)
        counts = ("bundles", "clients", "coordinators", "idle_bundles", "topics") if name in listed else ()
        findings.append(
            BROKER_DRAINING.finding(
                severity=severity,
                subject=name,
                evidence=words,
                figures={"listed": int(name in listed)} | {each: int(listed[name][each]) for each in counts},
            )
        )
    return Judgement(
        findings=tuple(findings), cannot_tell=f"What is left on {named(unread)} could not be read." if unread else None
    )


def _state_of(name: str, listed: dict[str, Row], before: set[str]) -> tuple[Severity, str]:
    row = listed.get(name)
    if row is None and name in before:
        return Severity.INFO, (
            f"{name} is marked as draining, and no longer listed: it was shut down. Take the mark away once it is back."
        )
    if row is None:
        return Severity.WARNING, (
            f"{name} is marked as draining (policy key brokers.draining), but there is no such broker: it is misspelt,"
            f" or was shut down long ago. Listed are {named(sorted(listed)) or 'none'}."
        )
    if row["bundles"] or row["coordinators"]:
        return Severity.WARNING, (
            f"{name} is draining, and still owns {counted(row['bundles'], 'bundle')} with"
            f" {counted(row['topics'], 'topic')} and {counted(row['clients'], 'client')}, and holds"
            f" {counted(row['coordinators'], 'transaction coordinator')}: a shutdown now would move all of them at"
            " once."
        )
    idle = f" and {counted(row['idle_bundles'], 'bundle')} without a loaded topic" if row["idle_bundles"] else ""
    return Severity.INFO, (
        f"{name} is drained: it owns nothing but its heartbeats{idle}. Shut it down soon: brokers' load managers do not"
        " know that it is to stay empty."
    )


BROKER_DRAINING = Check(
    check_id="broker-draining",
    order=35,
    title="A broker that is to be shut down still owns something, or is drained, or there is none of that name",
    advice=(
        "Have its bundles moved away first, in batches that somebody approves (remediation broker_drain).",
        "Name brokers as the cluster lists them: `pulsar-admin brokers list CLUSTER`.",
        "Shut it down once it is drained, before its load manager gives it bundles again.",
        "Take it off `brokers.draining` once it is back: then it gets its share again.",
    ),
    source="docs/remediations/drain.md; docs/knowledge.md A: draining and excluded brokers take none",
    remedied_by="broker_drain",
    policy=BrokerDrainingPolicy,
    earlier={"listed_before": looking_back("select broker from brokers", small=True)},
    cluster={"held": Query(HELD)},
    judge=judge_draining,
)
