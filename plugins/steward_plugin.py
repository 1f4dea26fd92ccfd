"""The one module of this folder that Airflow loads (.airflowignore keeps it from the library's own files)."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from fastapi import FastAPI

PREFIX = "/steward"
"""Where the pages are within Airflow's API server."""

SHOWN_TO_READERS_OF = "pulsar_remediate"
"""The pages are shown to whoever may see the runs of this DAG, by Airflow's own login and permissions."""


class LazyPages:
    """The pages' application, made by its first request: all processes of Airflow's load plugins, few serve pages."""

    def __init__(self, make: Callable[[], FastAPI]) -> None:
        self._make = make
        self._app: FastAPI | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answers a request, as ASGI has it."""
        app = self._app
        if app is None:
            app = await asyncio.to_thread(self._once)
        await app(scope, receive, send)

    @property
    def made(self) -> bool:
        """True once the application was made."""
        return self._app is not None

    def _once(self) -> FastAPI:
        with self._lock:
            if self._app is None:
                self._app = self._make()
            return self._app


def pages() -> FastAPI:
    """The pages, with the ledger, the snapshots and the permissions of this Airflow."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.api_fastapi.core_api.security import requires_access_dag

    from pulsar_steward.ledger.store import open_to_read
    from pulsar_steward.orchestration import connections, dag_states, home
    from pulsar_steward.orchestration.halt_variable import halted_by_variable
    from pulsar_steward.orchestration.ledger_heads import LedgerHeads
    from pulsar_steward.pages.html import make_app
    from pulsar_steward.pages.sources import Sources

    sources = Sources(
        open_ledger=lambda: open_to_read(connections.ledger_url()),
        snapshots=home.snapshots_uri(),
        clock=home.now,
        noted=lambda: LedgerHeads(connections.ledger_url()).noted(),
        halted_elsewhere=lambda cluster: halted_by_variable(cluster, sources.ledger.clusters),
        is_paused=dag_states.is_paused,
    )
    may_look = requires_access_dag("GET", DagAccessEntity.RUN, param_dag_id=SHOWN_TO_READERS_OF)
    return make_app(sources, may_look)


class PulsarSteward(AirflowPlugin):
    """Puts Steward's pages into Airflow's menu, and beside each question."""

    name = "pulsar_steward"
    fastapi_apps = [{"app": LazyPages(pages), "url_prefix": PREFIX, "name": "Pulsar Steward"}]  # noqa: RUF012 - Airflow's own way
    external_views = [  # noqa: RUF012 - as above
        {"name": "Steward", "href": f"{PREFIX}/", "destination": "nav", "category": "browse", "url_route": "steward"},
        {
            "name": "Steward's plan",
            "href": f"{PREFIX}/question?dag_id={{DAG_ID}}&run_id={{RUN_ID}}&map_index={{MAP_INDEX}}",
            "destination": "task_instance",
            "url_route": "steward-plan",
        },
    ]
