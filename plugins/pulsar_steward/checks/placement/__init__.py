"""Where things are: coordinators, topics, bundles, load."""

from __future__ import annotations

from pulsar_steward.checks.placement import views

TITLE = "Where things are"
"""What this part of the guide is called."""

VIEWS = views.VIEWS
"""What the questions of these checks select from beside `pulsar_steward.checks.views`, in the order of dependence."""
