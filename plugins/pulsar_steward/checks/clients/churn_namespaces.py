"""Namespaces of many small topics whose clients are mostly new, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.clients.churn_brokers import COUNTED, YOUNG_SECONDS
from pulsar_steward.checks.clients.in_a_row import each_since
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.clients.in_a_row import EarlierRows


# Views are not named here: naming one would compute it for a whole earlier snapshot.
def _counted(topics: str, subscriptions: str) -> str:
    """SQL for small topics, their clients and new ones by namespace; readers and Pulsar's own clients are left out."""
    return f"""
    small as (
        select topic, namespace, coalesce(producers, 0) + coalesce(consumers, 0) as connected,
            coalesce(producers_connected_recently, 0) as new_producers
        from {topics} where connected > 0 and connected < $minimum_clients),
    by_topic as (
        select namespace, count(*) as small_topics, sum(connected)::bigint as connected,
            sum(new_producers)::bigint as new_producers
        from small group by namespace),
    by_subscription as (
        select small.namespace, sum(consumers_connected_recently)::bigint as new_consumers
        from {subscriptions} subscribed join small using (topic)
        where consumers_connected_recently > 0 group by small.namespace)
    select namespace, small_topics, connected, new_producers + coalesce(new_consumers, 0) as recent
    from by_topic left join by_subscription using (namespace)
    """


_OLD_TOPICS = f"(user_topics anti join (from counted where uptime_seconds < {YOUNG_SECONDS}) using (broker))"

SMALL_TOPICS = f"""
with counted as ({COUNTED}), {_counted(_OLD_TOPICS, "user_subscriptions")}
where recent > 0
"""
"""Small topics by namespace, without those of brokers that just started."""

_SUMS = """
select namespace, sum(small_topics)::bigint as small_topics, sum(connected)::bigint as connected,
    sum(recent)::bigint as recent, sum(recent) * 100 >= sum(connected) * $warning_recent_percent as mostly_new
"""

CROWDS = f"""
{_SUMS} from in_small group by namespace having sum(connected) >= $minimum_clients_of_namespace and mostly_new
"""

_EARLIER_TOPICS = "(select * from raw_topics semi join crowded using (namespace) where of_users(topic))"

_EARLIER_SUBSCRIPTIONS = """(
    select topic, consumers_connected_recently from raw_subscriptions
    where consumers_connected_recently > 0 and not starts_with(subscription, '__') and not is_reader(subscription))"""

BEFORE = f"""
with crowded as (select namespace from ({CROWDS})), {_counted(_EARLIER_TOPICS, _EARLIER_SUBSCRIPTIONS)}
"""
"""The same namespaces in a shard of an earlier snapshot."""

BEFORE_TOGETHER = f"{_SUMS}, taken_at from in_small_before group by namespace, taken_at"


@dataclass(frozen=True)
class NewClientsOfNamespace:
    """A namespace with many clients on small topics, most of which are new.

    Attributes:
        row: A row of `CROWDS`.
        recent_minutes: Minutes for which a client counts as new.
        before: Rows of earlier snapshots.
    """

    row: Row
    recent_minutes: int
    before: EarlierRows

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots in which most clients were new, and not the same as now, the newest first."""
        return self.before.in_a_row(self.row, _mostly_new, self._until)

    @property
    def severity(self) -> Severity | None:
        """Severity by the earlier snapshots; None: they were different, as after a deployment or a move."""
        if self.before.keep_on(self.alike, 2 * self.recent_minutes):
            return Severity.WARNING
        seen = next(self.before.told(self.row, self._until), None) is not None
        return Severity.INFO if self.alike or not seen else None

    def finding(self, check_id: str, small: int) -> Finding | None:
        """Finding, or None; topics with fewer clients than `small` are those that are counted."""
        row, severity = self.row, self.severity
        if severity is None:
            return None
        explained = (
            f"it was so {each_since(self.alike)} too" if self.alike else "a deployment or a move would look the same"
        )
        return Finding(
            check_id=check_id,
            severity=severity,
            subject=row["namespace"],
            evidence=(
                f"{row['recent']:,} of the {row['connected']:,} clients of {row['small_topics']:,} topics of"
                f" {row['namespace']} that have fewer than {small:,} each connected in the last"
                f" {self.recent_minutes} min; {explained}."
            ),
            figures={
                "clients": row["connected"],
                "clients_connected_recently": row["recent"],
                "topics": row["small_topics"],
            },
        )

    @property
    def _until(self) -> datetime:
        return self.before.taken_at - timedelta(minutes=self.recent_minutes)


def _mostly_new(_newer: Row, older: Row) -> bool:
    return bool(older["mostly_new"])
