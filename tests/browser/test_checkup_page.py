"""The check-up's page in a real browser: it draws by itself, fetches nothing, and takes no name for its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.snapshots.read import open_snapshot
from tests.browser.serving import NARROW, WIDE, is_within_the_window, opened, serious_violations
from tests.unit.report_checkup.snapshots import a_finding, skewed, written

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver.chrome.webdriver import WebDriver

HOSTILE = (
    'persistent://acme/orders/</script><script>window.taken = 1</script><a href="https://evil.example/">x</a>'
    "<img src=https://evil.example/ onerror='window.taken = 1'>"
)
DRAWN = "return document.querySelectorAll('.plot .main-svg').length"
FETCHED = "return performance.getEntriesByType('resource').map(each => each.name)"
LINKS = """return [...document.querySelectorAll('a')]
    .map(each => each.getAttribute('href') || each.getAttribute('xlink:href') || '')
    .filter(address => !address.startsWith('#'))"""
INK = "return getComputedStyle(document.querySelector('.plot .yaxislayer-above text')).fill"
WIDEST = """dispatchEvent(new Event('beforeprint'));
    return Math.max(...[...document.querySelectorAll('.plot .main-svg')].map(each => each.clientWidth))"""


@pytest.fixture
def page(tmp_path: Path) -> str:
    """The page of a check-up in which names are as bad as they can be."""
    topic = {"topic": HOSTILE, "namespace": "acme/orders", "broker": "broker-00:8080", "backlog_bytes": 9 * 1024**3}
    holes = {"topic": HOSTILE, "subscription": "<b>s</b>", "ack_holes": 12_000}
    rows = skewed() | {"topics": [topic], "subscriptions": [holes], "findings": [a_finding(evidence=HOSTILE)]}
    snapshot, policy = open_snapshot(written(tmp_path / "snapshot", **rows)), Policy()
    checkup = checkup_of(snapshot, make_plan(planning_facts_of(snapshot, policy, Moves())), policy)
    file = tmp_path / "page.html"
    file.write_text(as_html(checkup), encoding="utf-8")
    return file.as_uri()


def test_the_page_draws_and_fetches_nothing(browser: WebDriver, page: str, screenshots: Path) -> None:
    browser.get(page)
    places = browser.execute_script("return document.querySelectorAll('.plot').length")
    assert places >= 6
    assert browser.execute_script(DRAWN) >= places
    assert browser.execute_script(FETCHED) == []
    assert browser.execute_script(LINKS) == []
    assert browser.execute_script("return window.taken === undefined")
    assert "evil.example" in browser.page_source
    browser.save_screenshot(str(screenshots / "checkup.png"))


def test_the_page_is_light_and_dark(browser: WebDriver, page: str) -> None:
    inks = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(page)
        inks.append(browser.execute_script(INK))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert inks == ["rgb(23, 33, 43)", "rgb(227, 233, 239)"]


def test_the_drawings_fit_on_paper(browser: WebDriver, page: str) -> None:
    """The drawings are at most 640 pixels wide once the page is about to be printed."""
    browser.get(page)
    assert browser.execute_script(WIDEST) <= 640


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_page_can_be_read(browser: WebDriver, page: str, width: int, scheme: str) -> None:
    """It scrolls down only, and axe finds nothing serious."""
    opened(browser, page, width=width, scheme=scheme)
    assert is_within_the_window(browser)
    assert serious_violations(browser) == []
