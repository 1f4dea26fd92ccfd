"""Events published about a remediation: each decision, each step's outcome, each batch's proof.

The ledger is the record; events are for dashboards and alerts. docs/events.md describes the fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from pulsar_steward.outside_text import shown_json

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
