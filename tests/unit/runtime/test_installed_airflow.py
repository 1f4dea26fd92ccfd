"""What is installed: Airflow, Spark and the library's own files."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime import installed_airflow as airflow_module
from pulsar_steward.runtime import installed_spark as spark_module
from pulsar_steward.runtime.installed_airflow import InstalledAirflow, installed_airflow, require_supported_airflow
from pulsar_steward.runtime.installed_files import document, project_files
from pulsar_steward.runtime.installed_spark import InstalledSpark, installed_spark, require_own_files
from tests.cases import row_by_row

if TYPE_CHECKING:
    from tests.golden import Golden


def an_installation(folder: Path, **versions: str) -> list[str]:
    """A path on which these distributions lie, and nothing of them but their metadata."""
    for name, version in versions.items():
        metadata = folder / f"{name}-{version}.dist-info"
        metadata.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        (metadata / "METADATA").write_text(text, encoding="utf-8")
    return [str(folder)]


def test_no_airflow(tmp_path: Path) -> None:
    """`installed_airflow` returns None if no Airflow is installed."""
    assert installed_airflow([str(tmp_path)]) is None


def test_airflow_3_is_its_core(tmp_path: Path) -> None:
    """The version of Airflow 3 is that of its core distribution, and its standard provider's is found beside it."""
    path = an_installation(
        tmp_path, apache_airflow="3.2.1", apache_airflow_core="3.2.2", apache_airflow_providers_standard="1.21.0"
    )
    assert installed_airflow(path) == InstalledAirflow("3.2.2", "1.21.0")


def test_airflow_2_has_no_core(tmp_path: Path) -> None:
    """Airflow 2 is found by the distribution `apache-airflow`, as it has no core distribution."""
    assert installed_airflow(an_installation(tmp_path, apache_airflow="2.11.2")) == InstalledAirflow("2.11.2", None)


@row_by_row(
    "version, standard, lacks",
    ("1.10.15", None, "no task SDK"),
    ("2.11.2", "1.14.0", "no task SDK"),
    ("3.0.6", "1.21.0", "no approvals"),
    ("3.1.8", None, "without its standard provider"),
    ("3.1.8", "1.12.1", "no time limit of its own"),
    ("3.1.0", "1.14.0", None),
    ("3.1.8", "1.14.0", None),
    ("3.2.0rc1", "1.21.0", None),
    ("3.3.2", "1.21.0", None),
    ("4.0.0", "2.0.0", None),
)
def test_what_an_airflow_lacks(version: str, standard: str | None, lacks: str | None) -> None:
    """An Airflow or standard provider that is too old lacks a part that is named, and later ones lack none."""
    found = InstalledAirflow(version, standard)
    assert (lacks or "") in (found.lacks or "")
    assert (found.lacks is None) == (lacks is None)


@row_by_row(
    "version, untried",
    ("3.1.7", True),
    ("3.1.8", False),
    ("3.2.0", False),
    ("3.3.9", False),
    ("3.4.0", True),
    ("4.0.0", True),
)
def test_what_was_not_tried(version: str, untried: bool) -> None:
    """The versions from 3.1.8 to 3.3 with all their patches count as tried, and earlier and later ones do not."""
    assert bool(InstalledAirflow(version, "1.21.0").untried) is untried


@row_by_row("version, answers", ("3.1.8", 3), ("3.2.2", 4), ("3.3.2", 4))
def test_how_many_answers_its_page_offers(version: str, answers: int) -> None:
    """Read in the pages' code: 3.1.8 draws buttons for fewer than four options, and a field for more than four."""
    assert InstalledAirflow(version, "1.21.0").most_answers == answers


def test_the_shell_refuses_to_be_imported(tmp_path: Path) -> None:
    """The import fails under an unsupported Airflow, and the last line of the error holds reason and remedy."""
    an_installation(tmp_path, apache_airflow_core="3.0.6")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pulsar_steward.orchestration"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("pulsar_steward.errors.ConfigurationError: Airflow 3.0.6 has no approvals")
    assert "pip install 'pulsar-steward[airflow]'" in last


