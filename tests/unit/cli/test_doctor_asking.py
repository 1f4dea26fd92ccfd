"""``steward doctor``: DAGs that are paused or missing, and questions that nobody was asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.cli.doctor.asking import MISSED, asking_lines, by_airflow
from pulsar_steward.cli.doctor.line import LineState
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.waiting import UNASKED_AFTER
from pulsar_steward.ledger.write import LedgerWriter
from tests.builders import a_plan
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from pathlib import Path

RUNS = dict.fromkeys(MISSED, False)
REMEDIATE = "pulsar_remediate"


def a_ledger(folder: Path, age: timedelta) -> str:
    """A ledger with a question that nobody was asked for so long."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    engine = ledger_at(url)
    question = NewQuestion(batch_id="b1", content_digest="0" * 64, goal="goal")
    at = datetime.now(UTC) - age
    LedgerWriter(engine).record_plan(a_plan(), at, questions=QuestionChanges(asked=(question,)))
    engine.dispose()
    return url


def test_dags_that_run_are_fine(tmp_path: Path) -> None:
    """One line says that no DAG is paused; where Airflow or the ledger cannot be read there is none."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    (line,) = asking_lines(url, lambda: RUNS)
    assert (line.subject, line.state) == ("DAGs", LineState.OK)
    assert list(asking_lines(url, lambda: None)) == []


@pytest.mark.parametrize("dag", MISSED)
def test_a_dag_that_is_paused_or_missing_is_a_problem(tmp_path: Path, dag: str) -> None:
    """The line names the DAG, what does not happen without it, and the command that mends it."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    (paused,) = asking_lines(url, lambda: RUNS | {dag: True})
    assert (paused.state, paused.words) == (LineState.PROBLEM, f"{dag} is paused: {MISSED[dag]}")
    assert paused.remedy == f"`airflow dags unpause {dag}`"
    (missing,) = asking_lines(url, lambda: {each: False for each in MISSED if each != dag})
    assert (missing.state, missing.words) == (LineState.PROBLEM, f"Airflow's database does not have {dag}")
    assert "steward airflow bundle" in missing.remedy


@pytest.mark.parametrize(
    ("paused", "age", "said"),
    [
        (True, timedelta(), f"{REMEDIATE} is paused"),
        (False, timedelta(), None),
        (None, timedelta(), None),
        (False, UNASKED_AFTER, f"no run of {REMEDIATE} has asked"),
        (None, UNASKED_AFTER, f"no run of {REMEDIATE} has asked"),
    ],
)
def test_a_question_of_nobody_is_a_problem(
    tmp_path: Path, paused: bool | None, age: timedelta, said: str | None
) -> None:
    """It is named at once where the DAG that asks is paused, else once a run would have asked."""
    states = None if paused is None else RUNS | {REMEDIATE: paused}
    found = [each for each in asking_lines(a_ledger(tmp_path, age), lambda: states) if each.subject != "DAGs"]
    assert [each.subject for each in found] == ([] if said is None else ["questions of east"])
    if said is not None:
        (line,) = found
        assert line.words.startswith("nobody was asked about 1 batch, the first of them published at ")
        assert line.remedy.startswith(said)


def test_no_airflow_is_asked_that_is_not_set_up_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says where Airflow's database is, no process is started, and nothing is said of DAGs."""
    for name in ("AIRFLOW_CONFIG", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setattr("subprocess.run", None)
    assert by_airflow() is None
