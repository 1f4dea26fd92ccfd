"""Since when the topics of a bundle have clients."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pulsar_steward.admin.statistics import (
    ConsumerStatistics,
    PublisherStatistics,
    SubscriptionStatistics,
    TopicStatistics,
)
from pulsar_steward.collect.clients import ClientFigures
from pulsar_steward.collect.first_clients import FirstClients
from pulsar_steward.collect.recent import Recent

BUNDLE = ("t/n", "0x00000000_0xffffffff")
NOON = "2026-01-01T12:00:00Z"
RECENT = Recent(datetime(2026, 1, 1, tzinfo=UTC), 10)


def topic(*producers: str, consumers: tuple[str, ...] = ()) -> TopicStatistics:
    """A topic with clients that connected then; each consumer is of a subscription of its own."""
    return TopicStatistics(
        publishers=[PublisherStatistics(connected_since=each) for each in producers],
        subscriptions={
            f"s-{number}": SubscriptionStatistics(consumers=[ConsumerStatistics(connected_since=each)])
            for number, each in enumerate(consumers)
        },
    )


def at(second: int) -> datetime:
    """Returns the time this many seconds after noon."""
    return datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC)


LATER = "2026-01-01T12:00:30Z"
CASES: dict[str, tuple[list[TopicStatistics], tuple[int, datetime | None, datetime | None]]] = {
    "none": ([], (0, None, None)),
    "without clients": ([topic(), topic(consumers=())], (0, None, None)),
    "the first client of a topic": ([topic(LATER, NOON)], (1, at(0), at(0))),
    "a consumer may be it": ([topic(LATER, consumers=(LATER, NOON))], (1, at(0), at(0))),
    "or a producer": ([topic(NOON, consumers=(LATER,))], (1, at(0), at(0))),
    "of ten topics the last does not count": ([topic(NOON)] * 9 + [topic(LATER)], (10, at(0), at(0))),
    "the last but one does": ([topic(NOON)] * 8 + [topic(LATER)] * 2, (10, at(0), at(30))),
    "a broker's own zone, and its nine digits": ([topic("2026-01-01T13:00:05.123456789+01:00")], (1, at(5), at(5))),
    "no time": ([topic(""), topic("yesterday")], (1, None, None)),
}


@pytest.mark.parametrize(("topics", "expected"), CASES.values(), ids=CASES)
def test_first_clients(topics: list[TopicStatistics], expected: tuple[int, datetime | None, datetime | None]) -> None:
    """A bundle's topics with clients are counted, with their connection times, also when it is read in parts."""
    for size in (1, len(topics) or 1):
        clients = FirstClients()
        for start in range(0, len(topics), size):
            part = {f"persistent://t/n/{number}": each for number, each in enumerate(topics[start : start + size])}
            clients.add(BUNDLE, ClientFigures(part, RECENT).first_connected)
        count, *times = clients.of(BUNDLE)
        assert (count, *(each and each.replace(microsecond=0) for each in times)) == expected


def test_a_bundle_that_was_not_read_tells_nothing() -> None:
    """A bundle that was not read has no topics with clients and no connection times."""
    assert FirstClients().of(BUNDLE) == (0, None, None)
