"""Which tests run in the same process: those of files that share an expensive part, and else those of one file.

pytest-xdist deals out groups, in the order in which they are first met; of a test it knows the name alone. So its first
process writes down the group of each test, and this scheduler reads that.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from lab.ports import HIGHEST, LOWEST
from tests.tiers import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHARED = ("airflow", "labs", "spark")
"""Fixtures whose tests run in one process, in the order in which they are begun."""

GROUPS = pytest.StashKey[dict[Path, str]]()
"""The group of each file."""
STOPS = pytest.StashKey[dict[str, "Callable[[], None]"]]()
"""How a shared part is stopped before the run is over, by its fixture's name."""

FAILURES = Path(__file__).resolve().parents[1] / "artefacts" / "failures"
FILE = "groups_file"
"""Where the groups are written down: of an attribute of the configuration, and of what each process is given."""


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # the base has no types
    """Deals out whole groups."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        """Begins once every process has collected its tests."""
        if not self._groups:
            self._groups = json.loads(Path(getattr(self.config, FILE)).read_text(encoding="utf-8"))
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    """Returns the scheduler that deals out groups, for every value of `--dist`."""
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the file of the groups; gives each process ports of its own, so that no two labs are given the same one."""
    if not hasattr(config, "workerinput"):
        descriptor, name = tempfile.mkstemp(prefix="steward-groups-", suffix=".json")
        os.close(descriptor)
        setattr(config, FILE, name)
        config.add_cleanup(lambda: Path(name).unlink(missing_ok=True))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    share = (HIGHEST - LOWEST) // count
    os.environ["STEWARD_LAB_PORTS"] = f"{LOWEST + number * share}-{LOWEST + (number + 1) * share}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process of pytest-xdist where to write."""
    node.workerinput[FILE] = getattr(node.config, FILE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts groups with a shared part first; in each of them files that are extended as a whole last.

    Time may run short for these. The tests of a file stay together, as they share what its fixtures made.
    """
    groups = groups_of(items)
    config.stash[GROUPS] = groups
    gate = {item.path for item in items if item.get_closest_marker(MARKER) is None}
    items.sort(key=lambda item: (_place(groups[item.path]), item.path not in gate))


def _place(group: str) -> int:
    """When a group is begun; a later one does not ask for the shared part of an earlier one."""
    return SHARED.index(group) if group in SHARED else len(SHARED)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Writes the groups down, before pytest-xdist is told that all tests are collected."""
    given = getattr(session.config, "workerinput", None)
    if given and given["workerid"] == "gw0":
        groups = groups_of(session.items)
        named = {item.nodeid: groups[item.path] for item in session.items}
        Path(given[FILE]).write_text(json.dumps(named), encoding="utf-8")


def groups_of(items: Iterable[pytest.Item]) -> dict[Path, str]:
    """The group of each file: the first of the shared parts that any of its tests asks for, or else the file itself."""
    asked: dict[Path, set[str]] = {}
    for item in items:
        live = ["labs"] if item.get_closest_marker("live") else []
        asked.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()), live)
    return {path: next((name for name in SHARED if name in names), str(path)) for path, names in asked.items()}


@pytest.fixture(scope="session")
def stopped_early(pytestconfig: pytest.Config) -> Callable[[str, Callable[[], None]], None]:
    """Has a part of SHARED stopped, by its name, as soon as this process is done with the groups that ask for it.

    Three idle brokers and an Airflow take a fifth of a core from the hundreds of tests that come after them.
    """
    return pytestconfig.stash.setdefault(STOPS, {}).__setitem__


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stops what this test's group shared and the next one's does not, nor any that comes after it."""
    if nextitem is None or item.path == nextitem.path:
        return
    groups = item.config.stash[GROUPS]
    now, then = (_place(groups[one.path]) for one in (item, nextitem))
    for name in SHARED[now:then]:
        stop = item.config.stash.get(STOPS, {}).pop(name, None)
        if stop is not None:
            stop()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps why a test failed where it can be read while the others go on: pytest shows it when all is over."""
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        FAILURES.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{report.nodeid.partition('tests/')[2]}-{report.when}")[:200]
        (FAILURES / f"{name}.txt").write_text(report.longreprtext, encoding="utf-8")
