"""The resources of brokers and bookies: garbage collection, memory, metadata, ledgers, threads."""

from __future__ import annotations

from pulsar_steward.checks.resources import slowness

TITLE = "Resources of brokers and bookies"
"""Title of this group of checks."""

VIEWS = slowness.VIEWS
"""Views that the queries of these checks use besides `pulsar_steward.checks.views`; later ones may use earlier ones."""
