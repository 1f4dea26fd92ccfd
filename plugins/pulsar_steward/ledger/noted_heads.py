"""Record of the ends of ledgers' chains, in a file outside of the ledger.

A chain without the recorded link was cut or rewritten, or it belongs to an older ledger that was restored.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError, LedgerTampered
from pulsar_steward.ledger.chain import Head
from pulsar_steward.policy.place import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy.engine import URL

log = logging.getLogger(__name__)

FILE = "ledger-heads.json"

_PORTS = {"postgresql": "5432"}
"""Default ports, for addresses without a port."""


def ledger_names(url: URL) -> tuple[str, ...]:
    """Names for a ledger derived from its address, without user, password and options.

    The first name is from the normalized address (host in lower case, default port, links resolved). The second is from
    the address as it is written, for ends recorded under it: a symbolic link may lead to an older ledger later.
    """
    kind, database = url.get_backend_name(), url.database or ""
    if kind == "sqlite":
        file = Path(database)
        places = [("", "", str(file.resolve())), ("", "", str(file.absolute()))]
    else:
        host, port = url.host or "", url.port
        places = [(host.lower(), str(port or _PORTS.get(kind, "")), database), (host, str(port or ""), database)]
    digests = [hashlib.sha256("\n".join((kind, *place)).encode()).hexdigest()[:16] for place in places]
    return tuple(dict.fromkeys(digests))


def heads_of(text: str | bytes, place: str) -> dict[str, Head]:
    """Decodes a record of chain ends, by the name of their ledger.

    Args:
        text: JSON.
        place: Its origin, for the error.

    Raises:
        LedgerTampered: If the text is no valid record.
    """
    try:
        return decode(text, dict[str, Head])
    except msgspec.MsgspecError as error:
        raise LedgerTampered(
            f"{place} should say where the ledger's chain ended, and cannot be read ({error}): find out who changed it,"
            " compare by `steward ledger verify`, and remove it where the ledger is right"
        ) from error


def noted_in_file(home: Path, names: Iterable[str]) -> tuple[Head, ...]:
    """Chain ends recorded in ``STEWARD_HOME`` under a ledger's names; the chain has to contain each of them.

    Raises:
        LedgerTampered: If the record exists and cannot be read.
    """
    file = home / FILE
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LedgerTampered(
            f"{file} should say where the ledger's chain ended, and cannot be read: {error}"
        ) from error
    return named_heads(heads_of(text, str(file)), names)


def named_heads(known: Mapping[str, Head], names: Iterable[str]) -> tuple[Head, ...]:
    """Recorded chain ends of a ledger with several names, each end once."""
    return tuple(dict.fromkeys(known[name] for name in names if name in known))


def with_head(known: Mapping[str, Head], names: Iterable[str], head: Head) -> dict[str, Head]:
    """The record with a chain's end added under each name of its ledger, unless a later end is there."""
    behind = [name for name in names if (last := known.get(name)) is None or last.sequence < head.sequence]
    return {**known, **dict.fromkeys(behind, head)}


def note_in_file(home: Path, names: Iterable[str], head: Head) -> None:
    """Records a chain's end, unless a later one is recorded; if it cannot be written, the earlier record stays."""
    file = home / FILE
    try:
        known = heads_of(file.read_bytes(), str(file)) if file.exists() else {}
        if (noted := with_head(known, names, head)) == known:
            return
        private_folder(home)
        # Renamed once complete, as other tasks may read it.
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(noted, order="sorted"))
        unfinished.chmod(0o600)
        unfinished.replace(file)
    except (OSError, ConfigurationError, LedgerTampered) as error:
        log.warning("the end of the ledger's chain was not noted in %s: %s", file, error)
