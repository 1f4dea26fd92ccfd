"""Which tracker of delayed messages a broker uses."""

from __future__ import annotations

TRACKER = "delayedDeliveryTrackerFactoryClassName"
"""The setting in ``broker.conf``."""

BUCKET_TRACKER = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
"""It holds only a part of the index in memory, and does not read the delayed backlog again. Any other, the default
too, is taken for one in memory."""
