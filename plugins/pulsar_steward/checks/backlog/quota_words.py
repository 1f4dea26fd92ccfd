"""Report text and figures about a quota: its usage, and the effect of exceeding it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row

_CONSEQUENCES = {
    "producer_request_hold": "all producers are cut off and new ones are refused until the backlog is below it",
    "producer_exception": "all producers are cut off and new ones are refused with an exception",
    "consumer_backlog_eviction": "the oldest messages that nobody has consumed are dropped",
}


def consequence(policy: str | None) -> str:
    """Effect of that policy on a topic over its quota."""
    return _CONSEQUENCES.get(policy or "", "what happens is not known, as its policy was not read")


def in_brackets(policy: str | None) -> str:
    """Name of the policy in brackets, behind a blank; empty: it was not read."""
    return f" ({policy})" if policy else ""


def size_quota(row: Row) -> str:
    """Usage of the size quota; an impossible one of 0 bytes is named as such."""
    if row["limit_bytes"] == 0:
        return (
            f"the backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, and a size quota of 0 bytes is"
            f" exceeded by any"
        )
    return (
        f"the backlog is {bytes_in_words(row['backlog_bytes'], rounded=True)}, {row['bytes_percent']:,} % of the size"
        f" quota of {bytes_in_words(row['limit_bytes'], rounded=True)}"
    )


def age_quota(row: Row) -> str:
    """Usage of the age quota."""
    return (
        f"the oldest message of the backlog is {seconds_in_words(row['oldest_seconds'], rounded=True)} old,"
        f" {row['seconds_percent']:,} % of the age quota of {seconds_in_words(row['limit_seconds'], rounded=True)}"
    )


def figures(row: Row) -> dict[str, int]:
    """Figures of a row of `quotas_in_force`, as far as they are known."""
    names = {
        "backlog_bytes": "backlog_bytes",
        "bytes_percent": "bytes_percent",
        "delayed_messages": "delayed_messages",
        "limit_bytes": "limit_bytes",
        "limit_seconds": "limit_seconds",
        "oldest_backlog_age_seconds": "oldest_seconds",
        "producers": "producers",
        "seconds_percent": "seconds_percent",
    }
    return {name: row[column] for name, column in names.items() if row[column] is not None}


def capitalised(sentence: str) -> str:
    """The sentence with a capital first letter; the rest stays as it is."""
    return sentence[:1].upper() + sentence[1:]


def set_by(who: str) -> str:
    """Place where a value is set: topic, namespace or default."""
    return "the brokers' default" if who == "default" else f"set by the {who}"


def delayed_words(row: Row) -> str:
    """Further sentence about delayed messages; empty if there are none, or it is not known."""
    count = row["delayed_messages"]
    return f" {counted(count, 'delayed message')} {'counts' if count == 1 else 'count'} as backlog." if count else ""
