"""Counts in words: one of a thing is never written with its plural."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "plugins").rglob("*.j2"))
SOURCES = [file for folder in ("plugins", "spark_apps", "dags") for file in sorted((ROOT / folder).rglob("*.py"))]

THINGS = """
    backlogs batches brokers buckets bundles calls changes characters clients consumers coordinators connections dumps
    entries files findings holes hosts ledgers lines lookups messages minutes moves namespaces nodes partitions places
    points problems producers questions requests rows seconds sockets snapshots steps subscriptions tasks threads times
    topics
"""
OF_A_KIND = "(?:(?:ack|acknowledged|approved|delayed|further|index|more|other|sealed|transaction|unacknowledged) )*"
PLURAL = rf"{OF_A_KIND}(?:{'|'.join(THINGS.split())})\b(?!/)"  # 1 messages/s is a rate
BEHIND_NUMBER = re.compile(f" {PLURAL}")
IN_TEMPLATE = re.compile(rf"\{{\{{(?P<value>[^{{}}]*)\}}\}}(?:</\w+>)?\s+(?:<[^>]*>)?{PLURAL}")
ONE_OF_MANY = re.compile(rf"(?<![\w.,:-])1 {PLURAL}")


def plain_counts(source: str) -> Iterator[tuple[int, str]]:
    """Values in f-strings with a plural right behind them: their lines and the f-strings' own text.

    Constants and ids are no counts, and neither is a number with digits behind the point. Where one thing has words of
    its own (``"a topic" if n == 1 else f"{n} topics"``), there are more of them.
    """
    tree = ast.parse(source)
    of_many = {id(node) for each in ast.walk(tree) if isinstance(each, ast.IfExp) for node in ast.walk(each.orelse)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or id(node) in of_many:
            continue
        for value, behind in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and isinstance(behind, ast.Constant)
                and isinstance(behind.value, str)
                and BEHIND_NUMBER.match(behind.value)
                and not re.search(r"\.[1-9]|g", ast.unparse(value.format_spec) if value.format_spec else "")
                and not re.fullmatch(r"[A-Z_]+|\w+_id", ast.unparse(value.value).rpartition(".")[2])
            ):
                yield value.lineno, ast.unparse(value.value) + behind.value


@pytest.mark.parametrize(
    "source",
    ['f"{n} topics"', 'f"of {n:,} delayed messages"', 'f"{len(steps)}" " approved steps"', 'f"{n:,.0f} or {n} rows"'],
)
def test_a_plain_count_is_seen(source: str) -> None:
    """A number before a plural is found in an f-string, with a number format or across joined strings too."""
    assert len(list(plain_counts(source))) == 1


@pytest.mark.parametrize(
    "source",
    ["f\"{counted(n, 'topic')}\"", 'f"{MAX_NAMES} topics"', 'f"{n:.1f} minutes"', '"1" if n == 1 else f"{n} rows"'],
)
def test_what_is_no_plain_count(source: str) -> None:
    """Counts by `counted`, constants, decimals and counts with a text for one are not reported."""
    assert not list(plain_counts(source))


def plain_counts_of_template(source: str) -> list[str]:
    """Values in a template with a plural right behind them, or with an element's end in between, without `counted`."""
    return [found[0] for found in IN_TEMPLATE.finditer(source) if "|counted(" not in found["value"]]


@pytest.mark.parametrize(
    "source",
    ["{{ n|number }} topics", "<b>{{ n }}</b> delayed messages", "{{ number(n) }} <i>rows</i>", "{{ n }}\nclients are"],
)
def test_a_plain_count_of_a_template_is_seen(source: str) -> None:
    """A number before a plural is found in a template, also behind a filter, a call or a tag."""
    assert len(plain_counts_of_template(source)) == 1


@pytest.mark.parametrize(
    "source", ['{{ n|counted("topic") }}', '{{ n|counted("topic") }} <b>rows</b>', "{{ n|rate }} MB/s", "{{ n }} topic"]
)
def test_what_is_no_plain_count_of_a_template(source: str) -> None:
    """Counts by `counted`, rates and singular words in a template are not reported."""
    assert plain_counts_of_template(source) == []


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_templates_count_by_counted(file: Path) -> None:
    assert plain_counts_of_template(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_counts_are_written_by_counted(file: Path) -> None:
    """Each module writes its counts with `counted` of `model/units.py`, which tells singular from plural."""
    assert list(plain_counts(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.txt")), ids=lambda file: file.relative_to(FOLDER).as_posix())
def test_golden_texts_know_one_from_several(file: Path) -> None:
    assert ONE_OF_MANY.findall(file.read_text(encoding="utf-8")) == []
