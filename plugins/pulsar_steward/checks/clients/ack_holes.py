"""Subscriptions with so many ack holes that acknowledgements are lost when their topic is loaded anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question, Scope
from pulsar_steward.checks.clients.consumers import SLOWEST, slowest_words, subject_of
from pulsar_steward.checks.unread import BROKERS_READ, not_telling, nothing_read, setting_unread
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class AckHolesPolicy(Section):
    """When ack holes come near what a broker persists; beyond its limit they are always critical."""

    warning_percent: int = Field(
        50, ge=1, le=100, description="ack holes of `managedLedgerMaxUnackedRangesToPersist`: time to act is left"
    )


MAX_RANGES = "managedLedgerMaxUnackedRangesToPersist"
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"

FOUND = f"""
with limit_of as (
    select broker, max(try_cast(trim(value) as bigint)) as most from setting('{MAX_RANGES}') group by broker),
arrays as (
    select broker, max(try_cast(trim(value) as boolean)) as long_array from setting('{LONG_ARRAY}') group by broker)
select topic, subscription, consumers, ack_holes, broker, most, long_array, ack_holes > most as beyond
from user_subscriptions join limits using (namespace) join limit_of using (broker) left join arrays using (broker)
where ack_holes > 0 and ack_holes * 100 >= most * warning_percent
"""


def judge(answers: Answers, context: CheckContext[AckHolesPolicy]) -> Judgement:
    """Near what a broker persists is a warning, beyond it critical."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(
        quiet=context.in_each_part(
            lambda limits: f"No subscription has {limits.warning_percent} % of the ack holes that its broker persists."
        ),
        cannot_tell=nothing_read(answers["read"]) or setting_unread(answers["silent"], MAX_RANGES),
    )


def _finding(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["beyond"] else Severity.WARNING,
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {row['ack_holes']:,} ack holes, {_of_limit(row)}"
            f" that {row['broker']} persists ({MAX_RANGES}{_counting(row)}): {_meaning(row)}; {slowest_words(row)}."
        ),
        figures={"ack_holes": row["ack_holes"], "ack_holes_persisted_at_most": row["most"]},
    )


def _of_limit(row: Row) -> str:
    if row["most"] <= 0:
        return "all of them beyond the 0"
    return f"{row['ack_holes'] * 100 // row['most']:,} % of the {row['most']:,}"


def _counting(row: Row) -> str:
    return "; as long arrays are on, it counts single entries and may be passed already" if row["long_array"] else ""


def _meaning(row: Row) -> str:
    if row["beyond"]:
        return "a restart or move now delivers acknowledged messages again"
    return "beyond that, a restart or move delivers acknowledged messages again"


CHECK = Check(
    check_id="ack-holes",
    order=30,
    title="Acknowledgements are about to be lost at the next restart or move: too many ack holes",
    advice=(
        "Beyond the limit: do not unload or restart anything of this topic before the holes are fewer.",
        "Find who holds the first message that is not acknowledged: `pulsar-admin topics stats-internal TOPIC`.",
        "Use fewer consumers on the subscription, and quicker ones; acknowledge failures negatively, not never.",
        "Raise `managedLedgerMaxUnackedRangesToPersist` (brokers restart for it); 10,000 is low for Shared and delays.",
        "Send messages with long delays to a topic of their own: each of them is a hole.",
    ),
    source="docs/knowledge.md C; docs/checks/ack-holes.md; apache/pulsar#25540, apache/pulsar#742, apache/pulsar#25992",
    scope=Scope.NAMESPACE,
    policy=AckHolesPolicy,
    shards={
        "found": Question(
            FOUND,
            worst_first="beyond desc, ack_holes / greatest(most, 1) desc, topic, subscription",
            detail=SLOWEST,
        )
    },
    cluster={"read": BROKERS_READ, "silent": not_telling(MAX_RANGES)},
    judge=judge,
)
