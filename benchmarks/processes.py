"""Modules of this package in processes of their own, so that what they take is their own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
SEED = 7


def output_of(module: str, *arguments: Path | str, environment: Mapping[str, str] | None = None) -> str:
    """Output of a module; its errors go to standard error.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, check=True, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    return done.stdout


def told_by(kind: type[T], module: str, *arguments: Path | str, environment: Mapping[str, str] | None = None) -> T:
    """JSON of the last line that a module prints; raises as `output_of`."""
    return msgspec.json.decode(output_of(module, *arguments, environment=environment).splitlines()[-1], type=kind)


@contextmanager
def simulated(partitions: int, brokers: int, seed: int = SEED, cluster: str = "local") -> Iterator[list[str]]:
    """A made-up cluster in a process of its own; its admin URLs."""
    options = {"--partitions": partitions, "--brokers": brokers, "--seed": seed, "--cluster": cluster}
    command = [sys.executable, "-m", "lab", "simulate", *(str(part) for pair in options.items() for part in pair)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            yield msgspec.json.decode(process.stdout.readline())["admin_urls"]
        finally:
            process.terminate()
