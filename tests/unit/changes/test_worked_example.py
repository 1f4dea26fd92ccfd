"""The kind of change that CONTRIBUTING.md writes down works as it is said there, in a copy of the project."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING

from tests.recipes import blocks_in, change, copied, recipe, run_pytest

if TYPE_CHECKING:
    import subprocess

STRUCT, KIND, CASE, TEST = blocks_in(recipe("A kind of change"))
STEPS = Path(__file__).parents[3] / "plugins" / "pulsar_steward" / "model" / "step.py"
(UNION,) = re.findall(r"^Change = .+\n", STEPS.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_recipe_works(tmp_path: Path) -> None:
    made = carried_out(tmp_path)
    assert "3 passed" in made.stdout, made.stdout + made.stderr


def test_a_change_outside_of_the_union_cannot_be_recorded(tmp_path: Path) -> None:
    """The other pieces that may be left out, a case and a method, are tried in `test_kinds.py`."""
    made = carried_out(tmp_path, member=UNION)
    assert made.returncode == 1, made.stdout + made.stderr
    assert "Invalid value 'load_bundle'" in made.stdout, made.stdout


def carried_out(
    folder: Path, *, member: str = UNION.replace("\n", " | LoadBundle\n")
) -> subprocess.CompletedProcess[str]:
    """Follows the recipe in a copy of the library, and runs its test."""
    library = copied(folder)
    change(library / "model" / "step.py", {"BundleChange =": f"{STRUCT}\n\nBundleChange =", UNION: member})
    case = indent(dedent(CASE), " " * 8)
    first = "from pulsar_steward.changes.setting"
    imports = "from pulsar_steward.changes.load import Load\nfrom pulsar_steward.model.step import LoadBundle\n"
    change(
        library / "changes" / "__init__.py", {first: f"{imports}{first}", "        case _:": f"{case}        case _:"}
    )
    (library / "changes" / "load.py").write_text(KIND, encoding="utf-8")
    (folder / "test_load.py").write_text(TEST, encoding="utf-8")
    return run_pytest(folder, "test_load.py")
