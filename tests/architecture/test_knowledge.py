"""Every reference to what operators learned (docs/knowledge.md) leads to a section; tables name what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.registry import CHECKS, checks_of
from pulsar_steward.guards.evaluate import GUARDS
from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.logs.patterns import PAGE as PAGE_OF_LOGS
from pulsar_steward.model.system import System

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckWords

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "knowledge.md").read_text(encoding="utf-8")
FOLDERS = ("plugins", "spark_apps", "dags", "lab", "docs", "tests", "benchmarks")
SECTIONS = dict(
    zip(
        re.findall(r"^## ([A-Z])\. ", PAGE, re.MULTILINE),
        re.split(r"^## [A-Z]\. ", PAGE, flags=re.MULTILINE)[1:],
        strict=True,
    )
)
_LETTERS = re.compile(r"knowledge\.md`? ([A-Z](?:(?:, | and )[A-Z])*)\b")
_PAGE = re.compile(r"\bdocs/[a-z0-9/-]+\.md\b")
_PART = re.compile(r"docs/knowledge\.md (?P<letter>[A-Z])(?:, step \d)?(?: and (?P<other>[A-Z]))?(?:: (?P<words>.+))?")
_ROW = re.compile(r"^\| (?!claim |section |-)(.+) \|$", re.MULTILINE)

_ALL: tuple[CheckWords, ...] = (*CHECKS, *LOG_CHECKS.values())
_SOURCES = [
    (check.check_id, part.strip()) for check in _ALL for part in check.source.split(";") if "knowledge.md" in part
]


def _texts() -> dict[str, str]:
    files = [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".txt", ".yaml"}
    ]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files if path != Path(__file__)}


def test_every_letter_is_a_section() -> None:
    """Every letter that code, tests or documents name is a section of `docs/knowledge.md`."""
    named = {
        (letter, path)
        for path, text in _texts().items()
        for letters in _LETTERS.findall(text)
        for letter in re.findall("[A-Z]", letters)
    }
    assert len(named) > len(SECTIONS)
    assert sorted((letter, path) for letter, path in named if letter not in SECTIONS) == []


def test_every_page_that_is_named_exists() -> None:
    named = {
        (page, path)
        for path, text in _texts().items()
        if path.startswith(("plugins", "spark_apps", "dags", "lab"))
        for page in _PAGE.findall(text)
    }
    assert sorted((page, path) for page, path in named if not (ROOT / page).is_file()) == []


@pytest.mark.parametrize("part", [pytest.param(part, id=check_id) for check_id, part in _SOURCES])
def test_the_source_of_a_check_is_found_there(part: str) -> None:
    """The sections of `docs/knowledge.md` that a check's source names exist, and have the words that it quotes."""
    found = _PART.fullmatch(part)
    assert found, part
    assert found["letter"] in SECTIONS
    assert found["other"] is None or found["other"] in SECTIONS
    if found["words"] is not None:
        section = " ".join(SECTIONS[found["letter"]].split())
        assert found["words"].casefold() in section.casefold()


def test_checks_quote_the_page() -> None:
    """Some sources of checks name only a section of `docs/knowledge.md`, and others quote its words."""
    assert {": " in part for _, part in _SOURCES} == {False, True}


def test_one_page_tells_the_checks_of_kafka() -> None:
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(kafka-[a-z-]+)` \|", page, re.MULTILINE) == list(checks_of(System.KAFKA))


def test_tables_name_what_is_there() -> None:
    rows = _ROW.findall(PAGE)
    claims = [row.split(" | ") for section in SECTIONS.values() for row in _ROW.findall(section)]
    assert rows
    assert [cells for cells in claims if len(cells) != 3 or not all(cells)] == []
    linked = set(re.findall(r"\(checks/([a-z-]+)\.md\)", PAGE))
    assert linked == {*checks_of(System.PULSAR), PAGE_OF_LOGS}
    guards = {
        name
        for names in re.findall(r"guards? (`[a-z_]+`(?:, `[a-z_]+`)*)", PAGE)
        for name in re.findall(r"`([a-z_]+)`", names)
    }
    assert guards
    assert guards <= {guard.name for guard in GUARDS}
