"""Parts of namespace documents as a broker writes them."""

from __future__ import annotations

from typing import Any

HOLD, EVICT = "producer_request_hold", "consumer_backlog_eviction"


def size(limit: int, policy: str = HOLD) -> dict[str, Any]:
    return {"destination_storage": {"limit": limit, "limitSize": limit, "limitTime": -1, "policy": policy}}


def age(limit: int, policy: str = HOLD) -> dict[str, Any]:
    return {"message_age": {"limit": -1, "limitSize": -1, "limitTime": limit, "policy": policy}}


def retention(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
