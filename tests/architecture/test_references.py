"""Names in docstrings, comments and documents: what they point at has to exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = [file for top in ("plugins", "spark_apps", "dags") for file in sorted((ROOT / top).rglob("*.py"))]
TEXTS = [*CODE, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]

DOTTED = re.compile(r"\bpulsar_steward(?:\.(?!_)[A-Za-z_]\w*)+")
DOCUMENT = re.compile(r"\bdocs/(?!NAME)[\w./-]*\w")
RECIPE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
"""Code in a document: recipes name files that whoever follows them makes, and `tests/recipes.py` runs them."""

ENTRY_POINTS = frozenset({"pulsar_steward.auth_headers"})


@cache
def names_in(file: Path) -> frozenset[str]:
    """Names that a module defines or imports at its top level, also under a condition."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def is_there(dotted: str) -> bool:
    """Whether a dotted name below `pulsar_steward` is a module, or a name in one."""
    place = ROOT / "plugins" / "pulsar_steward"
    for part in dotted.strip(".").split("."):
        if (place / part).is_dir() or (place / f"{part}.py").is_file():
            place /= part
            continue
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        return part in names_in(file)
    return True


@pytest.mark.parametrize("dotted", [".ledger.rows.QuestionEnd", ".model.plan", ".pulsar.transport.Transport"])
def test_a_name_that_is_there_is_found(dotted: str) -> None:
    assert is_there(dotted)
    assert not is_there(f"{dotted}_of_another_time")


def test_dotted_names_in_texts_exist() -> None:
    """A module or a name that was moved leaves no docstring, comment or document behind that names it."""
    texts = {file.relative_to(ROOT): RECIPE.sub("", file.read_text(encoding="utf-8")) for file in TEXTS}
    found = [(file, name) for file, text in texts.items() for name in DOTTED.findall(text) if name not in ENTRY_POINTS]
    assert len(found) > 1000
    assert [each for each in found if not is_there(each[1].removeprefix("pulsar_steward"))] == []


def test_documents_that_code_names_exist() -> None:
    """A docstring, comment or message names a document by its whole name."""
    texts = {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in CODE}
    found = {(file, name) for file, text in texts.items() for name in DOCUMENT.findall(text)}
    assert len(found) > 50
    assert sorted(each for each in found if not (ROOT / each[1]).exists()) == []


def test_layers_are_packages() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page.partition("## Layers")[2].partition("## ")[0].splitlines()
    named = [name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert len(named) > 15
    assert [name for name in named if not is_there(f".{name}")] == []
