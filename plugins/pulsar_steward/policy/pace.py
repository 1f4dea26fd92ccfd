"""Forecast by the pace of changes: the minimum duration of a batch under the limits of a policy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.policy.schema import ApplyPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.policy.recorded import RecordedPolicy

MINUTE = timedelta(minutes=1)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum number of changes, and of clients that reconnect, per minute."""

    changes: int = ApplyPolicy().bundle_moves_per_minute
    clients: int = ApplyPolicy().reconnecting_clients_per_minute

    @classmethod
    def of(cls, policy: RecordedPolicy) -> Pace:
        """The pace of a recorded policy; missing keys get their default."""
        usual, named = ApplyPolicy(), policy.sections.get("apply", {})
        changes = named.get("bundle_moves_per_minute", usual.bundle_moves_per_minute)
        clients = named.get("reconnecting_clients_per_minute", usual.reconnecting_clients_per_minute)
        return cls(changes=max(changes, 1), clients=max(clients, 1))

    def least(self, clients: Sequence[int]) -> timedelta:
        """Minimum duration of changes that each touch so many clients; those of the first minute may run at once."""
        minutes = max(len(clients) / self.changes, sum(clients) / self.clients) - 1
        return MINUTE * max(minutes, 0.0)
