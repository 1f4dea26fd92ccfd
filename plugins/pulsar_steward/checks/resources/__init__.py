"""The resources of brokers and bookies: garbage collection, memory, metadata, ledgers, threads."""

from __future__ import annotations

from pulsar_steward.checks.resources import views

TITLE = "Resources of brokers and bookies"
"""What this part of the guide is called."""

VIEWS = views.VIEWS
"""What the questions of these checks select from beside `pulsar_steward.checks.views`, in the order of dependence."""
