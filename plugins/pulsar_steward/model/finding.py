"""Findings of checks, and verdicts of checks that found nothing."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Self

import msgspec

from pulsar_steward.decoding import convert, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Severity(StrEnum):
    """Severity of a finding: information, to be looked at, or about to hurt."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info, rising with the severity."""
        return list(Severity).index(self)

    @classmethod
    def beyond(cls, value: float, *, warning: float, critical: float) -> Severity | None:
        """Severity of a value by two thresholds, each of which counts from itself on; None: it is below both."""
        if value >= critical:
            return cls.CRITICAL
        return cls.WARNING if value >= warning else None


Unlisted = tuple[Severity, str]
"""Of findings that are only counted: their severity and namespace; an empty name is of none, or not known."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, with everything that a person needs to believe it.

    Attributes:
        check_id: The check that found it, such as ``tc-skew``.
        severity: Its severity.
        subject: A cluster, broker, namespace, bundle or topic, in Pulsar's notation.
        evidence: The problem in a sentence, with its numbers.
        figures: The same numbers as name and value, units in the names; `Figures` if other code calculates with them.
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

    def in_words(self, cluster: str) -> str:
        """Its evidence, by `with_subject`."""
        return with_subject(self.subject, self.evidence, cluster)


def with_subject(subject: str, evidence: str, cluster: str) -> str:
    """Evidence with its subject in front, unless that is the cluster itself or named in the evidence."""
    names = (re.escape(name) for name in subject.split(" subscription ", 1))
    whole = (rf"(?<![\w/:.-]){name}(?![\w/:-]|\.\w)" for name in names)
    is_named = subject == cluster or all(re.search(name, evidence) for name in whole)
    return evidence if is_named else f"{subject}: {evidence}"


SIZES = ("backlog_bytes", "storage_bytes", "held_bytes", "backlog_messages", "delayed_messages", "unacked_messages")
"""Figures of findings by which the largest comes first; the first that all of them have."""


def by_size(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The largest first, within each severity."""
    every = tuple(findings)
    size = next((name for name in SIZES if all(name in each.figures for each in every)), None)
    return tuple(sorted(every, key=lambda each: (-each.severity.rank, -each.figures.get(size, 0) if size else 0)))


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """Figures that are used after their check: integers; None is left out."""

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """Figures of a finding.

        Raises:
            msgspec.ValidationError: If a figure is missing.
        """
        return convert(finding.figures, cls)

    @property
    def by_name(self) -> dict[str, int]:
        """The figures by name, as a finding holds them."""
        found: dict[str, int] = msgspec.to_builtins(self)
        return found


class QuotaFigures(Figures, frozen=True, kw_only=True):
    """Figures of a finding about a topic's backlog and its quotas; None: absent or not known.

    Attributes:
        backlog_bytes: The backlog.
        bytes_percent: Usage of the size quota.
        delayed_messages: Messages of the backlog that are not due yet.
        holds_producers: 1 if the fuller quota, or one that is exceeded, shuts producers out; 0 if it deletes messages.
        limit_bytes: Size quota in force; negative: none.
        limit_seconds: Age quota in force; negative: none.
        oldest_backlog_age_seconds: Age of the oldest message that at least one subscription has not consumed.
        producers: Connected producers.
        seconds_percent: Usage of the age quota.
        seconds_to_quota: Time until the size quota is reached, at the present growth.
        unchecked: 1 if brokers hardly ever check quotas, or never.
    """

    backlog_bytes: int | None = None
    bytes_percent: int | None = None
    delayed_messages: int | None = None
    holds_producers: int | None = None
    limit_bytes: int | None = None
    limit_seconds: int | None = None
    oldest_backlog_age_seconds: int | None = None
    producers: int | None = None
    seconds_percent: int | None = None
    seconds_to_quota: int | None = None
    unchecked: int | None = None

    @property
    def by_age(self) -> bool:
        """True if the age quota is nearer than the size quota."""
        return (self.seconds_percent or 0) > (self.bytes_percent or 0)


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
        more: Number of unlisted findings; none of them has a worse severity than a listed one.
        more_json: Numbers of the unlisted findings of known severity, `graded` as JSON; empty in snapshots of 0.2.0.
    """

    check_id: str
    outlook: Outlook
    reason: str
    more: int = 0
    more_json: str = "{}"

    @property
    def graded(self) -> dict[Severity, dict[str, int]]:
        """Numbers of the unlisted findings of known severity, by severity and namespace.

        An empty name is of the cluster, of a broker, or of all namespaces that are not told apart.
        """
        return decode(self.more_json, dict[Severity, dict[str, int]])

    @property
    def ungraded(self) -> int:
        """Number of unlisted findings whose severity is not known: it was not looked at one by one."""
        return self.more - sum(sum(each.values()) for each in self.graded.values())

    @property
    def more_by_namespace(self) -> dict[str, int]:
        """Number of unlisted findings by namespace, with those of unknown severity at the empty name."""
        found = Counter({"": self.ungraded})
        for by_name in self.graded.values():
            found.update(by_name)
        return dict(+found)

    def unlisted(self, listed: Mapping[Severity, int]) -> Counter[Unlisted]:
        """Number of the unlisted findings by severity and namespace.

        Those of unknown severity count at the severity of the least bad listed one.

        Args:
            listed: Number of the check's listed findings by severity.
        """
        least = next((severity for severity in Severity if listed.get(severity)), Severity.INFO)
        known = {
            (severity, namespace): number
            for severity, each in self.graded.items()
            for namespace, number in each.items()
        }
        return Counter(known) + Counter({(least, ""): self.ungraded})

    def found(self, listed: Mapping[Severity, int]) -> Counter[Severity]:
        """Number of findings by severity, listed or not: what every text, page and metric tells.

        Args:
            listed: Number of the check's listed findings by severity.
        """
        found = Counter(listed)
        for (severity, _), number in self.unlisted(listed).items():
            found[severity] += number
        return found
