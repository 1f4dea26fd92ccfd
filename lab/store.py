"""The state file of a lab: read by anyone, changed by one process at a time, never half written."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import msgspec

from lab.errors import UnknownLabError
from lab.model import LabState


class StateFile:
    """One lab's ``state.json``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def exists(self) -> bool:
        """Tells whether a lab was started here and not stopped since."""
        return self._path.exists()

    def read(self) -> LabState:
        """The state as last written.

        Raises:
            UnknownLabError: There is none, or it is not a lab's.
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=LabState)
        except FileNotFoundError:
            raise UnknownLabError(
                f"no lab {self._path.parent.name!r} in {self._path.parent.parent}: `python -m lab start` starts one"
            ) from None
        except msgspec.MsgspecError as error:
            raise UnknownLabError(f"{self._path} cannot be read as a lab's state ({error}): remove it") from error

    def write(self, state: LabState) -> None:
        """Replaces the state in one step."""
        draft = self._path.with_suffix(".draft")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2))
        draft.replace(self._path)

    def change(self, change: Callable[[LabState], LabState]) -> LabState:
        """Reads, changes and writes the state while no other process does; returns the new state."""
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = change(self.read())
            self.write(state)
            return state

    def remove(self) -> None:
        """Forgets the lab."""
        self._path.unlink(missing_ok=True)
        self._path.with_suffix(".lock").unlink(missing_ok=True)
