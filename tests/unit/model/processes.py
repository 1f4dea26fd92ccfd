"""Python code that is run in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys

SEEDS = ("1", "2")


def printed_by_hash_seed(code: str) -> set[bytes]:
    """All that code prints in two processes whose sets have different orders; one text where the order is no matter."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in SEEDS
    }
