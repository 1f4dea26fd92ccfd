"""What a namespace or topic sets itself, read from the admin API's documents into the model's values.

Seen on 4.0.7: what is not set is absent from the namespace document, ``{}`` or ``null`` for a quota map, and an empty
body for a single policy. Brokers before 2.8 called a quota's `limitSize` `limit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.setting import Setting

QUOTAS = (SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA)


class QuotaDocument(msgspec.Struct, frozen=True, rename="camel"):
    """One backlog quota as a broker writes it."""

    policy: QuotaPolicy
    limit_size: int | None = None
    limit_time: int | None = None
    limit: int | None = None

    @property
    def value(self) -> BacklogQuota:
        """The quota; a limit that is not told is none."""
        size = self.limit if self.limit_size is None else self.limit_size
        time = self.limit_time
        return BacklogQuota(
            limit_bytes=-1 if size is None else size, limit_seconds=-1 if time is None else time, policy=self.policy
        )


class RetentionDocument(msgspec.Struct, frozen=True):
    """A retention as a broker writes it."""

    minutes: int = msgspec.field(name="retentionTimeInMinutes")
    megabytes: int = msgspec.field(name="retentionSizeInMB")

    @property
    def value(self) -> Retention:
        """The retention."""
        return Retention(minutes=self.minutes, megabytes=self.megabytes)


class NamespaceDocument(msgspec.Struct, frozen=True):
    """Of a namespace's policies those that Steward may change."""

    backlog_quota_map: dict[str, QuotaDocument] | None = None
    retention_policies: RetentionDocument | None = None
    message_ttl_in_seconds: int | None = None

    @property
    def settings(self) -> dict[SettingName, Setting]:
        """What the namespace sets itself, by name; what it does not set is absent."""
        found = quotas_in(self.backlog_quota_map or {})
        if self.retention_policies is not None:
            found[SettingName.RETENTION] = self.retention_policies.value
        if self.message_ttl_in_seconds is not None:
            found[SettingName.TTL] = TimeToLive(seconds=self.message_ttl_in_seconds)
        return found


def quotas_in(documents: Mapping[str, QuotaDocument]) -> dict[SettingName, Setting]:
    """Quotas by the admin API's word for their kind, as settings."""
    return {name: documents[name.quota_type].value for name in QUOTAS if name.quota_type in documents}
