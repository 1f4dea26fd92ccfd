"""The quotas in force for each loaded topic, and how full they are.

A topic's own quota goes before its namespace's. It is known of drilled topics only; elsewhere the namespace's counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question
from pulsar_steward.checks.views import View

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer


def holds_producers(policy: str) -> str:
    """SQL: whether a column's policy shuts producers out; `producer_request_hold` and `producer_exception` both do."""
    return f"coalesce(starts_with({policy}, 'producer_'), false)"


TOPICS_UNDER_POLICIES = """
select t.topic, t.namespace, t.producers, t.storage_bytes, t.backlog_bytes, t.throughput_in_bytes,
    d.topic is not null as drilled, d.oldest_seconds, d.slowest_subscription, d.delayed_messages,
    case when d.topic is null then p.limit_bytes else coalesce(d.topic_limit_bytes, -1) end as limit_bytes,
    case when d.topic is null then p.limit_seconds else coalesce(d.topic_limit_seconds, -1) end as limit_seconds,
    coalesce(d.topic_bytes_policy, p.bytes_policy) as bytes_policy,
    coalesce(d.topic_seconds_policy, p.seconds_policy) as seconds_policy,
    coalesce(d.topic_retention_minutes, p.retention_minutes) as retention_minutes,
    coalesce(d.topic_retention_megabytes, p.retention_megabytes) as retention_megabytes
from user_topics t join namespace_policies p using (namespace) left join drilled_topics d using (topic)
"""
"""Ordinary loaded topics of namespaces whose policies are known.

Of the table `topics`: `topic`, `namespace`, `producers`, `storage_bytes`, `backlog_bytes`, `throughput_in_bytes`;
`drilled`, whether its own statistics were read, and of these `oldest_seconds`, `slowest_subscription` and
`delayed_messages`, null elsewhere; in force, as of `namespace_policies`: `limit_bytes`, `bytes_policy`,
`limit_seconds`, `seconds_policy`, `retention_minutes`, `retention_megabytes`.
"""

QUOTAS_IN_FORCE = """
select *,
    -- A limit of 0 is full at all times: the broker compares with `>=`.
    case when limit_bytes = 0 then 100 when limit_bytes > 0
        then floor(backlog_bytes * 100::double / limit_bytes)::bigint end as bytes_percent,
    case when limit_seconds > 0
        then floor(oldest_seconds * 100::double / limit_seconds)::bigint end as seconds_percent
from topics_under_policies
"""
"""The same, with how full their quotas are: null where there is no limit or the age is not known."""

PRESSED = """
select * from quotas_in_force where greatest(bytes_percent, seconds_percent) >= 1
"""
"""Those of the same whose backlog takes any of a quota: 1 % or more, which is the least that a threshold may be."""

AGES_NOT_READ = """
select topic, namespace, producers, backlog_bytes, seconds_policy
from user_topics join (from namespace_policies where limit_seconds > 0) using (namespace)
    anti join drilled_topics using (topic)
"""
"""Topics under an age quota that nobody asked how old their backlog is.

Where a drilled topic tells no age, the broker does not know it either, and so does not act on it.
"""

VIEWS = (
    View("topics_under_policies", TOPICS_UNDER_POLICIES),
    View("quotas_in_force", QUOTAS_IN_FORCE),
    View("pressed", PRESSED, kept=True),
    View("ages_not_read", AGES_NOT_READ),
)
"""They need those of `pulsar_steward.checks.backlog.policies`."""


def ages_not_read(of: str = "true") -> Question:
    """How many topics with a backlog are under an age quota but not asked for their age, for `unknown_ages`.

    Args:
        of: SQL: which of the topics matter.
    """
    return Question(f"""
        select count(*) as topics, min(topic) as topic from ages_not_read where backlog_bytes > 0 and {of}
    """)


def unknown_ages(answer: Answer) -> str | None:
    """Why silence about age quotas is no health; None where every topic with such a quota and a backlog was drilled."""
    topics = sum(row["topics"] for row in answer.rows)
    if not topics:
        return None
    first = min(row["topic"] for row in answer.rows if row["topics"])
    return (
        f"{topics:,} topics with an age quota have a backlog whose age was not read, {first} among"
        " them (collect.drilled_topics bounds how many are asked)."
    )
