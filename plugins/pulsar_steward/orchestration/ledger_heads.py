"""Record of the end of the ledger's chain, outside of the ledger, to detect that an older ledger was restored.

There are two copies: a file in ``STEWARD_HOME``, and an Airflow variable. A SQLite ledger is in the same folder and may
be restored together with it; a worker's folder may be lost with the worker.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError

from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.noted_heads import (
    heads_of,
    ledger_names,
    named_heads,
    note_in_file,
    noted_in_file,
    with_head,
)
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
        self._names = ledger_names(url)

    def noted(self) -> tuple[Head, ...]:
        """The last ends in both records; the chain has to contain all of them.

        Raises:
            LedgerTampered: If a record cannot be read: an older ledger may have been restored.
        """
        return (*noted_in_file(home(), self._names), *named_heads(self._in_variable(), self._names))

    def note(self, head: Head) -> None:
        """Records the end of the chain; if a record cannot be written, its earlier entry remains and stays valid."""
        if not head.sequence:
            return
        note_in_file(home(), self._names, head)
        try:
            known = self._in_variable()
            if (noted := with_head(known, self._names, head)) != known:
                written = msgspec.json.encode(noted, order="sorted").decode()
                Variable.set(VARIABLE, written, description="Ends of ledgers' chains (docs/ledger.md)")
        except (AirflowRuntimeError, LedgerTampered) as error:
            log.warning("the end of the ledger's chain was not noted in the variable %s: %s", VARIABLE, error)

    def _in_variable(self) -> dict[str, Head]:
        text = Variable.get(VARIABLE, default=None)
        return heads_of(text, f"the Airflow variable {VARIABLE}") if text else {}
