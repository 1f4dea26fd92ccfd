"""Texts that people read, as somebody has read them and found them good: a file a test module, below `tests/golden/`.

``pytest --update-golden PATH...`` writes what these tests give now; read the difference before it is committed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
FOLDER = TESTS / "golden"
HEAD = "=== "
SECTION = re.compile(rf"^{HEAD}(?P<name>[^\n]+)\n(?P<text>.*?)\n(?={HEAD}|\Z)", re.MULTILINE | re.DOTALL)


def file_of(module: Path) -> Path:
    """The file with the texts of a module of tests."""
    return FOLDER / module.relative_to(TESTS).with_name(f"{module.stem.removeprefix('test_')}.txt")


def read(file: Path) -> dict[str, str]:
    """The texts of a file, by the test that gives them; none where there is no file."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as stream:
        return {section["name"]: section["text"] for section in SECTION.finditer(stream.read())}


def write(file: Path, texts: dict[str, str]) -> None:
    """Writes the texts of a file, sorted by their names."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sections = (f"{HEAD}{name}\n{text}\n" for name, text in sorted(texts.items()))
    with file.open("w", encoding="utf-8", newline="") as stream:
        stream.write("".join(sections))


class Golden:
    """Compares what a test gives, text by text, with its golden texts.

    Args:
        file: Holds the golden texts of the test's module.
        test: The test's name; it is the first text's, and the second one's with " (2)" behind it.
        update: Whether the texts are written instead.
    """

    def __init__(self, file: Path, test: str, *, update: bool) -> None:
        self._file = file
        self._test = test
        self._update = update
        self._given = 0

    def __call__(self, text: str | None) -> None:
        """Compares the next text, to the letter; where there is none, that is no text."""
        assert text is not None
        self._given += 1
        name = self._test if self._given == 1 else f"{self._test} ({self._given})"
        texts = read(self._file)
        if self._update:
            write(self._file, texts | {name: text})
            texts = read(self._file)
        assert text == texts.get(name), f"not as in {self._file}; `pytest --update-golden` writes it anew"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares texts that people read with those of `tests/golden/`."""
    return Golden(file_of(request.path), request.node.name, update=request.config.getoption("--update-golden"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes golden texts."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/ instead of comparing with it")
