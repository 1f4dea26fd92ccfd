"""What brokers are configured to, as far as it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.frames import derived_once

if TYPE_CHECKING:
    from steward_spark.frames import Frames

BUCKET_TRACKER = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"


def texts(frames: Frames, key: str) -> dict[str, str]:
    """One setting by broker; brokers that did not tell it are absent."""
    return dict(_by_key(frames).get(key, {}))


@derived_once
def _by_key(frames: Frames) -> dict[str, dict[str, str]]:
    """All settings at once, by key and broker: a few dozen of each broker."""
    settings: dict[str, dict[str, str]] = {}
    for row in frames.configuration.where(F.col("value").isNotNull()).collect():
        settings.setdefault(row["key"], {})[row["broker"]] = row["value"]
    return settings


def numbers(frames: Frames, key: str) -> dict[str, int]:
    """One numeric setting by broker; what is no whole number is absent."""
    return {
        broker: int(value) for broker, value in texts(frames, key).items() if value.strip().removeprefix("-").isdigit()
    }


def smallest_limit(frames: Frames, key: str) -> int | None:
    """The tightest of the brokers' limits; None where none is told or all are off (zero or below)."""
    return min((value for value in numbers(frames, key).values() if value > 0), default=None)


def trackers(frames: Frames) -> dict[str, str]:
    """The factory of the delayed-delivery tracker by broker, as far as it was read."""
    return texts(frames, "delayedDeliveryTrackerFactoryClassName")
