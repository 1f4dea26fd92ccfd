"""``steward airflow``: what it writes, and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.cli.airflow_setup import FOLDER, IGNORED, NOTE, VARIABLE, Done, install_files, shipped_files
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration.home import spark_app
from pulsar_steward.runtime.installed_airflow import InstalledAirflow
from pulsar_steward.runtime.installed_files import project_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Steward


OBSERVE = "dags/observe.py"


def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder, with when it was written."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.relative_to(folder).as_posix(): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_the_dags_and_jobs_are_written(steward: Steward, tmp_path: Path) -> None:
    """The installed files equal the packaged ones, each DAG finds its job, and Airflow ignores the jobs' folder."""
    ended = steward("airflow", "install", tmp_path)

    assert (ended.code, ended.err) == (0, "")
    folder = tmp_path / FOLDER
    assert {path: content for path, (content, _) in content_of(folder).items() if path != NOTE} == shipped_files()
    for name in ("observe.py", "housekeeping.py"):
        assert (folder / "dags" / name).is_file()
        assert spark_app(str(folder / "dags" / name), name) == str((folder / "spark_apps" / name).resolve())
    assert "spark_apps/" in (folder / IGNORED).read_text(encoding="utf-8")
    assert f"- {OBSERVE}: written" in ended.out
    assert "refresh_interval" in ended.out


def test_a_second_time_nothing_is_touched(steward: Steward, tmp_path: Path) -> None:
    """A second installation leaves every file as it was, the time of writing included."""
    steward("airflow", "install", tmp_path)
    before = content_of(tmp_path)
    ended = steward("airflow", "install", tmp_path)

    assert ended.code == 0
    assert content_of(tmp_path) == before
    assert f"- {OBSERVE}: as it was" in ended.out
    assert "refresh_interval" not in ended.out


def test_what_somebody_changed_is_left_and_said(steward: Steward, tmp_path: Path) -> None:
    """A changed file is left with exit code 1; with --overwrite it is replaced, and a copy of it is kept."""
    steward("airflow", "install", tmp_path)
    changed = tmp_path / FOLDER / OBSERVE
    changed.write_text("# mine", encoding="utf-8")

    left = steward("airflow", "install", tmp_path)
    assert left.code == 1
    assert f"- {OBSERVE}: left, as somebody changed it" in left.out
    assert "--overwrite" in left.err
    assert changed.read_text(encoding="utf-8") == "# mine"

    replaced = steward("airflow", "install", tmp_path, "--overwrite")
    assert replaced.code == 0
    assert changed.read_bytes() == shipped_files()[OBSERVE]
    assert changed.with_name("observe.py.changed-1").read_text(encoding="utf-8") == "# mine"


def test_a_file_that_was_there_before_counts_as_changed(tmp_path: Path) -> None:
    """A file that existed before the first installation counts as changed and is left as it is."""
    file = tmp_path / FOLDER / OBSERVE
    file.parent.mkdir(parents=True)
    file.write_text("# somebody's", encoding="utf-8")
    done = install_files(tmp_path, "1.0")
    assert done[OBSERVE] is Done.LEFT
    assert file.read_text(encoding="utf-8") == "# somebody's"
    assert OBSERVE not in json.loads((tmp_path / FOLDER / NOTE).read_text(encoding="utf-8"))["files"]


def test_an_upgrade_brings_what_changed_and_removes_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade updates or removes the unchanged files of an earlier version, and the note has the new version."""
    earlier = {**shipped_files(), OBSERVE: b"# earlier", "dags/old.py": b"# old", "dags/loved.py": b"# loved"}
    monkeypatch.setattr("pulsar_steward.cli.airflow_setup.shipped_files", lambda: earlier)
    install_files(tmp_path, "0.0.1")
    (tmp_path / FOLDER / "dags" / "loved.py").write_bytes(b"# loved and changed")
    monkeypatch.undo()

    done = install_files(tmp_path, "0.1.0")

    assert done[OBSERVE] is Done.UPDATED
    assert done["dags/old.py"] is Done.REMOVED
    assert done["dags/loved.py"] is Done.LEFT
    assert not (tmp_path / FOLDER / "dags" / "old.py").exists()
    assert (tmp_path / FOLDER / "dags" / "loved.py").exists()
    assert json.loads((tmp_path / FOLDER / NOTE).read_text(encoding="utf-8"))["version"] == "0.1.0"
    assert install_files(tmp_path, "0.1.0")[OBSERVE] is Done.UNCHANGED


def test_a_note_leads_nowhere_else(tmp_path: Path) -> None:
    """A file outside of the two folders is not removed, also if the note lists it."""
    install_files(tmp_path, "0.1.0")
    (tmp_path / "mine.py").write_bytes(b"# mine")
    note = json.loads((tmp_path / FOLDER / NOTE).read_text(encoding="utf-8"))
    note["files"]["../mine.py"] = hashlib.sha256(b"# mine").hexdigest()
    (tmp_path / FOLDER / NOTE).write_text(json.dumps(note), encoding="utf-8")
    install_files(tmp_path, "0.1.0")
    assert (tmp_path / "mine.py").exists()


def test_a_folder_that_is_not_there_is_none(steward: Steward, tmp_path: Path) -> None:
    """A missing folder ends the installation with exit code 2 and the command that prints the right folder."""
    ended = steward("airflow", "install", tmp_path / "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert "airflow config get-value core dags_folder" in ended.err


def test_a_note_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A note that cannot be read raises an error with the remedy, and no file is written."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / NOTE).write_text("{", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="remove it"):
        install_files(tmp_path, "0.1.0")
    assert [path for path, _ in content_of(tmp_path).items()] == [f"{FOLDER}/{NOTE}"]


def test_the_bundle_is_airflows_setting(steward: Steward) -> None:
    """The command prints one variable that holds Airflow's own DAG bundle and that of Steward."""
    ended = steward("airflow", "bundle")
    name, _, value = ended.out.strip().partition("=")
    own, ours = json.loads(value)
    assert (ended.code, name) == (0, VARIABLE)
    assert own["name"] == "dags-folder"
    assert ours["kwargs"] == {"path": str(project_files() / "dags")}
    assert spark_app(f"{ours['kwargs']['path']}/observe.py", "observe.py") == str(
        project_files() / "spark_apps" / "observe.py"
    )


@pytest.mark.parametrize("command", ["install", "bundle"])
def test_an_airflow_without_approvals_is_refused(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(
        "pulsar_steward.runtime.installed_airflow.installed_airflow", lambda: InstalledAirflow("3.0.6", "1.21.0")
    )
    ended = steward("airflow", command, *([tmp_path] if command == "install" else []))
    assert (ended.code, ended.out) == (2, "")
    assert "no approvals" in ended.err
    assert "3.1.8 to 3.3" in ended.err
    assert list(tmp_path.iterdir()) == []
