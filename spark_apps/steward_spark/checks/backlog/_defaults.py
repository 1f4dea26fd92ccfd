"""The brokers' own settings that stand where a namespace sets nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.frames import derived_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steward_spark.frames import Frames

_GIB = 1024**3

GIGABYTES, BYTES = "backlogQuotaDefaultLimitGB", "backlogQuotaDefaultLimitBytes"
SECONDS, POLICY = "backlogQuotaDefaultLimitSecond", "backlogQuotaDefaultRetentionPolicy"
RETENTION_MINUTES, RETENTION_MB = "defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB"
TTL = "ttlDurationDefaultInSeconds"
KEYS = (GIGABYTES, BYTES, SECONDS, POLICY, RETENTION_MINUTES, RETENTION_MB, TTL)


@dataclass(frozen=True)
class Defaults:
    """What brokers do where nothing is set; None: it was not read.

    Attributes:
        limit_bytes: Size quota; under 0: none.
        limit_seconds: Age quota; 0 or under: none.
        policy: What happens when a quota is exceeded.
        retention_minutes: Retention in time; -1: unlimited.
        retention_megabytes: Retention in size; -1: unlimited. Both 0: nothing is retained.
        ttl_seconds: Time to live; 0: none.
    """

    limit_bytes: int | None = None
    limit_seconds: int | None = None
    policy: str | None = None
    retention_minutes: int | None = None
    retention_megabytes: int | None = None
    ttl_seconds: int | None = None

    def unknown(self, *names: str) -> str | None:
        """Why nothing can be said of namespaces that rest on these defaults; None where all are known."""
        missing = [each.name for each in fields(self) if each.name in names and getattr(self, each.name) is None]
        if not missing:
            return None
        return f"What brokers do where a namespace sets nothing was not read: {', '.join(missing)}."


@derived_once
def defaults_of(frames: Frames) -> Defaults:
    """The defaults of most brokers; of equally frequent values the lowest text, so that they are the same each time."""
    wanted = frames.configuration.where(F.col("key").isin(*KEYS) & F.col("value").isNotNull())
    counts = wanted.groupBy("key", "value").agg(F.count("*").alias("brokers")).collect()
    rising = sorted(counts, key=lambda row: (row["brokers"], [-ord(letter) for letter in row["value"]]))
    return parsed({row["key"]: row["value"] for row in rising})


def parsed(values: Mapping[str, str]) -> Defaults:
    """The defaults in settings by key; the size in gigabytes, where it is above 0, goes before that in bytes."""
    gigabytes, size = _number(values.get(GIGABYTES)), _whole(values.get(BYTES))
    return Defaults(
        limit_bytes=int(gigabytes * _GIB) if gigabytes is not None and gigabytes > 0 else size,
        limit_seconds=_whole(values.get(SECONDS)),
        policy=values.get(POLICY),
        retention_minutes=_whole(values.get(RETENTION_MINUTES)),
        retention_megabytes=_whole(values.get(RETENTION_MB)),
        ttl_seconds=_whole(values.get(TTL)),
    )


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)
