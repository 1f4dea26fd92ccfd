"""Retention that stores far more than anybody needs: both much and for long, and only what is consumed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.backlog.retention import RETENTION_TOO_LONG
from pulsar_steward.model.finding import Severity
from tests.checks.backlog.documents import age, retention, size

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene
    from tests.golden import Golden

MIB, GIB, TIB = 1024**2, 1024**3, 1024**4
INFO, WARNING = Severity.INFO, Severity.WARNING
DAY = 24 * 60
MONTH = retention(30 * DAY, -1)

# retention, quotas, storage, backlog, further columns of the topic; what is found
NAMESPACES: dict[str, tuple[dict[str, int] | None, dict[str, Any], int, int, dict[str, Any], Severity | None]] = {
    "much and long": (MONTH, {}, TIB, 0, {}, WARNING),
    "a byte less": (MONTH, {}, TIB - 1, 0, {}, None),
    "not all is consumed": (MONTH, {}, TIB, 1, {}, None),
    "a backlog larger than what is stored": (MONTH, {}, TIB, 2 * TIB, {}, None),
    "ten times an outage": (retention(15 * DAY, -1), {}, TIB, 0, {}, WARNING),
    "a minute less": (retention(15 * DAY - 1, -1), {}, TIB, 0, {}, None),
    "an age quota of a week": (MONTH, age(7 * 86_400), TIB, 0, {}, None),
    "unbounded": (retention(-1, -1), {}, TIB, 0, {}, None),
    "nothing is retained": (retention(0, 0), {}, TIB, 0, {}, None),
    "not set": (None, {}, TIB, 0, {}, None),
    "ten times the quota": (retention(-1, 102_400), size(10 * GIB), TIB, 0, {}, WARNING),
    "nearly": (retention(-1, 102_399), size(10 * GIB), TIB, 0, {}, None),
    "ten times the least": (retention(-1, 10_240), {}, TIB, 0, {}, WARNING),
    "busy": (retention(-1, 102_400), {}, TIB, 0, {"throughput_in_bytes": 0.2 * MIB}, None),
    "long, and not large": (retention(30 * DAY, 20_480), size(10 * GIB), TIB, 0, {}, None),
    "large, and not long": (retention(2 * DAY, 102_400), size(10 * GIB), TIB, 0, {}, None),
    "large and long": (retention(30 * DAY, 102_400), size(10 * GIB), TIB, 0, {}, WARNING),
    "offloaded": (MONTH, {"offload": {"offloaded_bytes": 1}}, TIB, 0, {}, INFO),
    "to be offloaded": (MONTH, {"offload": {"offloaded_bytes": 0}}, TIB, 0, {}, WARNING),
    "offloaded no more": (
        MONTH,
        {"offload": {"offloaded_bytes": 1, "offloaded_milliseconds": 1, "offload_failed_milliseconds": 2}},
        TIB,
        0,
        {},
        WARNING,
    ),
}


def test_only_much_for_long_is_found(scene: Scene) -> None:
    """Retention is found when it keeps much and for long, by its tighter limit, and less severe if offloaded."""
    for number, (kept, quotas, storage, backlog, more, _) in enumerate(NAMESPACES.values()):
        policies: dict[str, Any] = {"retention_policies": kept} if kept else {}
        if "offload" in quotas:
            policies["offload_threshold"] = 0
            scene.add("drilled", f"acme/n{number}/t", **quotas["offload"])
        limits = {name: quota for name, quota in quotas.items() if name != "offload"}
        scene.namespace(f"acme/n{number}", limits, **policies)
        scene.topic(f"acme/n{number}/t", backlog, storage_bytes=storage, **more)
    expected = {f"acme/n{number}": case[-1] for number, case in enumerate(NAMESPACES.values())}
    assert scene.found(RETENTION_TOO_LONG) == {subject: severity for subject, severity in expected.items() if severity}


def test_the_evidence_is_in_bytes_over_the_cluster(scene: Scene, golden: Golden) -> None:
    """The evidence sums the namespace's topics over the cluster, without those that retain otherwise."""
    scene.namespace(retention_policies=MONTH)
    for name, stored in (("a", TIB), ("b", 3 * TIB), ("apart", 9 * TIB)):
        scene.topic(f"acme/orders/{name}", TIB // 4, storage_bytes=stored)
    scene.add("drilled", "acme/orders/apart", topic_retention_json=json.dumps(retention(60, -1)))
    (finding,) = scene.judged(RETENTION_TOO_LONG).findings
    golden(finding.evidence)
    assert finding.figures["consumed_bytes"] == 7 * TIB // 2


def test_the_brokers_default_counts_where_nothing_is_set(scene: Scene) -> None:
    """The brokers' default retention counts if a namespace sets none, and the check cannot tell if it was not read."""
    scene.configured(defaultRetentionTimeInMinutes=str(30 * DAY), defaultRetentionSizeInMB="-1")
    scene.namespace().topic(storage_bytes=TIB)
    (finding,) = scene.judged(RETENTION_TOO_LONG).findings
    assert "(the brokers' default)" in finding.evidence
    unread = scene.configured(defaultRetentionTimeInMinutes=None).judged(RETENTION_TOO_LONG)
    assert not unread.findings
    assert "retention_minutes" in (unread.cannot_tell or "")


def test_an_idle_cluster_is_quiet(scene: Scene) -> None:
    """A long retention leads to no finding if the topics store nothing."""
    judgement = scene.namespace(retention_policies=MONTH).topic().judged(RETENTION_TOO_LONG)
    assert (judgement.findings, judgement.cannot_tell) == ((), None)
    assert judgement.quiet
