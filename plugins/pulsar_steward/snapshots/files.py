"""File system operations that a snapshot's folder needs, implemented for folders of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """A file system. A place is a path or a URI, like the snapshot's own."""

    def local(self, place: str) -> Path | None:
        """Local path of a place; None if it is not on this machine."""

    def exists(self, place: str) -> bool:
        """True if there is a file or folder."""

    def names(self, place: str) -> list[str]:
        """Names in a folder, sorted; empty if it does not exist."""

    def read(self, place: str) -> bytes:
        """The content of a file."""

    def write(self, place: str, content: bytes) -> None:
        """Writes a file, replacing an existing one; creates its folder."""

    def move(self, place: str, folder: str) -> bool:
        """Moves a file into an existing folder; False if the file does not exist."""

    def delete(self, place: str) -> None:
        """Deletes a file, or a folder with everything in it, if it exists."""


class LocalFiles(Files):
    """Folders of this machine, including mounted ones."""

    def local(self, place: str) -> Path:
        """See `Files.local`."""
        return Path(place.removeprefix("file://").removeprefix("file:"))

    def exists(self, place: str) -> bool:
        """See `Files.exists`."""
        return self.local(place).exists()

    def names(self, place: str) -> list[str]:
        """See `Files.names`."""
        folder = self.local(place)
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def read(self, place: str) -> bytes:
        """See `Files.read`."""
        return self.local(place).read_bytes()

    def write(self, place: str, content: bytes) -> None:
        """See `Files.write`."""
        path = self.local(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def move(self, place: str, folder: str) -> bool:
        """See `Files.move`."""
        path = self.local(place)
        if not path.is_file():
            return False
        path.rename(self.local(folder) / path.name)
        return True

    def delete(self, place: str) -> None:
        """See `Files.delete`."""
        path = self.local(place)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
