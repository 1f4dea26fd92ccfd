"""Which Airflow is installed, and what it lacks."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime import installed_airflow as module
from pulsar_steward.runtime.installed_airflow import InstalledAirflow, installed_airflow, require_supported_airflow

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("version", "standard", "lacks"),
    [
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
    ],
)
def test_what_an_airflow_lacks(version: str, standard: str | None, lacks: str | None) -> None:
    """An Airflow or standard provider that is too old lacks a part that is named, and later ones lack none."""
    found = InstalledAirflow(version, standard)
    assert (lacks or "") in (found.lacks or "")
    assert (found.lacks is None) == (lacks is None)


@pytest.mark.parametrize(
    ("version", "untried"),
    [("3.1.7", True), ("3.1.8", False), ("3.2.0", False), ("3.3.9", False), ("3.4.0", True), ("4.0.0", True)],
)
def test_what_was_not_tried(version: str, untried: bool) -> None:
    """The versions from 3.1.8 to 3.3 with all their patches count as tried, and earlier and later ones do not."""
    assert bool(InstalledAirflow(version, "1.21.0").untried) is untried


def test_the_shell_refuses_to_be_imported(tmp_path: Path) -> None:
    """The import fails under an unsupported Airflow, and the last line of the error holds reason and remedy."""
    an_installation(tmp_path, apache_airflow_core="3.0.6")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pulsar_steward.orchestration"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("pulsar_steward.errors.ConfigurationError: Airflow 3.0.6 has no approvals")
    assert "pip install 'pulsar-steward[airflow]'" in last


def test_what_is_supported_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supported, an untried newer and no Airflow at all pass, and an Airflow that lacks a part is refused."""
    for found in (None, InstalledAirflow("3.3.2", "1.21.0"), InstalledAirflow("3.4.0", "1.21.0")):
        monkeypatch.setattr(module, "installed_airflow", lambda found=found: found)
        require_supported_airflow()
    monkeypatch.setattr(module, "installed_airflow", lambda: InstalledAirflow("2.11.2", None))
    with pytest.raises(ConfigurationError, match="no task SDK"):
        require_supported_airflow()
