"""The Airflow installed here, and a check whether Steward's DAGs can run in it.

Only metadata of packages is read: Airflow itself need not be importable, as it takes seconds.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Sequence

CORE, BEFORE_3, STANDARD = "apache-airflow-core", "apache-airflow", "apache-airflow-providers-standard"

TASK_SDK, APPROVALS = (3, 0), (3, 1)
"""The versions of Airflow that these came with: `airflow.sdk`, and operators that wait for a person."""

TIME_LIMIT = (1, 14)
"""The version of the standard provider in which an approval was first seen to have a time limit of its own."""

FOUR_BUTTONS = (3, 2)
"""The version of Airflow whose page of an approval has a button for each of four answers."""

OLDEST_TRIED, NEWEST_TRIED = (3, 1, 8), (3, 3)
TRIED = "Airflow 3.1.8 to 3.3"


class InstalledAirflow(NamedTuple):
    """An installed Airflow.

    Attributes:
        version: Airflow's version.
        standard: Version of its standard provider, which brings the operator for approvals; None: there is none.
    """

    version: str
    standard: str | None

    @property
    def words(self) -> str:
        """The versions in a sentence."""
        beside = f"standard provider {self.standard}" if self.standard else "no standard provider"
        return f"Airflow {self.version} with {beside}"

    @property
    def lacks(self) -> str | None:
        """Part that Steward's DAGs need and this Airflow lacks; None: it lacks nothing."""
        if _numbers(self.version) < TASK_SDK:
            return f"Airflow {self.version} has no task SDK (`airflow.sdk`), which came with 3.0, and no approvals"
        if _numbers(self.version) < APPROVALS:
            return f"Airflow {self.version} has no approvals: operators that wait for a person came with 3.1"
        if self.standard is None:
            return f"Airflow {self.version} is without its standard provider, which brings the operator for approvals"
        if _numbers(self.standard) < TIME_LIMIT:
            return (
                f"in Airflow's standard provider {self.standard} an approval has no time limit of its own"
                " (`response_timeout`): it would end with that of the task"
            )
        return None

    @property
    def most_answers(self) -> int:
        """Answers that its page of an approval can offer: with four, that of 3.1 has neither buttons nor a field."""
        return 3 if _numbers(self.version) < FOUR_BUTTONS else 4

    @property
    def untried(self) -> str | None:
        """Says that Steward was not tried with this version; None: it was, with it or another patch of it."""
        numbers = _numbers(self.version)
        if numbers < OLDEST_TRIED or numbers[:2] > NEWEST_TRIED:
            return f"this version of Steward was not tried with Airflow {self.version}, but with {TRIED}"
        return None

    @property
    def remedy(self) -> str:
        """Remedy where something lacks, or was not tried."""
        start = document("start.md")
        return f"`pip install 'pulsar-steward[airflow]'` in Airflow's environment: it asks for {TRIED} ({start})"


def installed_airflow(path: Sequence[str] | None = None) -> InstalledAirflow | None:
    """Finds the installed Airflow; None if there is none.

    Args:
        path: Where to look, instead of `sys.path`.
    """
    version = _version(CORE, path) or _version(BEFORE_3, path)
    return None if version is None else InstalledAirflow(version, _version(STANDARD, path))


def require_supported_airflow() -> None:
    """Checks that Airflow, where it is installed, has what Steward's DAGs need.

    Raises:
        ConfigurationError: If it lacks something.
    """
    found = installed_airflow()
    if found is not None and found.lacks:
        raise ConfigurationError(f"{found.lacks}. Remedy: {found.remedy}")


def _version(name: str, path: Sequence[str] | None) -> str | None:
    places = list(sys.path if path is None else path)
    found = next(iter(Distribution.discover(name=name, path=places)), None)
    return None if found is None else found.version


def _numbers(version: str) -> tuple[int, ...]:
    """Leading numbers of a version, `(3, 2, 0)` for ``3.2.0rc1``."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in leading[0].split(".")) if leading else ()
