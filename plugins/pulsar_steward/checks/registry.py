"""Registry of all checks: each `Check` of a module in one of the folders beside this file.

The order is the one for a cluster in trouble: resources, then clients and their acknowledgements, then placement, then
backlog and retention, then delayed messages and capacity (docs/knowledge.md C); those for Kafka clusters come last.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.checks import backlog, clients, delayed, kafka, placement, resources
from pulsar_steward.checks.check import Check

if TYPE_CHECKING:
    from types import ModuleType

    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.model.system import System


class GuideSection(NamedTuple):
    """A group of checks with a common title.

    Attributes:
        title: Its title.
        checks: Its checks, in the order in which they are reported.
    """

    title: str
    checks: tuple[Check, ...]


_PACKAGES = (resources, clients, placement, backlog, delayed, kafka)


def _group(package: ModuleType) -> GuideSection:
    modules = (import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__))
    checks = {each.check_id: each for module in modules for each in vars(module).values() if isinstance(each, Check)}
    return GuideSection(package.TITLE, tuple(sorted(checks.values(), key=lambda each: (each.order, each.check_id))))


GROUPS = tuple(_group(package) for package in _PACKAGES)

CHECKS = tuple(check for group in GROUPS for check in group.checks)
"""All checks, in the order in which they are reported."""

BY_ID = {check.check_id: check for check in CHECKS}


def groups_of(system: System) -> tuple[GuideSection, ...]:
    """Groups of the checks for a system's snapshots."""
    return tuple(group for group in GROUPS if group.checks[0].system is system)


def checks_of(system: System) -> dict[str, Check]:
    """Checks for a system's snapshots, by id, in the order in which they are reported."""
    return {check.check_id: check for check in CHECKS if check.system is system}


VIEWS: tuple[SqlView, ...] = tuple(view for package in _PACKAGES for view in package.VIEWS)
"""Views that the queries use besides `pulsar_steward.checks.views`, in the order in which they are created."""
