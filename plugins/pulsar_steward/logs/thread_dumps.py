"""Thread dumps from ``jstack`` or ``kill -3``: stuck threads that serve clients, and deadlocks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.logs.patterns import DUMPS
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.model.finding import Finding

BEGIN = "Full thread dump"
END = "JNI global ref"

POOLS = (
    "pulsar-io",
    "bookkeeper-io",
    "bookkeeper-ml-workers",
    "bookkeeper-ml-scheduler",
    "BookKeeperClientWorker",
    "BookieReadThreadPool",
    "BookieWriteThreadPool",
    "bookie-io",
    "broker-topic-workers",
    "metadata-store",
    "pulsar-ordered",
)
"""Pools of threads shared by many topics or connections: their threads must never wait for one another.

Names are those of brokers and bookies of 4.0.7, and of older ones (`bookkeeper-ml-workers`). The kind of executor and
numbers follow (``broker-topic-workers-OrderedExecutor-0-0``). Other threads whose names begin alike wait by design,
such as the session watcher of the metadata store.
"""

MAX_THREADS = 50_000
"""Maximum number of threads of these pools that are kept, over all dumps of a file."""

_DEEPEST = 200
_COMPARED = 6
_FEWEST_DUMPS = 2

_SHARED = re.compile(rf"(?:{'|'.join(POOLS)})(?:-Ordered(?:Executor|Scheduler))?-\d")
_THREAD = re.compile(r'"(?P<name>[^"]{1,300})" (?:.{0,300}\btid=(?P<tid>0x[0-9a-f]{1,16}))?')
_STATE = re.compile(r"\s+java\.lang\.Thread\.State: (?P<state>[A-Z_]+)")
_FRAME = re.compile(r"\s+at (?P<frame>[^\s(]{1,400})\(")
_WANTED = re.compile(r"\s+- (?:waiting to lock|waiting to re-lock in wait\(\)) <(?P<lock>0x[0-9a-f]{1,16})>")
_LOCKED = re.compile(r"\s+- locked <(?P<lock>0x[0-9a-f]{1,16})>")
_DEADLOCK = re.compile(r"Found (?:one|\d+) Java-level deadlocks?:")
_IDLE = re.compile(r"epollWait|EPoll\w*\.wait|KQueue\w*\.poll|\.keventWait|Unsafe\.park$|Object\.wait")
_FUTURE = re.compile(r"CompletableFuture\.(?:get|join|waitingGet|timedGet)$|AbstractFuture\.get$|DefaultPromise\.await")
_OWN = re.compile(r"(?:.*/)?(?:java|jdk|sun)\.")


class _Thread(msgspec.Struct):
    """A thread of a dump under way; `identity` distinguishes it from threads of the same name in other processes."""

    name: str
    identity: str
    state: str = ""
    frames: list[str] = []
    wanted: str = ""

    @property
    def shared(self) -> bool:
        """True if it is in a pool shared by many topics or connections."""
        return _SHARED.match(self.name) is not None

    @property
    def waits_for_future(self) -> bool:
        """True if it waits for the completion of a future, which may need a thread of its own pool."""
        return self.state.endswith("WAITING") and any(map(_FUTURE.search, self.frames))

    @property
    def work(self) -> tuple[str, ...]:
        """Position of the thread, as the innermost calls outside of Java's own; empty if it waits for work."""
        if not self.frames or self.state != "RUNNABLE" or _IDLE.search(self.frames[0]):
            return ()
        return tuple(frame for frame in self.frames if not _OWN.match(frame))[:_COMPARED]

    @property
    def at(self) -> str:
        """Innermost call outside of Java's own."""
        return next((frame for frame in self.frames if not _OWN.match(frame)), self.frames[0] if self.frames else "?")


class _Blocked(msgspec.Struct):
    """A thread that waits for a lock, and the lock's holder if the dump shows it."""

    name: str
    at: str
    lock: str
    holder: str = ""


class _OfFile(msgspec.Struct):
    """Findings of the dumps of one file, by the threads' names."""

    deadlocks: int = 0
    blocked: dict[str, _Blocked] = {}
    waiting: dict[str, str] = {}


