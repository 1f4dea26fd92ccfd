"""`docs/start.md`, command by command, in clean environments away from the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lab.simulator import ClusterSpec, running_simulator
from lab.testing import need_java
from tests.install.built import MINUTES_TO_INSTALL, ROOT, build_wheel, caches, constraints

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
DAGS = {"pulsar_observe", "pulsar_remediate", "pulsar_rollback", "pulsar_housekeeping", "pulsar_notify"}


class Ended(NamedTuple):
    """Exit code of a block and its output on both streams."""

    code: int
    said: str


def run_blocks(folder: Path, environment: dict[str, str]) -> dict[str, Ended]:
    """Runs all blocks in one shell, one after the other; by the last line of each block."""
    blocks = [found["text"] for found in BLOCK.finditer(DOCUMENT) if found["kind"] == "sh"]
    script = []
    for number, text in enumerate(blocks):
        script += [f"exec >{folder}/{number}.log 2>&1", text.rstrip(), f"echo $? >{folder}/{number}.code"]
    subprocess.run(  # noqa: S603 - this project's own document
        ["/bin/bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environment,
        timeout=4 * MINUTES_TO_INSTALL * 60,
        check=False,
    )
    ended = {}
    for number, text in enumerate(blocks):
        code = folder / f"{number}.code"
        said = (folder / f"{number}.log").read_text(encoding="utf-8", errors="replace")
        ended[text.splitlines()[-1]] = Ended(int(code.read_text()) if code.exists() else -1, said)
    return ended


def test_every_block_is_run_or_said_not_to_be() -> None:
    """The document has only `sh` and `text` blocks, and says of each `text` block that tests do not run it."""
    kinds = [found["kind"] for found in BLOCK.finditer(DOCUMENT)]
    assert set(kinds) == {"sh", "text"}
    assert DOCUMENT.count("ot run by th") == kinds.count("text")


@pytest.mark.timeout(2 * 3600)  # installs Airflow and Spark
@pytest.mark.extended("tests/deploy/test_wheel.py", "tests/dags/test_dags.py", "tests/unit/cli/test_airflow_setup.py")
def test_the_way_from_nothing_to_an_observation(tmp_path: Path) -> None:
    """Every command of the start document ends as expected, and an observation writes a snapshot and a ledger."""
    need_java()
    pinned = constraints(tmp_path)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    build_wheel(wheels)
    kept = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME"}
    }
    kept = {name: value for name, value in kept.items() if not name.startswith(("AIRFLOW", "STEWARD"))}
    home = tmp_path / "home"
    home.mkdir()
    with running_simulator(ClusterSpec(tc_owner=0)) as cluster:
        connection = {"conn_type": "http", "extra": {"urls": list(cluster.admin_urls), "no_policy_file": True}}
        ended = run_blocks(
            home,
            {
                **kept,
                **caches(),
                "HOME": str(home),
                "PIP_CONSTRAINT": str(pinned),
                "PIP_FIND_LINKS": " ".join(filter(None, [kept.get("PIP_FIND_LINKS"), str(wheels)])),
                "ADMIN_URL": cluster.admin_urls[0],
                "AIRFLOW_CONN_PULSAR_ADMIN_LOCAL": json.dumps(connection),
                "COLUMNS": "200",
            },
        )
        changed = {record.method for record in cluster.requests.all()} - {"GET"}

    codes = {command: each.code for command, each in ended.items()}
    checkup = 'steward checkup --admin-url "$ADMIN_URL" --html checkup.html'
    assert codes == {command: int(command == checkup) for command in codes}, "\n".join(
        f"{command}: {each.code}\n{each.said[-3000:]}" for command, each in ended.items() if each.code
    )
    assert changed == set()
    assert "[tc-skew]" in ended[checkup].said
    assert (home / "checkup.html").is_file()
    listed = ended["airflow dags list-import-errors"].said
    assert {name for name in DAGS if name in listed} == DAGS
    assert "No data found" in listed
    assert "4.3" in ended["steward doctor --spark"].said
    assert "PySpark:" not in ended["steward doctor --spark"].said
    assert {file.name for file in (home / "dags").rglob("*.py")} == {
        *(file.name for file in (ROOT / "dags").glob("*.py")),
        *(file.name for file in (ROOT / "spark_apps").glob("*.py")),
    }
    observed = ended["airflow dags test pulsar_observe"].said
    assert "DagRun Finished: dag_id=pulsar_observe" in observed
    assert "state=success" in observed.rpartition("DagRun Finished")[2]
    assert list((home / "steward-home" / "snapshots").glob("cluster=local/taken_at=*/_SUCCESS"))
    assert (home / "steward-home" / "ledger.db").is_file()
    plugins = subprocess.run(  # noqa: S603 - as above
        [home / "airflow" / "bin" / "airflow", "plugins", "--output", "json"],
        env={**kept, "AIRFLOW_HOME": str(home / "airflow-home")},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    assert "pulsar_steward" in plugins
