"""Consumers, producers and acknowledgements."""

from __future__ import annotations

from pulsar_steward.checks.clients import rates
from pulsar_steward.checks.views import SqlView
from pulsar_steward.model.measures import DELAYED_SERIES

TITLE = "Clients and acknowledgements"
"""Title of this group of checks."""

DELAYED = SqlView(
    "clients_delayed",
    f"""
    select topic, subscription, source as told_by, try_cast(trunc(value) as bigint) as messages
    from metrics where series = '{DELAYED_SERIES}' and topic is not null and subscription is not null
    union all
    select topic, subscription, null as told_by, delayed_messages as messages
    from drilled where subscription is not null
    """,
)
"""Delayed messages of subscriptions, one row for each report.

`told_by` is a broker that exports its metrics; null: the topic's own statistics. Metrics have rows only for figures
other than 0.
"""

DELAYED_TOLD = SqlView(
    "clients_delayed_told", f"select distinct source as broker from metrics where series = '{DELAYED_SERIES}'"
)
"""Brokers that export delayed messages: their subscriptions without a row in `clients_delayed` have none."""

_HOLDER = (
    '[{"consumer": "VARCHAR", "address": "VARCHAR", "connected_since": "VARCHAR", "unacked_messages": "BIGINT",'
    ' "messages_per_entry": "BIGINT",'
    ' "acked_milliseconds": "BIGINT", "consumed_milliseconds": "BIGINT", "draining_hashes": "BIGINT",'
    ' "draining_messages": "BIGINT"}]'
)

HOLDERS = SqlView(
    "clients_holders",
    f"""
    select topic, subscription, consumers_waiting, holder.*,
        nullif(greatest(holder.acked_milliseconds, holder.consumed_milliseconds,
            coalesce(epoch_ms(try_cast(holder.connected_since as timestamptz)), 0)), 0) as rested_since_milliseconds
    from (
        select topic, subscription, coalesce(consumers_waiting, 0) as consumers_waiting,
            unnest(json_transform(valid(holders_json), '{_HOLDER}')) as holder
        from drilled where subscription is not null and holders_json is not null)
    """,
)
"""Consumers that hold messages, by their topics' own statistics: the worst few of each subscription.

`rested_since_milliseconds` is when a consumer got or acknowledged something for the last time, or, if it never did,
when it connected; null: not told.
"""

VIEWS = (DELAYED, DELAYED_TOLD, HOLDERS, *rates.VIEWS)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
