"""Figures of one measurement, and the processes that it was made in."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import psutil


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement.

    Attributes:
        seconds: Of wall clock, from the moment at which everything that starts once has started.
        cpu_seconds: Of all processes, user and system, in that time.
        peak_bytes: Of the largest process, over its whole life.
        what: What was counted, such as topics or steps.
        count: How many of them.
        parts: Seconds of named parts, where they are known.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    what: str
    count: int
    parts: dict[str, float] = {}


class Meter:
    """Wall clock and processor time of this process and all below it, from its making on."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cpu = self._cpu_now()
        self._began = time.perf_counter()

    def figures(self, what: str, count: int, parts: dict[str, float] | None = None) -> Figures:
        """Figures until now."""
        seconds = time.perf_counter() - self._began
        cpu = self._cpu_now() - self._cpu
        peak = max(_peak(each.pid) for each in self._all())
        return Figures(seconds=seconds, cpu_seconds=cpu, peak_bytes=peak, what=what, count=count, parts=parts or {})

    def _cpu_now(self) -> float:
        total = 0.0
        for each in self._all():
            try:
                times = each.cpu_times()
            except psutil.Error:  # ended meanwhile: its parent has its time
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def _all(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]


def _peak(pid: int) -> int:
    """The most memory that a process ever held, of the kernel's own count."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else 0


def told(figures: Figures) -> None:
    """Says it to who started this process."""
    sys.stdout.write(f"{msgspec.json.encode(figures).decode()}\n")
