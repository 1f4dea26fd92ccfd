"""The pages in this process, mounted as Airflow mounts them, with something to show."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI

from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.pages.html import make_app
from tests.ledgers import ledger_at
from tests.unit.pages.scenes import observations, sources_of, told

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def client(shown_folder: Path, plans: dict[str, Plan]) -> Client:
    """A client without a login, of one application for all tests; `pages_of` makes one that has read nothing yet."""
    assert plans
    return pages_of(shown_folder)


def pages_of(folder: Path) -> Client:
    """A client of the pages of a folder with ``ledger.db`` and ``snapshots``, without a login."""
    return Client(make_app(sources_of(folder), lambda: None))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgerWriter]:
    """Writes the ledger of a folder that has nothing else."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield LedgerWriter(engine)
    engine.dispose()


@pytest.fixture
def copied(tmp_path: Path, shown_folder: Path, plans: dict[str, Plan]) -> Path:
    """A folder with the same ledger, and without a snapshot."""
    assert plans
    (tmp_path / "ledger.db").write_bytes((shown_folder / "ledger.db").read_bytes())
    return tmp_path
