"""What is told to the outside about a remediation: each decision, each step's outcome, each batch's proof.

The ledger is the truth; events are for dashboards and alarms. docs/events.md describes the fields.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from pulsar_steward.outside_text import shown_json

SCHEMA_VERSION = 1


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, as it is published.

    Attributes:
        event: What kind of thing.
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan.
        batch_id: The batch of the plan.
        step_id: The step, for an ``outcome``; else None.
        run: The Airflow run that it happened in.
        at: When, UTC.
        result: ``approved``, ``rejected``, ``no answer`` or ``malformed`` for a decision; ``done``, ``refused``,
            ``drifted``, ``failed`` or ``unknown`` for an outcome; ``proved`` or ``not proved`` for a proof.
        reason: Why, in words.
        by: Who decided, for a ``decision`` by a person; else None.
        values: What the cluster showed, as far as it was looked at.
        ledger_head: Where the ledger's chain ended when this was written, ``number:hash``: kept outside of the
            ledger, it tells whether the chain was written anew since.
        schema_version: Raised when a field changes its meaning.
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
        """The event as JSON, in which whatever cannot be seen is escaped: people read a topic too."""
        return shown_json(msgspec.json.encode(self))
