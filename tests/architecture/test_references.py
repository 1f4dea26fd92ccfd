"""Names, files and links in docstrings, comments and documents: what they point at has to exist."""

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
"""Code in a document: recipes name files that are made by them, and `tests/unit/test_recipes.py` runs them."""

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


LIBRARY = ROOT / "plugins" / "pulsar_steward"
RECIPES = {
    "plugins/pulsar_steward/guards/idle_bundle.py",
    "plugins/pulsar_steward/planners/settings/shorter_delays.py",
    "plugins/pulsar_steward/changes/load.py",
}
"""Files that only recipes write."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])
_FILE = re.compile(r"\b(?:[a-z_]+/)+[a-z_0-9]+\.py\b")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(_FILE.findall(text)) - RECIPES
    assert named
    assert {each for each in named if not any((root / each).is_file() for root in (ROOT, LIBRARY))} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [each for each in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in each]
    assert [each for each in links if not (page.parent / each).exists()] == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text(encoding="utf-8")
    pages = [page.name for page in sorted(docs.glob("*.md")) if page.name != "index.md"]
    folders = [f"{folder.name}/" for folder in sorted(docs.iterdir()) if any(folder.glob("*.md"))]
    assert pages
    assert folders
    assert [name for name in (*pages, *folders) if f"({name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_text_fit_on_a_screen(page: Path) -> None:
    """No line of text has more than 120 characters; code, tables and addresses of links do not count."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r"\||\[[^\]]+\]: |\s*`[^`]*`\.?$", line)]
    assert [line for line in lines if len(line) > 120] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_begins_a_line(page: Path) -> None:
    """No line of code has a second command after the first one, so that whoever copies it runs both."""
    second = re.compile(
        r"^ {4}\S.*(?<![|;&(])(?<!\bdo)(?<!sudo) (?:pulsar-admin|curl|jstack|bookkeeper) ", re.MULTILINE
    )
    assert second.findall(page.read_text(encoding="utf-8")) == []