class ThreadDumps:
    """Reader of the thread dumps of several files, from one process or several.

    Attributes:
        dumps: Number of dumps so far.
    """

    def __init__(self) -> None:
        self.dumps = 0
        self._files: dict[str, _OfFile] = {}
        self._file = _OfFile()
        self._inside = False
        self._kept = 0
        self._thread: _Thread | None = None
        self._holders: dict[str, str] = {}
        self._blocked: list[_Blocked] = []
        self._times: dict[str, int] = {}
        self._works: dict[tuple[str, str, tuple[str, ...]], tuple[int, str]] = {}

    def begin(self, file: str) -> None:
        """Begins a file; a dump that continues there counts as a new one."""
        self._end_dump()
        self._file = self._files.setdefault(file, _OfFile())

    def takes(self, line: str) -> bool:
        """Reads a line, if it is one of a dump.

        Returns:
            True if it is; else it belongs to the log.
        """
        if line.startswith(BEGIN):
            self._end_dump()
            self.dumps += 1
            self._inside = True
            return True
        if _DEADLOCK.match(line):
            self._end_thread()  # the following lines repeat threads of the dump
            self._file.deadlocks += 1
            return True
        if not self._inside:
            return False
        if line.startswith(END):
            self._end_dump()
        elif found := _THREAD.match(line):
            self._end_thread()
            self._thread = _Thread(found["name"], found["tid"] or "")
        elif self._thread is not None:
            self._read(self._thread, line)
        return not line[:1].isdigit()  # a line that begins with a digit is a further line of the log

    def findings(self) -> Iterator[Finding]:
        """Problems of the threads; the figure is the number of threads, or of deadlocks."""
        self._end_dump()
        for file_name, of_file in self._files.items():
            yield from _in_file(file_name, of_file)
        # Threads that did the same in each dump of their process; it needs at least two dumps.
        busy = sorted(
            (file, times, name, work[0])
            for (identity, name, work), (times, file) in self._works.items()
            if times == self._times[f"{name} {identity}"] and times >= _FEWEST_DUMPS
        )
        if busy:
            file, times, name, at = busy[0]
            threads, dumps = counted(len(busy), "shared thread"), counted(times, "dump")
            words = f"{threads} at the same work in all of {dumps}: {name} in {at}."
            yield DUMPS.finding(Severity.WARNING, file, words, {"threads": len(busy)})

    def _read(self, thread: _Thread, line: str) -> None:
        """Reads a line of a thread."""
        if found := _FRAME.match(line):
            if len(thread.frames) < _DEEPEST:
                thread.frames.append(found["frame"])
        elif found := _STATE.match(line):
            thread.state = found["state"]
        elif found := _WANTED.match(line):
            thread.wanted = thread.wanted or found["lock"]
        elif (found := _LOCKED.match(line)) and len(self._holders) < MAX_THREADS:
            self._holders.setdefault(found["lock"], thread.name)

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None or not thread.shared or self._kept >= MAX_THREADS:
            return
        self._kept += 1
        seen = f"{thread.name} {thread.identity}"
        self._times[seen] = self._times.get(seen, 0) + 1
        if thread.state == "BLOCKED":
            self._blocked.append(_Blocked(thread.name, thread.at, thread.wanted))
        elif thread.waits_for_future:
            self._file.waiting.setdefault(thread.name, thread.at)
        elif thread.identity and (work := thread.work):
            key = (thread.identity, thread.name, work)
            times, file = self._works.get(key, (0, next(reversed(self._files), "")))
            self._works[key] = (times + 1, file)

    def _end_dump(self) -> None:
        """Names the holders of locks; a lock's address has a meaning within one dump only."""
        self._end_thread()
        for blocked in self._blocked:
            blocked.holder = self._holders.get(blocked.lock, "")
            self._file.blocked.setdefault(blocked.name, blocked)
        self._blocked.clear()
        self._holders.clear()
        self._inside = False


def _in_file(name: str, of_file: _OfFile) -> Iterator[Finding]:
    if of_file.deadlocks:
        words = f"Java itself reports a deadlock, in {counted(of_file.deadlocks, 'dump')} of {name}."
        yield DUMPS.finding(Severity.CRITICAL, name, words, {"threads": of_file.deadlocks})
    if waiting := of_file.waiting:
        first, at = min(waiting.items())
        words = f"{counted(len(waiting), 'shared thread')} waiting for a future in {name}: {first} in {at}."
        yield DUMPS.finding(Severity.CRITICAL, name, words, {"threads": len(waiting)})
    if of_file.blocked:
        first = min(of_file.blocked)
        blocked = of_file.blocked[first]
        held = f"which {blocked.holder} holds" if blocked.holder else "whose holder is not in the dump"
        words = (
            f"{counted(len(of_file.blocked), 'shared thread')} blocked in {name}: {first} in {blocked.at}, by lock"
            f" {blocked.lock or '?'}, {held}."
        )
        yield DUMPS.finding(Severity.WARNING, name, words, {"threads": len(of_file.blocked)})
