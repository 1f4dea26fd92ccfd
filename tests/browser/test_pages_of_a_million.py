"""Steward's pages of a cluster with a million partitions, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from sqlalchemy import make_url

from benchmarks.bench.pages import STEPS, a_plan, ask_about
from benchmarks.processes import output_of
from pulsar_steward.ledger.store import open_to_read
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.sources import Sources
from pulsar_steward.snapshots.latest import SnapshotShelf
from tests.browser.serving import NARROW, WIDE, console_of, is_within_the_window, opened, served

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = [
    pytest.mark.browser,
    pytest.mark.extended("tests/unit/pages/test_pages.py", "tests/browser/test_approval.py"),
]

PARTITIONS = 1_000_000
MOST_ELEMENTS = 20_000
"""Of a page: what a browser lays out at once, whatever the cluster's size."""

NAME = "large"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Addresses by the name of their picture."""
    folder = tmp_path_factory.mktemp("million")
    snapshot = folder / "snapshots" / f"cluster={NAME}" / "taken_at=20260131T120000Z"
    for what in (["make", str(PARTITIONS)], ["embedded"]):  # in processes of their own, which give their memory back
        output_of("benchmarks.diagnose_one", snapshot, *what)
    snapshots, ledger = str(folder / "snapshots"), f"sqlite:///{folder / 'ledger.db'}"
    (newest,) = SnapshotShelf(snapshots).diagnosed(NAME)
    plan = a_plan(newest, NAME)
    ask_about(ledger, plan)
    now = plan.taken_at + timedelta(minutes=5)
    outer = FastAPI(openapi_url=None)
    outer.mount(
        "/steward", make_app(Sources(lambda: open_to_read(make_url(ledger)), snapshots, lambda: now), lambda: None)
    )
    with served(outer) as url:
        yield {
            "clusters": f"{url}/steward/",
            "cluster": f"{url}/steward/clusters/{NAME}",
            "findings": f"{url}/steward/clusters/{NAME}?text=events&order=subject&page=2",
            "plan": f"{url}/steward/plans/{plan.plan_id}",
            "step": f"{url}/steward/plans/{plan.plan_id}/steps/b1.s001",
            "history": f"{url}/steward/history",
        }


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_page_of_a_million_partitions_can_be_read(
    browser: Chrome, pages: Mapping[str, str], screenshots: Path, width: int
) -> None:
    for name, address in pages.items():
        opened(browser, address, width=width)
        browser.save_screenshot(str(screenshots / f"million-{name}-{'wide' if width == WIDE else 'narrow'}.png"))
        assert "Pulsar Steward" in browser.title
        elements = browser.execute_script("return document.getElementsByTagName('*').length")
        assert 100 < elements < MOST_ELEMENTS, (name, elements)
        assert is_within_the_window(browser), name
        assert console_of(browser) == [], name


def test_all_steps_of_a_large_question_are_on_its_page(browser: Chrome, pages: Mapping[str, str]) -> None:
    opened(browser, pages["plan"])
    assert f"{STEPS} steps" in browser.find_element("tag name", "main").text
    assert len(browser.find_elements("css selector", "table.steps tbody tr")) == STEPS
