"""Findings of checks, and verdicts of checks that found nothing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """Severity of a finding: information, to be looked at, or about to hurt."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, rising with the severity."""
        return list(Severity).index(self)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, with everything that a person needs to believe it.

    Attributes:
        check_id: The check that found it, such as ``tc-skew``.
        severity: Its severity.
        subject: A cluster, broker, namespace, bundle or topic, in Pulsar's notation.
        evidence: The problem in a sentence, with its numbers.
        figures: The same numbers as name and value, units in the names.
        first_seen: Time of the first of the consecutive snapshots with it, UTC; None: not looked up.
        snapshots_in_a_row: Number of these snapshots. Snapshots that its check could not judge are skipped.
    """

    check_id: str
    severity: Severity
    subject: str
    evidence: str
    figures: dict[str, int] = {}
    first_seen: datetime | None = None
    snapshots_in_a_row: int = 1


class Outlook(StrEnum):
    """Verdict of a check on a snapshot. A partial snapshot never yields `CLEAR`."""

    FOUND = "found"
    CLEAR = "clear"
    UNKNOWN = "unknown"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check for a snapshot as a whole, so that silence is never mistaken for health.

    Attributes:
        check_id: The check.
        outlook: The result.
        reason: The reason, in a sentence.
        more: Number of findings beyond those that are listed, each of them less bad.
    """

    check_id: str
    outlook: Outlook
    reason: str
    more: int = 0
