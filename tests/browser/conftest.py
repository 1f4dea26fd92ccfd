"""A real browser, headless, and the shared cluster under Steward's care."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from lab.testing import cannot_run
from tests.conftest import ARTEFACTS
from tests.live.care import Care

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.cluster import Lab

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1500,2000",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Chromium with its driver; without them the test is skipped, or fails with ``CI=true``.

    It ends with the module: an open page of Airflow's takes a seventh of a core, as it renews itself for ever.
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        cannot_run("no browser on this machine: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in SWITCHES:
        options.add_argument(switch)
    running = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


@pytest.fixture(scope="module")
def care(airflow: Airflow, pulsar: Lab) -> Iterator[Care]:
    """The shared cluster under a name of its own."""
    with Care.taken(airflow, pulsar, "browser") as care:
        yield care


@pytest.fixture
def screenshots() -> Path:
    """Folder in which screenshots of the pages are kept as artefacts."""
    folder = ARTEFACTS / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
