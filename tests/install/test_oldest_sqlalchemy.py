"""The ledger under the oldest SQLAlchemy that Steward takes: Airflow 3.1 and 3.2 bring one of 2.0."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.install.built import ROOT, caches

if TYPE_CHECKING:
    from pathlib import Path

OLDEST = re.compile(r'"sqlalchemy>=(?P<version>[\d.]+)')
RECORDS = "tests/unit/ledger/test_records.py"


@pytest.mark.extended("tests/unit/ledger/test_store.py", "tests/unit/ledger/test_records.py")
def test_the_ledger_is_written_and_read(tmp_path: Path) -> None:
    found = OLDEST.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found
    older = tmp_path / "older"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(older)]
    subprocess.run([*install, f"sqlalchemy=={found['version']}"], env=os.environ | caches(), check=True)
    code = f"import sqlalchemy; assert sqlalchemy.__version__ == {found['version']!r}"
    tried = f"{code}; import pytest; raise SystemExit(pytest.main(['-q', '-p', 'no:cacheprovider', {RECORDS!r}]))"
    ended = subprocess.run(
        [sys.executable, "-c", tried],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(older)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
