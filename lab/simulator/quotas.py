"""The rules that a broker holds retention, backlog quota and message TTL to; pure functions.

Measured on Pulsar 4.0.7: only the quota of type ``destination_storage`` is compared with the retention, at namespace
and at topic level alike, in its size and in its time; a quota of type ``message_age`` is not compared with anything.
"""

from typing import Any

from lab.simulator.replies import Refusal

QUOTAS = "backlog_quota_map"
STORAGE, AGE = "destination_storage", "message_age"
TYPES = (STORAGE, AGE)
HOW = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
MB = 1024 * 1024
MINUTE_S = 60
UNLIMITED = -1

Quotas = dict[str, dict[str, Any]]
Retention = dict[str, int]


def fits(quotas: Quotas, retention: Retention | None) -> bool:
    """True if the storage quota stays under the retention, in size and in time; unset and unlimited ones do."""
    quota = quotas.get(STORAGE)
    if quota is None or retention is None:
        return True
    size_mb, minutes = retention["retentionSizeInMB"], retention["retentionTimeInMinutes"]
    size_fits = size_mb <= 0 or quota["limitSize"] < size_mb * MB
    return size_fits and (minutes <= 0 or quota["limitTime"] < minutes * MINUTE_S)


def limits(*maps: Quotas) -> tuple[int, int]:
    """Size in bytes and age in seconds that the backlog is held to; later maps win, -1 where none says."""
    quotas: Quotas = {}
    for each in maps:
        quotas |= each
    size = quotas.get(STORAGE, {}).get("limitSize", UNLIMITED)
    return int(size), int(quotas.get(AGE, {}).get("limitTime", UNLIMITED))


def defaults(configuration: dict[str, str]) -> Quotas:
    """Quota in force with these settings of a broker where no namespace or topic sets one."""
    size = int(configuration.get("backlogQuotaDefaultLimitBytes", UNLIMITED))
    age = int(configuration.get("backlogQuotaDefaultLimitSecond", UNLIMITED))
    return {STORAGE: {"limitSize": size}, AGE: {"limitTime": age}}


def quota_stored(given: dict[str, Any], where: str) -> dict[str, Any]:
    """The quota as the broker keeps it: what was left out is 0, not -1.

    Raises:
        Refusal: 400, the policy is missing or unknown.
    """
    if given.get("policy") not in HOW:
        text = (
            f"Set {where} backlog quota failed because the data validation failed. the attribute policy cannot be null"
        )
        raise Refusal(400, text)
    size = int(given.get("limitSize", given.get("limit", 0)))
    return {"limit": size, "limitSize": size, "limitTime": int(given.get("limitTime", 0)), "policy": given["policy"]}


def retention_stored(given: dict[str, Any]) -> Retention:
    """The retention as the broker keeps it.

    Raises:
        Refusal: 400, a limit is under -1, or one is 0 and the other is not.
    """
    minutes, size = int(given.get("retentionTimeInMinutes", 0)), int(given.get("retentionSizeInMB", 0))
    for name, limit in (("time", minutes), ("size", size)):
        if limit < -1:
            raise Refusal(400, f"Invalid retention policy: {name} limit must be >= -1")
    if (minutes == 0) != (size == 0):
        raise Refusal(
            400,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has"
            " a non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both"
            " limits must be set to 0.",
        )
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size}


def ttl_stored(seconds: int) -> int:
    """The TTL as the broker keeps it.

    Raises:
        Refusal: 412, it is negative.
    """
    if seconds < 0:
        raise Refusal(412, "Invalid value for message TTL, message TTL must >= 0")
    return seconds


def delays_stored(given: dict[str, Any]) -> dict[str, Any]:
    """Delayed delivery as the broker keeps it: what was left out is off, and 0."""
    return {
        "tickTime": int(given.get("tickTime", 0)),
        "active": bool(given.get("active", False)),
        "maxDeliveryDelayInMillis": int(given.get("maxDeliveryDelayInMillis", 0)),
    }


_QUORUMS = ("Ensemble", "WriteQuorum", "AckQuorum")
_MOST_QUORUM = 5
"""``managedLedgerMaxEnsembleSize``, ``...WriteQuorum`` and ``...AckQuorum`` by default."""


def persistence_stored(given: dict[str, Any]) -> dict[str, Any]:
    """Persistence as the broker keeps it: what was left out is 2, and no limit.

    Raises:
        Refusal: 400, a quorum is out of range, or E, Qw and Qa do not fall.
    """
    quorums = {name: int(given.get(f"bookkeeper{name}", 2)) for name in _QUORUMS}
    for name, number in quorums.items():
        if not 0 < number <= _MOST_QUORUM:
            raise Refusal(400, f"Bookkeeper-{name} must be <= {_MOST_QUORUM} and > 0.")
    ensemble, write, ack = quorums.values()
    if not ensemble >= write >= ack:
        raise Refusal(400, f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})")
    kept = {f"bookkeeper{name}": number for name, number in quorums.items()}
    return {**kept, "managedLedgerMaxMarkDeleteRate": float(given.get("managedLedgerMaxMarkDeleteRate", 0.0))}
