"""The resources of brokers and bookies: garbage collection, memory, metadata, ledgers, threads."""

from __future__ import annotations

from pulsar_steward.checks.resources import views

TITLE = "Resources of brokers and bookies"
"""Title of this section of the guide."""

VIEWS = views.VIEWS
"""Views that these checks' questions use besides `pulsar_steward.checks.views`, in order of dependence."""
