"""Logs and thread dumps: what is found in them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.logs.entries import MAX_LINE, require_file
from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.logs.reading import MAX_EXAMPLE, MINUTES, MOST_PER_MINUTE, LogsRead, read_logs
from pulsar_steward.model.finding import Finding, Outlook, Severity
from tests.cases import row_by_row
from tests.unit.logs.lines import DEADLOCK, EXPIRED, SEEN, WRITTEN, WRITTEN_BY_5, a_dump

if TYPE_CHECKING:
    from pathlib import Path

QUIET = "12:00:00.000 INFO PulsarService messaging service is ready\n"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.ipevRNuRP6HflG8cFKnmUPtypruRC4fb1DWtoLL62SY"


JSON_OF_LOG4J = {"@timestamp": "2026-03-01T07:12:03Z", "severity": "ERROR", "loggerName": "o.a.p.m.i.ZKSessionWatcher"}
JSON_OF_PULSAR_5 = {
    "@timestamp": "2026-03-01T07:12:03.943Z",
    "ecs.version": "1.2.0",
    "log.level": "ERROR",
    "process.thread.name": "metadata-store-1",
    "log.logger": "org.apache.pulsar.metadata.impl.ZKSessionWatcher",
}
JSON_OF_OTHERS = {"timestamp": 1767225600, "level": "error", "logger": "org.apache.pulsar.ZKSessionWatcher"}


def read(folder: Path, *texts: str | bytes, secrets: tuple[str, ...] = ()) -> LogsRead:
    """Writes files ``0.log``, ``1.log`` and reads them."""
    paths = [folder / f"{number}.log" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_logs(paths, secrets)


def found(said: LogsRead, check_id: str) -> list[Finding]:
    return [finding for finding in said.findings if finding.check_id == check_id]


def outlook(said: LogsRead, check_id: str) -> Outlook:
    return next(verdict.outlook for verdict in said.verdicts if verdict.check_id == check_id)


@pytest.mark.parametrize(("check_id", "line"), [*SEEN, *WRITTEN, *WRITTEN_BY_5])
def test_a_message_is_found(tmp_path: Path, check_id: str, line: str) -> None:
    """A message in a log is found by its own check and at most `log-errors`, with its file and an example."""
    said = read(tmp_path, f"{QUIET}{line}\n{QUIET}")

    assert {finding.check_id for finding in said.findings} - {check_id} <= {"log-errors"}
    (finding,) = found(said, check_id)
    assert finding.subject == str(tmp_path / "0.log")
    assert finding.figures["times"] == 1
    assert any(part[:80] in finding.evidence for part in line.splitlines())


@pytest.mark.parametrize(
    ("check_id", "line"), [(name, line) for name, line in (*SEEN, *WRITTEN) if name != "log-memory"]
)
def test_names_of_clients_find_nothing(tmp_path: Path, check_id: str, line: str) -> None:
    """A message in the name of a consumer yields no finding, as another class logs it."""
    message = line.splitlines()[0].rpartition(" - ")[2]
    said = read(
        tmp_path, f"{QUIET}12:00:01.000 WARN PersistentDispatcherMultipleConsumers [t / s] consumer {message}\n"
    )

    assert said.findings == ()
    assert outlook(said, check_id) is Outlook.CLEAR


def test_it_is_told_how_often_when_and_how_long(tmp_path: Path) -> None:
    """A finding says how often a message was logged, its first and last time, and the longest duration."""
    line = (
        "2026-03-01T07:{:02d}:00,000+0000 [SyncThread:0] WARN  org.apache.zookeeper.server.persistence.FileTxnLog -"
        " fsync-ing the write ahead log in SyncThread:0 took {}ms which will adversely effect operation latency."
    )
    said = read(tmp_path, "\n".join(line.format(minute, 1000 + minute) for minute in range(30)))

    (finding,) = said.findings
    assert "30 times in" in finding.evidence
    assert (
        "from 2026-03-01T07:00:00,000+0000 to 2026-03-01T07:29:00,000+0000; the longest took 1.03 s" in finding.evidence
    )
    assert finding.figures == {"times": 30, "longest_milliseconds": 1029}


@row_by_row(
    "line",
    f"2026-03-01T07:12:03.911460259Z stderr F {EXPIRED}",
    json.dumps({"log": f"{EXPIRED}\n", "stream": "stdout", "time": "2026-03-01T07:12:03.9Z"}),
    json.dumps(JSON_OF_LOG4J | {"msg": "ZooKeeper session expired"}),
    json.dumps(JSON_OF_OTHERS | {"message": "ZooKeeper session expired"}),
    json.dumps(JSON_OF_PULSAR_5 | {"message": "ZooKeeper session expired"}),
    "2026-03-01T07:12:03,943 - ERROR - [metadata-store-1:ZKSessionWatcher] - ZooKeeper session expired",
    "2026-03-01 07:12:03.943 ERROR o.a.p.m.i.ZKSessionWatcher - ZooKeeper session expired\r",
)
def test_other_layouts_are_known(tmp_path: Path, line: str) -> None:
    """Entries are found in the layouts of containers, in JSON and in older patterns."""
    said = read(tmp_path, f"{line}\n")

    assert [finding.check_id for finding in said.findings] == ["log-metadata-store"]


def test_packed_files_are_read(tmp_path: Path) -> None:
    """Compressed files of several parts are read. One that was cut off is read up to that place and reported."""
    lines = f"{QUIET * 2000}{EXPIRED}\n".encode()
    whole = gzip.compress(lines) + gzip.compress(lines)
    said = read(tmp_path, whole, gzip.compress(lines * 50)[:-20])

    times = {finding.subject[-5:]: finding.figures["times"] for finding in found(said, "log-metadata-store")}
    assert times["0.log"] == 2
    assert times["1.log"] > 0
    (failed,) = found(said, "log-files")
    assert failed.subject.endswith("1.log")
    assert "could not be read to its end" in failed.evidence
    assert outlook(said, "log-quota") is Outlook.UNKNOWN


@row_by_row(
    "text, words",
    (b"", "it is empty"),
    (b"to be or not to be\n" * 10, "no line is in a format that is known, after 10 lines"),
    (bytes(range(256)) * 300, "no line is in a format that is known"),
    ("\ufeff12:00 \u202e\u0000\n".encode("utf-16"), "no line is in a format that is known"),
    (b"\x1f\x8bnot gzip at all", "could not be read to its end"),
    (b"{" * 5000 + b"\n[[[[\n", "no line is in a format that is known, after 2 lines"),
    (b'{"level": ["ERROR"], "message": {"a": 1}}\n', "no line is in a format that is known, after 1 line"),
    (b'{"level": "ERROR", "message": ["a"]}\n', "no line is in a format that is known, after 1 line"),
    (b'{"level": "hello", "message": "world"}\n', "no line is in a format that is known, after 1 line"),
    (b'{"level": 50, "logger": "x.Some", "msg": "boom"}\n', "no line is in a format that is known, after 1 line"),
)
def test_what_is_no_log_is_named(tmp_path: Path, text: bytes, words: str) -> None:
    """A file without known entries is reported, no check is clear by it, and every check has a verdict."""
    said = read(tmp_path, text)

    (failed,) = found(said, "log-files")
    assert words in failed.evidence
    assert Outlook.CLEAR not in {verdict.outlook for verdict in said.verdicts}
    assert {verdict.check_id for verdict in said.verdicts} == set(LOG_CHECKS)


def test_json_of_other_types_stops_no_reading(tmp_path: Path) -> None:
    """JSON with a list and an object in place of texts does not keep later entries from being found."""
    said = read(tmp_path, f'{{"level": ["ERROR"], "message": {{"a": 1}}}}\n{EXPIRED}\n')

    assert [finding.check_id for finding in said.findings] == ["log-metadata-store"]
    assert {verdict.check_id for verdict in said.verdicts} == set(LOG_CHECKS)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    """A folder, a missing file and a device are refused as logs."""
    for path in (tmp_path, tmp_path / "missing", tmp_path.joinpath("/dev/zero")):
        with pytest.raises(ConfigurationError, match="--logs"):
            require_file(path)


def test_memory_stays_small(tmp_path: Path) -> None:
    """Reading logs takes little memory for a long line, a large archive, many hosts or many kinds of errors."""
    hosts = "".join(
        f"07:00:00.000 INFO ServerCnx [/10.{number >> 8 & 255}.{number & 255}.1:4] connected with clientVersion=x\n"
        for number in range(30_000)
    )
    kinds = "".join(f"07:00:00.000 ERROR A{'abcdefgh'[n % 8]}{n} {'xyz'[n % 3]}\n" for n in range(30_000))
    paths = [tmp_path / name for name in ("line", "bomb.gz", "hosts", "kinds")]
    paths[0].write_bytes(b"07:00:00.000 ERROR A " + b"a" * 20_000_000)
    paths[1].write_bytes(gzip.compress(bytes(200_000_000), compresslevel=1))
    paths[2].write_text(hosts, encoding="utf-8")
    paths[3].write_text(kinds, encoding="utf-8")
    tracemalloc.start()
    said = read_logs(paths)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 << 20
    assert all(len(finding.evidence) < MAX_LINE for finding in said.findings)


def test_secrets_are_masked(tmp_path: Path) -> None:
    """Secrets are masked in evidence, both those that the command knows and those recognized by their form."""
    told = (
        f'10:00:00.000 ERROR Broker failed Authorization: Bearer {TOKEN} password=hunter22 "tlsKeyPassword":"s3cr3t"'
        f" brokerClientAuthenticationParameters=token:{TOKEN} at http://admin:pa55word@proxy:3128/x"
        " client_secret: abc-def-1 my own words-as-a-token and K9xQ2mZ7pL4vR8tW1nB6cD3f\n"
    )
    said = read(tmp_path, told, secrets=("words-as-a-token",))

    (finding,) = said.findings
    for secret in (TOKEN[:20], "hunter22", "s3cr3t", "pa55word", "abc-def-1", "words-as-a-token", "K9xQ2mZ7pL4"):
        assert secret not in finding.evidence
    assert "Broker failed" in finding.evidence


def test_an_example_is_short_and_cannot_hide_a_secret_at_its_end(tmp_path: Path) -> None:
    said = read(tmp_path, f"10:00:00.000 ERROR Broker {'x ' * 130}token={TOKEN} {'y ' * 3000}\n")

    (finding,) = said.findings
    assert TOKEN[:8] not in finding.evidence
    assert len(finding.evidence) < MAX_EXAMPLE + 200


def test_clients_that_come_again_and_again_are_found(tmp_path: Path) -> None:
    """A client that subscribes often in several minutes is found, and many subscriptions in one minute are not."""
    line = (
        "2026-03-01T07:{:02d}:01,000+0000 [pulsar-io-4-1] INFO  org.apache.pulsar.broker.service.ServerCnx -"
        " [[id: 0x150cf295, L:/10.0.0.1:6650 - R:/10.0.0.{}:43456] [SR:10.0.0.1, state:Connected]] Subscribing on topic"
        " persistent://a/b/c / s. consumerId: 0\n"
    )
    often = "".join(line.format(minute, 7) * MOST_PER_MINUTE for minute in range(MINUTES))
    once = line.format(0, 8) * 500
    said = read(tmp_path, once + often, once)

    (finding,) = said.findings
    assert finding.check_id == "log-clients-reconnect"
    assert "10.0.0.7 subscribed to persistent://a/b/c / s. up to 60 times a minute, in 3 minutes" in finding.evidence


@pytest.mark.parametrize("beside", ["", " {cnx=[id: 0x1, L:/10.0.0.1:6650 - R:/10.0.0.7:40112]}"])
def test_who_reconnects_is_not_known_where_the_host_is_beside_the_message(tmp_path: Path, beside: str) -> None:
    """Pulsar 5 writes a client's address as an attribute: nothing is found, and nothing is called well."""
    said = read(tmp_path, f"12:00:00.000 INFO ServerCnx Subscribing on topic{beside}\n" * 500, QUIET)

    assert outlook(said, "log-clients-reconnect") is Outlook.UNKNOWN
    assert outlook(said, "log-quota") is Outlook.CLEAR


