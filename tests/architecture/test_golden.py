"""Golden texts: each is of a test that there is, and a test sees when its text is another one."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.golden import FOLDER, TESTS, Golden, file_of, read, write

if TYPE_CHECKING:
    from pathlib import Path

TEST = re.compile(r"\w+")
BEHIND_NAME = re.compile(r"(\[.*\])?( \(\d+\))?", re.DOTALL)


def test_every_golden_text_is_of_a_test() -> None:
    modules = {file_of(path): path for path in TESTS.rglob("test_*.py")}
    for file in FOLDER.rglob("*.txt"):
        tests = {
            node.name
            for node in ast.walk(ast.parse(modules[file].read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef) and any(each.arg == "golden" for each in node.args.args)
        }
        assert {TEST.match(name)[0] for name in read(file)} == tests, file  # type: ignore[index]  # every name matches
        assert all(BEHIND_NAME.fullmatch(TEST.sub("", name, count=1)) for name in read(file)), file


def test_another_text_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "golden.txt"
    write(file, {"test_a": "one\n\ntwo\n", "test_a (2)": "", "test_b[x]": "three "})
    golden = Golden(file, "test_a", update=False)
    golden("one\n\ntwo\n")
    golden("")
    with pytest.raises(AssertionError, match=r"golden\.txt"):
        golden("a third one")
    for text in ("three", "three \n"):
        with pytest.raises(AssertionError):
            Golden(file, "test_b[x]", update=False)(text)


def test_an_update_writes_what_is_given(tmp_path: Path) -> None:
    """An update keeps the other texts of the file, and refuses a text that holds a section's first line."""
    file = tmp_path / "folder" / "golden.txt"
    Golden(file, "test_b", update=True)("one\r\n")
    Golden(file, "test_a", update=True)("two")
    assert list(read(file).items()) == [("test_a", "two"), ("test_b", "one\r\n")]
    with pytest.raises(AssertionError):
        Golden(file, "test_a", update=True)("text\n=== test_c\n")
