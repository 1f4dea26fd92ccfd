"""Write access to messages in the ledger: each is queued once, claimed before a try, and gets the try's result after.

Only `orchestration` may import this; import-linter enforces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.chain import Appending, ChainWriter
from pulsar_steward.ledger.messages import OVER, DeliveryState, Try, known_keys, tries_of
from pulsar_steward.ledger.tables import DELIVERIES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.ledger.messages import Queued


class Outbox(ChainWriter):
    """Adds messages and tries; every method commits before it returns, and raises `LedgerError` if it cannot."""

    def queue(self, messages: Sequence[Queued]) -> int:
        """Adds messages, without notices that their recipient has already; returns the number of added messages."""
        if not messages:
            return 0
        number = 0
        with self._appending() as chain:
            keys = [notice.key for message in messages for notice in message.notices]
            known = set(known_keys(chain.connection, keys))
            for message in messages:
                for notice in message.notices:
                    if (notice.key, message.recipient) in known:
                        continue
                    known.add((notice.key, message.recipient))
                    number += 1
                    row = {
                        "notice_key": notice.key,
                        "recipient": message.recipient,
                        "message_id": message.message_id,
                        "cluster": notice.cluster,
                        "at": message.at,
                        "document": msgspec.json.encode(notice, order="sorted").decode(),
                    }
                    chain.add(MESSAGES, row)
        return number

    def claim(self, message: Queued, at: datetime) -> int | None:
        """Claims the next try of a message; returns its number, or None if another worker was quicker.

        Args:
            message: The message, with its tries at the time when it was found due.
            at: Current time.
        """
        with self._appending() as chain:
            tries = tries_of(chain.connection, message.message_id)
            if tries != message.tries or any(each.state in OVER for each in tries):
                return None
            attempt = tries[-1].attempt + 1 if tries else 1
            self._add(chain, message.message_id, Try(attempt=attempt, state=DeliveryState.CLAIMED, at=at, reason=""))
            return attempt

    def record(self, message_id: str, result: Try) -> None:
        """Adds the result of a try, or the end of a message without a try; an equal row is not added again."""
        with self._appending() as chain:
            same = (result.attempt, result.state)
            if same not in {(each.attempt, each.state) for each in tries_of(chain.connection, message_id)}:
                self._add(chain, message_id, result)

    @staticmethod
    def _add(chain: Appending, message_id: str, result: Try) -> None:
        row = {**msgspec.structs.asdict(result), "state": result.state.value, "message_id": message_id}
        chain.add(DELIVERIES, row)
