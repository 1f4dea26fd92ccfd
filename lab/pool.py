"""Labs shared by whoever asks for the same: started once, whole again each time they are handed out."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import msgspec

from lab.boot import Progress
from lab.cluster import Lab, running_lab, silent
from lab.model import LabOptions, LabSpec


class LabPool:
    """Running labs by what they were asked for; use it in a ``with`` statement.

    Args:
        home: The folder of the labs.
        most: How many may run at once; the one that nobody has asked for the longest is stopped for a further one.
        progress: Told what happens, a line at a time.
    """

    def __init__(self, home: Path, most: int = 1, progress: Progress = silent) -> None:
        self._home = home
        self._most = most
        self._progress = progress
        self._running: dict[bytes, tuple[Lab, contextlib.ExitStack]] = {}
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def lab(self, **options: Unpack[LabOptions]) -> Lab:
        """A lab of these options with all of its brokers running and no other: one that runs, or a new one.

        Namespaces and clients are the caller's to clear away; who leaves something behind that others would meet says
        so by `discard`.

        Raises:
            LabError: It could not be started.
        """
        key = msgspec.json.encode(LabSpec(name="any", **options), order="sorted")
        if key in self._running:
            lab, stack = self._running.pop(key)
            self._running[key] = lab, stack  # the last to be stopped for another
            lab.restore()
            return lab
        while len(self._running) >= self._most:
            self._stop(next(iter(self._running)))
        self._started += 1
        stack = contextlib.ExitStack()
        name = f"lab-{self._started}"
        lab = stack.enter_context(running_lab(name, home=self._home, progress=self._progress, **options))
        self._running[key] = lab, stack
        return lab

    def discard(self, lab: Lab) -> None:
        """Stops a lab that nobody else can use any more; whoever asks for the same gets a new one."""
        for key, (running, _) in list(self._running.items()):
            if running is lab:
                self._stop(key)

    def close(self) -> None:
        """Stops every lab."""
        for key in list(self._running):
            self._stop(key)

    def _stop(self, key: bytes) -> None:
        _, stack = self._running.pop(key)
        stack.close()
