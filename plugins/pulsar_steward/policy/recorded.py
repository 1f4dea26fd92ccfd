"""A policy as the ledger holds it: another version of Steward may have written it, with fewer or more keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import msgspec
from pydantic import ValidationError

from pulsar_steward.decoding import convert, decode
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.approval_terms import ApprovalValues
from pulsar_steward.policy.guards import MaintenanceWindow

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy


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
    def windows(self) -> tuple[MaintenanceWindow, ...]:
        """Maintenance windows, for forecasts; none if they are in a format that this version does not read."""
        try:
            windows = self.sections.get("guards", {}).get("windows", ())
            return tuple(MaintenanceWindow.model_validate(each) for each in windows)
        except ValidationError:
            return ()
