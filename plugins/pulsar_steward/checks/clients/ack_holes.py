"""Subscriptions with so many ack holes that acknowledgements are lost, or that one message holds back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import (
    BROKERS_READ,
    Check,
    Judgement,
    LookBack,
    Query,
    Scope,
    critical_or_warning,
    not_telling,
    nothing_read,
    setting_unread,
)
from pulsar_steward.checks.clients.consumers import LONG_ARRAY, MAX_RANGES, SLOWEST, slowest_words, subject_of
from pulsar_steward.checks.earlier import EarlierRows, each_since, wider
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding


class AckHolesPolicy(Section):
    """Thresholds for ack holes, in percent of the number that a broker persists; more than that is always critical."""

    warning_percent: int = percent(50, "ack holes of `managedLedgerMaxUnackedRangesToPersist`: time to act is left")
    warning_held_entries: int = number(
        1_000_000, "entries from the first that is not acknowledged to what is read next, nine in ten acknowledged"
    )
    warning_held_minutes: int = number(60, "for which they became no fewer in any snapshot; shorter: information")


MAX_SUBSCRIPTIONS = 1000
"""Number of subscriptions that are examined, the ones with most entries first."""

ACKNOWLEDGED_SHARE = 10
"""Number of entries among which at most one may be unacknowledged; in a merely long backlog nearly all are."""

# A delayed message holds back as many entries; it belongs to another check.
HELD = f"""
with spans as (
    select topic, subscription, s.namespace, broker, consumers, ack_holes, backlog_entries, unacked_messages,
        entries_since_first_gap as entries
    from user_subscriptions s join limits using (namespace)
    where entries_since_first_gap >= warning_held_entries and ack_holes > 0
        and backlog_entries <= entries_since_first_gap // {ACKNOWLEDGED_SHARE}),
delayed as (
    select topic, subscription from clients_delayed told join spans using (topic, subscription)
    where told.messages > 0 and (told_by is null or told_by = broker))
select * from spans anti join delayed using (topic, subscription)
"""

MOST_FIRST = "entries desc, topic, subscription"

BEFORE = """
select topic, subscription, max(entries_since_first_gap) as entries
from raw_subscriptions semi join held using (topic, subscription) group by topic, subscription
"""
"""The same subscriptions in an earlier snapshot."""


@dataclass(frozen=True)
class HeldEntries:
    """A row of `HELD`: a cursor held back by one message; the limits in force for it, and rows of earlier snapshots."""

    row: Row
    limits: AckHolesPolicy
    before: EarlierRows

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots in which the first entry may have been the same, the newest first."""
        return self.before.in_a_row(
            self.row, lambda newer, older: older["entries"] is not None and 0 < older["entries"] <= newer["entries"]
        )

    @property
    def severity(self) -> Severity | None:
        """Severity by duration; None: there were more entries a short while ago, so the first one has changed since."""
        if self._nobody:
            return Severity.WARNING  # no consumer will ever acknowledge it
        if not self.alike:
            return Severity.INFO if next(self.before.told(self.row), None) is None else None
        long = self.before.lasted_seconds(self.alike) >= 60 * self.limits.warning_held_minutes
        return Severity.WARNING if long else Severity.INFO

    @property
    def _nobody(self) -> str:
        """Words where consumers are connected, and none holds a message that is not acknowledged."""
        if not self.row["consumers"] or self.row["unacked_messages"] != 0:
            return ""
        return "no consumer holds it, as where its ledger is lost; "

    @property
    def finding(self) -> Finding | None:
        """Finding, or None."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        holes = counted(row["ack_holes"], "ack hole")
        since = "since when is not known; a message that takes long, or waits for its time, would look the same"
        if self.alike:
            more = row["entries"] - self.alike[-1]["entries"]
            since = f"{more:,} more by now; it was so {each_since(self.alike)} too"
        return CHECK.finding(
            severity=severity,
            subject=subject_of(row),
            evidence=(
                f"{counted(row['entries'], 'entry', 'entries')} of {row['topic']}"
                f" {'follows' if row['entries'] == 1 else 'follow'} the first one that subscription"
                f" {row['subscription']} has not acknowledged, and only {row['backlog_entries']:,} of them wait"
                f" ({holes}): what nobody acknowledges holds the cursor back, and no ledger from"
                f" there on is deleted ({since}); {self._nobody}{slowest_words(row)}."
            ),
            figures={
                "ack_holes": row["ack_holes"],
                "backlog_entries": row["backlog_entries"],
                "entries_since_first_gap": row["entries"],
            },
        )


FOUND = f"""
with limit_of as (
    select broker, max(try_cast(trim(value) as bigint)) as most from setting('{MAX_RANGES}') group by broker),
arrays as (
    select broker, max(try_cast(trim(value) as boolean)) as long_array from setting('{LONG_ARRAY}') group by broker)
select topic, subscription, consumers, ack_holes, broker, most, long_array, ack_holes > most as critical
from user_subscriptions join limits using (namespace) join limit_of using (broker) left join arrays using (broker)
where ack_holes > 0 and ack_holes * 100 >= most * warning_percent
"""


def _looked_back_minutes(limits: AckHolesPolicy) -> int:
    return wider(limits.warning_held_minutes)


def judge(queried: Queried, context: CheckContext[AckHolesPolicy]) -> Judgement:
    """A warning near the number that a broker persists, critical above it; also cursors held by a single message."""
    findings = [_finding(row) for row in queried["found"].rows]
    subjects = {finding.subject for finding in findings}
    before = EarlierRows.of(queried["held_before"], context, _looked_back_minutes, "topic", "subscription")
    for row in queried["held"].rows:
        held = HeldEntries(row, context.limits_of(row["namespace"]), before).finding
        if held is not None and held.subject not in subjects:
            findings.append(held)
    return Judgement(
        findings=tuple(findings),
        more=queried["found"].more + queried["held"].more,
        graded=queried["found"].more_by(critical_or_warning),
        quiet=context.in_each_part(
            lambda limits: f"No subscription has {limits.warning_percent} % of the ack holes that its broker persists."
        ),
        cannot_tell=nothing_read(queried) or setting_unread(queried["silent"], MAX_RANGES),
    )


def _finding(row: Row) -> Finding:
    most, share = row["most"], "all of them beyond the 0"
    if most > 0:
        share = f"{row['ack_holes'] * 100 // most:,} % of the {most:,}"
    single = "; as long arrays are on, it counts single entries and may be passed already" if row["long_array"] else ""
    when = "a restart or move now" if row["critical"] else "beyond that, a restart or move"
    return CHECK.finding(
        severity=critical_or_warning(row),
        subject=subject_of(row),
        evidence=(
            f"Subscription {row['subscription']} of {row['topic']} has {counted(row['ack_holes'], 'ack hole')}, {share}"
            f" that {row['broker']} persists ({MAX_RANGES}{single}): {when} delivers acknowledged messages again;"
            f" {slowest_words(row)}."
        ),
        figures={"ack_holes": row["ack_holes"], "ack_holes_persisted_at_most": most},
    )


CHECK = Check(
    check_id="ack-holes",
    beware={Harm.AT_RESTART: "Restart no broker and unload no bundle of theirs: messages would come again."},
    harm=Harm.AT_RESTART,
    order=30,
    title="Consumed messages would come again after a restart or move: too many ack holes",
    advice=(
        "Beyond the limit: do not unload or restart anything of this topic before the holes are fewer.",
        "Find who holds the first message that is not acknowledged: `pulsar-admin topics stats-internal TOPIC`.",
        "Held back by one message: let it be acknowledged, or skip it: `pulsar-admin topics skip TOPIC -s SUB -n 1`.",
        "Use fewer consumers on the subscription, and quicker ones; acknowledge failures negatively, not never.",
        "Raise `managedLedgerMaxUnackedRangesToPersist` (brokers restart for it); 10,000 is low for Shared and delays.",
        "Send messages with long delays to a topic of their own: each of them is a hole.",
    ),
    source="docs/knowledge.md C; docs/checks/ack-holes.md; apache/pulsar#25540, apache/pulsar#742, apache/pulsar#25992",
    scope=Scope.NAMESPACE,
    policy=AckHolesPolicy,
    shards={
        "found": Query(
            FOUND, worst_first="critical desc, ack_holes / greatest(most, 1) desc, topic, subscription", detail=SLOWEST
        ),
        "held": Query(HELD, worst_first=MOST_FIRST, most=MAX_SUBSCRIPTIONS, detail=SLOWEST),
    },
    earlier={"held_before": LookBack(minutes=_looked_back_minutes, sql=BEFORE)},
    cluster={"read": BROKERS_READ, "silent": not_telling(MAX_RANGES)},
    judge=judge,
)
