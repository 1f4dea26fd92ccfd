"""Files and links that the documents name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
