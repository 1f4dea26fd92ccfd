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

VIEWS = (DELAYED, DELAYED_TOLD, *rates.VIEWS)
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
