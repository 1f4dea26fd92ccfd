"""Transaction coordinators that crowd on few brokers: their number is the load, and no broker evens it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.catalog.placement import TC_SKEW
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from pulsar_steward.policy.checks.placement import TcSkewPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


@dataclass(frozen=True)
class _Spread:
    """Coordinators by broker, as far as was read."""

    total: int
    listed: int
    held: tuple[tuple[str, int], ...]
    """Brokers that were read and their coordinators, the fullest first; of equals, the lowest id."""
    settled: frozenset[str]
    """Brokers whose coordinators are all in one bundle, and few: no move makes them fewer, nor is a split worth it."""

    @property
    def most(self) -> int:
        return self.held[0][1]

    @property
    def fewest(self) -> int:
        return self.held[-1][1]

    @property
    def spread(self) -> int:
        """The fullest broker that could be relieved above the emptiest; 0 where none could be."""
        relievable = (count for broker, count in self.held if broker not in self.settled)
        return max(max(relievable, default=0) - self.fewest, 0)

    @property
    def elsewhere(self) -> int:
        return self.total - sum(count for _, count in self.held)

    @property
    def share_percent(self) -> int:
        return self.most * 100 // self.total


def held_by_broker(coordinators: DataFrame) -> dict[str, int]:
    """Coordinators of every broker that holds any; those of which nobody knows where they are count for none."""
    counts = coordinators.where("broker is not null").groupBy("broker").agg(F.count("*").alias("held"))
    return {row["broker"]: row["held"] for row in counts.collect()}


def settled_in_one_bundle(coordinators: DataFrame, most: int) -> frozenset[str]:
    """Brokers whose coordinators are all in one bundle, and not more than ``most``."""
    placed = coordinators.where("broker is not null").groupBy("broker")
    counted = placed.agg(F.count("*").alias("held"), F.countDistinct("bundle").alias("bundles"))
    settled = counted.where((F.col("bundles") == 1) & (F.col("held") <= most))
    return frozenset(row["broker"] for row in settled.collect())


def left_out(frames: Frames, draining: Iterable[str]) -> set[str]:
    """Brokers that are to have no coordinators: those that drain, or that isolation policies reserve."""
    system = frames.namespaces.where(
        (F.col("namespace") == TC_NAMESPACE) & F.col("allowed_brokers").isNotNull()
    ).first()
    if system is None:
        return set(draining)
    brokers = {row["broker"] for row in frames.brokers.select("broker").collect()}
    return {*draining, *(brokers - set(system["allowed_brokers"]))}


def _judge(frames: Frames, policy: Policy) -> Judgement:
    about = frames.about
    if not about.tcs_by_bundle:
        return Judgement(cannot_tell="This version of Pulsar does not place coordinators by bundles alone.")
    if not about.coordinators:
        return Judgement(quiet="Transactions are off: there are no coordinators.")
    held = held_by_broker(frames.coordinators)
    empty = left_out(frames, policy.brokers.draining) - held.keys()
    listed = [row for row in frames.brokers.select("broker", "read").collect() if row["broker"] not in empty]
    read = sorted(((row["broker"], held.get(row["broker"], 0)) for row in listed if row["read"]), key=_fullest_first)
    if not read:
        return Judgement(cannot_tell="No broker that may hold coordinators was read.")
    settled = settled_in_one_bundle(frames.coordinators, policy.tc_skew.settled_bundle_coordinators)
    spread = _Spread(about.coordinators, len(listed), tuple(read), settled)
    severity = _severity(spread, policy.tc_skew)
    if severity is None:
        return Judgement(quiet=_sentence(spread))
    return Judgement(findings=(_finding(about.cluster, severity, spread),))


def _fullest_first(held: tuple[str, int]) -> tuple[int, str]:
    return -held[1], held[0]


def _severity(spread: _Spread, policy: TcSkewPolicy) -> Severity | None:
    if spread.listed > 1 and spread.most * 100 >= policy.critical_share_percent * spread.total:
        return Severity.CRITICAL
    if spread.spread >= policy.warning_spread_coordinators:
        return Severity.WARNING
    return None


def _finding(cluster: str, severity: Severity, spread: _Spread) -> Finding:
    return Finding(
        check_id=TC_SKEW.check_id,
        severity=severity,
        subject=cluster,
        evidence=_sentence(spread),
        figures={
            "brokers_read": len(spread.held),
            "coordinators": spread.total,
            "coordinators_elsewhere": spread.elsewhere,
            "fewest_coordinators": spread.fewest,
            "most_coordinators": spread.most,
            "share_percent": spread.share_percent,
            "spread_coordinators": spread.spread,
        },
    )


def _sentence(spread: _Spread) -> str:
    (fullest, most), (emptiest, fewest) = spread.held[0], spread.held[-1]
    words = f"{fullest} holds {most} of {spread.total} transaction coordinators ({spread.share_percent} %)"
    if len(spread.held) > 1:
        words += f", {emptiest} holds {fewest}"
    if spread.elsewhere:
        words += f"; {spread.elsewhere} are on no broker that was read"
    return words + "."


CHECK = Check(TC_SKEW, _judge)