def test_a_process_that_logs_at_debug_is_found(tmp_path: Path) -> None:
    line = "12:00:00.000 DEBUG ServerCnx [/10.0.0.1:4] Received CommandAck\n"
    said = read(tmp_path, line * 1000 + QUIET * 9000, line * 999, line * 1000 + QUIET * 9001)

    (finding,) = said.findings
    assert (finding.check_id, finding.subject[-5:]) == ("log-debug", "0.log")
    assert "1,000 of 10,000 entries" in finding.evidence


def test_other_errors_are_counted_by_kind(tmp_path: Path) -> None:
    """Errors that differ only in numbers and in brackets are counted as one kind, the most frequent kind first."""
    errors = [f"12:00:00.000 ERROR Some [t{n}] failed after {n} ms\n" for n in range(5)]
    said = read(tmp_path, "".join(errors) + "12:00:01.000 ERROR Other broke\n")

    assert [(finding.check_id, finding.figures["times"]) for finding in said.findings] == [
        ("log-errors", 5),
        ("log-errors", 1),
    ]


def test_it_is_plain_data(tmp_path: Path) -> None:
    """The evidence from a line with invalid bytes can be written as JSON in UTF-8, and is the same when read."""
    said = read(tmp_path, b"12:00:00.000 ERROR Some \xff\xfe\xed\xa0\x80 \x1b[31m \x00\n")

    (evidence,) = [finding.evidence for finding in said.findings]
    assert json.loads(json.dumps(evidence, ensure_ascii=False).encode()) == evidence


WATCHER = "metadata-store-zk-session-watcher-7-1"
IO, WORKER = "pulsar-io-4-1", "bookkeeper-ml-workers-OrderedExecutor-3-0"


def findings(folder: Path, *dumps: str) -> tuple[Finding, ...]:
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
    """The thread that holds the lock of a blocked thread is named, also if it is of no shared pool."""
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
