"""What a snapshot's folder needs of the file system that it lies in; folders of this machine are one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """A file system. Every place is a path or a URI, as the snapshot's own is."""

    def local(self, place: str) -> Path | None:
        """The same place as a path of this machine; None where it lies anywhere else."""

    def exists(self, place: str) -> bool:
        """Whether there is a file or folder."""

    def names(self, place: str) -> list[str]:
        """What a folder holds, sorted; nothing where it is not there."""

    def read(self, place: str) -> bytes:
        """The content of a file."""

    def write(self, place: str, content: bytes) -> None:
        """Writes a file in place of what is there; makes its folder."""

    def move(self, place: str, folder: str) -> bool:
        """Moves a file into a folder that is there; False where it is not to be found."""

    def delete(self, place: str) -> None:
        """Deletes a file, or a folder with all that is in it, where it is there."""


class LocalFiles(Files):
    """Folders of this machine, or such as it has mounted."""

    def local(self, place: str) -> Path:
        """As `Files.local`."""
        return Path(place.removeprefix("file://").removeprefix("file:"))

    def exists(self, place: str) -> bool:
        """As `Files.exists`."""
        return self.local(place).exists()

    def names(self, place: str) -> list[str]:
        """As `Files.names`."""
        folder = self.local(place)
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def read(self, place: str) -> bytes:
        """As `Files.read`."""
        return self.local(place).read_bytes()

    def write(self, place: str, content: bytes) -> None:
        """As `Files.write`."""
        path = self.local(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def move(self, place: str, folder: str) -> bool:
        """As `Files.move`."""
        path = self.local(place)
        if not path.is_file():
            return False
        path.rename(self.local(folder) / path.name)
        return True

    def delete(self, place: str) -> None:
        """As `Files.delete`."""
        path = self.local(place)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
