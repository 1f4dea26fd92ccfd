"""The guard that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.recipes import blocks_in, change, copied, recipe, run_pytest

if TYPE_CHECKING:
    from pathlib import Path

GUARD, TEST = blocks_in(recipe("A guard"))
IMPORTED, LAST = "from pulsar_steward.guards.every_change", "    Protected(),\n"


def test_the_recipe_works(tmp_path: Path) -> None:
    guards = copied(tmp_path) / "guards"
    (guards / "idle_bundle.py").write_text(GUARD, encoding="utf-8")
    own = f"from pulsar_steward.guards.idle_bundle import IdleBundle\n{IMPORTED}"
    change(guards / "evaluate.py", {IMPORTED: own, LAST: f"{LAST}    IdleBundle(),\n"})
    (tmp_path / "test_idle_bundle.py").write_text(TEST, encoding="utf-8")

    done = run_pytest(tmp_path, "test_idle_bundle.py")

    assert "3 passed" in done.stdout, done.stdout + done.stderr
