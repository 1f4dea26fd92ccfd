"""Checks of backlog, quotas, retention and expiry."""

from __future__ import annotations

from pulsar_steward.model.catalog.info import CheckInfo, Scope

BACKLOG_NEAR_QUOTA = CheckInfo(
    check_id="backlog-near-quota",
    title="A topic's backlog is close to its quota, or over it",
    advice=(
        "Find out why the slowest subscription lags: consumers missing, blocked, slow, or without permits.",
        "Delete the subscription if nobody needs it any more: pulsar-admin topics unsubscribe.",
        "Skip or expire messages that nobody needs: pulsar-admin topics skip, expire-messages; both lose them.",
        "Raise the quota, below the retention, if bookies have room; never lower one that is nearly full.",
        "Unload, split or restart nothing that holds this topic until its backlog is down.",
    ),
    source="docs/checks/backlog-near-quota.md; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
)

BACKLOG_GROWING = CheckInfo(
    check_id="backlog-growing",
    title="A topic's backlog keeps growing, towards its quota or without one",
    advice=(
        "Look at the slowest subscription first: consumers missing, blocked, without permits, or too slow.",
        "Compare the rates in and out: pulsar-admin topics stats; a burst of producing ends by itself.",
        "Add consumers, or partitions where a subscription type allows one consumer each.",
        "Delete the subscription if nobody needs it any more: pulsar-admin topics unsubscribe.",
        "Raise the quota in time, below the retention, if bookies have room; where there is none, set one.",
    ),
    source="docs/checks/backlog-growing.md; docs/knowledge.md B; apache/pulsar#14337",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
)

BACKLOG_QUOTA_MISSING = CheckInfo(
    check_id="backlog-quota-missing",
    title="No backlog quota bounds the topics of a namespace",
    advice=(
        "Find the subscription that holds the backlog, and delete it if nobody needs it.",
        "Set a size quota well above the present backlog: pulsar-admin namespaces set-backlog-quota.",
        "Choose its policy with the topic's owners: producer_* stops producers, eviction loses messages.",
        "Keep the quota below the retention, in size and in time.",
    ),
    source="docs/checks/backlog-quota-missing.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
)

QUOTA_OVER_RETENTION = CheckInfo(
    check_id="quota-over-retention",
    title="A backlog quota is not below the retention",
    advice=(
        "Raise the retention above the quota first, in size and in time, or lower the quota.",
        "Before lowering a producer_* quota, see that no topic's backlog is over the new one: its producers stop.",
        "Do not rely on the broker to refuse it: it compares size quotas of the same level only.",
    ),
    source="docs/checks/quota-over-retention.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
)

QUOTA_CHECK_DISABLED = CheckInfo(
    check_id="quota-check-disabled",
    title="Brokers do not check backlog quotas",
    advice=(
        "Look for topics that are over their quota first: turning the check on cuts their producers off.",
        "Bring these backlogs down, or raise the quotas.",
        "Set backlogQuotaCheckEnabled=true in broker.conf and restart the brokers one at a time.",
    ),
    source="docs/checks/quota-check-disabled.md",
)

PRODUCER_HOLD_RESTART_RISK = CheckInfo(
    check_id="producer-hold-restart-risk",
    title="A restart or an unload would leave a topic's producers unable to connect",
    advice=(
        "Restart no broker and unload or split no bundle that holds this topic until its backlog is down.",
        "Bring the backlog down: more or faster consumers, or delete a subscription that nobody needs.",
        "If a restart cannot wait, raise the quota first: pulsar-admin topics set-backlog-quota, below the retention.",
        "Never lower the quota of a topic in this state.",
    ),
    source="docs/checks/producer-hold-restart-risk.md",
    scope=Scope.NAMESPACE,
    remedied_by="backlog_quota",
)

