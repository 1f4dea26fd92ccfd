"""Placement of coordinators, topics, bundles and load."""

from __future__ import annotations

from pulsar_steward.checks.placement import views

TITLE = "Where things are"
"""Title of this section of the guide."""

VIEWS = views.VIEWS
"""Views that these checks' questions use besides `pulsar_steward.checks.views`, in order of dependence."""
