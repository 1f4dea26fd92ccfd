"""Thread dumps: what is stuck, who holds what, and that idle threads are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.logs.reading import read_logs
from pulsar_steward.model.finding import Outlook, Severity
from tests.unit.logs.lines import DEADLOCK, a_dump

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.finding import Finding

WATCHER = "metadata-store-zk-session-watcher-7-1"
IO, WORKER = "pulsar-io-4-1", "bookkeeper-ml-workers-OrderedExecutor-3-0"


def findings(folder: Path, *dumps: str) -> tuple[Finding, ...]:
    """Findings in files of one dump each."""
    paths = [folder / f"dump-{number}.txt" for number in range(len(dumps))]
    for path, dump in zip(paths, dumps, strict=True):
        path.write_text(dump, encoding="utf-8")
    return read_logs(paths).findings


def test_idle_threads_are_well(tmp_path: Path) -> None:
    """Idle threads, threads that wait by design and busy ones in a single dump yield no finding."""
    idle = a_dump(
        (IO, "idle"), (WORKER, "queue"), ("pulsar-io-4-2", "busy"), (WATCHER, "waits"), ("pulsar-web-1", "blocked")
    )
    (tmp_path / "dump").write_text(idle, encoding="utf-8")

    said = read_logs([tmp_path / "dump"])

    assert said.findings == ()
    verdicts = {verdict.check_id: verdict.outlook for verdict in said.verdicts}
    assert verdicts["log-thread-dump"] is Outlook.CLEAR
    assert verdicts["log-quota"] is Outlook.UNKNOWN


@pytest.mark.parametrize("name", [IO, WORKER, "bookkeeper-io-3-1", "metadata-store-10-1"])
def test_a_shared_thread_may_not_wait_for_a_future(tmp_path: Path, name: str) -> None:
    (finding,) = findings(tmp_path, a_dump((name, "waits"), ("main", "waits")))

    assert finding.severity is Severity.CRITICAL
    assert finding.figures == {"threads": 1}
    assert f"{name} in org.apache.pulsar.broker.service.BrokerService.getTopicSync" in finding.evidence


def test_who_holds_a_lock_is_named(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, a_dump((IO, "blocked"), ("ForkJoinPool.commonPool-worker-19", "waits")))

    assert finding.severity is Severity.WARNING
    assert "which ForkJoinPool.commonPool-worker-19 holds" in finding.evidence


def test_a_lock_of_another_dump_is_another_lock(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, a_dump(("main", "waits")), a_dump((IO, "blocked")))

    assert "whose holder is not in the dump" in finding.evidence


def test_the_same_work_in_every_dump_is_found(tmp_path: Path) -> None:
    """A thread with the same work in every dump is found, unless it was idle in one of them."""
    busy, other = a_dump((IO, "busy")), a_dump((IO, "idle"))

    for dumps in ((busy, busy, busy), (busy * 3,)):
        (finding,) = findings(tmp_path, *dumps)
        assert (
            "in all of 3 dumps: pulsar-io-4-1 in org.apache.pulsar.broker.service.Consumer.individualAck"
            in finding.evidence
        )
    assert findings(tmp_path, busy, other, busy) == ()


def test_the_same_thread_of_another_process_is_another_thread(tmp_path: Path) -> None:
    assert findings(tmp_path, a_dump((IO, "busy")), a_dump(("main", "idle"), (IO, "busy"))) == ()


def test_a_deadlock_is_critical(tmp_path: Path) -> None:
    """A deadlock that Java reports in a thread dump is a critical finding."""
    (finding,) = findings(tmp_path, a_dump((IO, "idle"), more=DEADLOCK))

    assert (finding.severity, finding.check_id) == (Severity.CRITICAL, "log-thread-dump")
    assert "Java itself reports a deadlock, in 1 dump of" in finding.evidence


def test_a_dump_may_stand_in_a_log(tmp_path: Path) -> None:
    """A thread dump within a log is found, whole or cut off, and the log is read before and after it."""
    expired = "12:00:00.000 ERROR ZKSessionWatcher ZooKeeper session expired\n"
    whole, cut = a_dump((IO, "waits")), a_dump((IO, "waits")).partition("JNI")[0]

    for dump in (whole, cut):
        found = findings(tmp_path, expired + dump + expired)
        assert [(each.check_id, each.figures.get("times")) for each in found] == [
            ("log-thread-dump", None),
            ("log-metadata-store", 2),
        ]


def test_hostile_dumps_do_no_harm(tmp_path: Path) -> None:
    """A dump with very long names, many threads and invalid states yields no findings and no error."""
    names = "".join(
        f'"pulsar-io-{n}{"x" * 400}" #1 tid=0x1\n   java.lang.Thread.State: NONE\n\tat {"a." * 3000}(\n'
        for n in range(300)
    )

    assert findings(tmp_path, f'Full thread dump\n{names}\n"" \n"\x1b[31m\n') == ()
