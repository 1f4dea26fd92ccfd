"""What checks of clients select from."""

from __future__ import annotations

from pulsar_steward.checks.views import View
from pulsar_steward.model.series import DELAYED_SERIES

DELAYED = View(
    "clients_delayed",
    f"""
    select topic, subscription, source as told_by, try_cast(trunc(value) as bigint) as messages
    from metrics where series = '{DELAYED_SERIES}' and topic is not null and subscription is not null
    union all
    select topic, subscription, null as told_by, delayed_messages as messages
    from drilled where subscription is not null
    """,
)
"""Delayed messages of subscriptions, a row each time they are told: `told_by` is a broker that exports its metrics, or
null where the topic's own statistics say it. Of the metrics only what is not 0 is there."""

DELAYED_TOLD = View(
    "clients_delayed_told", f"select distinct source as broker from metrics where series = '{DELAYED_SERIES}'"
)
"""Brokers that tell of delayed messages: a subscription of theirs without a row in `clients_delayed` has none."""

VIEWS = (DELAYED, DELAYED_TOLD)
