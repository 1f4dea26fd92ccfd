"""The check that docs/adding-a-check.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK, TEST = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "adding-a-check.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose Python imports the library with the new file in it."""
    plugins = tmp_path_factory.mktemp("plugins")
    shutil.copytree(ROOT / "plugins" / "pulsar_steward", plugins / "pulsar_steward")
    (plugins / "pulsar_steward" / "checks" / "clients" / "subscription_fanout.py").write_text(CHECK, encoding="utf-8")
    return os.environ | {"PYTHONPATH": str(plugins)}


def test_its_test_passes(environment: dict[str, str], tmp_path: Path) -> None:
    """The three tests of the guide pass in a copy of the library that has the guide's check."""
    for name in ("conftest.py", "test_subscription_fanout.py"):
        text = TEST if name.startswith("test_") else (ROOT / "tests" / "checks" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = _run(
        environment, tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tmp_path)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_it_is_found_without_being_named_anywhere(environment: dict[str, str], tmp_path: Path) -> None:
    """The guide's check is listed at its place and explained with its threshold, without an entry in any list."""
    listed = _run(environment, tmp_path, "pulsar_steward.cli", "explain").stdout
    told = _run(environment, tmp_path, "pulsar_steward.cli", "explain", "subscription-fanout").stdout
    assert listed.index("producer-fanout") < listed.index("subscription-fanout") < listed.index("connection-churn")
    assert "subscription_fanout.warning_subscriptions: 1000" in told


def _run(environment: dict[str, str], folder: Path, *module: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *module]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
