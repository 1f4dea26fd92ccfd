"""A client in another language: a process of its own that is told its work as lines of JSON, and answers each."""

import contextlib
import itertools
import subprocess
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from lab.errors import NotReachedError
from lab.faults.clients.work import Work

ANSWER_WITHIN_S = 180.0
END_WITHIN_S = 10.0


class Answer(msgspec.Struct, frozen=True):
    """Answer of the process to one piece of work; without an error it is done, or has begun."""

    number: int
    error: str | None = None


_ANSWER = msgspec.json.Decoder(Answer)  # made once: the threads of two processes may have their first answer at once


class HelperProcess:
    """Such a process; a `lab.faults.clients.work.Clients`. Several threads may tell it work.

    Args:
        command: How it is started.
        log: A file for what it writes beside its answers.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._numbers = itertools.count(1)
        self._answered = threading.Condition()
        self._answers: dict[int, Answer] = {}
        self._over = False

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )
        self._listener = threading.Thread(target=self._listen, name=f"answers of {self._log.stem}", daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it as a crash does: what it held is delivered again."""
        self._process.kill()
        self._process.wait(END_WITHIN_S)
        self._listener.join(END_WITHIN_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written any more
                    pipe.close()

    def do(self, work: Work) -> None:
        """Tells it a piece of work and waits for its answer.

        Raises:
            NotReachedError: It said why not, said nothing in time, or ended.
        """
        number = next(self._numbers)
        told = {"number": number, "do": type(work).__name__, **asdict(work)}
        with self._answered:
            self._tell(msgspec.json.encode(told).decode())
            if not self._answered.wait_for(lambda: number in self._answers or self._over, ANSWER_WITHIN_S):
                raise NotReachedError(f"{self._command[0]} did not answer in {ANSWER_WITHIN_S:.0f} s: {work}")
            answer = self._answers.pop(number, None)
        if answer is None:
            raise NotReachedError(f"{self._command[0]} ended before {work} was done: see {self._log}")
        if answer.error is not None:
            raise NotReachedError(f"{work}: {answer.error}")

    def _tell(self, line: str) -> None:
        if self._process.stdin is not None:
            try:
                self._process.stdin.write(f"{line}\n")
            except OSError as error:
                raise NotReachedError(f"{self._command[0]} ended: see {self._log}") from error

    def _listen(self) -> None:
        lines = self._process.stdout or ()
        try:
            for line in lines:
                answer = _ANSWER.decode(line)
                with self._answered:
                    self._answers[answer.number] = answer
                    self._answered.notify_all()
        except ValueError:  # something else than an answer: nothing more is to be had
            self._process.kill()
        with self._answered:
            self._over = True
            self._answered.notify_all()
