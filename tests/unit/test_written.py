"""The search for secrets finds them wherever Steward could have written them."""

from __future__ import annotations

import base64
import gzip
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
from pyarrow import parquet

from tests.written import PIECE, holders

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "a-Marked/S3cret+of-Steward=that-is-in-nothing-else"


def test_what_holds_a_secret_is_found(tmp_path: Path) -> None:
    """Secrets are found in compressed files, in database rows, as a piece, in base 64 and quoted."""
    table = pa.table({"name": ["a", SECRET] * 500})
    parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    (tmp_path / "report.gz").write_bytes(gzip.compress(f"x{SECRET}x".encode()))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "log").write_text(f"token {SECRET[:PIECE]}... is refused", encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute("create table rows (reason text)")
        database.execute("insert into rows values (?)", ["x" * 4000 + SECRET * 10])
    for clean in ("other.parquet", "other"):
        (tmp_path / clean).write_bytes(b"")
    texts = {
        "base64": base64.b64encode(SECRET.encode()).decode(),
        "quoted": f"?token={quote(SECRET, safe='')}",
        "clean": "nothing",
    }
    found = holders(["another", SECRET], [tmp_path], texts)
    expected = {"rows.parquet", "report.gz", "below/log", "ledger.db"}
    assert found == {str(tmp_path / name) for name in expected} | {"base64", "quoted"}


def test_what_holds_none_is_not(tmp_path: Path) -> None:
    """A file that holds only a few characters of a secret is not reported."""
    (tmp_path / "log").write_text("a-Marked", encoding="utf-8")
    assert holders([SECRET], [tmp_path]) == set()
