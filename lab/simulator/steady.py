"""Documents of a steady cluster: put together once, and kept in a file, as a thousand brokers' are 16 GB."""

import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path


class SteadyDocuments:
    """Documents by broker and name, in one file that has no name and goes with the process.

    The kernel holds of it what fits into memory. Only the server's event loop may call it.
    """

    def __init__(self) -> None:
        self._file, name = tempfile.mkstemp(prefix="steady-documents-")
        weakref.finalize(self, os.close, self._file)
        Path(name).unlink()
        self._places: dict[tuple[str, str], tuple[int, int]] = {}
        self._end = 0

    def get(self, broker_id: str, name: str, make: Callable[[], bytes]) -> bytes:
        """The document of that name, made where it was not asked for before."""
        if (broker_id, name) not in self._places:
            document = make()
            os.pwrite(self._file, document, self._end)
            self._places[broker_id, name] = (self._end, len(document))
            self._end += len(document)
        start, size = self._places[broker_id, name]
        return os.pread(self._file, size, start)