def test_what_is_supported_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supported, an untried newer and no Airflow at all pass, and an Airflow that lacks a part is refused."""
    for found in (None, InstalledAirflow("3.3.2", "1.21.0"), InstalledAirflow("3.4.0", "1.21.0")):
        monkeypatch.setattr(airflow_module, "installed_airflow", lambda found=found: found)
        require_supported_airflow()
    monkeypatch.setattr(airflow_module, "installed_airflow", lambda: InstalledAirflow("2.11.2", None))
    with pytest.raises(ConfigurationError, match="no task SDK"):
        require_supported_airflow()


OLD = {"pyspark/__init__.py": "VERSION = '4.2.0'", "pyspark/daemon.py": "old", "pyspark/same.py": "same"}
NEW = {"pyspark/__init__.py": "VERSION = '4.3.0'", "pyspark/daemon.py": "new", "pyspark/same.py": "same"}


def install(site: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Writes files over existing ones and records their digests, as pip does."""
    notes = site / f"{name.replace('-', '_')}-{version}.dist-info"
    notes.mkdir(parents=True)
    record = []
    for place, content in files.items():
        (site / place).parent.mkdir(exist_ok=True)
        (site / place).write_text(content, encoding="utf-8")
        digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{place},sha256={digest},{len(content)}")
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (notes / "RECORD").write_text("\n".join([*record, f"{notes.name}/RECORD,,"]), encoding="utf-8")


def test_nothing_is_said_of_what_is_not_there(tmp_path: Path) -> None:
    """No PySpark is found if only `pyspark-client` is installed."""
    install(tmp_path, "pyspark-client", "4.2.0", OLD)
    assert installed_spark([str(tmp_path)]) is None


def test_a_spark_by_itself_is_whole(tmp_path: Path) -> None:
    """A PySpark that was installed alone has no foreign files."""
    install(tmp_path, "pyspark", "4.3.0", NEW)
    assert installed_spark([str(tmp_path)]) == InstalledSpark("4.3.0", None, 3, 0)


def test_the_client_that_came_later_is_found(tmp_path: Path, golden: Golden) -> None:
    """PySpark's files that a later `pyspark-client` overwrote are counted, and the remedy reinstalls PySpark."""
    install(tmp_path, "pyspark", "4.3.0", NEW)
    install(tmp_path, "pyspark-client", "4.2.0", OLD)
    found = installed_spark([str(tmp_path)])
    assert found == InstalledSpark("4.3.0", "4.2.0", 3, 2)
    golden(found.words)
    assert "--force-reinstall --no-deps pyspark==4.3.0" in found.remedy


def test_deleted_files_are_foreign_until_they_are_written_anew(tmp_path: Path) -> None:
    """PySpark's files that are deleted count as foreign, and no file does after they are written anew."""
    install(tmp_path, "pyspark", "4.3.0", NEW)
    for place in OLD:
        (tmp_path / place).unlink()
    assert installed_spark([str(tmp_path)]) == InstalledSpark("4.3.0", None, 3, 3)
    for place, content in NEW.items():
        (tmp_path / place).write_text(content, encoding="utf-8")
    assert installed_spark([str(tmp_path)]) == InstalledSpark("4.3.0", None, 3, 0)


def test_a_client_that_was_overwritten_does_no_harm(tmp_path: Path, golden: Golden) -> None:
    """PySpark is whole if it was installed after `pyspark-client`, and the text only mentions the client beside it."""
    install(tmp_path, "pyspark-client", "4.2.0", OLD)
    install(tmp_path, "pyspark", "4.3.0", NEW)
    found = installed_spark([str(tmp_path)])
    assert found == InstalledSpark("4.3.0", "4.2.0", 3, 0)
    golden(found.words)


def test_a_mixture_is_refused_where_spark_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PySpark with files of another package is refused with a message that holds the remedy."""
    monkeypatch.setattr(spark_module, "installed_spark", lambda: InstalledSpark("4.3.0", "4.2.0", 515, 99))
    with pytest.raises(ConfigurationError, match=r"99 of 515 files .*`pip uninstall --yes pyspark-client`"):
        require_own_files()


def test_this_environment_is_whole() -> None:
    """This environment has a PySpark with only its own files, and no `pyspark-client` beside it."""
    found = installed_spark()
    assert found is not None
    assert (found.client, found.foreign) == (None, 0)
    assert found.files > 100
    require_own_files()


def test_a_message_names_a_document_where_it_is(tmp_path: Path) -> None:
    """An installed package's document is named by its path, and the repository's as the repository has it."""
    assert document("start.md", tmp_path) == "docs/start.md"
    (tmp_path / "files").mkdir()
    assert Path(document("start.md", tmp_path)) == tmp_path / "files" / "docs" / "start.md"
    assert (project_files() / "docs" / "start.md").is_file()
