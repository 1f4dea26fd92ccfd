"""Small snapshots of namespaces with policies, and topics under them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Check, Judgement
    from pulsar_steward.model.finding import Severity
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows

TAKEN_AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)

# What a broker of 4.0.7 answers with nothing configured.
NOTHING_SET = {
    "backlogQuotaCheckEnabled": "true",
    "brokerDeduplicationEnabled": "false",
    "brokerServiceCompactionThresholdInBytes": "0",
    "backlogQuotaCheckIntervalInSeconds": "60",
    "backlogQuotaDefaultLimitGB": "-1.0",
    "backlogQuotaDefaultLimitBytes": "-1",
    "backlogQuotaDefaultLimitSecond": "-1",
    "backlogQuotaDefaultRetentionPolicy": "producer_request_hold",
    "defaultRetentionTimeInMinutes": "0",
    "defaultRetentionSizeInMB": "0",
    "managedLedgerMaxLedgerRolloverTimeMinutes": "240",
    "maxMessageSize": "5242880",
    "preciseTimeBasedBacklogQuotaCheck": "false",
    "ttlDurationDefaultInSeconds": "0",
}

# As brokers from 3.0 on report them of a topic without quotas.
NO_LIMITS = {"quota_limit_bytes": -1, "quota_limit_seconds": -1, "oldest_backlog_age_seconds": -1}

# The parts of a namespace document of 4.0.7 without policies that the group does and does not read.
DOCUMENT = {
    "replication_clusters": ["local"],
    "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
    "backlog_quota_map": {},
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "properties": {},
}


class Scene:
    """A snapshot that is put together step by step."""

    def __init__(self) -> None:
        self.rows: Rows = {
            "snapshot": [
                {
                    "cluster": "lab",
                    "pulsar_cluster": "local",
                    "taken_at": TAKEN_AT,
                    "unread_brokers": [],
                    "unread_namespaces": [],
                }
            ],
            "brokers": [{"broker": "a:8080", "read": True}, {"broker": "b:8080", "read": True}],
            **{name: [] for name in ("namespaces", "topics", "subscriptions", "drilled", "clients", "configuration")},
        }

    def configured(self, **changes: str | None) -> Scene:
        """Both brokers run with the defaults of 4.0.7, changed so; None: it was not read."""
        values = NOTHING_SET | changes
        self.rows["configuration"] = [
            {"broker": broker["broker"], "key": key, "value": value}
            for broker in self.rows["brokers"]
            for key, value in values.items()
            if value is not None
        ]
        return self

    def namespace(self, name: str = "acme/orders", quotas: dict[str, Any] | None = None, **policies: object) -> Scene:
        """A namespace with that `backlog_quota_map` and those further policies."""
        document = DOCUMENT | {"backlog_quota_map": quotas or {}} | policies
        self.rows["namespaces"].append({"namespace": name, "policies_json": json.dumps(document)})
        return self

    def topic(self, name: str = "acme/orders/t", backlog_bytes: int = 0, **more: object) -> Scene:
        """A loaded topic, on each broker in turn."""
        brokers = self.rows["brokers"]
        owner = brokers[len(self.rows["topics"]) % len(brokers)]["broker"]
        row = {"topic": f"persistent://{name}", "namespace": name.rpartition("/")[0], "broker": owner, "producers": 4}
        self.rows["topics"].append(row | {"backlog_bytes": backlog_bytes, "storage_bytes": backlog_bytes} | more)
        return self

    def add(self, table: str, topic: str = "acme/orders/t", **more: object) -> Scene:
        """A row about a topic, of `subscriptions`, `clients` or `drilled`."""
        where = {"topic": f"persistent://{topic}", "namespace": topic.rpartition("/")[0]}
        told = NO_LIMITS if table == "drilled" else {}
        self.rows[table].append(where | {"subscription": "s"} | told | more)
        return self

    def judged(self, check: Check, policy: Policy | None = None, earlier: Sequence[Rows] = ()) -> Judgement:
        """A check's judgement of it; `earlier` snapshots are the newest first."""
        return judge_rows(check, self.rows, policy, earlier)

    def found(self, check: Check, policy: Policy | None = None) -> dict[str, Severity]:
        """Findings of a check, by subject."""
        return {each.subject: each.severity for each in self.judged(check, policy).findings}


@pytest.fixture
def scene() -> Scene:
    """A snapshot of two brokers with the defaults of 4.0.7, and nothing else."""
    return Scene().configured()
