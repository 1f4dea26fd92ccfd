"""Consumers, producers and acknowledgements."""

from steward_spark.checks.clients.ack_holes import CHECK as ACK_HOLES
from steward_spark.checks.clients.connection_churn import CHECK as CONNECTION_CHURN
from steward_spark.checks.clients.consumer_fanout import CHECK as CONSUMER_FANOUT
from steward_spark.checks.clients.cursor_not_persistable import CHECK as CURSOR_NOT_PERSISTABLE
from steward_spark.checks.clients.producer_fanout import CHECK as PRODUCER_FANOUT
from steward_spark.checks.clients.subscription_blocked import CHECK as SUBSCRIPTION_BLOCKED
from steward_spark.checks.clients.subscription_stalled import CHECK as SUBSCRIPTION_STALLED

CHECKS = (
    SUBSCRIPTION_BLOCKED,
    SUBSCRIPTION_STALLED,
    ACK_HOLES,
    CURSOR_NOT_PERSISTABLE,
    CONSUMER_FANOUT,
    PRODUCER_FANOUT,
    CONNECTION_CHURN,
)
"""In the order in which they are carried out."""