RETENTION_UNBOUNDED = CheckInfo(
    check_id="retention-unbounded",
    title="Messages are retained for ever",
    advice=(
        "Ask the topics' owners whether consumed messages are really needed for ever.",
        "If not, bound it in time or size: pulsar-admin namespaces set-retention; what is over it is deleted at once.",
        "If so, offload old ledgers to tiered storage: pulsar-admin namespaces set-offload-policies.",
        "Watch the bookies' disks.",
    ),
    source="docs/checks/retention-unbounded.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
)

RETENTION_TOO_SHORT = CheckInfo(
    check_id="retention-too-short",
    title="The retention leaves little room over the quota or the backlog",
    advice=(
        "Raise the retention well above the quota: pulsar-admin namespaces set-retention.",
        "Bring the slowest subscription up to date: once it has acknowledged, no history is left to go back to.",
        "Set size and time: where both are set, the tighter one holds.",
    ),
    source="docs/checks/retention-too-short.md",
    remedied_by="retention",
    scope=Scope.NAMESPACE,
    reads=("quota_over_retention",),
)

RETENTION_TOO_LONG = CheckInfo(
    check_id="retention-too-long",
    title="Consumed messages are stored for far longer than anything needs",
    advice=(
        "Ask the topics' owners how far back they read again: that, and not a habit, is what retention is for.",
        "Lower it above quota and outage: pulsar-admin namespaces set-retention; what is over it is deleted at once.",
        "If it is needed, offload old ledgers to tiered storage: pulsar-admin namespaces set-offload-policies.",
    ),
    source="docs/checks/retention-too-long.md; docs/knowledge.md B",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
)

TTL_BEFORE_QUOTA = CheckInfo(
    check_id="ttl-before-quota",
    title="Messages expire before their age quota can act",
    advice=(
        "Decide with the topics' owners which is meant: losing old messages (TTL) or stopping producers (quota).",
        "Raise the TTL above the quota's time, or remove it: pulsar-admin namespaces set-message-ttl.",
        "Otherwise remove the age quota, which protects nothing: pulsar-admin namespaces remove-backlog-quota.",
    ),
    source="docs/checks/ttl-before-quota.md",
    scope=Scope.NAMESPACE,
    remedied_by="retention",
)

QUOTA_STUCK = CheckInfo(
    check_id="quota-stuck",
    title="A quota shuts producers out though no backlog explains it",
    advice=(
        "Look at every cursor: pulsar-admin topics stats-internal; one that is no subscription may hold the ledgers.",
        "If a subscription holds a single unacknowledged message in front of others, have it consumed or skip it.",
        "Otherwise unload the topic, which cures it for a while: pulsar-admin topics unload.",
        "As a stopgap raise the quota: pulsar-admin topics set-backlog-quota.",
    ),
    source="docs/checks/quota-stuck.md; apache/pulsar#15609, apache/pulsar#8184",
    scope=Scope.NAMESPACE,
)

CLOCK_SKEW = CheckInfo(
    check_id="clock-skew",
    title="The brokers' clocks are apart",
    advice=(
        "Confirm it on the machines: chronyc tracking, or timedatectl timesync-status.",
        "Let every broker, bookie and client machine follow the same time source.",
        "Correct a clock slowly (slew, do not step): a jump ahead makes TTLs and age quotas act at once.",
    ),
    source="docs/checks/clock-skew.md",
)

CHECKS = (
    BACKLOG_NEAR_QUOTA,
    BACKLOG_GROWING,
    BACKLOG_QUOTA_MISSING,
    QUOTA_OVER_RETENTION,
    QUOTA_CHECK_DISABLED,
    PRODUCER_HOLD_RESTART_RISK,
    RETENTION_UNBOUNDED,
    RETENTION_TOO_SHORT,
    RETENTION_TOO_LONG,
    TTL_BEFORE_QUOTA,
    QUOTA_STUCK,
    CLOCK_SKEW,
)
"""In the order in which reports list them."""
