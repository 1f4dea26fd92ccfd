"""Brokers that have not answered yet: their number, and the slowest of them."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, running_simulator
from pulsar_steward.collect import pending as module
from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.pending import PendingBrokers
from pulsar_steward.policy.schema import AdminPolicy, CollectPolicy
from pulsar_steward.pulsar.settings import AdminSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Clock that only the test moves."""
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


class Noted(PendingBrokers):
    """Remembers who was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    @contextmanager
    def on(self, broker: str) -> Iterator[None]:
        """Remembers the broker, and does what `PendingBrokers.on` does."""
        self.names.append(broker)
        with super().on(broker):
            yield


def test_who_is_waited_for_longest_is_told(clock: SimpleNamespace) -> None:
    """The broker that has been asked for the longest time is reported as slowest until it answers."""
    pending = PendingBrokers()
    assert pending.slowest() is None

    with pending.on("b:1"):
        clock.now += 2
        with pending.on("a:1"):
            clock.now += 3
            assert pending.slowest() == ("b:1", 5.0)
        assert pending.slowest() == ("b:1", 5.0)
    assert pending.slowest() is None


def test_the_next_one_is_told_when_the_longest_has_ended(clock: SimpleNamespace) -> None:
    """A call that ended, also by an error, is no longer reported, and the next broker is the slowest."""
    pending = PendingBrokers()
    first, second = pending.on("b:1"), pending.on("a:1")
    first.__enter__()
    clock.now += 2
    second.__enter__()
    clock.now += 3

    first.__exit__(None, None, None)

    assert pending.slowest() == ("a:1", 3.0)
    second.__exit__(None, None, None)
    with pytest.raises(OSError, match="nobody there"), pending.on("b:1"):
        raise OSError("nobody there")
    assert pending.slowest() is None


def test_of_those_that_are_asked_at_once_the_first_name_is_told(clock: SimpleNamespace) -> None:
    """The first name is reported as slowest when several brokers are asked at the same time."""
    pending = PendingBrokers()

    with pending.on("b:1"), pending.on("a:1"):
        assert pending.slowest() == ("a:1", 0.0)


def test_who_has_answered_is_counted() -> None:
    """Brokers that have answered are counted separately from brokers that are waited for."""
    pending = PendingBrokers()
    with pending.on("a:1"):
        assert pending.done == 0
    assert pending.done == 0

    pending.has_answered()
    pending.has_answered()

    assert pending.done == 2


def test_all_brokers_that_are_read_are_waited_for_and_counted() -> None:
    """A broker that is read is asked twice. It counts as done, and so does a broker that cannot be reached."""
    pending = Noted()
    with running_simulator(ClusterSpec(brokers=2), session_s=3600) as cluster:
        here, gone = cluster.active_brokers()
        cluster.kill_broker(gone)
        settings = AdminSettings(urls=cluster.admin_urls, limits=AdminPolicy(read_attempts=1))
        tasks = [BrokerTask(broker, cluster.cluster, leader=False) for broker in (here, gone)]
        scope = ReadScope(datetime.now(UTC), CollectPolicy())

        pieces = list(read_brokers(settings, tasks, scope, 2, pending))

    assert pieces
    assert sorted(pending.names) == sorted([here, here, gone])
    assert pending.done == 2
    assert pending.slowest() is None
