"""What a check found, and what it can say where it found nothing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is: information, to be looked at, or about to hurt."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, rising."""
        return list(Severity).index(self)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble, with all that a person needs to believe it.

    Attributes:
        check_id: Which check found it, such as ``tc-skew``.
        severity: How bad.
        subject: What it is about: a cluster, broker, namespace, bundle or topic, in Pulsar's own writing.
        evidence: The trouble in a sentence, with its numbers.
        figures: The same numbers as name and value, units in the names.
        first_seen: When the first of the snapshots in a row that show it was taken, UTC; None: not looked up.
        snapshots_in_a_row: How many these are. Snapshots in which its check could not judge are passed over.
    """

    check_id: str
    severity: Severity
    subject: str
    evidence: str
    figures: dict[str, int] = {}
    first_seen: datetime | None = None
    snapshots_in_a_row: int = 1


class Outlook(StrEnum):
    """What a check can say of a snapshot. A partial snapshot never yields `CLEAR`."""

    FOUND = "found"
    CLEAR = "clear"
    UNKNOWN = "unknown"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one check says of one snapshot as a whole, so that silence is never mistaken for health.

    Attributes:
        check_id: Which check.
        outlook: What it can say.
        reason: Why, in a sentence.
        more: Findings beyond those that are listed, each of them less bad.
    """

    check_id: str
    outlook: Outlook
    reason: str
    more: int = 0
