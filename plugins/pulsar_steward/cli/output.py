"""Output of the command line: the report to standard output, progress and errors to standard error."""

from __future__ import annotations

import io
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, TextIO

import typer
from rich.console import Console
from rich.text import Text

from pulsar_steward.cli.errors import OutputFailed
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.outside_text import shown, shown_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from _typeshed import ReadableBuffer


STANDARD_OUTPUT = "-"
"""Value that stands for standard output where a file is expected."""

Say = Callable[[str], None]
"""Function that reports progress."""


def tell(words: object, *, err: bool = False) -> None:
    """Prints one line, through `shown`, to standard output or to standard error."""
    typer.echo(shown(words), err=err)


def tell_done(done: str, further: Iterable[str] = ()) -> None:
    """Tells what a command did, in a sentence, and what else there is to say, a line each.

    Raises:
        OutputFailed: If standard output cannot be written; it says what was done, as nothing else would.
    """
    try:
        for line in (done, *further):
            tell(line)
    except (OutputFailed, BrokenPipeError) as error:
        said = error if isinstance(error, OutputFailed) else "nobody reads standard output any more"
        raise OutputFailed(f"{said}; this was done all the same: {done}") from error


def tell_exactly(document: bytes) -> None:
    """Prints JSON whose exact bytes matter; in a terminal, for a person, with invisible characters escaped."""
    typer.echo(shown_json(document) if sys.stdout.isatty() else document)


def out() -> Console:
    """Console for standard output; colour only where it is a terminal and NO_COLOR is not set."""
    return Console(highlight=False)


def print_lines(lines: Iterable[Text], console: Console | None = None) -> None:
    """Prints lines without wrapping them."""
    console = console or out()
    for line in lines:
        console.print(line, soft_wrap=True)


def width() -> int:
    """Width of the output in columns: the terminal's, or 80."""
    return out().width


@contextmanager
def progress() -> Iterator[Say]:
    """Reports progress: behind a spinner in a terminal, in plain lines elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda words: console.print(Text(shown(words)), soft_wrap=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(shown(words), overflow="ellipsis", no_wrap=True))


class _Output(io.FileIO):
    """Standard output."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes as any file does.

        Raises:
            OutputFailed: If it cannot be written.
            BrokenPipeError: If nobody reads it any more.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(f"standard output cannot be written: {error.strerror}") from error


class _Errors(io.FileIO):
    """Standard error. What cannot be written there is dropped: no command fails or stops half-way by it."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes as any file does, or drops the data."""
        with suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def prepare_streams() -> None:
    """Replaces this process's standard output and standard error; a closed one stays closed."""
    sys.stdout, sys.stderr = _of_kind(_Output, sys.stdout), _of_kind(_Errors, sys.stderr)


def require_output() -> None:
    """Refuses a closed standard output: a command would act, and nobody would learn of it.

    Raises:
        OutputFailed: If it is closed.
    """
    if sys.stdout is None:
        raise OutputFailed("standard output is closed, and nothing was done: send it to a file, or to /dev/null")


def flush_streams() -> None:
    """Flushes both streams; a failure was said before, or nobody is there to hear of it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError, OutputFailed):
                stream.flush()


def _of_kind(kind: type[io.FileIO], stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",  # a terminal that cannot display a letter is no reason to stop
        line_buffering=stream.line_buffering,
    )


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
