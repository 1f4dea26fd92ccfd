"""Files that the user asked for: each is written beside, and renamed once it is complete."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pulsar_steward.errors import ConfigurationError

_OWNERS, _AS_THE_UMASK_HAS_IT = 0o600, 0o666


@contextmanager
def written_whole(file: Path, *, named: str, mode: int | None = None, only_new: bool = False) -> Iterator[IO[bytes]]:
    """Opens a file for writing that gets its name only once it is completely on disk.

    Whoever reads it reads the old content or the new one, never a part; an error leaves the old one. A link stays a
    link. What is no regular file, such as a pipe or ``/dev/null``, is written to as it is.

    Args:
        file: The file.
        named: How the user named it, for the error.
        mode: Its permissions; None: those of the file that it replaces, or as the umask has it.
        only_new: True: refuse to replace a file that is there.

    Raises:
        ConfigurationError: If it cannot be written, or is there already and should be new.
    """
    try:
        if only_new and file.exists():
            raise ConfigurationError(f"{named} is there already, and is never written over: name another file")
        if file.exists() and not file.is_file():
            with file.open("wb") as device:
                yield device
            return
        target = file.resolve()
        if mode is None and target.exists():
            mode = stat.S_IMODE(target.stat().st_mode)
        unfinished = target.with_name(f".steward-{secrets.token_hex(8)}")
        first = _AS_THE_UMASK_HAS_IT if mode is None else _OWNERS
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first), "wb") as made:
                yield made
                made.flush()
                if mode is not None:
                    os.fchmod(made.fileno(), mode)
                os.fsync(made.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{named} cannot be written: {error.strerror}") from error
