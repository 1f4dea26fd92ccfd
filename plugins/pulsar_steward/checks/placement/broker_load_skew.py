"""Brokers with far more load than the others, and brokers with next to none, such as new ones.

A full broker is compared with the median of the others. So idle brokers, as after a scale-out, do not make all others
full, and several full brokers do not hide each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median_high
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MEGABYTE, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class BrokerLoadSkewPolicy(Section):
    """Thresholds for brokers with far more load than the others, or none."""

    warning_times_others: int = Field(
        2, ge=2, description="what a broker carries, as a multiple of the median of the others; shedders bear less too"
    )
    minimum_topics: int = Field(500, ge=1, description="topics on a broker; one with fewer is not full")
    minimum_bundles: int = Field(
        125,
        ge=1,
        description="bundles on a broker, its heartbeats among them; so many get owners while 500 topics load",
    )
    minimum_throughput_megabytes: int = Field(20, ge=1, description="bytes in and out, 10^6 a second; the same")
    minimum_clients: int = Field(1000, ge=1, description="producers and consumers on a broker; the same")
    empty_percent: int = Field(
        5, ge=0, le=100, description="a broker with at most this share of the others' topics counts as empty"
    )
    critical_cpu_percent: int = Field(
        85, ge=1, le=100, description="CPU of a full broker; as `loadBalancerBrokerOverloadedThresholdPercentage`"
    )


UNITS = {"topics": "topics", "bundles": "bundles", "megabytes": "MB/s", "clients": "producers and consumers"}
"""Unit of each kind of load, for sentences."""

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


@dataclass(frozen=True)
class _Excess:
    """A kind of load that a broker has too much of."""

    name: str
    value: float
    others_median: float

    @property
    def words(self) -> str:
        return f"{self.value:,.0f} {UNITS[self.name]}, the median of the others is {self.others_median:,.0f}"


def judge(queried: Queried, context: CheckContext[BrokerLoadSkewPolicy]) -> Judgement:
    """A full broker is a warning, critical if its CPU is at the limit; a nearly empty one is a warning."""
    limits, draining = context.limits, context.policy.brokers.draining
    listed = [row for row in queried["loads"].rows if row["broker"] not in draining]
    loads = [_load(row) for row in listed if row["read"]]
    if len(loads) < 2:  # noqa: PLR2004 - one broker has nobody to be compared with
        words = (
            f"{len(loads)} of {counted(len(listed), 'broker')} could be read, draining ones aside: there is nothing to"
            " compare."
        )
        return Judgement(quiet=words) if len(listed) == 1 and loads else Judgement(cannot_tell=words)
    full = [each for load in loads if (each := _full(load, loads, limits))]
    full.sort(key=lambda each: (-each.severity.rank, -len(each.figures), each.subject))
    empty = [each for load in loads if (each := _empty(load, loads, limits))]
    return Judgement(findings=(*full, *empty), quiet=_quiet(loads, draining))


def _load(row: Row) -> _Load:
    known = {name: float(row[name]) for name in UNITS if row[name] is not None}
    return _Load(row["broker"], row["cpu_percent"], known)


def _of_others(load: _Load, loads: Sequence[_Load], name: str) -> list[float]:
    return [each.carries[name] for each in loads if each is not load and name in each.carries]


def _excesses(load: _Load, loads: Sequence[_Load], limits: BrokerLoadSkewPolicy) -> list[_Excess]:
    least = {
        "topics": limits.minimum_topics,
        "bundles": limits.minimum_bundles,
        "megabytes": limits.minimum_throughput_megabytes,
        "clients": limits.minimum_clients,
    }
    found = []
    for name, value in load.carries.items():
        if not (others := _of_others(load, loads, name)):
            continue
        middle = median_high(others)
        if value >= max(least[name], limits.warning_times_others * middle):
            found.append(_Excess(name, value, middle))
    return found


def _full(load: _Load, loads: Sequence[_Load], limits: BrokerLoadSkewPolicy) -> Finding | None:
    excesses = _excesses(load, loads, limits)
    if not excesses:
        return None
    hot = load.cpu_percent is not None and load.cpu_percent >= limits.critical_cpu_percent
    cpu = "" if load.cpu_percent is None else f"; its CPU is at {load.cpu_percent:.0f} %"
    figures = {each.name: int(each.value) for each in excesses}
    figures |= {f"others_median_{each.name}": int(each.others_median) for each in excesses}
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if hot else Severity.WARNING,
        subject=load.broker,
        evidence=f"{load.broker} carries {'; '.join(each.words for each in excesses)}{cpu}.",
        figures=figures if load.cpu_percent is None else figures | {"cpu_percent": int(load.cpu_percent)},
    )


def _empty(load: _Load, loads: Sequence[_Load], limits: BrokerLoadSkewPolicy) -> Finding | None:
    topics, others = load.carries.get("topics"), _of_others(load, loads, "topics")
    if topics is None or not others:
        return None
    # The mean if most of the others are empty too, else the median: other empty brokers do not lower it.
    usual = max(fmean(others), median_high(others))
    if usual < limits.minimum_topics or topics * 100 > limits.empty_percent * usual:
        return None
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING,
        subject=load.broker,
        evidence=(
            f"{load.broker} holds {counted(topics, 'topic')}, and {usual:,.0f} are usual on"
            f" {counted(len(others), 'other')}:"
            " it is new, or nothing has moved to it."
        ),
        figures={"others_usual_topics": int(usual), "topics": int(topics)},
    )


def _quiet(loads: Sequence[_Load], draining: Sequence[str]) -> str:
    spans = []
    for name, unit in UNITS.items():
        values = [load.carries[name] for load in loads if name in load.carries]
        if values:
            spans.append(f"{min(values):,.0f} to {max(values):,.0f} {unit}")
    aside = f", {len(draining)} draining aside," if draining else ""
    return f"{counted(len(loads), 'broker')}{aside} carry {', '.join(spans) or 'nothing that is known'}."


CHECK = Check(
    check_id="broker-load-skew",
    order=30,
    title="A broker carries far more than the others, or next to nothing",
    advice=(
        "Balance the transaction coordinators first (check tc-skew), so that the two do not undo each other.",
        "See whether the brokers' own shedding is on (`loadBalancerSheddingEnabled`), and with which strategy.",
        "Move some by hand: `pulsar-admin namespaces unload NS --bundle RANGE --destinationBroker HOST:PORT`.",
        "Count the clients of a bundle before you move it: all of them reconnect at once.",
        "See whether isolation policies keep an empty broker empty: `pulsar-admin ns-isolation-policy list CLUSTER`.",
    ),
    source="docs/knowledge.md C: partitions uneven over brokers; apache/pulsar#12230",
    remedied_by="bundle_balance",
    policy=BrokerLoadSkewPolicy,
    cluster={"loads": Query(LOADS)},
    judge=judge,
)
