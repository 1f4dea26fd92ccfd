"""Notices: what people are told of, each of which has a key that stays the same however often it is looked for."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity


class Occasion(StrEnum):
    """Kind of an event that people are told of; policies name these."""

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


STATES = frozenset({Occasion.WAITING, Occasion.EXPIRING})
"""Occasions that may be over before anybody was told: nobody is told of them then."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One event in words.

    Attributes:
        key: Identifies the event: a digest of the occasion, the cluster and the ids of what it is about.
        at: When it happened, UTC.
        subject: The event in one line, in which nothing is hidden.
        text: What there is to say beyond the subject; lines, in each of which nothing is hidden.
        path: Address of the question or page within Airflow, names in it quoted.
        plan_id: The plan that it is about, or None.
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
    """Key of an event: the same for the same event, whoever derives it, and whenever."""
    return digest([occasion.value, cluster, *ids])
