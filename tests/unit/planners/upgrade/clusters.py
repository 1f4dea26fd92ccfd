"""Snapshots of clusters that are to be upgraded, made by hand: three brokers with the settings of a real 4.0.7."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lab.simulator.brokers import default_configuration
from pulsar_steward.collect.broker import kept
from pulsar_steward.planners.restarts.judge import RISKS
from tests.builders import broker
from tests.unit.report_checkup.snapshots import a_verdict, meta, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

USAGES = (71, 40, 12)
"""Percent of processors in use, by broker."""

_USAGE = ("cpu", "memory", "directMemory", "bandwidth_in", "bandwidth_out")
_SHEDDING = {"loadBalancerSheddingEnabled": "true", "loadBalancerEnabled": "true"}


def write_cluster(
    folder: Path,
    *,
    settings: Mapping[str, str | None] | None = None,
    versions: tuple[str | None, ...] = ("4.0.7",) * 3,
    about: Mapping[str, Any] | None = None,
    **tables: list[dict[str, Any]],
) -> str:
    """Writes a diagnosed snapshot in which every check is clear; returns its place.

    Args:
        folder: Its folder.
        settings: Settings that differ from 4.0.7's defaults; None: not told.
        versions: Versions of the brokers.
        about: Columns of the table `snapshot`.
        tables: Other tables with other rows.
    """
    told = kept(default_configuration()) | _SHEDDING | dict(settings or {})
    brokers = [
        {"broker": broker(number), "read": True, "leader": number == 0, "topics": 10, "pulsar_version": version}
        | {"read_milliseconds": 3}
        for number, version in enumerate(versions)
    ]
    rows = {
        "snapshot": meta(**{"metadata_store": "zk"} | dict(about or {})),
        "brokers": brokers,
        "configuration": [
            {"broker": each["broker"], "key": key, "value": value}
            for each in brokers
            for key, value in told.items()
            if value is not None
        ],
        "namespaces": [{"namespace": name, "bundles": 4, "boundaries": []} for name in ("acme/orders", "iot/x")],
        "bundles": [a_bundle(0, 1000.0)],
        "metrics": [row for number in range(min(len(brokers), len(USAGES))) for row in _metrics(number)],
        "verdicts": [a_verdict(each, "clear") for each in RISKS],
    }
    return written(folder, **rows | tables)


def _metrics(number: int) -> list[dict[str, Any]]:
    told = {f"pulsar_lb_{name}_usage": 0.0 for name in _USAGE} | {"pulsar_lb_cpu_usage": float(USAGES[number])}
    told |= {f"pulsar_broker_{name}": 100.0 * USAGES[number] for name in ("rate_in", "rate_out")}
    told |= {f"pulsar_broker_throughput_{way}": 1000.0 for way in ("in", "out")}
    told |= {"jvm_memory_direct_bytes_max": float(4 << 30), "jvm_info": 1.0}
    labels = {"jvm_info": {"version": "21.0.5+11"}}
    return [
        {"source": broker(number), "source_kind": "broker", "series": series, "value": value}
        | {"labels_json": json.dumps(labels.get(series, {}))}
        for series, value in told.items()
    ]


def a_bundle(number: int, messages: float) -> dict[str, Any]:
    """A row of the bundles: one of the first broker, with so many messages a second."""
    place = {
        "namespace": "acme/orders",
        "bundle": f"0x{number:08x}_0x{number + 1:08x}",
        "owner": broker(0),
        "owner_known": True,
    }
    return place | {"message_rate_in": messages, "message_rate_out": 0.0}


def a_subscription(name: str, **fields: Any) -> dict[str, Any]:
    """A row of the subscriptions."""
    usual = {"topic": "persistent://acme/orders/t", "namespace": "acme/orders", "subscription": name, "type": "Shared"}
    return usual | {"ack_holes": 0, "entries_since_first_gap": 1} | fields
