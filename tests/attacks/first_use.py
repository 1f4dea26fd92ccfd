"""Process that forks others, each of which uses types, or the library, for the first time on several threads.

A fork of a process that imported everything and used nothing is as fresh as a new process, and imports nothing again.

``python -m tests.attacks.first_use types`` or ``... cluster COUNT ADMIN_URL...`` writes the exit codes of the forks as
JSON, by name; that of a fork that ended by a signal is the signal's negative number.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from functools import partial
from threading import Barrier, Event, Thread
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec

from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.decoding import convert, decode
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
from pulsar_steward.policy.schema import CollectPolicy, Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from tests.builders import CURSOR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

SWITCH_SECONDS = 1e-6
"""Time after which another thread gets its turn; Python's default is 5,000 times as long."""

THREADS = 4
LOOKS = 8
NAMESPACE = "acme/orders"
TOPIC = f"persistent://{NAMESPACE}/t"
PARTITION = f"{TOPIC}-partition-0"
FEW_SUSPECTS = CollectPolicy(drilled_topics=30)
FEW_CHECKS = [BY_ID[each] for each in ("ack-holes", "tc-skew")]
FORKS_AT_ONCE = 2

HALF_LEARNED, USED = Event(), Event()
PAUSE_SECONDS = 0.2
"""Time for which a type stays half learned: for as long as it takes to use it, or until the lock has shown itself."""


def pauses() -> type:
    """Annotation that takes a while to evaluate, so that the types around it are half learned meanwhile."""
    HALF_LEARNED.set()
    USED.wait(PAUSE_SECONDS)
    return int


class Inner(msgspec.Struct):
    """Type that is learned after its owner is known and before the owner's next field is."""

    field: pauses() = 0  # type: ignore[valid-type]  # msgspec evaluates it


class Outer(msgspec.Struct, tag=True):
    """Type with a nested one."""

    inner: Inner | None = None
    number: int = 0


class Other(msgspec.Struct, tag=True):
    """Alternative to it in a union."""


class Generics(msgspec.Struct, Generic[T]):
    """Generic type with a nested one."""

    inner: Inner | None = None
    number: T | None = None


USES_OF_A_TYPE: dict[str, Callable[[], Any]] = {
    "decode": lambda: decode('{"type": "Outer", "number": 1}', Outer),
    "decode a list": lambda: decode('[{"type": "Outer", "number": 1}]', list[Outer]),
    "decode a union": lambda: decode('{"type": "Outer", "number": 1}', Outer | Other),
    "convert": lambda: convert({"type": "Outer", "number": 1}, Outer),
    "convert a list": lambda: convert([{"type": "Outer", "number": 1}], list[Outer]),
}
USES_OF_GENERICS: dict[str, Callable[[], Any]] = {
    "decode a generic": lambda: decode('{"number": 1}', Generics[int]),
    "convert a generic": lambda: convert({"number": 1}, Generics[int]),
}


def use_half_learned(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """Has one thread use a type for the first time, and this one use it before the other has learned it."""
    other = Thread(target=first, daemon=True)
    other.start()
    HALF_LEARNED.wait()
    second()
    USED.set()
    other.join()


def check_up(settings: AdminSettings, out: str) -> None:
    """Collects and diagnoses on threads, as ``steward checkup`` does, with few checks."""
    order = CollectParameters(cluster="lab", taken_at=datetime(2026, 1, 31, tzinfo=UTC), policy=FEW_SUSPECTS)
    folder = SnapshotFolder(LocalFiles(), snapshot_uri(out, order.cluster, order.taken_at))
    threads = OnThreads(THREADS)
    collect(settings, order, folder, WrittenByTasks(settings, folder, threads, TaskDivision(THREADS, THREADS)), threads)
    diagnose(folder, Policy(), threads, FEW_CHECKS)


def look_live(settings: AdminSettings) -> None:
    """Looks as guards do before a call."""
    subscription = DeleteSubscription(namespace=NAMESPACE, topic=PARTITION, subscription="s", cursor=CURSOR, stay=0)
    quota = ChangeSetting(namespace=NAMESPACE, topic=TOPIC, name=SettingName.SIZE_QUOTA, before=None, after=None)
    with LiveReader(settings) as reader:
        whole = WholeLook(reader, Policy())
        reader.subscription(subscription)
        reader.own_setting(quota)
        reader.settings_of(NAMESPACE)
        reader.stored_topic(PARTITION)
        whole.allowed_brokers(NAMESPACE)
        whole.versions()


def use_the_library(urls: tuple[str, ...]) -> None:
    """Makes a check-up and looks live meanwhile, all of it on threads that take turns as often as they can."""
    sys.setswitchinterval(SWITCH_SECONDS)
    settings, start = AdminSettings(urls=urls), Barrier(1 + LOOKS)

    def begin(job: Callable[[], None]) -> None:
        start.wait()
        job()

    with tempfile.TemporaryDirectory() as out:
        jobs = [partial(check_up, settings, out), *[partial(look_live, settings)] * LOOKS]
        OnThreads(len(jobs))(begin, jobs)


def exit_codes(jobs: Mapping[str, Callable[[], None]]) -> dict[str, int]:
    """Runs each job in a fork of this process; exit codes by its name, a signal's number as a negative one."""
    running: dict[int, str] = {}
    codes: dict[str, int] = {}

    def wait_for_one() -> None:
        pid, status = os.wait()
        codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)

    for name, job in jobs.items():
        if len(running) == FORKS_AT_ONCE:
            wait_for_one()
        pid = os.fork()
        if not pid:
            _run(job)
        running[pid] = name
    while running:
        wait_for_one()
    return codes


def _run(job: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        job()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may get out of a fork
        traceback.print_exc()
    finally:
        os._exit(code)


def jobs_of(command: str, *arguments: str) -> dict[str, Callable[[], None]]:
    if command == "types":
        return {
            f"{first}, then {second}": partial(use_half_learned, uses[first], uses[second])
            for uses in (USES_OF_A_TYPE, USES_OF_GENERICS)
            for first in uses
            for second in uses
        }
    count, *urls = arguments
    return {str(number): partial(use_the_library, tuple(urls)) for number in range(int(count))}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(exit_codes(jobs_of(*sys.argv[1:]))).decode())
