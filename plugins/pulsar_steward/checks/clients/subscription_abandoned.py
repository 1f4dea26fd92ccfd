"""Subscriptions without consumers for days whose backlog keeps growing.

A diagnosis reads a few hours of snapshots. The earlier findings in them hold the beginning of the absence, and the next
diagnosis continues from there. So days are counted without reading days of snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import BROKERS_READ, Check, Judgement, Query, Scope, nothing_read
from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.earlier import EarlierRows, looking_back, window_minutes
from pulsar_steward.decoding import decode
from pulsar_steward.model.finding import Figures, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import (
    HOUR,
    bytes_in_words,
    counted,
    epoch_in_words,
    number_in_words,
    seconds_in_words,
    time_in_words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class SubscriptionAbandonedPolicy(Section):
    """Thresholds for subscriptions without consumers."""

    warning_hours: int = number(192, "without a consumer: eight days, so that no weekly job looks abandoned")
    information_minutes: int = number(
        60, "the same; from then on it is told, and the next diagnosis goes on counting from there"
    )
    minimum_entries: int = number(1000, "of backlog; below it a subscription costs next to nothing")
    window_minutes: int = number(
        1560, "how old the snapshot before may be; further apart, absence in between is not proved"
    )


MARKER_BYTES, MARKERS_PER_SECOND = 256, 10.0
"""At most this size and rate have the markers of replicated subscriptions in a topic.

