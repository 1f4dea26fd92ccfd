"""Where things are: coordinators, topics, bundles, load."""

from steward_spark.checks.placement.broker_load_skew import CHECK as BROKER_LOAD_SKEW
from steward_spark.checks.placement.bundle_flapping import CHECK as BUNDLE_FLAPPING
from steward_spark.checks.placement.bundle_topic_skew import CHECK as BUNDLE_TOPIC_SKEW
from steward_spark.checks.placement.hot_bundle import CHECK as HOT_BUNDLE
from steward_spark.checks.placement.tc_skew import CHECK as TC_SKEW

CHECKS = (TC_SKEW, BUNDLE_TOPIC_SKEW, BROKER_LOAD_SKEW, HOT_BUNDLE, BUNDLE_FLAPPING)
"""In the order in which they are carried out."""
