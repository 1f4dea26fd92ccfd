"""The planner that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[3]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### A planner\n")[2].partition("\n### ")[0]
PLANNER, TEST = (dedent(block) for block in re.findall(r"   ```python\n(.*?)   ```", RECIPE, re.DOTALL))
IMPORTED = "from pulsar_steward.checks.delayed.delayed_past_ttl import CHECK as DELAYED_PAST_TTL"


def replace(file: Path, old: str, new: str) -> None:
    """Writes something else in one place of a file."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_the_recipe_works(tmp_path: Path) -> None:
    """Its file, a line in each of three others, and its test, which passes."""
    library = tmp_path / "plugins" / "pulsar_steward"
    shutil.copytree(ROOT / "plugins" / "pulsar_steward", library)
    planners = library / "planners"
    (planners / "settings" / "longer_ttl.py").write_text(PLANNER, encoding="utf-8")
    replace(
        planners / "registry.py",
        "from pulsar_steward.planners.settings.namespaces",
        "from pulsar_steward.planners.settings.longer_ttl import PLANNER as LONGER_TTL\n"
        "from pulsar_steward.planners.settings.namespaces",
    )
    replace(planners / "registry.py", "    OWN_QUOTAS,\n", "    OWN_QUOTAS,\n    LONGER_TTL,\n")
    facts = planners / "settings" / "from_snapshot.py"
    replace(facts, "from pulsar_steward.errors", f"{IMPORTED}\nfrom pulsar_steward.errors")
    replace(facts, "CHECKS_OF_SETTINGS = ANSWERED", "CHECKS_OF_SETTINGS = ANSWERED | {DELAYED_PAST_TTL.check_id}")
    check = library / "checks" / "delayed" / "delayed_past_ttl.py"
    replace(check, "    scope=Scope.NAMESPACE,\n", '    scope=Scope.NAMESPACE,\n    remedied_by="retention",\n')
    (tmp_path / "test_longer_ttl.py").write_text(TEST, encoding="utf-8")

    done = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "plugins"), str(ROOT)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "4 passed" in done.stdout, done.stdout + done.stderr
