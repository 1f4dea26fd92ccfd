"""Number of delayed messages, and whether the snapshot has these figures at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Question
from pulsar_steward.checks.words import named
from pulsar_steward.model.series import DELAYED_SERIES

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers

GAP_SHARDS = {
    "tellers": Question("select source, source_kind, delayed from delayed_tellers"),
    "subscribed": Question("select broker from delayed_subscribed"),
}
GAP_CLUSTER = {
    "unmeasured": Question("""
        select broker from brokers
        anti join (select source as broker from tellers where source_kind = 'broker') using (broker) where read
    """),
    "silent": Question("""
        select distinct broker from subscribed
        anti join (select source as broker from tellers where source_kind = 'broker' and delayed) using (broker)
    """),
}
"""Questions for `gap`."""

TALLY = Question("select count(*) as subscriptions, sum(delayed_messages)::bigint as messages from delayed_waiting")
"""Question for `tally`."""

BY_BROKER = Question("""
    select broker, sum(delayed_messages)::bigint as messages, max(delayed_messages) as most
    from delayed_waiting group by broker
""")
"""Delayed messages by the broker that holds their topics: `broker`, `messages`, `most` (of one subscription)."""


def gap(answers: Answers) -> str | None:
    """Reason why the absence of delayed messages proves nothing, in a sentence; None if it does."""
    unmeasured = [row["broker"] for row in answers["unmeasured"].rows]
    if unmeasured:
        return f"Brokers whose Prometheus series were not read say nothing of delayed messages: {named(unmeasured)}."
    silent = [row["broker"] for row in answers["silent"].rows]
    if silent:
        return (
            f"Brokers do not tell {DELAYED_SERIES}, though they have subscriptions"
            f" (exposeTopicLevelMetricsInPrometheus may be off): {named(silent)}."
        )
    return None


def tally(answers: Answers) -> tuple[int, int]:
    """Number of subscriptions with delayed messages, and of these messages; from the question `tally`."""
    rows = answers["tally"].rows
    return sum(row["subscriptions"] for row in rows), sum(row["messages"] or 0 for row in rows)
