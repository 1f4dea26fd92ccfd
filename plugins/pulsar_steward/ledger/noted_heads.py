"""Record of the ends of ledgers' chains, in a file outside of the ledger.

A chain that no longer contains a recorded link was cut, rewritten, or belongs to an older ledger that was restored.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError, LedgerTampered
from pulsar_steward.ledger.chain import Head
from pulsar_steward.policy.place import private_folder

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

log = logging.getLogger(__name__)

FILE = "ledger-heads.json"


def ledger_name(url: URL) -> str:
    """Name for a ledger derived from its address, without user, password and options."""
    database = url.database or ""
    if url.get_backend_name() == "sqlite":
        database = str(Path(database).absolute())
    place = (url.get_backend_name(), url.host or "", str(url.port or ""), database)
    return hashlib.sha256("\n".join(place).encode()).hexdigest()[:16]


def heads_of(text: str | bytes, place: str) -> dict[str, Head]:
    """Decodes a record of chain ends, by the name of their ledger.

    Args:
        text: JSON.
        place: Its origin, for the error.

    Raises:
        LedgerTampered: If it is no such record.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Head])
    except msgspec.MsgspecError as error:
        raise LedgerTampered(
            f"{place} should say where the ledger's chain ended, and cannot be read ({error}): find out who changed it,"
            " compare by `steward ledger verify`, and remove it where the ledger is right"
        ) from error


def noted_in_file(home: Path, name: str) -> Head | None:
    """Chain end recorded in ``STEWARD_HOME`` for a ledger; None if there is none.

    Raises:
        LedgerTampered: If the record exists and cannot be read.
    """
    file = home / FILE
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerTampered(
            f"{file} should say where the ledger's chain ended, and cannot be read: {error}"
        ) from error
    return heads_of(text, str(file)).get(name)


def note_in_file(home: Path, name: str, head: Head) -> None:
    """Records a chain's end, unless a later one is recorded; if it cannot be written, the earlier record stays."""
    file = home / FILE
    try:
        known = heads_of(file.read_bytes(), str(file)) if file.exists() else {}
        if (last := known.get(name)) is not None and last.sequence >= head.sequence:
            return
        private_folder(home)
        # Renamed once complete: other tasks read it meanwhile.
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode({**known, name: head}, order="sorted"))
        unfinished.chmod(0o600)
        unfinished.replace(file)
    except (OSError, ConfigurationError, LedgerTampered) as error:
        log.warning("the end of the ledger's chain was not noted in %s: %s", file, error)
