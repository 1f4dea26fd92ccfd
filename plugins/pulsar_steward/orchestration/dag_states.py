"""States of DAGs (paused or not) from Airflow's database, for the API server and ``steward doctor``."""

from __future__ import annotations

import logging

from pulsar_steward.ledger.questions import ASKING_DAG, ROLLBACK_DAG

log = logging.getLogger(__name__)

DAGS = ("pulsar_observe", ASKING_DAG, ROLLBACK_DAG)
"""DAGs that observe, ask for approval and roll back."""


def paused_dags() -> dict[str, bool]:
    """State of each of `DAGS` that this Airflow knows; True: it is paused.

    Raises:
        Exception: Any error of the database's driver, if the database cannot be read or has no tables yet.
    """
    from airflow.models.dag import DagModel  # takes seconds, and only few processes need it
    from airflow.utils.session import create_session
    from sqlalchemy import select

    known = select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(DAGS), DagModel.is_stale.is_(False))
    with create_session() as session:
        return {row.dag_id: bool(row.is_paused) for row in session.execute(known)}


def is_paused(dag: str) -> bool | None:
    """True if one of `DAGS` is paused; None: its state cannot be read."""
    try:
        return paused_dags().get(dag)
    except Exception as error:  # noqa: BLE001 - a page is shown all the same
        log.warning("whether %s is paused cannot be read: %s", dag, type(error).__name__)
        return None
