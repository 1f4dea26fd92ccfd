"""Checks of ``steward doctor`` on whether somebody is asked: Airflow's DAGs that are paused, questions of nobody."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.cli.airflow_process import airflow_is_set_up, ask_airflow
from pulsar_steward.cli.doctor.line import fine, problem
from pulsar_steward.cli.ledgers import opened_ledger
from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.batch_record import open_batches
from pulsar_steward.ledger.questions import ASKING_DAG, ROLLBACK_DAG, UNASKED_AFTER, unasked_questions, why_unasked
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pulsar_steward.cli.doctor.line import Line

    States = Mapping[str, bool]

MISSED = {
    "pulsar_observe": "nothing is observed on schedule",
    ASKING_DAG: "nobody is asked, and nothing that was approved is carried out",
    ROLLBACK_DAG: "nothing is taken back",
}
"""What does not happen while a DAG is paused."""


def asking_lines(ledger: str | None, lookup: Callable[[], States | None] | None = None) -> Iterator[Line]:
    """Checks that the DAGs which people depend on run, and that somebody was asked about each question."""
    states = (lookup or by_airflow)()
    if states is not None:
        yield _dags(states)
    now, paused = datetime.now(UTC), None if states is None else states.get(ASKING_DAG)
    try:
        with opened_ledger(ledger, only_read=True) as engine, one_moment(engine) as connection:
            found = unasked_questions(open_batches(connection, now), now)
    except (LedgerError, ConfigurationError, OSError):
        return
    old = [each for each in found if paused or now >= each.since + UNASKED_AFTER]
    for cluster, number in sorted(Counter(each.cluster for each in old).items()):
        first = next(each for each in old if each.cluster == cluster)
        words = (
            f"nobody was asked about {counted(number, 'batch', 'batches')}, the first of them"
            f" published at {time_in_words(first.since)} ({first.title})"
        )
        yield problem(f"questions of {cluster}", words, why_unasked(paused))


def by_airflow() -> States | None:
    """Whether each DAG is paused, by the Airflow of this environment; None: there is none, or it cannot be read."""
    return ask_airflow("paused", None, dict[str, bool]) if airflow_is_set_up() else None


def _dags(states: States) -> Line:
    missing = [dag for dag in MISSED if dag not in states]
    if missing:
        start = document("start.md")
        remedy = f"`steward airflow bundle` says how Airflow finds them ({start}); it sees new files after minutes"
        return problem("DAGs", f"Airflow's database does not have {', '.join(missing)}", remedy)
    if paused := [dag for dag in MISSED if states[dag]]:
        words = "; ".join(f"{dag} is paused: {MISSED[dag]}" for dag in paused)
        return problem("DAGs", words, "; ".join(f"`airflow dags unpause {dag}`" for dag in paused))
    return fine("DAGs", f"{', '.join(MISSED)}: none of them is paused")
