"""Verification of the ledger by ``pulsar_housekeeping``, the DAG that also removes old snapshots."""

from __future__ import annotations

import logging

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.units import counted
from pulsar_steward.orchestration import connections
from pulsar_steward.orchestration.ledger_heads import LedgerHeads

log = logging.getLogger(__name__)


def compare_ledger() -> str:
    """Verifies the whole ledger; returns a sentence with the end of its chain, for a record outside of the ledger.

    Raises:
        LedgerTampered: If a row was tampered with; all of them are logged.
        LedgerError: If the ledger cannot be read.
    """
    engine = connections.ledger()
    try:
        heads = LedgerHeads(engine.url)
        verdict = verify_ledger(engine, noted=heads.noted())
    finally:
        engine.dispose()
    for each in verdict.tampered:
        log.error("%s", each.words)
    if verdict.tampered:
        raise LedgerTampered(f"{verdict.tampered[0].words}; {counted(len(verdict.tampered), 'place')} in all")
    heads.note(verdict.head)
    return f"{counted(verdict.rows, 'row is', 'rows are')} as written; the chain ends at {verdict.head}"
