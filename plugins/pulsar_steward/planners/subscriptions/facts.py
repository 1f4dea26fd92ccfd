"""Facts of abandoned subscriptions with findings, read from a snapshot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.checks.clients.subscription_abandoned import AbandonedFigures
from pulsar_steward.decoding import decode
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.subscription import Cursor, SubscriptionState, holding
from pulsar_steward.model.topics import PARTITION_END, namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.snapshots.read import Snapshot


class SubscriptionFact(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with a finding of abandonment.

    Attributes:
        subject: Subject of the finding.
        namespace: ``tenant/namespace``.
        topic: Full name of the topic, or of one partition.
        subscription: Its name.
        cursor: Its identity.
        state: Its state at the snapshot.
        consumers_beside: Consumers of the same-named subscription on the topic's other partitions.
        since: Time of the first of the consecutive snapshots without a consumer, UTC.
        entries_then: Its backlog at that time, in entries.
        seconds: Time from then to the snapshot.
    """

    subject: str
    namespace: str
    topic: str
    subscription: str
    cursor: Cursor
    state: SubscriptionState
    consumers_beside: int
    since: datetime
    entries_then: int
    seconds: int


_ABANDONED = f"""
    with told as (select *, regexp_replace(topic, '{PARTITION_END}', '') as whole, coalesce(consumers, 0) as connected
        from subscriptions where namespace in (select unnest($names))),
    beside as (select whole, subscription, sum(connected)::bigint as consumers from told group by whole, subscription),
    together as (select topic, list(subscription) as subscriptions from told group by topic)
    select namespace, topic, subscription, cursor_json, connected,
        coalesce(backlog_entries, 0) as entries, coalesce(t.backlog_bytes, 0) as topic_bytes,
        greatest(coalesce(last_consumed_milliseconds, 0), coalesce(last_acked_milliseconds, 0)) as moved_milliseconds,
        list_filter(subscriptions, lambda name: name <> subscription) as others,
        beside.consumers - connected as consumers_beside
    from told join (select topic, backlog_bytes from topics) t using (topic) join together using (topic)
        join beside using (whole, subscription)
        join (select topic, subscription, cursor_json, last_consumed_milliseconds, last_acked_milliseconds from drilled
            where cursor_json is not null) using (topic, subscription)"""


class _Abandoned(msgspec.Struct, frozen=True):
    namespace: str
    topic: str
    subscription: str
    cursor_json: str
    connected: int
    entries: int
    topic_bytes: int
    moved_milliseconds: int
    others: tuple[str, ...]
    consumers_beside: int


def subscription_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[SubscriptionFact, ...]:
    """Facts of the subscriptions with warnings of abandonment and a known cursor, by subject.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    named = {
        each.subject: AbandonedFigures.of(each)
        for each in findings
        if each.check_id == SUBSCRIPTION_ABANDONED.check_id and each.severity.rank >= Severity.WARNING.rank
    }
    if not named:
        return ()
    rows = snapshot.select(_ABANDONED, _Abandoned, names=sorted(set(map(namespace_of, named))))
    found = {subject_of({"topic": row.topic, "subscription": row.subscription}): row for row in rows}
    return tuple(
        SubscriptionFact(
            subject=subject,
            namespace=row.namespace,
            topic=row.topic,
            subscription=row.subscription,
            cursor=(cursor := decode(row.cursor_json, Cursor)),
            state=SubscriptionState(
                consumers=row.connected,
                entries=row.entries,
                topic_bytes=row.topic_bytes,
                moved_milliseconds=row.moved_milliseconds,
                cursor=cursor,
                others=holding(row.others),
            ),
            consumers_beside=row.consumers_beside,
            since=datetime.fromtimestamp(named[subject].since_epoch_seconds, UTC),
            entries_then=named[subject].entries_then,
            seconds=named[subject].without_consumer_seconds,
        )
        for subject, row in sorted(found.items())
        if subject in named
    )
