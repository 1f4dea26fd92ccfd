"""``steward`` as an operator runs it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def steward(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder, on 80 columns, without a terminal."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")}
    known |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "pulsar_steward.cli", *arguments],
        cwd=folder,
        env=known,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
