"""The pages in this process, mounted as Airflow mounts them, with something to show."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI

from pulsar_steward.pages.html import make_app
from tests.unit.pages.scenes import observations, sources_of, told

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan


class Client:
    """Asks an application, without a server.

    Args:
        app: The application; it is mounted at ``/steward``.
    """

    def __init__(self, app: Any) -> None:
        self._outer = FastAPI(openapi_url=None)
        self._outer.mount("/steward", app)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Asks for a path below the mount; a redirect is not followed."""
        return asyncio.run(self._asked("GET", path, headers))

    def send(self, method: str, path: str) -> httpx.Response:
        """The same by another method."""
        return asyncio.run(self._asked(method, path, {}))

    async def _asked(self, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(self._outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
            return await client.request(method, f"/steward{path}", headers=headers)


@pytest.fixture(scope="session")
def shown_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ledger and snapshots; only read by every test."""
    folder = tmp_path_factory.mktemp("pages")
    observations(folder / "snapshots")
    return folder


@pytest.fixture(scope="session")
def plans(shown_folder: Path) -> dict[str, Plan]:
    """The plans in the ledger."""
    return told(f"sqlite:///{shown_folder / 'ledger.db'}")


@pytest.fixture
def client(shown_folder: Path, plans: dict[str, Plan]) -> Client:
    """A client without a login; whoever asks may look."""
    return Client(make_app(sources_of(shown_folder), lambda: None))
