"""The command line in this process: what it prints and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.cli import fleet
from pulsar_steward.cli.main import run
from pulsar_steward.diagnose.diagnosing import diagnose

if TYPE_CHECKING:
    from lab.simulator import Simulator


NOT_SET = (
    "STEWARD_ADMIN_TOKEN",
    "STEWARD_LEDGER",
    "STEWARD_SNAPSHOTS",
    "STEWARD_SPARK_APPS",
    "AIRFLOW_CONFIG",
    "AIRFLOW_CONN_STEWARD_LEDGER",
    "FORCE_COLOR",
    "NO_COLOR",
)


class Ended(NamedTuple):
    """Exit code and output of a command that ended."""

    code: int
    out: str
    err: str


Steward = Callable[..., Ended]
"""Runs a command."""


def sample(page: str) -> list[str]:
    """Parts of the first output that a page of the documents shows; between them something is left out."""
    shown = (Path(__file__).parents[3] / "docs" / page).read_text().partition("```console\n$ ")[2].partition("```")[0]
    return shown.partition("\n")[2].split("...\n")


@pytest.fixture
def steward(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Steward:
    """Runs a command without a terminal, on 80 columns, with nothing of Steward or Airflow in the environment."""
    for name in NOT_SET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("COLUMNS", "80")

    def ended(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return ended


FEW = ("backlog-quota-missing", "replication-stopped", "tc-skew")
"""Checks of tests that are not about what is found: all of them take two seconds of a processor."""

WITH_FEW = f"""
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.cli.main import main
from pulsar_steward.diagnose.diagnosing import diagnose
diagnose.__defaults__ = ([BY_ID[each] for each in {FEW}], *diagnose.__defaults__[1:])
main()
"""


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check-ups run `FEW` checks, in this process and in those of a fleet."""
    checks = [BY_ID[each] for each in FEW]
    monkeypatch.setattr(diagnose, "__defaults__", (checks, *(diagnose.__defaults__ or ())[1:]))
    monkeypatch.setattr(fleet, "COMMAND", ("-c", WITH_FEW, *fleet.COMMAND[2:]))


def urls_of(cluster: Simulator) -> list[str]:
    """Returns the cluster's addresses as options."""
    return [word for url in cluster.admin_urls for word in ("--admin-url", url)]
