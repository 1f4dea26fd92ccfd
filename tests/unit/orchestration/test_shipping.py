"""The archive of Steward's own code for executors."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pulsar_steward
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration.spark import code_archive, py_files

ROOT = Path(__file__).resolve().parents[3]
JOB = str(ROOT / "spark_apps" / "observe.py")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two modules and a data file, imported once."""
    made = tmp_path / "code" / "some"
    (made / "inner" / "__pycache__").mkdir(parents=True)
    (made / "__init__.py").write_text("VALUE = 1\n")
    (made / "inner" / "__init__.py").write_text("")
    (made / "inner" / "data.txt").write_text("data")
    (made / "inner" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"compiled")
    return made


def test_the_same_code_makes_the_same_archive(package: Path, tmp_path: Path) -> None:
    """The same code gives the same archive in any folder and at any time, and an existing one is not rewritten."""
    first = code_archive([package], tmp_path / "one")
    written = first.stat().st_mtime_ns
    os.utime(package / "__init__.py", (1, 1))
    again, elsewhere = code_archive([package], tmp_path / "one"), code_archive([package], tmp_path / "two")
    assert again == first
    assert first.stat().st_mtime_ns == written
    assert elsewhere.name == first.name
    assert elsewhere.read_bytes() == first.read_bytes()


def test_other_code_makes_another_archive(package: Path, tmp_path: Path) -> None:
    """Changed code makes another archive, and the earlier archive stays as it is."""
    first = code_archive([package], tmp_path / "made")
    before = first.read_bytes()
    (package / "__init__.py").write_text("VALUE = 2\n")
    assert code_archive([package], tmp_path / "made") != first
    assert first.read_bytes() == before


def test_an_archive_that_was_changed_is_made_anew(package: Path, tmp_path: Path) -> None:
    """An existing archive whose content was altered is written anew under the same name."""
    archive = code_archive([package], tmp_path / "made")
    whole = archive.read_bytes()
    archive.write_bytes(whole[:100])
    assert code_archive([package], tmp_path / "made") == archive
    assert archive.read_bytes() == whole
    assert list(archive.parent.iterdir()) == [archive]


def test_an_archive_holds_sources_and_data(package: Path, tmp_path: Path) -> None:
    """The archive contains source and data files, and no compiled Python files."""
    with zipfile.ZipFile(code_archive([package], tmp_path / "made")) as archive:
        assert archive.namelist() == ["some/__init__.py", "some/inner/__init__.py", "some/inner/data.txt"]


def test_jobs_can_be_imported_from_the_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python that has nothing of Steward but the archive imports what executors run."""
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    archive = py_files(JOB, tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {archive!r})\n"
        "import steward_spark.mapping, steward_spark.reading, steward_spark.shared_storage\n"
        "import pulsar_steward.collect.reading, pulsar_steward.diagnose.running\n"
        "print(steward_spark.__file__, pulsar_steward.__file__, sep='\\n')"
    )
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=known, cwd=tmp_path, check=True, capture_output=True, text=True)  # noqa: S603 - made of this file's own words
    assert done.stdout.split() == [f"{archive}/{name}/__init__.py" for name in ("steward_spark", "pulsar_steward")]


@pytest.mark.parametrize(
    ("chosen", "shipped"), [("", None), (" ", None), ("hdfs:///code/steward.zip", "hdfs:///code/steward.zip")]
)
def test_what_is_chosen_is_shipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str, shipped: str | None
) -> None:
    """``STEWARD_PY_FILES`` names another archive, or none where executors have the code already."""
    monkeypatch.setenv("STEWARD_PY_FILES", chosen)
    assert py_files(JOB, tmp_path / "code") == shipped
    assert not (tmp_path / "code").exists()


def test_jobs_that_lie_alone_take_the_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A job in a folder without Steward's code is given an archive of the installed packages."""
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    archive = py_files(str(tmp_path / "observe.py"), tmp_path / "code")
    assert archive is not None
    with zipfile.ZipFile(archive) as found:
        assert {name.partition("/")[0] for name in found.namelist()} == {"pulsar_steward", "steward_spark"}


def test_code_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Missing code of the Spark jobs is reported with an error that says what to install."""
    monkeypatch.delenv("STEWARD_PY_FILES", raising=False)
    monkeypatch.setattr(sys, "path", [str(Path(pulsar_steward.__file__).parents[1])])
    for name in [name for name in sys.modules if name.partition(".")[0] == "steward_spark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ConfigurationError, match=r"neither beside .* nor installed: install Steward"):
        py_files(str(tmp_path / "observe.py"), tmp_path / "code")
