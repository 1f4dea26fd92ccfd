"""`docs/start.md`, command by command, in clean environments away from the repository."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import httpx
import psutil
import pytest

from lab import ports
from lab.airflow.rest import AirflowApi
from lab.simulator import ClusterSpec, running_simulator
from lab.testing import need_java
from lab.waiting import wait_until
from tests.install.built import MINUTES_TO_INSTALL, ROOT, build_wheel, caches, constraints

if TYPE_CHECKING:
    from pathlib import Path

    from lab.simulator import Simulator

DOCUMENT = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ANSWERS_WITHIN_S, ASKED_WITHIN_S, ENDED_WITHIN_S = 300.0, 600.0, 600.0
DAGS = {"pulsar_observe", "pulsar_remediate", "pulsar_rollback", "pulsar_housekeeping", "pulsar_notify"}


class Ended(NamedTuple):
    """Exit code of a block and its output on both streams."""

    code: int
    said: str


class Reader:
    """Follows the document in one shell, block by block; what it starts in the background ends with it.

    Attributes:
        ended: Blocks that were run, by their last lines.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._blocks = [found["text"].rstrip() for found in BLOCK.finditer(DOCUMENT) if found["kind"] == "sh"]
        self._shell = subprocess.Popen(
            ["/bin/bash"], stdin=subprocess.PIPE, cwd=folder, env=environment, text=True, start_new_session=True
        )
        self.ended: dict[str, Ended] = {}

    def until(self, last_line: str) -> Ended:
        """Runs the next blocks, up to and with the one that ends with this line."""
        while self._blocks:
            text = self._blocks.pop(0)
            name = text.splitlines()[-1]
            self.ended[name] = self._run(len(self.ended), text)
            if name == last_line:
                return self.ended[name]
        raise AssertionError(f"no block left ends with {last_line!r}")

    def close(self) -> None:
        """Ends the shell, and everything that it started."""
        shell = psutil.Process(self._shell.pid)
        family = [*shell.children(recursive=True), shell]
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family, timeout=30)
        self._shell.communicate()

    def _run(self, number: int, text: str) -> Ended:
        block, log, code = (self._folder / f"{number}.{kind}" for kind in ("sh", "log", "code"))
        block.write_text(text, encoding="utf-8")
        assert self._shell.stdin is not None
        self._shell.stdin.write(f". {block} </dev/null >{log} 2>&1\necho $? >{code}.new; mv {code}.new {code}\n")
        self._shell.stdin.flush()
        wait_until(code.exists, f"this block ends: {text}", MINUTES_TO_INSTALL * 60, every_s=0.2)
        return Ended(int(code.read_text()), log.read_text(encoding="utf-8", errors="replace"))


def test_every_block_is_run_or_said_not_to_be() -> None:
    kinds = [found["kind"] for found in BLOCK.finditer(DOCUMENT)]
    assert set(kinds) == {"sh", "text"}
    assert DOCUMENT.count("ot run by th") == kinds.count("text")


