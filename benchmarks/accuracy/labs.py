"""One lab at a time: faults with the same settings share it, and one that needs its own gets it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lab.cluster import running_lab
from lab.faults.fault import RealFault
from lab.faults.real.ground import COMMON_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from lab.cluster import Lab
    from lab.faults.registry import AnyFault


def in_order(faults: Iterable[AnyFault]) -> list[AnyFault]:
    """Simulated faults first, then the real ones so that as few labs as possible are started."""
    faults = list(faults)
    real = [fault for fault in faults if isinstance(fault, RealFault)]
    return [
        *(fault for fault in faults if not isinstance(fault, RealFault)),
        *sorted(real, key=lambda fault: (fault.settings, fault.own_lab)),
    ]


class Labs:
    """Starts and ends labs as faults need them; use it in a ``with`` statement.

    Args:
        home: The folder of the labs.
        say: Told what happens, a line at a time.
    """

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._open = contextlib.ExitStack()
        self._lab: Lab | None = None
        self._settings: tuple[tuple[str, str], ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def lab_for(self, fault: RealFault) -> Lab:
        """A running lab with the fault's settings: the one that runs, if it will do, or a new one."""
        if self._lab is None or fault.own_lab or fault.settings != self._settings:
            self.end()
            settings = dict(COMMON_SETTINGS) | dict(fault.settings)
            self._say(f"starting a lab ({', '.join(f'{key}={value}' for key, value in fault.settings) or 'as it is'})")
            self._lab = self._open.enter_context(running_lab("accuracy", home=self._home, broker_settings=settings))
            self._settings = fault.settings
        return self._lab

    def done_with(self, fault: RealFault) -> None:
        """Ends the lab if it was the fault's own."""
        if fault.own_lab:
            self.end()

    def end(self) -> None:
        """Ends the lab that runs, if one does."""
        self._lab = None
        self._open.close()
