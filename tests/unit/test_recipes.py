"""Recipes of CONTRIBUTING.md and docs/adding-a-check.md work as they are written, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path("plugins/pulsar_steward")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDING = (ROOT / "docs" / "adding-a-check.md").read_text(encoding="utf-8")
CHECK, CHECK_TEST = re.findall(r"```python\n(.*?)```", ADDING, re.DOTALL)
(UNION,) = re.findall(r"^Change = .+\n", (ROOT / LIBRARY / "model/step.py").read_text(encoding="utf-8"), re.MULTILINE)
READER_TABLE = Path("tests/unit/pulsar/test_reader.py")


def recipe(title: str) -> str:
    """Text of a recipe of CONTRIBUTING.md, by its heading."""
    return CONTRIBUTING.partition(f"### {title}\n")[2].partition("\n### ")[0]


def blocks_of(title: str) -> list[str]:
    """Blocks of Python in a recipe, without the list's indent."""
    blocks = re.findall(r"   ```python\n(.*?)   ```", recipe(title), re.DOTALL)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in blocks]


def copied(folder: Path, *parts: str) -> Path:
    """Copies parts of the project there, such as ``lab``; returns the copy of the library."""
    for part in (str(LIBRARY), *parts):
        shutil.copytree(ROOT / part, folder / part)  # with what Python has compiled
    return folder / LIBRARY


def change(file: Path, replaced: dict[str, str]) -> None:
    """Replaces texts of a file, each of which is there once."""
    text = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert text.count(old) == 1, (file.name, old)
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a module of Python on the copy; what is not in it is the project's own."""
    paths = (folder / "plugins", folder, ROOT / "spark_apps", ROOT)
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        # Plugins of pytest that no recipe's test uses would be most of its time.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs tests on the copy."""
    return run(folder, "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *arguments)


def own_test(folder: Path, text: str) -> str:
    """What comes of a recipe's own test."""
    (folder / "test_own.py").write_text(text, encoding="utf-8")
    done = run_pytest(folder, "test_own.py")
    return done.stdout + done.stderr


def test_a_check(tmp_path: Path) -> None:
    """Its own test passes; it is listed at its place and explained, without an entry in any list."""
    (copied(tmp_path) / "checks" / "clients" / "subscription_fanout.py").write_text(CHECK, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "checks" / "conftest.py", tmp_path)
    assert "3 passed" in (said := own_test(tmp_path, CHECK_TEST)), said
    listed = run(tmp_path, "pulsar_steward.cli", "explain").stdout
    explained = run(tmp_path, "pulsar_steward.cli", "explain", "subscription-fanout").stdout
    assert listed.index("producer-fanout") < listed.index("subscription-fanout") < listed.index("connection-churn")
    assert "subscription_fanout.warning_subscriptions: 1000" in explained


def test_a_guard(tmp_path: Path) -> None:
    guard, test = blocks_of("A guard")
    guards = copied(tmp_path) / "guards"
    (guards / "idle_bundle.py").write_text(guard, encoding="utf-8")
    first, last = "from pulsar_steward.guards.every_change", "    Protected(),\n"
    own = f"from pulsar_steward.guards.idle_bundle import IdleBundle\n{first}"
    change(guards / "evaluate.py", {first: own, last: f"{last}    IdleBundle(),\n"})
    assert "3 passed" in (said := own_test(tmp_path, test)), said


def test_a_planner(tmp_path: Path) -> None:
    planner, test = blocks_of("A planner")
    library = copied(tmp_path)
    (library / "planners" / "settings" / "shorter_delays.py").write_text(planner, encoding="utf-8")
    first = "from pulsar_steward.planners.settings.namespaces"
    own = f"from pulsar_steward.planners.settings.shorter_delays import PLANNER as SHORTER_DELAYS\n{first}"
    listed = "    OWN_QUOTAS,\n"
    change(library / "planners" / "registry.py", {first: own, listed: f"{listed}    SHORTER_DELAYS,\n"})
    first, answered = "from pulsar_steward.errors", "CHECKS_OF_SETTINGS = ANSWERED"
    check = f"from pulsar_steward.checks.delayed.delayed_holds_ledgers import CHECK as DELAYED_HOLDS_LEDGERS\n{first}"
    change(
        library / "planners" / "settings" / "from_snapshot.py",
        {first: check, answered: f"{answered} | {{DELAYED_HOLDS_LEDGERS.check_id}}"},
    )
    scope = "    scope=Scope.NAMESPACE,\n"
    remedied = {scope: f'{scope}    remedied_by="retention",\n'}
    change(library / "checks" / "delayed" / "delayed_holds_ledgers.py", remedied)
    assert "4 passed" in (said := own_test(tmp_path, test)), said


@pytest.mark.parametrize(
    ("member", "words"),
    [(UNION.replace("\n", " | LoadBundle\n"), "3 passed"), (UNION, "Invalid value 'load_bundle'")],
    ids=["as written", "outside of the union"],
)
def test_a_kind_of_change(tmp_path: Path, member: str, words: str) -> None:
    """A change that is left out of the union cannot be recorded; `test_kinds.py` leaves out other pieces."""
    struct, kind, case, test = blocks_of("A kind of change")
    library = copied(tmp_path)
    change(library / "model" / "step.py", {"BundleChange =": f"{struct}\n\nBundleChange =", UNION: member})
    first, rest = "from pulsar_steward.changes.setting", "        case _:"
    imports = "from pulsar_steward.changes.load import Load\nfrom pulsar_steward.model.step import LoadBundle\n"
    own = {first: f"{imports}{first}", rest: f"{indent(dedent(case), ' ' * 8)}{rest}"}
    change(library / "changes" / "__init__.py", own)
    (library / "changes" / "load.py").write_text(kind, encoding="utf-8")
    assert words in (said := own_test(tmp_path, test)), said


@pytest.fixture
def with_method(tmp_path: Path) -> Path:
    """A copy of what the recipe of an endpoint touches, with the reader's new method in it."""
    library = copied(tmp_path, "lab", "tests/contract", "tests/unit/pulsar")
    method, here = blocks_of("An endpoint")[0], "    def clock_skew_milliseconds"
    change(library / "pulsar" / "reader.py", {here: f"{method}\n{here}"})
    return tmp_path


def test_an_endpoint(with_method: Path) -> None:
    """Method, handler, route and test work, without other changes to the reader's tests."""
    _, handler, test = blocks_of("An endpoint")
    (route,) = re.findall(r"`(Route\(.+?\))`", recipe("An endpoint"))
    listed, first = '    Route("/admin/v2/brokers/{cluster}", listed)', "async def clusters("
    own = {first: f"{handler}\n{first}", listed: f"    {route},\n{listed}"}
    change(with_method / "lab/simulator/brokers.py", own)
    contract = Path("tests/contract/test_reading.py")
    with (with_method / contract).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{test}")
    chosen = "at_run_time and simulator or every_method_is_tried"
    done = run_pytest(with_method, str(contract), str(READER_TABLE), "-k", chosen)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_method_that_nobody_tries_is_found(with_method: Path) -> None:
    """The reader's tests fail for a new method without a contract test, and name the method."""
    done = run_pytest(with_method, str(READER_TABLE), "-k", "every_method_is_tried")
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "dynamic_configuration" in done.stdout
