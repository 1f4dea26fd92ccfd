"""The planner that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.recipes import blocks_in, change, copied, recipe, run_pytest

if TYPE_CHECKING:
    from pathlib import Path

PLANNER, TEST = blocks_in(recipe("A planner"))
OWN = "from pulsar_steward.planners.settings.shorter_delays import PLANNER as SHORTER_DELAYS"
IMPORTED = "from pulsar_steward.checks.delayed.delayed_holds_ledgers import CHECK as DELAYED_HOLDS_LEDGERS"


def test_the_recipe_works(tmp_path: Path) -> None:
    """The planner recipe of CONTRIBUTING.md works in a copy of the project, and its own test passes."""
    library = copied(tmp_path)
    planners = library / "planners"
    (planners / "settings" / "shorter_delays.py").write_text(PLANNER, encoding="utf-8")
    first = "from pulsar_steward.planners.settings.namespaces"
    change(
        planners / "registry.py",
        {first: f"{OWN}\n{first}", "    OWN_QUOTAS,\n": "    OWN_QUOTAS,\n    SHORTER_DELAYS,\n"},
    )
    answered = "CHECKS_OF_SETTINGS = ANSWERED"
    change(
        planners / "settings" / "from_snapshot.py",
        {
            "from pulsar_steward.errors": f"{IMPORTED}\nfrom pulsar_steward.errors",
            answered: f"{answered} | {{DELAYED_HOLDS_LEDGERS.check_id}}",
        },
    )
    change(
        library / "checks" / "delayed" / "delayed_holds_ledgers.py",
        {"    scope=Scope.NAMESPACE,\n": '    scope=Scope.NAMESPACE,\n    remedied_by="retention",\n'},
    )
    (tmp_path / "test_shorter_delays.py").write_text(TEST, encoding="utf-8")

    done = run_pytest(tmp_path, "test_shorter_delays.py")

    assert "4 passed" in done.stdout, done.stdout + done.stderr
