"""Delayed messages and the capacity of a cluster."""

from steward_spark.checks.delayed.cluster_placement import CHECK as CLUSTER_PLACEMENT
from steward_spark.checks.delayed.delayed_bucket_count import CHECK as DELAYED_BUCKET_COUNT
from steward_spark.checks.delayed.delayed_holds_ledgers import CHECK as DELAYED_HOLDS_LEDGERS
from steward_spark.checks.delayed.delayed_index_memory import CHECK as DELAYED_INDEX_MEMORY
from steward_spark.checks.delayed.delayed_index_multiplied import CHECK as DELAYED_INDEX_MULTIPLIED
from steward_spark.checks.delayed.delayed_past_ttl import CHECK as DELAYED_PAST_TTL
from steward_spark.checks.delayed.failover_time import CHECK as FAILOVER_TIME
from steward_spark.checks.delayed.partition_ceiling import CHECK as PARTITION_CEILING

CHECKS = (
    DELAYED_PAST_TTL,
    DELAYED_HOLDS_LEDGERS,
    DELAYED_INDEX_MEMORY,
    DELAYED_INDEX_MULTIPLIED,
    DELAYED_BUCKET_COUNT,
    PARTITION_CEILING,
    FAILOVER_TIME,
    CLUSTER_PLACEMENT,
)
"""In the order in which they are carried out."""
