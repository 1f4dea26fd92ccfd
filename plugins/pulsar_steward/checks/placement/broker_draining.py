"""Brokers that are marked as draining: they still own something, are empty, or are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class BrokerDrainingPolicy(Section):
    """Window that tells a draining broker that was shut down from a misspelt name."""

    window_minutes: int = Field(
        360, ge=1, description="a broker that was listed within these was shut down since; any other name is a question"
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

LISTED = "select broker from brokers"


def judge(queried: Queried, context: CheckContext[BrokerDrainingPolicy]) -> Judgement:
    """A warning for a draining broker that owns something, or for an unknown name; information for an empty broker."""
    draining = context.policy.brokers.draining
    if not draining:
        return Judgement(quiet="No broker is marked as draining (policy key brokers.draining).")
    listed = {row["broker"]: row for row in queried["held"].rows}
    before = {row["broker"] for row in queried["listed_before"].rows}
    found = [_finding(name, listed, before) for name in sorted(set(draining))]
    findings = sorted((each for each in found if each), key=lambda finding: (-finding.severity.rank, finding.subject))
    unread = [name for name in sorted(set(draining)) if name in listed and not listed[name]["read"]]
    return Judgement(
        findings=tuple(findings),
        cannot_tell=f"What is left on {named(unread)} could not be read." if unread else None,
    )


def _finding(name: str, listed: dict[str, Row], before: set[str]) -> Finding | None:
    row = listed.get(name)
    if row is None:
        return _gone(name) if name in before else _unknown(name, sorted(listed))
    if not row["read"]:
        return None
    left = row["bundles"] or row["coordinators"]
    return _made(
        Severity.WARNING if left else Severity.INFO, name, _left(name, row) if left else _empty(name, row), row
    )


def _left(name: str, row: Row) -> str:
    return (
        f"{name} is draining, and still owns {counted(row['bundles'], 'bundle')} with"
        f" {counted(row['topics'], 'topic')} and {counted(row['clients'], 'client')}, and holds"
        f" {counted(row['coordinators'], 'transaction coordinator')}: a shutdown now would move all of them at once."
    )


def _empty(name: str, row: Row) -> str:
    idle = f" and {counted(row['idle_bundles'], 'bundle')} without a loaded topic" if row["idle_bundles"] else ""
    return (
        f"{name} is drained: it owns nothing but its heartbeats{idle}. Shut it down soon: brokers' load managers do not"
        " know that it is to stay empty."
    )


def _gone(name: str) -> Finding:
    words = f"{name} is marked as draining, and no longer listed: it was shut down. Take the mark away once it is back."
    return _made(Severity.INFO, name, words, None)


def _unknown(name: str, listed: Sequence[str]) -> Finding:
    words = (
        f"{name} is marked as draining (policy key brokers.draining), but there is no such broker: it is misspelt, or"
        f" was shut down long ago. Listed are {named(listed) or 'none'}."
    )
    return _made(Severity.WARNING, name, words, None)


def _made(severity: Severity, name: str, words: str, row: Row | None) -> Finding:
    figures = ("bundles", "clients", "coordinators", "idle_bundles", "topics")
    return Finding(
        check_id=CHECK.check_id,
        severity=severity,
        subject=name,
        evidence=words,
        figures={"listed": 0} if row is None else {"listed": 1} | {each: int(row[each]) for each in figures},
    )


CHECK = Check(
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
    earlier={"listed_before": looking_back(LISTED, small=True)},
    cluster={"held": Query(HELD)},
    judge=judge,
)
