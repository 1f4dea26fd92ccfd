"""Brokers that carry far more than the others, and brokers that carry next to nothing, such as new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.model.catalog.placement import BROKER_LOAD_SKEW
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from pulsar_steward.policy.checks.placement import BrokerLoadSkewPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

MEGABYTE = 1_000_000
LOADS = ("topics", "bundles", "megabytes", "clients")
UNITS = {"topics": "topics", "bundles": "bundles", "megabytes": "MB/s", "clients": "producers and consumers"}


@dataclass(frozen=True)
class _Load:
    """What one broker carries, as far as it is known; megabytes are 10^6 bytes in and out a second."""

    broker: str
    cpu_percent: float | None
    carries: dict[str, float]


@dataclass(frozen=True)
class _Excess:
    """One kind of load of which a broker has too much."""

    name: str
    value: float
    others_mean: float

    @property
    def words(self) -> str:
        return f"{self.value:,.0f} {UNITS[self.name]}, the others {self.others_mean:,.0f} on average"


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits, draining = policy.broker_load_skew, policy.brokers.draining
    listed = [row for row in frames.brokers.orderBy("broker").collect() if row["broker"] not in draining]
    loads = [_load(row) for row in listed if row["read"]]
    if len(loads) < 2:  # noqa: PLR2004 - one broker has nobody to be compared with
        words = (
            f"{len(loads)} of {len(listed)} brokers could be read, draining ones aside: there is nothing to compare."
        )
        return Judgement(quiet=words) if len(listed) == 1 and loads else Judgement(cannot_tell=words)
    full = sorted((each for load in loads if (each := _full(load, loads, limits))), key=_worst_first)
    empty = [each for load in loads if (each := _empty(load, loads, limits))]
    found = (*full, *empty)
    return Judgement(
        findings=found[:MOST_FINDINGS], more=max(0, len(found) - MOST_FINDINGS), quiet=_quiet(loads, draining)
    )


def _load(row: Row) -> _Load:
    amounts = {
        "topics": row["topics"],
        "bundles": row["bundles"],
        "megabytes": _sum(row, "throughput_in_bytes", "throughput_out_bytes", MEGABYTE),
        "clients": _sum(row, "producers", "consumers"),
    }
    known = {name: float(amount) for name, amount in amounts.items() if amount is not None}
    return _Load(row["broker"], row["cpu_percent"], known)


def _sum(row: Row, one: str, other: str, unit: int = 1) -> float | None:
    return None if row[one] is None or row[other] is None else (row[one] + row[other]) / unit


def _others_mean(load: _Load, loads: Sequence[_Load], name: str) -> float | None:
    values = [each.carries[name] for each in loads if each is not load and name in each.carries]
    return sum(values) / len(values) if values else None


def _excesses(load: _Load, loads: Sequence[_Load], policy: BrokerLoadSkewPolicy) -> list[_Excess]:
    least = {
        "topics": policy.minimum_topics,
        "bundles": policy.minimum_bundles,
        "megabytes": policy.minimum_throughput_megabytes,
        "clients": policy.minimum_clients,
    }
    found = []
    for name, value in load.carries.items():
        mean = _others_mean(load, loads, name)
        if mean is not None and value >= max(least[name], policy.warning_times_others * mean):
            found.append(_Excess(name, value, mean))
    return found


def _full(load: _Load, loads: Sequence[_Load], policy: BrokerLoadSkewPolicy) -> Finding | None:
    excesses = _excesses(load, loads, policy)
    if not excesses:
        return None
    hot = load.cpu_percent is not None and load.cpu_percent >= policy.critical_cpu_percent
    cpu = "" if load.cpu_percent is None else f"; its CPU is at {load.cpu_percent:.0f} %"
    figures = {each.name: int(each.value) for each in excesses}
    figures |= {f"others_mean_{each.name}": int(each.others_mean) for each in excesses}
    return Finding(
        check_id=BROKER_LOAD_SKEW.check_id,
        severity=Severity.CRITICAL if hot else Severity.WARNING,
        subject=load.broker,
        evidence=f"{load.broker} carries {'; '.join(each.words for each in excesses)}{cpu}.",
        figures=figures if load.cpu_percent is None else figures | {"cpu_percent": int(load.cpu_percent)},
    )


def _empty(load: _Load, loads: Sequence[_Load], policy: BrokerLoadSkewPolicy) -> Finding | None:
    topics, mean = load.carries.get("topics"), _others_mean(load, loads, "topics")
    if topics is None or mean is None or mean < policy.minimum_topics or topics * 100 > policy.empty_percent * mean:
        return None
    return Finding(
        check_id=BROKER_LOAD_SKEW.check_id,
        severity=Severity.WARNING,
        subject=load.broker,
        evidence=(
            f"{load.broker} holds {topics:,.0f} topics, the {len(loads) - 1} other(s) hold {mean:,.0f} on average:"
            " it is new, or nothing has moved to it."
        ),
        figures={"others_mean_topics": int(mean), "topics": int(topics)},
    )


def _worst_first(finding: Finding) -> tuple[int, int, str]:
    return -finding.severity.rank, -len(finding.figures), finding.subject


def _quiet(loads: Sequence[_Load], draining: Sequence[str]) -> str:
    spans = []
    for name in LOADS:
        values = [load.carries[name] for load in loads if name in load.carries]
        if values:
            spans.append(f"{min(values):,.0f} to {max(values):,.0f} {UNITS[name]}")
    aside = f", {len(draining)} draining aside," if draining else ""
    return f"{len(loads)} brokers{aside} carry {', '.join(spans) or 'nothing that is known'}."


CHECK = Check(BROKER_LOAD_SKEW, _judge)
