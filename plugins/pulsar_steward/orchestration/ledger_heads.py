"""Record of the end of the ledger's chain, kept outside of the ledger to detect that an older one was restored.

It is kept twice: in a file of ``STEWARD_HOME``, and in an Airflow variable. A SQLite ledger is in that very folder
and may be restored together with it; a worker's folder may be lost with the worker.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.noted_heads import heads_of, ledger_name, note_in_file, noted_in_file
from pulsar_steward.orchestration.home import home

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from pulsar_steward.ledger.chain import Head

log = logging.getLogger(__name__)

VARIABLE = "steward_ledger_head"


class LedgerHeads:
    """The recorded ends of one ledger's chain.

    Args:
        url: The ledger's URL; a record may contain several ledgers.
    """

    def __init__(self, url: URL) -> None:
        self._name = ledger_name(url)

    def noted(self) -> tuple[Head, ...]:
        """Last end recorded in each place; the chain has to contain every one of them.

        Raises:
            LedgerTampered: If a record cannot be read: an older ledger may have been restored.
        """
        known = (noted_in_file(home(), self._name), self._in_variable().get(self._name))
        return tuple(head for head in known if head is not None)

    def note(self, head: Head) -> None:
        """Records the end of the chain; a place that cannot be written keeps its earlier record, which stays valid."""
        if not head.sequence:
            return
        note_in_file(home(), self._name, head)
        try:
            known = self._in_variable()
            if (last := known.get(self._name)) is None or last.sequence < head.sequence:
                written = msgspec.json.encode({**known, self._name: head}, order="sorted").decode()
                Variable.set(VARIABLE, written, description="Ends of ledgers' chains (docs/ledger.md)")
        except (AirflowRuntimeError, LedgerTampered) as error:
            log.warning("the end of the ledger's chain was not noted in the variable %s: %s", VARIABLE, error)

    def _in_variable(self) -> dict[str, Head]:
        text = Variable.get(VARIABLE, default=None)
        return heads_of(text, f"the Airflow variable {VARIABLE}") if text else {}
