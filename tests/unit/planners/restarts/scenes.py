"""A diagnosed snapshot of a cluster that may be restarted broker by broker: what differs is given."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from pulsar_steward.model.bundles import position_of
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import restart_verdict
from pulsar_steward.snapshots.folder import stamp_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy, broker, equal_ranges
from tests.unit.planners.upgrade.clusters import write_cluster
from tests.unit.report_checkup.snapshots import META

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.restarts.model import RestartVerdict
    from pulsar_steward.policy.schema import Policy

ORDERS, SHOP = "acme/orders", "acme/shop"
RANGES = equal_ranges(3)
"""Bundles of `ORDERS`: each broker has one."""


def topic_on(number: int) -> str:
    """A topic that this broker serves."""
    names = (f"persistent://{ORDERS}/t{each}" for each in count())
    return next(each for each in names if position_of(each) in RANGES[number])


def write_calm(folder: Path, *, about: dict[str, Any] | None = None, **tables: Any) -> str:
    """Writes a cluster of three brokers with a bundle each, and a namespace on the second alone; returns its place.

    A folder that is not named as a snapshot gets another one of a quarter of an hour before as well.
    """
    bundles = [
        {"namespace": ORDERS, "bundle": str(each), "owner": broker(number), "owner_known": True, "topics": 10}
        for number, each in enumerate(RANGES)
    ]
    bundles.append({"namespace": SHOP, "bundle": "0x00000000_0xffffffff", "owner": broker(1), "topics": 1})
    brokers = [
        {"broker": broker(number), "read": True, "leader": number == 0, "topics": 10 + (number == 1)}
        | {"pulsar_version": "4.0.7", "producers": 4, "consumers": 5, "cpu_percent": 20.0, "read_milliseconds": 3}
        for number in range(3)
    ]
    away = {"others": 2, "bundles": 3, "topics": 10, "delayed_messages": 0, "session_seconds": 30.0}
    away |= {"assigning_seconds": 1.0, "loading_seconds": 1.0, "reading_seconds": 0.0, "ended_seconds": 4}
    coordinators = [
        {"coordinator": each, "position": 0, "bundle": "b", "broker": broker(each % 3), "broker_known": True}
        for each in range(16)
    ]
    places = [(ORDERS, broker(number), f"t{number}-{each}") for number in range(3) for each in range(10)]
    topics = [
        {"topic": f"persistent://{name}/{topic}", "namespace": name, "broker": owner, "subscriptions": 2}
        for name, owner, topic in (*places, (SHOP, broker(1), "cart"))
    ]
    usual: dict[str, Any] = {
        "topics": topics,
        "bundles": bundles,
        "brokers": brokers,
        "namespaces": [{"namespace": name, "bundles": 3, "boundaries": []} for name in (ORDERS, SHOP)],
        "failovers": [away | {"broker": broker(number), "lost_seconds": 34} for number in range(3)],
        "transaction_coordinators": coordinators,
    }
    told = {"isolation_json": "{}", "taken_at": META["taken_at"]} | (about or {})
    if not folder.name.startswith("taken_at="):
        before = told["taken_at"] - timedelta(minutes=15)
        write_cluster(folder / f"taken_at={stamp_of(before)}", about=told | {"taken_at": before}, **usual)
        folder /= f"taken_at={stamp_of(told['taken_at'])}"
    return write_cluster(folder, about=told, **usual | tables)


def verdict_on(place: str, number: int, policy: Policy | None = None) -> RestartVerdict:
    """The verdict on a broker."""
    return restart_verdict(restart_facts(open_snapshot(place)), broker(number), policy or a_policy())
