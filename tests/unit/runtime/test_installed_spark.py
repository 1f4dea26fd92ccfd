"""Two packages that hold the same files, in made-up environments."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime import installed_spark as module
from pulsar_steward.runtime.installed_spark import InstalledSpark, installed_spark, require_own_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

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
    monkeypatch.setattr(module, "installed_spark", lambda: InstalledSpark("4.3.0", "4.2.0", 515, 99))
    with pytest.raises(ConfigurationError, match=r"99 of 515 files .*`pip uninstall --yes pyspark-client`"):
        require_own_files()


def test_this_environment_is_whole() -> None:
    """This environment has a PySpark with only its own files, and no `pyspark-client` beside it."""
    found = installed_spark()
    assert found is not None
    assert (found.client, found.foreign) == (None, 0)
    assert found.files > 100
    require_own_files()
