"""``python -m benchmarks.attacks``: runs every attack, and writes what was tried and what held into docs/security.md.

Exit code 0 only when every promise held.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
ATTACKS = ROOT / "tests" / "attacks"
DOCUMENT = ROOT / "docs" / "security.md"
BEGIN = "<!-- From here on written by `make attacks`. -->"


class Attack(NamedTuple):
    """One test in ``tests/attacks``.

    Attributes:
        file: Its file's name.
        name: The function's.
        promise: The name as a sentence.
        holds: The first paragraph of its docstring.
    """

    file: str
    name: str
    promise: str
    holds: str


class Results:
    """Results of each test function: how many variants, and which did not pass."""

    def __init__(self) -> None:
        self.variants: dict[tuple[str, str], int] = defaultdict(int)
        self.failed: dict[tuple[str, str], int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts a variant by its call, and any of its phases that failed."""
        file, _, name = report.nodeid.partition("::")
        key = Path(file).name, name.partition("[")[0]
        self.variants[key] += report.when == "call" and not report.skipped
        self.failed[key] += report.failed


def attacks() -> dict[str, list[Attack]]:
    """Every attack, by what its file is about (the file's docstring), in order."""
    found: dict[str, list[Attack]] = {}
    for file in sorted(ATTACKS.glob("test_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        subject = _first_paragraph(tree)
        found[subject] = [
            Attack(file.name, each.name, each.name.removeprefix("test_").replace("_", " "), _first_paragraph(each))
            for each in tree.body
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
        ]
    return found


def _first_paragraph(node: ast.Module | ast.FunctionDef) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


def table(found: Mapping[str, Sequence[Attack]], results: Results) -> str:
    """The part of the document that this command writes."""
    return "\n".join([BEGIN, "", *_lines(found, results)])


def _lines(found: Mapping[str, Sequence[Attack]], results: Results) -> Iterator[str]:
    tried = sum(results.variants.values())
    number = sum(len(each) for each in found.values())
    yield f"{number} promises were attacked in {tried} ways; {sum(results.failed.values())} did not hold."
    for subject, each in found.items():
        yield ""
        yield f"### {subject.rstrip('.')}"
        yield ""
        yield f"`tests/attacks/{each[0].file}`"
        yield ""
        yield "| promise | what was tried, and what holds | ways | broken |"
        yield "|---|---|---|---|"
        for attack in each:
            key = attack.file, attack.name
            holds = attack.holds.replace("|", "\\|")
            yield f"| {attack.promise} | {holds} | {results.variants[key]} | {results.failed[key]} |"
    yield ""


def main() -> int:
    """Runs them; returns the exit code."""
    results = Results()
    code = pytest.main([str(ATTACKS), "-q", "-n", "0", "-p", "no:cacheprovider"], plugins=[results])
    own = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[0]
    DOCUMENT.write_text(own + table(attacks(), results), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
