"""Looking at a made-up cluster in this process: what is told meanwhile, what is kept, and what cannot be read."""

from __future__ import annotations

import logging
import re
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from lab.simulator import (
    Answer,
    ClusterSpec,
    Delay,
    Fault,
    NamespaceSpec,
    SubscriptionSpec,
    TopicSpec,
    running_simulator,
)
from pulsar_steward.cli import snapshot
from pulsar_steward.cli.output import progress
from pulsar_steward.cli.paths import page_of
from pulsar_steward.cli.snapshot import Target, look
from pulsar_steward.collect.pending import PendingBrokers
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from tests.cases import cases
from tests.unit.cli.conftest import Steward, urls_of

if TYPE_CHECKING:
    from pathlib import Path


TOKEN = "made.up-token_of-a.superuser"


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java: `JAVA_HOME` is not set, and the path has none."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Folder in which temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.usefixtures("few_checks")
def test_looking_takes_neither_java_nor_a_process_of_its_own(
    steward: Steward, no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A check-up needs no Java and no other process, only reads, and keeps a snapshot without the token."""
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    given = ["--token-file", tmp_path / "token", "--keep", tmp_path / "new" / "kept"]
    with running_simulator(ClusterSpec(tc_owner=0), token=TOKEN) as cluster:
        ended = steward("checkup", *urls_of(cluster), *given)
        asked = cluster.requests.all()

    said = ended.err.splitlines()
    assert said[:2] == [f"asking {cluster.admin_urls[0]} who is there", "collecting from the brokers of local"]
    assert said[2].startswith("collected 3/3 brokers, ")
    (kept,) = (tmp_path / "new" / "kept").glob("cluster=local/taken_at=*")
    assert said[-2:] == ["looking for trouble", f"the snapshot is kept at {kept}"]
    assert ended.code == 1
    assert "RESULT: 1 trouble, 1 finding" in ended.out
    assert {each.method for each in asked} == {"GET"}
    assert open_snapshot(str(kept)).meta().cluster == "local"
    files = [path for path in kept.rglob("*") if path.is_file()]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


@pytest.mark.usefixtures("few_checks")
def test_the_name_that_was_given_is_the_one_that_counts(steward: Steward, temporary: Path) -> None:
    """The given name of a cluster selects the policy and is in the report; temporary files are removed."""
    policy = temporary.parent / "policy.yaml"
    text = "{collect: {drilled_topics: 1}, backlog_quota_missing: {warning_backlog_bytes: 1}}"
    policy.write_text(f"clusters: {{west: {text}}}", encoding="utf-8")
    holes = SubscriptionSpec("s", consumers=1, backlog=9_000, ack_holes=9_000)
    names = NamespaceSpec("acme/orders", topics=(TopicSpec("t", partitions=3, subscriptions=(holes,)),))
    with running_simulator(ClusterSpec(namespaces=(names,))) as cluster:
        ended = steward("checkup", *urls_of(cluster), "--cluster", "west", "--policy", policy)

    assert "Check-up of west (calls itself local)" in ended.out
    assert "WARNING   No backlog quota bounds" in ended.out
    assert "asking 1 broker about 1 suspect" in ended.err.splitlines()
    assert "kept at" not in ended.err
    assert list(temporary.iterdir()) == []


def test_the_first_words_do_not_wait_for_an_answer(tmp_path: Path) -> None:
    """The first message names the address that is asked, and comes before the cluster has answered."""
    said: list[tuple[float, str]] = []
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Delay(1.2), path="configuration/runtime"))
        target = Target(urls=cluster.admin_urls, cluster="../up", policy=Policy())
        began = time.monotonic()
        with pytest.raises(ConfigurationError):
            look(target, tmp_path, lambda words: said.append((time.monotonic() - began, words)))
        took = time.monotonic() - began

    assert said[0][1] == f"asking {cluster.admin_urls[0]} who is there"
    assert said[0][0] < 1 < took


def test_who_is_slow_is_told_while_it_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A slow broker is named while it is waited for, with the policy's time limit and the brokers read so far."""
    monkeypatch.setattr(snapshot, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(snapshot, "diagnose", lambda *_: None)
    policy = Policy.model_validate({"clusters": {"local": {"admin": {"total_timeout_seconds": 77}}}})
    said: list[str] = []
    with running_simulator(ClusterSpec()) as cluster:
        slow = cluster.active_brokers()[1]
        cluster.faults.add(Fault(Delay(2), path="broker-stats", broker_id=slow))
        look(Target(urls=cluster.admin_urls, policy=policy), tmp_path, said.append)

    told = [words for words in said if words.startswith("waiting for ")]
    assert re.fullmatch(rf"waiting for {slow} for \d+ s, .* 77 s; 2 brokers .*", told[-1])
    assert said.index(told[-1]) < said.index("looking for trouble")


@cases(
    "slowest, words",
    ("nobody", None, None),
    ("quick", ("b:1", 0.04), None),
    ("just slow", ("b:1", 0.05), "waiting for b:1 for 0 s, an answer may take 9 s; 1 broker read so far"),
    ("slow", ("b:1", 61.6), "waiting for b:1 for 62 s, an answer may take 9 s; 1 broker read so far"),
)
def test_who_is_quick_is_not_told(
    monkeypatch: pytest.MonkeyPatch, slowest: tuple[str, float] | None, words: str | None
) -> None:
    """Only a slow broker is told, and repeatedly; the watching thread ends with its block, also after an error."""
    monkeypatch.setattr(snapshot, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(PendingBrokers, "slowest", lambda _: slowest)
    said: list[str] = []
    waiting, before = PendingBrokers(), threading.active_count()
    waiting.has_answered()

    with suppress(ConfigurationError), snapshot._waiting_told(waiting, 9, said.append):
        time.sleep(0.4)
        raise ConfigurationError("made up")

    assert threading.active_count() == before
    assert set(said) == ({words} if words else set())
    assert (len(said) > 1) is (words is not None)


@pytest.mark.usefixtures("few_checks")
def test_a_broker_that_is_gone_makes_it_partial(steward: Steward, temporary: Path) -> None:
    """A broker and a namespace that cannot be read make the report partial, and each is told once in plain text."""
    with running_simulator(ClusterSpec(tc_owner=0), session_s=3600) as cluster:
        gone = cluster.active_brokers()[-1]
        cluster.kill_broker(gone)
        cluster.faults.add(Fault(Answer(403, "no\x1b[2J"), path="/admin/v2/namespaces/public$", times=None))
        ended = steward("checkup", "--admin-url", next(url for url in cluster.admin_urls if gone not in url))

    assert ended.code == 1
    assert f"broker {gone}: " in ended.out
    assert "PARTIAL: 1 broker and 1 namespace" in ended.out
    assert "Clear (" not in ended.out
    told = [line for line in ended.err.splitlines() if "so the snapshot is partial: " in line]
    assert len(told) == 2
    assert told[0].startswith("public/*: not read, ")
    assert ": 403 no\\x1b[2J; no credentials were sent, and this call demands some" in told[0]
    assert gone in told[1]
    assert "\x1b" not in ended.err
    assert logging.getLogger("pulsar_steward.collect").handlers == []
    assert logging.getLogger("pulsar_steward.collect").level == logging.NOTSET


def test_a_cluster_none_of_whose_brokers_can_be_read(steward: Steward, temporary: Path) -> None:
    """A check-up that can read no broker ends with exit code 2 and advice, and leaves no temporary files."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Answer(403), path="broker-stats", times=None))
        ended = steward("checkup", *urls_of(cluster))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith("error: no broker of local")
    assert ended.err.splitlines()[-1].endswith("check names, firewalls and the token")
    assert list(temporary.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_told(steward: Steward, tmp_path: Path) -> None:
    """A folder that cannot be written to ends the check-up with exit code 2 and a line with the reason."""
    (tmp_path / "cluster=local").touch()
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        ended = steward("checkup", *urls_of(cluster), "--keep", tmp_path)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].startswith(f"error: {tmp_path}/cluster=local/taken_at=")
    assert ended.err.splitlines()[-1].endswith(": Not a directory")
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("few_checks")
def test_two_looks_at_once_are_two_snapshots(tmp_path: Path) -> None:
    """A snapshot is named by its second: of two looks that begin in the same one, the second one waits for the next."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster, ThreadPoolExecutor() as two:
        target = Target(urls=cluster.admin_urls, policy=Policy())
        looks = [two.submit(look, target, tmp_path, lambda _: None) for _ in range(2)]
        kept = {each.result() for each in looks}
    assert len(kept) == 2
    assert all(open_snapshot(each).meta().cluster == "local" for each in kept)


def test_a_check_without_a_page_has_none() -> None:
    assert page_of("no-such-check") is None


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    """Progress goes to standard error, as plain lines without a terminal and with a spinner in one."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    with progress() as say:
        say("asking\x1b[2J")

    said = capsys.readouterr()
    assert said.out == ""
    assert ("\x1b[?25l" in said.err) is terminal
    assert (said.err == "asking\\x1b[2J\n") is not terminal
