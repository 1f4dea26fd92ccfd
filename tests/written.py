"""Written things, searched for secrets: files of any kind that Steward writes, and texts."""

from __future__ import annotations

import base64
import gzip
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyarrow import parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

PIECE = 24
"""Characters of a secret that may stand nowhere either: what was cut short, or split in lines."""


def holders(secrets: Iterable[str], folders: Iterable[Path], texts: Mapping[str, str] | None = None) -> set[str]:
    """Names of what holds a secret, whole or a part of it, also in base 64 or quoted as in an address.

    Args:
        secrets: The secrets.
        folders: All files below these are searched: Parquet and SQLite by their rows, gzip by its content.
        texts: Other texts, by their names.
    """
    wanted = {spelled for secret in secrets for spelled in _spelled(secret)}
    files = {str(path): path for folder in folders for path in folder.rglob("*") if path.is_file()}
    found = {name for name, path in files.items() if _holds(_content(path), wanted)}
    return found | {name for name, text in (texts or {}).items() if _holds(text.encode(), wanted)}


def _spelled(secret: str) -> Iterable[bytes]:
    pieces = {secret, *(secret[start : start + PIECE] for start in range(0, len(secret) - PIECE + 1, PIECE))}
    encoded = (base64.b64encode(secret.encode()), base64.urlsafe_b64encode(secret.encode()))
    return {*(piece.encode() for piece in pieces), quote(secret, safe="").encode(), *(e.rstrip(b"=") for e in encoded)}


def _holds(content: bytes, wanted: Iterable[bytes]) -> bool:
    return any(each in content for each in wanted)


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:  # somebody who still works here has removed it
        return b""
    if raw.startswith(b"PAR1"):
        return raw + str(parquet.read_table(path).to_pylist()).encode()
    if raw.startswith(b"SQLite format 3\x00"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return raw + "\n".join(database.iterdump()).encode()
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
