"""Rate limits under the name of a cluster that does not serve the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.quota_settings import LIMIT_ELSEWHERE, RATES

if TYPE_CHECKING:
    from tests.checks.backlog.conftest import Scene

LIMIT = {"publishThrottlingRateInMsg": 1}
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    **{name: ({name: {"foo": LIMIT}}, True) for name in RATES},
    "this cluster": ({"publishMaxMessageRate": {"lab": LIMIT}}, False),
    "one that it is replicated to": (
        {"publishMaxMessageRate": {"west": LIMIT}, "replication_clusters": ["lab", "west"]},
        False,
    ),
    "a replicator's, by both": ({"replicatorDispatchRate": {"lab->west": LIMIT}}, False),
    "none": ({"publishMaxMessageRate": {}, "topicDispatchRate": None}, False),
}


@pytest.mark.parametrize(("policies", "found"), CASES.values(), ids=CASES)
def test_a_limit_under_another_name_limits_nobody(scene: Scene, policies: dict[str, Any], *, found: bool) -> None:
    """The namespace, the limit and the name that it stands under are told."""
    scene.rows["snapshot"][0]["pulsar_cluster"] = "lab"
    findings = scene.namespace("acme/orders", **policies).judged(LIMIT_ELSEWHERE).findings
    assert [each.subject for each in findings] == ["acme/orders"] * found
    assert all("under foo, and it is served by lab" in each.evidence for each in findings)


def test_without_the_clusters_own_name_it_cannot_be_told(scene: Scene) -> None:
    """Every name may be the cluster's own then."""
    scene.namespace("acme/orders", publishMaxMessageRate={"foo": LIMIT}).rows["snapshot"][0]["pulsar_cluster"] = None
    judgement = scene.judged(LIMIT_ELSEWHERE)
    assert (judgement.findings, judgement.cannot_tell is not None) == ((), True)
