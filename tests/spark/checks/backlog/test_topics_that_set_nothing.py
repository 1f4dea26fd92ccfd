"""Topics that were asked for their own policies and have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.policy.schema import Policy
from steward_spark.checks.backlog.quota_over_retention import CHECK as QUOTA_OVER_RETENTION

if TYPE_CHECKING:
    from tests.spark.checks.backlog.conftest import Scene

pytestmark = pytest.mark.spark

QUOTAS = {"message_age": {"limitSize": -1, "limitTime": 7200, "policy": "consumer_backlog_eviction"}}
RETENTION = {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}
OWN = '{"retentionTimeInMinutes":30,"retentionSizeInMB":-1}'


@pytest.mark.parametrize(
    ("own_retention", "subjects"),
    [("{}", {"acme/orders"}), (OWN, {"acme/orders", "persistent://acme/orders/t"})],
    ids=["nothing of its own", "a retention of its own"],
)
def test_what_a_namespace_sets_is_told_once(scene: Scene, own_retention: str, subjects: set[str]) -> None:
    """`{}` is what a broker's answer for a topic without policies is kept as; it sets nothing apart."""
    scene.namespace(quotas=QUOTAS, retention_policies=RETENTION).topic()
    scene.add("drilled", quota_limit_seconds=7200, topic_quota_json="{}", topic_retention_json=own_retention)
    judgement = QUOTA_OVER_RETENTION.judge(scene.frames, Policy())
    assert {finding.subject for finding in judgement.findings} == subjects
