"""The metadata store's documents of a topic that is not loaded, as brokers of 4.0.7 answer them."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.admin.stored import StoredTopic

LAST = {"ledgerId": 27, "timestamp": 1_795_548_071_657, "isOffloaded": False}
CLOSED = [
    {"ledgerId": 8, "entries": 1000, "size": 130_000, "timestamp": 1_000, "isOffloaded": False},
    {"ledgerId": 20, "entries": 1000, "size": 260_000, "timestamp": 2_000, "isOffloaded": False},
]


def stored(*positions: tuple[int, int], in_ledger: int = -1, ledgers: list[object] | None = None) -> StoredTopic:
    """A topic with a subscription for each mark-delete position."""
    cursors = {
        f"sub-{number}": {
            "version": 1,
            "cursorsLedgerId": in_ledger,
            "markDelete": {"ledgerId": ledger, "entryId": entry},
        }
        for number, (ledger, entry) in enumerate(positions)
    }
    document = {
        "version": 3,
        "creationDate": "2026-11-24T19:13:25.727Z",
        "ledgers": [*CLOSED, LAST] if ledgers is None else ledgers,
        "cursors": cursors,
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=StoredTopic)


@pytest.mark.parametrize(
    ("topic", "backlog", "closed"),
    [
        (stored((8, -1)), 390_000, 1_000),
        (stored((8, 499)), 325_000, 1_000),
        (stored((8, 999)), 260_000, 2_000),
        (stored((20, 899)), 26_000, 2_000),
        (stored((20, 999)), 0, None),
        (stored((5, 10)), 390_000, 1_000),
        (stored((20, 899), (8, 999)), 260_000, 2_000),
        (stored(), 0, None),
        (stored((8, -1), in_ledger=14), 0, None),
        (stored((8, -1), ledgers=[LAST]), 0, None),
        (stored((8, -1), ledgers=[]), 0, None),
    ],
    ids=[
        "nothing is consumed",
        "half of a ledger",
        "a whole ledger",
        "part of the last closed one",
        "all that is known of",
        "a ledger that is gone",
        "the slowest counts",
        "no subscription",
        "its position is in a ledger",
        "only the last ledger",
        "never loaded",
    ],
)
def test_a_backlog_is_told_as_far_as_ledgers_are_closed(topic: StoredTopic, backlog: int, closed: int | None) -> None:
    """The least backlog is the size of the closed ledgers after the slowest position that the store has."""
    assert (topic.least_backlog_bytes, topic.oldest_closed_milliseconds) == (backlog, closed)


def test_pulsars_own_cursors_are_no_subscriptions() -> None:
    """Pulsar's own cursors, for deduplication and replication, are not counted as subscriptions."""
    topic = StoredTopic(
        cursors=dict.fromkeys(["pulsar.dedup", "pulsar.repl.west", "b", "a"], stored((8, -1)).cursors["sub-0"])
    )
    assert topic.subscriptions == ("a", "b")
