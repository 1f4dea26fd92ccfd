"""Nobody sees anything without Airflow's login and permission, on any route."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fastapi import HTTPException

from pulsar_steward.pages.html import make_app
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import sources_of

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

PARTS = {"cluster": "east", "plan_id": "p", "step_id": "b1.s01", "name": "steward.css"}


def refusing() -> None:
    """Refuses everybody."""
    raise HTTPException(401, "Not authenticated")


def paths_of(app: FastAPI) -> list[str]:
    """A path of every route, whatever it is: one that is mounted without the check would be among them."""
    return [str(route.path).format(**PARTS) for route in app.routes]  # type: ignore[attr-defined]  # every kind has one


def test_every_route_is_refused_without_a_login(tmp_path: Path) -> None:
    """Every route answers 401 without a login, also when there is neither a ledger nor a snapshot to read."""
    app = make_app(sources_of(tmp_path), refusing)
    client, paths = Client(app), paths_of(app)
    assert len(paths) > 20
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 401)


def test_nothing_else_answers(tmp_path: Path) -> None:
    """FastAPI's own documents are not served, and every route accepts only GET."""
    app = make_app(sources_of(tmp_path), lambda: None)
    client = Client(app)
    assert [client.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json", "/assets/..%2fapp.py")] == [
        404
    ] * 4
    methods = {method for route in app.routes for method in getattr(route, "methods", ())}
    assert methods == {"GET"}
    assert client.send("POST", "/history").status_code == 405


@pytest.mark.filterwarnings("ignore")  # Airflow's own
def test_airflows_own_check_refuses_every_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin makes the application on demand, and without Airflow's token every route answers 401."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path / "steward"))
    from steward_plugin import PREFIX, LazyPages, PulsarSteward, pages  # noqa: PLC0415 - loads Airflow

    (mounted,) = PulsarSteward.fastapi_apps
    assert isinstance(mounted["app"], LazyPages)
    assert (mounted["url_prefix"], mounted["app"].made) == (PREFIX, False)
    app = pages()
    client = Client(app)
    assert {client.get(path).status_code for path in paths_of(app)} == {401}
