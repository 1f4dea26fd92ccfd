"""Collected things are read, and what is asked for is collected: settings of brokers, and Prometheus series.

A name that is collected and read by nobody costs every broker's snapshot; a check that asks for one that is not
collected sees nothing, and takes that for health.

Who reads is found like this. Of checks, their SQL as it is asked: a name may be built from parts in whatever way, as
there it stands whole, in single quotes. Elsewhere (`READERS`), string literals: a name and nothing else, or in single
quotes within SQL; a name built from parts is not seen there, and so is written whole, as a constant. That a sentence or
an advice mentions a name does not count. Series whose names hold a thread's are collected by their ending (`ENDINGS`),
which must stand in the SQL as it is. It is not looked at whether a check asks the kind of process that tells a series.

What `apply` and `cli` ask brokers themselves is neither in a snapshot nor looked at here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from lab.simulator.brokers import default_configuration
from pulsar_steward.checks import views
from pulsar_steward.checks.registry import CHECKS, VIEWS
from pulsar_steward.collect.broker import KEPT
from pulsar_steward.collect.metrics import ENDINGS, SERIES, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "plugins" / "pulsar_steward"
PAGE = ROOT / "docs" / "reading.md"

READERS = (
    "collect/suspects.py",
    "collect/suspects.py",
    "diagnose",
    "facts",
    "model/broker_defaults.py",
    "model/broker_defaults.py",
    "planners",
    "report",
)
"""What reads snapshots' settings and series besides checks, or takes apart what was read; folders or modules."""

TITLES: dict[Kind, str] = {
    "broker": "Brokers",
    "bookie": "Bookies",
    "zookeeper": "ZooKeeper",
    "autorecovery": "Auto recovery",
}
"""How the page calls who is asked."""

ALL_SERIES = frozenset(name for series in SERIES.values() for name in series)

QUOTED = re.compile(r"'(\w+)'")
COMPARED = re.compile(r"\b(key|series)\s*(?:=|(?:not\s+)?in)\s*('[^']*'|\([^()]*\))|\b(setting)\(('[^']*')\)")
LIKE_A_SERIES = re.compile(r"(pulsar|jvm|process|bookie|bookkeeper)(_[A-Za-z0-9]+){2,}")


class Names(NamedTuple):
    """Names of settings and of series."""

    settings: frozenset[str]
    series: frozenset[str]


def questions() -> Iterator[str]:
    """All SQL of checks, and of the views that it selects from."""
    for check in CHECKS:
        for question in (*check.shards.values(), *check.cluster.values()):
            yield question.sql
            yield question.detail or ""
        yield from (each.sql for each in check.earlier.values())
    yield from (*views.MACROS, *views.TABLE_MACROS.values())
    yield from (view.sql for view in (*views.LARGE_TABLES, *views.SHARED, *VIEWS))


def literals(source: str) -> frozenset[str]:
    """Names in a module's strings: the whole of one, or in single quotes within it."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return frozenset(texts).union(*(QUOTED.findall(text) for text in texts))


def asked_by(sql: str) -> Names:
    """Texts that a question compares a key or a series with, and all else in it that looks like one of them."""
    settings, series = set[str](), set[str]()
    for column, value, macro, setting in COMPARED.findall(sql):
        (series if column == "series" else settings).update(QUOTED.findall(setting if macro else value))
    known = known_in(QUOTED.findall(sql))
    return Names(known.settings | settings, known.series | series)


def known_in(names: list[str] | frozenset[str]) -> Names:
    """Of any words those that are settings of a real broker, and those that look like series."""
    return Names(frozenset(names) & default_configuration().keys(), frozenset(filter(LIKE_A_SERIES.fullmatch, names)))


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    """Every name that is read."""
    found = frozenset(name for sql in questions() for name in QUOTED.findall(sql))
    return found.union(*map(literals, modules()))


@pytest.fixture(scope="module")
def asked() -> Names:
    """Every setting and series that is asked for."""
    found = [*map(asked_by, questions()), *(known_in(literals(source)) for source in modules())]
    return Names(*(frozenset[str]().union(*each) for each in zip(*found, strict=True)))


def modules() -> Iterator[str]:
    """The sources of `READERS`."""
    for each in READERS:
        files = sorted((LIBRARY / each).rglob("*.py")) or [LIBRARY / each]
        yield from (file.read_text(encoding="utf-8") for file in files)


def test_every_setting_and_series_that_is_collected_is_read(words: frozenset[str]) -> None:
    assert sorted(KEPT - words) == []
    assert sorted(ALL_SERIES - words) == []
    sql = "\n".join(questions())
    assert [ending for endings in ENDINGS.values() for ending in endings if ending not in sql] == []


def test_every_setting_and_series_that_is_asked_for_is_collected(asked: Names) -> None:
    assert sorted(asked.settings - KEPT) == []
    assert sorted(asked.series - ALL_SERIES) == []


def test_the_page_lists_what_is_collected() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("\n## What is kept")[2]
    items = [item.partition("\n\n")[0].partition(":**") for item in page.split("\n- **")[1:]]
    listed = {title: re.findall(r"`([^`]+)`", names) for title, _, names in items}
    kept = {TITLES[kind]: [*sorted(SERIES[kind]), *(f"...{ending}" for ending in ENDINGS[kind])] for kind in SERIES}
    assert listed == {"Settings of brokers": sorted(KEPT), **kept}


@pytest.mark.parametrize(
    ("sql", "settings", "series"),
    [
        ("select 1 from setting('noSuchSetting') where value = 'true'", {"noSuchSetting"}, set()),
        ("from configuration where key in ('one', 'two') and broker = 'three'", {"one", "two"}, set()),
        ("max(value) filter (where key = 'one')", {"one"}, set()),
        ("series = 'znode_count' or (series not in ('a','b'))", set(), {"znode_count", "a", "b"}),
        ("from (values ('pulsar_no_such_count'), ('maxMessageSize'))", {"maxMessageSize"}, {"pulsar_no_such_count"}),
        ("starts_with(series, 'pulsar_storage_') and labels_json->>'quantile' = 'maxMessage'", set(), set()),
    ],
)
def test_what_a_question_asks_for_is_seen(sql: str, settings: set[str], series: set[str]) -> None:
    assert asked_by(sql) == Names(frozenset(settings), frozenset(series))


def test_what_a_module_reads_is_seen() -> None:
    """Names are found as whole strings or in quotes within SQL, and not in sentences."""
    source = """KEY = "one"; SQL = f"key = 'two' {KEY}"; ADVICE = "raise `three` or four" """
    assert {"one", "two", "three", "four"} & literals(source) == {"one", "two"}