Brokers write some a second, each of about a hundred bytes (`replicatedSubscriptionsSnapshotFrequencyMillis`, 1000 by
default); only a connected consumer acknowledges them (apache/pulsar#6437).
"""

MAX_ROWS = 1000
"""Maximum number of subscriptions that are looked up in earlier snapshots, the largest backlogs first."""

_ASKED = """
    select topic, subscription,
        max(greatest(last_consumed_milliseconds, last_acked_milliseconds)) as moved_milliseconds,
        max(split_part(cursor_json, ',"written"', 1)) as cursor
    from drilled where subscription is not null group by topic, subscription
"""
"""Subscriptions of drilled topics. `cursor` is unchanged when a topic is loaded: creation time, position."""

# A time to live clears unread messages. A topic's own TTL does too, and shows only by its expiry rate: where that is no
# number, messages may expire, and nobody is told to delete the subscription.
WITHOUT_CONSUMERS = f"""
with asked as ({_ASKED})
select s.topic, s.subscription, s.namespace, s.broker, s.backlog_entries, t.backlog_bytes,
    coalesce(t.subscriptions, 1) as subscriptions, p.ttl_seconds is null as ttl_unknown, moved_milliseconds, cursor,
    case when t.replication_json is not null and t.producers = 0 and t.message_rate_in <= {MARKERS_PER_SECOND}
        and t.throughput_in_bytes <= {MARKER_BYTES} * t.message_rate_in then nullif(t.message_rate_in, 0)
        end as markers_per_second
from user_subscriptions s join limits l on l.namespace = s.namespace join topics t on t.topic = s.topic
    left join namespace_policies p on p.namespace = s.namespace
    left join asked on asked.topic = s.topic and asked.subscription = s.subscription
where s.consumers = 0 and s.backlog_entries >= l.minimum_entries and s.expired_rate <= 0
    and coalesce(p.ttl_seconds, 0) <= 0
"""

MOST_FIRST = "backlog_entries desc, topic, subscription"

BEFORE = f"""
select topic, subscription, consumers, coalesce(backlog_entries, 0) as backlog_entries,
    coalesce(expired_rate <= 0, false) as keeps, cursor
from raw_subscriptions semi join alone using (topic, subscription) left join ({_ASKED}) using (topic, subscription)
"""
"""The same subscriptions in an earlier snapshot."""

FOUND_BEFORE = "select subject, figures_json from findings where check_id = 'subscription-abandoned'"
"""Findings about subscriptions in an earlier snapshot."""


class AbandonedFigures(Figures, frozen=True, kw_only=True):
    """Figures of an absence, from which the next diagnosis continues.

    Attributes:
        beginning_seen: 1 if the snapshot before the absence shows a consumer, or no subscription; else 0.
        entries: The present backlog.
        entries_then: The backlog in the first snapshot without a consumer.
        since_epoch_seconds: Time of that snapshot.
        without_consumer_seconds: Time from that snapshot to this one.
    """

    beginning_seen: int
    entries: int
    entries_then: int
    since_epoch_seconds: int
    without_consumer_seconds: int


@dataclass(frozen=True)
class Absence:
    """A subscription without consumers, `since` the first of consecutive snapshots that show none."""

    row: Row
    subject: str
    severity: Severity
    since: datetime
    figures: AbandonedFigures

    @classmethod
    def of(
        cls,
        row: Row,
        subject: str,
        limits: SubscriptionAbandonedPolicy,
        before: EarlierRows,
        found_before: Mapping[tuple[datetime, str], Row],
    ) -> Absence | None:
        """Absence that has lasted long enough for a finding; None: too short, or the backlog did not grow.

        `found_before` are rows of `FOUND_BEFORE`, by the time of the snapshot and the subject.
        """
        alike = before.in_a_row(row, _without_consumer)
        if not alike:
            return cls._by_its_topic(row, subject, limits, before)
        known = next((found for each in alike if (found := found_before.get((each["taken_at"], subject)))), None)
        if known is not None:
            then = decode(known["figures_json"], AbandonedFigures)
            since, entries_then = datetime.fromtimestamp(then.since_epoch_seconds, UTC), then.entries_then
            seen = then.beginning_seen
        else:
            since, entries_then = alike[-1]["taken_at"], int(alike[-1]["backlog_entries"])
            seen = int(len(alike) < sum(1 for _ in before.told(row)))
        seconds = before.seconds_since(since)
        moved, markers = row["moved_milliseconds"] or 0, row["markers_per_second"]
        long = max(seconds, row["backlog_entries"] / markers if markers else 0)
        if long < 60 * limits.information_minutes or row["backlog_entries"] <= entries_then:
            return None
        if moved > since.timestamp() * 1000:
            return None  # somebody came and consumed between two snapshots
        days = timedelta(seconds=seconds) >= timedelta(hours=limits.warning_hours)
        severity = Severity.WARNING if (days or markers) and not row["ttl_unknown"] else Severity.INFO
        figures = AbandonedFigures(
            beginning_seen=seen,
            entries=row["backlog_entries"],
            entries_then=entries_then,
            since_epoch_seconds=int(since.timestamp()),
            without_consumer_seconds=seconds,
        )
        return cls(row, subject, severity, since, figures)

    @classmethod
    def _by_its_topic(
        cls, row: Row, subject: str, limits: SubscriptionAbandonedPolicy, before: EarlierRows
    ) -> Absence | None:
        """At the first look, an absence that has lasted for days by what the topic itself tells; None: it tells less.

        No snapshot has seen it yet: for a deletion its days begin now.
        """
        idle = before.taken_at.timestamp() - (row["moved_milliseconds"] or 0) / 1000
        known = (row["moved_milliseconds"] or 0) > 0 and next(before.told(row), None) is None
        if not known or idle < limits.warning_hours * HOUR:
            return None
        figures = AbandonedFigures(
            beginning_seen=0,
            entries=row["backlog_entries"],
            entries_then=row["backlog_entries"],
            since_epoch_seconds=int(before.taken_at.timestamp()),
            without_consumer_seconds=0,
        )
        severity = Severity.INFO if row["ttl_unknown"] else Severity.WARNING
        return cls(row, subject, severity, before.taken_at, figures)

    @property
    def evidence(self) -> str:
        """The subscription, since when nobody consumes it, and what its deletion would lose."""
        row, figures, seconds = self.row, self.figures, self.figures.without_consumer_seconds
        since = f"{time_in_words(self.since)} ({seconds_in_words(seconds, rounded=True)})"
        reach = "" if figures.beginning_seen else ", as far back as snapshots reach"
        seen = (
            f"had no consumer in any snapshot since {since}{reach}; its backlog grew from {figures.entries_then:,} to"
        )
        if not seconds:
            moved = epoch_in_words(row["moved_milliseconds"])
            seen = f"has no consumer, and by its topic's own times nothing of it moved since {moved}; its backlog is"
        words = (
            f"{self.subject} on {row['broker']} {seen} {counted(row['backlog_entries'], 'entry', 'entries')}. Deleting"
            f" it would lose these; the topic keeps {bytes_in_words(row['backlog_bytes'] or 0, rounded=True)} for its"
            f" slowest subscription, and has {counted(row['subscriptions'] - 1, 'other')}."
        )
        if row["markers_per_second"]:
            words += (
                f" Nobody publishes, and {number_in_words(round(row['markers_per_second'], 1))} entries/s of at most"
                f" {MARKER_BYTES} bytes come in: markers for replicated subscriptions, which only a connected consumer"
                " acknowledges. Connect one, delete the subscription in the cluster where nobody uses it, or stop"
                " replicating its state."
            )
        return words + (" Whether messages expire there was not read." if row["ttl_unknown"] else "")


def _without_consumer(newer: Row, older: Row) -> bool:
    """True if an earlier snapshot shows the same subscription, no consumer, no larger backlog and no expiry."""
    fell = newer["backlog_entries"] < older["backlog_entries"]
    another = None not in {newer["cursor"], older["cursor"]} and newer["cursor"] != older["cursor"]
    return older["consumers"] == 0 and not fell and older["keeps"] and not another


def judge(queried: Queried, context: CheckContext[SubscriptionAbandonedPolicy]) -> Judgement:
    """A warning after days without consumers, the longest absence first."""
    before = EarlierRows.of(queried["before"], context, window_minutes, "topic", "subscription")
    found_before = {(row["taken_at"], row["subject"]): row for row in queried["found_before"].rows}
    absences = [
        Absence.of(row, subject_of(row), context.limits_of(row["namespace"]), before, found_before)
        for row in queried["alone"].rows
    ]
    findings = [
        CHECK.finding(
            severity=each.severity, subject=each.subject, evidence=each.evidence, figures=each.figures.by_name
        )
        for each in sorted(filter(None, absences), key=lambda each: (each.since, each.subject))
    ]
    alone = queried["alone"]
    too_many = f"More than {counted(MAX_ROWS, 'subscription')} have no consumer; those that were looked up do not grow."
    have = counted(len(alone.rows), "subscription has", "subscriptions have")
    first = f"{have} no consumer, and this is the first snapshot."
    return Judgement(
        findings=tuple(findings),
        more=alone.more,
        quiet=context.in_each_part(
            lambda limits: (
                f"No subscription with {limits.minimum_entries:,} or more entries grows for"
                f" {counted(limits.information_minutes, 'minute')} without a consumer."
            )
        ),
        cannot_tell=(
            nothing_read(queried)
            or (too_many if alone.more else None)
            or (first if alone.rows and not context.about.earlier else None)
        ),
    )


CHECK = Check(
    check_id="subscription-abandoned",
    harm=Harm.SOON,
    order=25,
    title="Nobody consumes a subscription any more, and its backlog grows",
    advice=(
        "Ask the owners of the topic, and whoever last consumed it, whether anybody still needs the subscription.",
        "Needed: start its consumers, or give the namespace a time to live that clears what comes too late.",
        "Not needed: `pulsar-admin topics unsubscribe -s SUBSCRIPTION TOPIC`; what it has not read is lost to it.",
        "Deleted, it cannot be had back: a new one begins at the end, or with what other subscriptions still keep.",
        "Steward asks people to delete it where the policy says so (`subscriptions.delete_abandoned`), and never else.",
    ),
    source="docs/knowledge.md F; docs/checks/subscription-abandoned.md",
    scope=Scope.NAMESPACE,
    remedied_by="subscription_deletion",
    policy=SubscriptionAbandonedPolicy,
    shards={"alone": Query(WITHOUT_CONSUMERS, worst_first=MOST_FIRST, most=MAX_ROWS)},
    earlier={"before": looking_back(BEFORE), "found_before": looking_back(FOUND_BEFORE, small=True)},
    cluster={"read": BROKERS_READ},
    judge=judge,
)
