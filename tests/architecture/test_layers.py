"""Modules that a part must never load, seen at run time: dynamic imports escape the linter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import grimp
import pytest

from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings

if TYPE_CHECKING:
    from collections.abc import Collection

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "plugins" / "pulsar_steward"

LOADS = """
import importlib, json, os, sys
trunk, branches = json.loads(sys.argv[1])

def load(part):
    for name in part:
        importlib.import_module(name)
    print(json.dumps(list(sys.modules)), flush=True)

for part in trunk:
    load(part)
for part in branches:
    if not os.fork():
        load(part)
        os._exit(0)
    if os.wait()[1]:
        sys.exit("a part cannot be loaded")
"""

HEAVY = {"sqlalchemy", "requests", "pyarrow", "duckdb"}
SPARK = {"airflow", "pyspark"}
WRITER = {"pulsar_steward.pulsar.writer"}
TRUNK = {
    ("errors", "model", "policy"): HEAVY | SPARK,
    ("checks", "diagnose"): {"sqlalchemy", "requests"} | SPARK | WRITER,
}
"""What parts must not load that the branches build on, each after the one before: they may load less than these."""
BRANCHES = {
    ("planners", "guards", "facts", "changes", "snapshots"): {"requests"} | SPARK | WRITER,
    ("collect",): {"sqlalchemy"} | SPARK | WRITER,
    ("apply", "report"): SPARK,
    ("ledger",): {"requests"} | SPARK,
    ("pages",): {"pulsar_steward.ledger.write"} | SPARK | WRITER,
}
SPARK_JOBS = ["steward_spark.observing", "steward_spark.shared_storage"]


@cache
def loaded() -> list[frozenset[str]]:
    """Every module that a fresh Python holds once it imported `TRUNK`, then one of `BRANCHES`, or `SPARK_JOBS`."""
    trunk, branches = (
        [[name for each in part for name in modules_of(each)] for part in some] for some in (TRUNK, BRANCHES)
    )
    command = [sys.executable, "-W", "ignore", "-c", LOADS, json.dumps([trunk, [*branches, SPARK_JOBS]])]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [frozenset(json.loads(line)) for line in lines if line.startswith("[")]


def modules_of(package: str) -> list[str]:
    """Full names of a package's modules, or of the module itself."""
    folder = LIBRARY / package
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [LIBRARY / f"{package}.py"]
    files = [file for file in files if file.name != "env.py"]  # Alembic's script: it runs only within a migration
    dotted = [".".join(("pulsar_steward", *file.relative_to(LIBRARY).with_suffix("").parts)) for file in files]
    return [name.removesuffix(".__init__") for name in dotted]


def missing_of(names: Collection[str]) -> list[str]:
    """Those of our modules that do not exist by these names: nothing could load one that was renamed."""
    return [name for name in names if name.startswith("pulsar_steward.") and find_spec(name) is None]


def test_planners_read_snapshots_by_queries_alone() -> None:
    files = list((LIBRARY / "planners").rglob("*.py"))
    imported = re.compile(r"^ *(from|import) (duckdb|pyarrow)\b", re.MULTILINE)
    assert len(files) > 20
    assert [file for file in files if imported.search(file.read_text())] == []


@pytest.mark.parametrize("packages", TRUNK | BRANCHES, ids="+".join)
def test_a_part_never_loads_what_it_must_not_know(packages: tuple[str, ...]) -> None:
    parts = TRUNK | BRANCHES
    assert missing_of(parts[packages]) == []
    assert parts[packages] & loaded()[list(parts).index(packages)] == set()


def test_no_files_import_each_other() -> None:
    """No two files of the library need each other, directly or around, be it for a type alone."""
    graph = grimp.build_graph("pulsar_steward", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(tuple(TopologicalSorter(imports).static_order())) == len(imports)  # or it raises, and names the circle


def test_spark_jobs_never_load_what_could_change_a_cluster() -> None:
    shut = ("pulsar_steward.pulsar.writer", "pulsar_steward.apply", "pulsar_steward.ledger", "pulsar_steward.planners")
    assert missing_of(shut) == []
    assert [name for name in loaded()[-1] if name.startswith(shut)] == []


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_reader_has_nothing_that_writes(method: Literal["PUT", "POST", "DELETE"]) -> None:
    """The transport of a reader refuses to send a request that changes something."""
    reader = Reader(AdminSettings(urls=("http://127.0.0.1:1",)))
    with pytest.raises(PermissionError, match="only looks"):
        reader._transport.send(method, "/admin/v2/anything")


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("change_access(", {"orchestration/connections.py", "orchestration/context.py"}),
        (".applying_here(", {"orchestration/batches.py"}),
        (".applying(", {"orchestration/context.py"}),
    ],
)
def test_credentials_that_may_change_a_cluster_are_asked_for_in_one_place(call: str, places: set[str]) -> None:
    """Only expected modules ask for changing credentials; `tests/attacks/test_connections.py` shows it at run time."""
    files = {file.relative_to(LIBRARY).as_posix(): file.read_text(encoding="utf-8") for file in LIBRARY.rglob("*.py")}
    assert {name for name, text in files.items() if call in text} == places
