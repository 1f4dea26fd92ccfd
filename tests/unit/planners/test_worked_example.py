"""The planner that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.recipes import blocks_in, change, copied, recipe, run_pytest

if TYPE_CHECKING:
    from pathlib import Path

PLANNER, TEST = blocks_in(recipe("A planner"))
OWN = "from pulsar_steward.planners.settings.longer_ttl import PLANNER as LONGER_TTL"
IMPORTED = "from pulsar_steward.checks.delayed.delayed_past_ttl import CHECK as DELAYED_PAST_TTL"


def test_the_recipe_works(tmp_path: Path) -> None:
    """Its file, a line in each of three others, and its test, which passes."""
    library = copied(tmp_path)
    planners = library / "planners"
    (planners / "settings" / "longer_ttl.py").write_text(PLANNER, encoding="utf-8")
    first = "from pulsar_steward.planners.settings.namespaces"
    change(
        planners / "registry.py",
        {first: f"{OWN}\n{first}", "    OWN_QUOTAS,\n": "    OWN_QUOTAS,\n    LONGER_TTL,\n"},
    )
    change(
        planners / "settings" / "from_snapshot.py",
        {
            "from pulsar_steward.errors": f"{IMPORTED}\nfrom pulsar_steward.errors",
            "CHECKS_OF_SETTINGS = ANSWERED": "CHECKS_OF_SETTINGS = ANSWERED | {DELAYED_PAST_TTL.check_id}",
        },
    )
    change(
        library / "checks" / "delayed" / "delayed_past_ttl.py",
        {"    scope=Scope.NAMESPACE,\n": '    scope=Scope.NAMESPACE,\n    remedied_by="retention",\n'},
    )
    (tmp_path / "test_longer_ttl.py").write_text(TEST, encoding="utf-8")

    done = run_pytest(tmp_path, "test_longer_ttl.py")

    assert "4 passed" in done.stdout, done.stdout + done.stderr
