"""Every check there is."""

from __future__ import annotations

from steward_spark.checks.bundle_topic_skew import CHECK as BUNDLE_TOPIC_SKEW
from steward_spark.checks.tc_skew import CHECK as TC_SKEW

CHECKS = (TC_SKEW, BUNDLE_TOPIC_SKEW)
"""In the order in which they are carried out."""
