"""One lab at a time: faults with the same settings share it, and one that needs its own gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.faults.fault import RealFault
from lab.faults.real.ground import COMMON_SETTINGS
from lab.pool import LabPool

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
    """Labs as faults need them, one at a time; use it in a ``with`` statement.

    Args:
        home: The folder of the labs.
        say: Told what happens, a line at a time.
    """

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._pool = LabPool(home, progress=say)
        self._say = say

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def lab_for(self, fault: RealFault) -> Lab:
        """A running lab with the fault's settings: the one that runs, if it will do, or a new one."""
        if fault.own_lab:
            self.end()
        self._say(f"a lab with {', '.join(f'{key}={value}' for key, value in fault.settings) or 'no further settings'}")
        return self._pool.lab(broker_settings=dict(COMMON_SETTINGS) | dict(fault.settings))

    def done_with(self, fault: RealFault) -> None:
        """Ends the lab if it was the fault's own."""
        if fault.own_lab:
            self.end()

    def end(self) -> None:
        """Ends the lab that runs, if one does."""
        self._pool.close()
