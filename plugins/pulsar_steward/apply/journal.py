"""Journal of a batch: a row is recorded in the ledger first, and then published as an event."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_steward.model.notice import Event

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.apply.gate import Permit
    from pulsar_steward.ledger.rows import Answer, Proof, StepOutcome
    from pulsar_steward.ledger.write import LedgerWriter

log = logging.getLogger(__name__)

Listener = Callable[[Event], None]
"""Function that receives each event after it is in the ledger."""


class Journal:
    """The ledger's writer, with a listener that cannot stop a remediation.

    Args:
        ledger: The ledger's writer.
        cluster: The cluster's name in Steward's connections.
        listener: Receives the events; its failures are only logged.
    """

    def __init__(self, ledger: LedgerWriter, cluster: str, listener: Listener | None = None) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._listener = listener

    def answer(self, answer: Answer) -> int:
        """Records an answer, and returns its id."""
        answer_id = self._ledger.record_answer(answer)
        self._tell(
            answer,
            event="decision",
            at=answer.answered_at,
            result=answer.decision,
            reason=answer.reason,
            by=answer.answered_by,
            values={"step_ids": list(answer.step_ids), "comment": answer.comment},
        )
        return answer_id

    def outcome(self, outcome: StepOutcome) -> None:
        """Records the outcome of a step."""
        self._ledger.record_outcome(outcome)
        log.info("%s: %s: %s", outcome.step_id, outcome.outcome, outcome.reason)
        self._tell(
            outcome,
            event="outcome",
            step_id=outcome.step_id,
            at=outcome.at,
            result=outcome.outcome,
            reason=outcome.reason,
            values=outcome.proof,
        )

    def proof(self, proof: Proof) -> None:
        """Records the proof of a batch."""
        self._ledger.record_proof(proof)
        self._tell(
            proof,
            event="proof",
            at=proof.at,
            result="proved" if proof.proved else "not proved",
            reason=proof.reason,
            values=proof.shown,
        )

    def use(self, permit: Permit, run: str, at: datetime) -> bool:
        """Claims the permit's answers for this run; False if another run has claimed one."""
        return all(self._ledger.use_answer(answer_id, run, at) for answer_id in permit.grant.answer_ids)

    def _tell(self, row: Answer | StepOutcome | Proof, **said: Any) -> None:
        if self._listener is None:
            return
        said["ledger_head"] = str(self._ledger.head)
        event = Event(cluster=self._cluster, plan_id=row.plan_id, batch_id=row.batch_id, run=row.run, **said)
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - whatever a listener does wrong, the remediation goes on
            log.warning("the event was not published, the ledger has it: %s: %s", type(error).__name__, error)
