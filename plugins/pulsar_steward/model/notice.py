"""Notices: events that people are notified of, each with a key that is the same whenever it is derived."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity
from pulsar_steward.outside_text import shown_json


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


# The ledger is the record; events are for dashboards and alerts. docs/events.md describes the fields.


SCHEMA_VERSION = 1


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A published event.

    Attributes:
        event: Kind of the event.
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan.
        batch_id: The batch of the plan.
        step_id: The step, for an ``outcome``; else None.
        run: The Airflow run.
        at: Time of the event, UTC.
        result: ``approved``, ``rejected``, ``snoozed``, ``never``, ``no answer`` or ``malformed`` for a decision;
            ``done``, ``refused``, ``drifted``, ``failed`` or ``unknown`` for an outcome; ``proved`` or ``not proved``
            for a proof.
        reason: The reason, as text.
        by: The person who decided, for a ``decision`` by a person; else None.
        values: The state of the cluster, as far as it was read.
        ledger_head: End of the ledger's chain at the time of writing, ``number:hash``. As it is stored outside of the
            ledger, it shows later changes of the chain.
        schema_version: Incremented when a field changes its meaning.
    """

    event: Literal["decision", "outcome", "proof"]
    cluster: str
    plan_id: str
    batch_id: str
    step_id: str | None = None
    run: str
    at: datetime
    result: str
    reason: str
    by: str | None = None
    values: dict[str, Any] = {}
    ledger_head: str
    schema_version: int = SCHEMA_VERSION

    def encoded(self) -> bytes:
        """The event as JSON, with invisible characters escaped: people read a topic too."""
        return shown_json(msgspec.json.encode(self))