def environment_of(home: Path, cluster: Simulator, wheels: Path, pinned: Path) -> dict[str, str]:
    """A new user's environment: nothing of the repository, of an Airflow or of a Steward but what the reader needs."""
    kept = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME"}
    }
    kept = {name: value for name, value in kept.items() if not name.startswith(("AIRFLOW", "STEWARD"))}
    connection = {"conn_type": "http", "extra": {"urls": list(cluster.admin_urls), "no_policy_file": True}}
    free = ports.Ports(None)
    pages, workers, triggers = (free.take(ports.LOOPBACK, part) for part in ("pages", "workers", "triggers"))
    return {
        **kept,
        **caches(),
        "HOME": str(home),
        "PIP_CONSTRAINT": str(pinned),
        "PIP_FIND_LINKS": " ".join(filter(None, [kept.get("PIP_FIND_LINKS"), str(wheels)])),
        "ADMIN_URL": cluster.admin_urls[0],
        "AIRFLOW_CONN_PULSAR_ADMIN_LOCAL": json.dumps(connection),
        "COLUMNS": "200",
        # Other Airflows may run on this machine, which is busy.
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(pages),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{pages}",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(workers),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }


def answered(api: AirflowApi, dag_id: str) -> str:
    """Approves the one question that waits, of a run of this DAG, and returns how the run ended."""
    wait_until(lambda: len(api.waiting()) == 1, "a question waits", ASKED_WITHIN_S, every_s=0.5)
    [asked] = api.waiting()
    assert asked["task_instance"]["dag_id"] == dag_id
    api.answer(asked, "Approve")
    task = asked["task_instance"]
    return api.wait_for_run(task["dag_id"], task["dag_run_id"], ENDED_WITHIN_S)


@pytest.mark.timeout(2 * 3600)  # installs Airflow and Spark
@pytest.mark.extended("tests/deploy/test_wheel.py", "tests/dags/test_dags.py", "tests/unit/cli/test_airflow_setup.py")
def test_the_way_from_nothing_to_an_answer_and_back(tmp_path: Path) -> None:
    """Every command of the start document ends as expected: somebody is asked, the answer is carried out and undone."""
    need_java()
    pinned = constraints(tmp_path)
    wheels, home = tmp_path / "wheels", tmp_path / "home"
    wheels.mkdir()
    home.mkdir()
    build_wheel(wheels)
    with running_simulator(ClusterSpec(tc_owner=0)) as cluster:
        environment = environment_of(home, cluster, wheels, pinned)
        reader = Reader(home, environment)
        try:
            reader.until("airflow standalone >airflow.log 2>&1 &")
            crowded = dict(cluster.tc_placement())
            api = logged_in(home, environment["AIRFLOW__API__BASE_URL"])
            reader.until("airflow dags trigger pulsar_observe")
            assert {record.method for record in cluster.requests.all()} == {"GET"}
            reader.until("steward doctor")
            assert answered(api, "pulsar_remediate") == "success"
            assert max(cluster.tc_placement().values()) - min(cluster.tc_placement().values()) <= 1
            reader.until("airflow dags trigger pulsar_rollback")
            assert answered(api, "pulsar_rollback") == "success"
            assert cluster.tc_placement() == crowded
            reader.until('steward resume local --reason "it works"')
            api.close()
        finally:
            reader.close()
    expect(reader.ended, home)


def logged_in(home: Path, url: str) -> AirflowApi:
    """Airflow's API as the user of whom the document says where the password is, once it answers."""
    passwords = home / "airflow-home" / "simple_auth_manager_passwords.json.generated"

    def answers() -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{url}/api/v2/version", timeout=5).is_success
        return False

    wait_until(answers, "Airflow answers", ANSWERS_WITHIN_S, every_s=0.5)
    return AirflowApi(url, "admin", json.loads(passwords.read_text(encoding="utf-8"))["admin"])


def expect(ended: dict[str, Ended], home: Path) -> None:
    """Exit codes and words of all blocks."""
    codes = {command: each.code for command, each in ended.items()}
    checkup = 'steward checkup --admin-url "$ADMIN_URL" --html checkup.html'
    assert codes == {command: int(command == checkup) for command in codes}, "\n".join(
        f"{command}: {each.code}\n{each.said[-3000:]}" for command, each in ended.items() if each.code
    )
    assert "[tc-skew]" in ended[checkup].said
    assert (home / "checkup.html").is_file()
    listed = ended["airflow dags list-import-errors"].said
    assert {name for name in DAGS if name in listed} == DAGS
    assert "No data found" in listed
    assert "4.3" in ended["steward doctor --spark"].said
    assert "PySpark:" not in ended["steward doctor --spark"].said
    assert "none of them is paused" in ended["steward doctor"].said
    assert {file.name for file in (home / "dags").rglob("*.py")} == {
        *(file.name for file in (ROOT / "dags").glob("*.py")),
        *(file.name for file in (ROOT / "spark_apps").glob("*.py")),
    }
    assert list((home / "steward-home" / "snapshots").glob("cluster=local/taken_at=*/_SUCCESS"))
    assert "is over" in ended['steward resume local --reason "it works"'].said
