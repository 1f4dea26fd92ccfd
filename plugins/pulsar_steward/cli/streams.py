"""Standard output and standard error of this process, whose failures are told apart from those of other files."""

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from pulsar_steward.cli.errors import OutputFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """Standard output."""

    def write(self, data: "ReadableBuffer", /) -> int:
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

    def write(self, data: "ReadableBuffer", /) -> int:
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
