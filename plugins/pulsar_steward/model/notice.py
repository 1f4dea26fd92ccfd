"""Notices: events that people are notified of, each with a key that is the same whenever it is derived."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity


class Occasion(StrEnum):
    """Kind of an event that people are notified of; policies name these."""

    NOT_ASKED = "not_asked"
    WAITING = "waiting"
    EXPIRING = "expiring"
    DONE = "done"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"
    HALTED = "halted"
    RESUMED = "resumed"
    FINDING_NEW = "finding_new"
    FINDING_GONE = "finding_gone"


STATES = frozenset({Occasion.NOT_ASKED, Occasion.WAITING, Occasion.EXPIRING})
"""Occasions that may be over before the notification; then it is not sent."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One event in words.

    Attributes:
        key: Identifies the event: a digest of the occasion, the cluster and the ids of its subjects.
        at: Time of the event, UTC.
        subject: The event in one line, without invisible characters.
        text: Further lines beyond the subject, without invisible characters.
        path: Address of the question or page within Airflow, with quoted names.
        plan_id: The plan of the event, or None.
    """

    key: str
    occasion: Occasion
    cluster: str
    severity: Severity
    at: datetime
    subject: str
    text: str
    path: str
    plan_id: str | None = None


def notice_key(occasion: Occasion, cluster: str, *ids: str) -> str:
    """Key of an event: equal for the same event, whoever derives it, and whenever."""
    return digest([occasion.value, cluster, *ids])
