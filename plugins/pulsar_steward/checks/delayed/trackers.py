"""Trackers of delayed messages that a broker may use."""

from __future__ import annotations

TRACKER = "delayedDeliveryTrackerFactoryClassName"
"""Name of the setting in ``broker.conf``."""

BUCKET_TRACKER = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
"""Factory of the bucket tracker.

It holds only a part of the index in memory, and does not read the delayed backlog again. Any other tracker, the default
too, is taken to be in memory.
"""
