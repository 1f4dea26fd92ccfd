"""Content and requirements of the wheel: all that Airflow and Spark read, neither of them unless somebody wants it."""

from __future__ import annotations

import ast
import re
import tarfile
import zipfile
from email.parser import BytesParser
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

from pulsar_steward import __version__
from tests.install.built import ROOT, build_sdist, build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

DOCUMENT = re.compile(r"\b(?:docs/)?([a-z-]+(?:/[a-z-]+)*\.md)\b")

LOCKED = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^ ;\\]+)", re.MULTILINE)

NOT_LOCKED = ("apprise", "pagerduty", "slack")
"""Extras whose providers tests put stand-ins for."""

RECIPIENTS = ("smtp", *NOT_LOCKED)
"""Extras of recipients of messages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, as it would be uploaded."""
    with zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """Metadata of the wheel."""
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return BytesParser().parsebytes(wheel.read(name))


def required(metadata: Message, extra: str) -> set[str]:
    """Names of what is installed with an extra, and without any where it is empty."""
    environment = {name: str(value) for name, value in default_environment().items()} | {"extra": extra}
    asked = (Requirement(str(line)) for line in metadata.get_all("Requires-Dist", []))
    return {each.name for each in asked if each.marker is None or each.marker.evaluate(environment)}


@pytest.mark.parametrize(
    ("folder", "pattern", "place"),
    [
        ("dags", "*.py", "pulsar_steward/files/dags"),
        ("spark_apps", "*.py", "pulsar_steward/files/spark_apps"),
        ("docs/checks", "*.md", "pulsar_steward/files/docs/checks"),
        ("docs/remediations", "*.md", "pulsar_steward/files/docs/remediations"),
        ("plugins", "*.py", ""),
        ("plugins", "pulsar_steward/**/*.*", ""),
        ("spark_apps", "steward_spark/*.py", ""),
    ],
)
def test_the_wheel_holds_what_airflow_and_spark_read(
    wheel: zipfile.ZipFile, folder: str, pattern: str, place: str
) -> None:
    files = [file for file in (ROOT / folder).glob(pattern) if file.is_file() and file.suffix != ".pyc"]
    assert files
    for file in files:
        name = "/".join(filter(None, [place, file.relative_to(ROOT / folder).as_posix()]))
        assert wheel.read(name) == file.read_bytes()
    if place:
        assert len([name for name in wheel.namelist() if name.startswith(f"{place}/")]) == len(files)


def test_the_wheel_holds_every_document_that_a_message_or_report_names(wheel: zipfile.ZipFile) -> None:
    named = {
        name
        for file in (ROOT / "plugins" / "pulsar_steward").rglob("*.py")
        for text in texts_in(file)
        for name in DOCUMENT.findall(text)
    }
    assert {"knowledge.md", "start.md", "checks/logs.md"} <= named
    held = set(wheel.namelist())
    assert sorted(name for name in named if f"pulsar_steward/files/docs/{name}" not in held) == []


def texts_in(file: Path) -> Iterator[str]:
    """Texts of a module that people may be shown: its strings, but for docstrings and the like."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.value


def test_the_wheel_holds_nothing_of_the_tests_or_the_lab(wheel: zipfile.ZipFile) -> None:
    """The wheel holds two packages, the plugin's module and its metadata, and no other top-level entry."""
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {
        "pulsar_steward",
        "steward_spark",
        "steward_plugin.py",
    }


def test_a_checkup_needs_neither_airflow_nor_spark(metadata: Message) -> None:
    core, airflow, spark = (required(metadata, extra) for extra in ("", "airflow", "spark"))
    assert not [name for name in core if "airflow" in name or "spark" in name or name == "pulsar-client"]
    assert airflow - core == {
        "apache-airflow",
        "apache-airflow-providers-apache-spark",
        "apache-airflow-providers-common-compat",
        "apache-airflow-providers-standard",
        "pulsar-client",
    }
    assert spark - core == {"pyspark"}
    for extra in RECIPIENTS:
        assert required(metadata, extra) - core == {f"apache-airflow-providers-{extra}"}
    assert metadata.get_all("Provides-Extra") == sorted(["airflow", "kafka", "spark", *RECIPIENTS])


def test_the_lock_holds_what_the_wheel_asks_for(metadata: Message) -> None:
    locked = dict(LOCKED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    wanted = [Requirement(str(line)) for line in metadata.get_all("Requires-Dist", [])]
    asked = [each for each in wanted if not any(f'"{extra}"' in str(each.marker) for extra in NOT_LOCKED)]
    assert [str(each) for each in asked if not each.specifier.contains(locked.get(each.name, "0"))] == []


def test_airflow_finds_the_plugin_by_its_entry_point() -> None:
    """The installed package has an entry point that names the plugin's module in the repository and its class."""
    [found] = entry_points(group="airflow.plugins", name="pulsar_steward")
    assert found.value == "steward_plugin:PulsarSteward"
    assert Path(ROOT, "plugins", "steward_plugin.py").is_file()


def test_the_index_shows_version_license_and_a_page_without_dead_links(metadata: Message) -> None:
    assert (metadata["Version"], metadata["License-Expression"]) == (__version__, "Apache-2.0")
    assert metadata.get_all("License-File") == ["LICENSE"]
    page = str(metadata.get_payload())
    assert f"# {ROOT.joinpath('README.md').read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}" in page
    assert re.findall(r"\]\((?!https?://)[^)]*\)", page) == []


def test_a_release_is_the_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheel and source distribution of one commit are equal; the latter has the tests, and nothing that was made."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764201600")
    for build in (build_wheel, build_sdist):
        first, second = (build(tmp_path / folder).read_bytes() for folder in ("a", "b"))
        assert first == second
    with tarfile.open(next((tmp_path / "a").glob("*.tar.gz"))) as opened:
        tops = {name.split("/")[1] for name in opened.getnames()}
    assert {"LICENSE", "docs", "lab", "plugins", "pyproject.toml", "spark_apps", "tests"} <= tops
    assert not tops & {".ci", ".git", ".venv", "artefacts", "dist", "var"}
