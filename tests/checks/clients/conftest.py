"""Snapshots of one broker with topics, subscriptions and consumers, for tests to add trouble to."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.policy.schema import Policy

BROKER = "b:8080"
TAKEN_AT = datetime(2026, 1, 2, 12, tzinfo=UTC)
SETTINGS = {
    "managedLedgerMaxUnackedRangesToPersist": "10000",
    "managedLedgerPersistIndividualAckAsLongArray": "true",
    "maxMessageSize": "5242880",
}

# A Shared subscription that consumes as fast as is produced.
BUSY = {
    "type": "Shared",
    "consumers": 3,
    "backlog_entries": 50_000,
    "unacked_messages": 900,
    "blocked_on_unacked": False,
    "ack_holes": 40,
    "entries_since_first_gap": 1200,
    "consumers_blocked": 0,
    "consumers_without_permits": 1,
    "consumers_stuck": 0,
    "redeliver_rate": 0.0,
    "expired_rate": 0.0,
    "consumers_connected_recently": 0,
    "message_rate_out": 900.0,
    "ack_rate": 890.0,
}


class Scene:
    """A snapshot that is put together step by step; everything of one name is on topic ``persistent://t/n/<name>``."""

    def __init__(self, minutes_ago: float = 0) -> None:
        taken_at = TAKEN_AT - timedelta(minutes=minutes_ago)
        self.rows: dict[str, list[dict[str, Any]]] = {
            "snapshot": [{"cluster": "lab", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []}],
            "brokers": [{"broker": BROKER, "read": True, "topics": 1}],
        }

    def add(self, table: str, **row: object) -> Scene:
        """A row as it is."""
        self.rows.setdefault(table, []).append(row)
        return self

    def topic(self, name: str, **more: object) -> Scene:
        """A topic of the broker; a name with a scheme is taken as it is."""
        row = {"topic": full(name), "broker": BROKER, "producers": 1, "consumers": 3, "subscriptions": 1}
        return self.add("topics", **row | more)

    def subscription(self, name: str, subscription: str = "s", **more: object) -> Scene:
        """A busy subscription with these differences, and its topic."""
        row = {"topic": full(name), "subscription": subscription}
        return self.topic(name).add("subscriptions", **row | BUSY | more)

    def consumer(self, name: str, consumer: str, **more: object) -> Scene:
        """A consumer of the topic's subscription that is named in the snapshot."""
        port = 1024 + zlib.crc32(consumer.encode()) % 60_000
        row = {"topic": full(name), "subscription": "s", "consumer": consumer, "address": f"10.0.0.7:{port}"}
        return self.add("clients", **row | {"available_permits": 0, "blocked": False} | more)

    def drilled(self, name: str, **more: object) -> Scene:
        """The topic's own statistics of its subscription."""
        return self.add("drilled", **{"topic": full(name), "subscription": "s"} | more)

    def measured(self, series: Mapping[str, float], source: str = BROKER, **labels: str) -> Scene:
        """Samples of a broker."""
        for name, value in series.items():
            self.add("metrics", source=source, source_kind="broker", series=name, value=float(value), **labels)
        return self

    def configured(self, broker: str = BROKER, **changes: str | None) -> Scene:
        """A broker's settings as 4.1 has them, changed so; None: it was not read."""
        for key, value in (SETTINGS | changes).items():
            if value is not None:
                self.add("configuration", broker=broker, key=key, value=value)
        return self

    def partial(self) -> Scene:
        """Some broker was not read."""
        self.rows["snapshot"][0]["unread_brokers"] = ["away:8080"]
        return self

    def judged(self, check: Check, policy: Policy | None = None, earlier: Sequence[Scene] = ()) -> Judgement:
        """A check's judgement of it; `earlier` scenes are the newest first."""
        return judge_rows(check, self.rows, policy, [each.rows for each in earlier])


def full(name: str) -> str:
    return name if "://" in name else f"persistent://t/n/{name}"


def by_name(judgement: Judgement) -> dict[str, Severity]:
    """Severities by the topic's short name, or else by subject, in the findings' order."""
    return {
        finding.subject.removeprefix("persistent://t/n/").removesuffix(" subscription s"): finding.severity
        for finding in judgement.findings
    }


@pytest.fixture
def scene() -> Scene:
    """A broker that was read and has nothing."""
    return Scene()


MINUTES = 15
"""Between the snapshots of `found_over_time`."""


def found_over_time(check: Check, histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Severity]:
    """Findings of subscriptions that were like this, by name: a list of likenesses each, the newest last."""
    scenes = [
        Scene(number * MINUTES).configured().measured({"pulsar_subscription_delayed": 0.0})
        for number in range(max(map(len, histories.values())))
    ]
    for name, likes in histories.items():
        for scene, like in zip(scenes, reversed(likes), strict=False):
            scene.subscription(name, **like)
    newest, *earlier = scenes
    return by_name(newest.judged(check, earlier=earlier))
