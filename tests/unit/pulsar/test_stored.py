"""The metadata store's documents of a topic that is not loaded, as brokers of 4.0.7 answer them."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.pulsar.own_settings import StoredTopic

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
    ("topic", "consumed"),
    [
        (stored(), [8, 20]),
        (stored((8, 499)), [8]),
        (stored((8, 499), (20, 999)), [8]),
        (stored((5, 10)), []),
        (stored((8, -1), in_ledger=14), [8, 20]),
        (stored((20, 999), ledgers=[LAST]), []),
    ],
    ids=[
        "nobody reads",
        "begun",
        "the slowest counts",
        "nothing",
        "its position is in a ledger",
        "only the last ledger",
    ],
)
def test_what_may_be_consumed_is_told_as_far_as_positions_are_known(topic: StoredTopic, consumed: list[int]) -> None:
    """A closed ledger may be consumed unless the store tells that a cursor has not reached it."""
    assert [each.ledger_id for each in topic.consumed] == consumed


@pytest.mark.parametrize(("ledger", "since"), [(27, 2_000), (20, 1_000), (8, 1_795_547_605_727)])
def test_a_ledger_was_written_to_from_the_end_of_the_one_before(ledger: int, since: int) -> None:
    """What a ledger holds was published after the one before was closed, or after the topic was made."""
    topic = stored()
    assert topic.published_since(ledger) == since
    assert StoredTopic(ledgers=topic.ledgers[2:], cursors={}).published_since(27) is None


def test_a_ledger_that_is_written_to_was_not_closed() -> None:
    """The earliest closing from a ledger on is told, of a ledger that is gone that of the next; of the last none is."""
    topic = stored()
    assert [topic.closed_since(ledger) for ledger in (5, 8, 20, 27)] == [1_000, 1_000, 2_000, None]
