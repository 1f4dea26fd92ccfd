"""A policy as the ledger holds it: another version of Steward may have written it, with fewer or more keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import msgspec
from pydantic import ValidationError

from pulsar_steward.decoding import convert, decode
from pulsar_steward.policy.approval import ApprovalPolicy, ApprovalValues
from pulsar_steward.policy.guards import MaintenanceWindow
from pulsar_steward.policy.schema import ApplyPolicy, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence


class RecordedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a policy; a missing section or key limits nothing, or has its default where that is said.

    Attributes:
        sections: All values by section, as JSON.
        approval: The section on approvals.
    """

    sections: Mapping[str, Mapping[str, Any]] = {}
    approval: ApprovalValues = ApprovalValues()

    @classmethod
    def decoded(cls, document: str | bytes) -> Self:
        """Decodes the result of `Policy.document`.

        Raises:
            msgspec.ValidationError: If another version wrote it in a format that this one does not read.
        """
        values = decode(document, dict[str, Any])
        sections = {name: section for name, section in values.items() if isinstance(section, dict)}
        return cls(sections=sections, approval=convert(sections.get("approval", {}), ApprovalValues))

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """A policy in force, as it would be recorded."""
        return cls.decoded(policy.document())

    @property
    def rest(self) -> timedelta:
        """Time from a rejection until the same may be asked again; the default if it is missing."""
        minutes = self.approval.ask_again_minutes
        return timedelta(minutes=ApprovalPolicy().ask_again_minutes if minutes is None else minutes)

    @property
    def in_full(self) -> Policy | None:
        """The policy with all its sections; None: another version wrote it, with values that this one refuses."""
        try:
            return Policy.model_validate(self.sections)
        except ValidationError:
            return None

    @property
    def windows(self) -> tuple[MaintenanceWindow, ...]:
        """Maintenance windows, for forecasts; none if they are in a format that this version does not read."""
        try:
            windows = self.sections.get("guards", {}).get("windows", ())
            return tuple(MaintenanceWindow.model_validate(each) for each in windows)
        except ValidationError:
            return ()


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
