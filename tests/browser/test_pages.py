"""Steward's pages in a real browser: light and dark, narrow, by keyboard, and names that would be more than text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from lab.waiting import wait_until
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.pages.html import make_app
from tests.browser.serving import (
    MIDDLE,
    NARROW,
    WIDE,
    console_of,
    is_within_the_window,
    opened,
    serious_violations,
    served,
)
from tests.builders import NOW
from tests.ledgers import ledger_at
from tests.unit.pages.scenes import EVERY, QUARTER, Telling, observations, observed, sources_of, tc_batch, told
from tests.unit.report_checkup.snapshots import skewed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from pulsar_steward.model.plan import Plan

pytestmark = [pytest.mark.browser, pytest.mark.extended("tests/unit/pages/test_pages.py")]

LEAST_CONTRAST = 4.5
"""Of text and what is behind it, as WCAG asks for at level AA."""

FAINT = """
const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, place) => sum + c * [.2126, .7152, .0722][place], 0);
const behind = element => { for (; element; element = element.parentElement) {
    const found = channels(getComputedStyle(element).backgroundColor);
    if (found.length === 3 || found[3] === 1) { return found; } } return [255, 255, 255]; };
return [...document.querySelectorAll('body *')].filter(each => !each.closest('svg, dialog, option')
        && [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(each => { const [a, b] = [light(channels(getComputedStyle(each).color)), light(behind(each))];
        return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), each.outerHTML.slice(0, 120)]; })
    .filter(([ratio]) => ratio < arguments[0]);
"""
NAMELESS = """
return [...document.querySelectorAll('a, button, input, select, svg[role=img]')]
    .filter(each => !(each.textContent.trim() || each.ariaLabel || (each.labels && each.labels.length)))
    .map(each => each.outerHTML.slice(0, 120));
"""
HEADED = "return [...document.querySelectorAll('table.stack tbody .n')].every(each => each.dataset.head)"
"""True if each number has its column's head with it, which a narrow window shows beside it."""

FETCHED = "return performance.getEntriesByType('resource').map(each => each.name)"


class Shown(FastAPI):
    """The pages on a port, with what they show.

    Attributes:
        url: Where Airflow would be; pages are below ``/steward``, and with nothing to show below ``/nothing/steward``.
        plans: The plans in the ledger.
    """

    url: str
    plans: dict[str, Plan]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """The pages, mounted as in Airflow; whoever asks may look."""
    folder = tmp_path_factory.mktemp("shown")
    observations(folder / "snapshots")
    outer = Shown(openapi_url=None)
    outer.plans = told(f"sqlite:///{folder / 'ledger.db'}")
    outer.mount("/steward", make_app(sources_of(folder), lambda: None))
    nothing = tmp_path_factory.mktemp("nothing")
    open_ledger(f"sqlite:///{nothing / 'ledger.db'}").dispose()
    outer.mount("/nothing/steward", make_app(sources_of(nothing), lambda: None))
    fleet = tmp_path_factory.mktemp("fleet")
    open_ledger(f"sqlite:///{fleet / 'ledger.db'}").dispose()
    for number in range(50):
        observed(fleet / "snapshots", f"c{number:02}", NOW, whole=number != 48, **(skewed() if number == 49 else {}))
    outer.mount("/fleet/steward", make_app(sources_of(fleet), lambda: None))
    stopped = tmp_path_factory.mktemp("stopped")
    outer.plans["stopped"] = half_done(f"sqlite:///{stopped / 'ledger.db'}")
    outer.mount("/stopped/steward", make_app(sources_of(stopped), lambda: None))
    with served(outer) as url:
        outer.url = url
        yield outer


def half_done(url: str) -> Plan:
    """A ledger with a batch that stopped at its second step."""
    engine = ledger_at(url)
    telling = Telling(LedgerWriter(engine))
    plan, run = telling.planned("east", [tc_batch("east")], NOW - QUARTER), f"{EVERY}/0"
    telling.asked(plan, "b1", run, NOW - QUARTER)
    answer = telling.answered(plan, "b1", run, NOW - QUARTER, Decision.APPROVED)
    outcomes = [Outcome.DONE, Outcome.DRIFTED, Outcome.REFUSED, Outcome.REFUSED]
    telling.carried_out(plan, "b1", run, answer, NOW - QUARTER, outcomes, ["found on another broker"] * 4)
    engine.dispose()
    return plan


def paths(shown: Shown) -> dict[str, str]:
    """Every kind of page by the name of its picture: full, with nothing to show, and of a partial, stale snapshot."""
    plan = shown.plans["east"].plan_id
    return {
        "clusters": "/steward/",
        "clusters-none": "/nothing/steward/",
        "clusters-fifty": "/fleet/steward/",
        "cluster": "/steward/clusters/east",
        "cluster-well": "/steward/clusters/west",
        "cluster-halted": "/steward/clusters/north",
        "cluster-hostile": "/steward/clusters/east?severity=info",
        "cluster-nothing-found": "/steward/clusters/east?text=nowhere",
        "cluster-since": "/steward/clusters/east?since=1h",
        "trouble": "/steward/clusters/east/troubles/backlog-growing.soon",
        "trouble-of-many": "/steward/clusters/east/troubles/ack-holes.at-restart",
        "move": "/steward/moves?namespace=acme/orders&from=east&to=west",
        "move-unnamed": "/steward/moves",
        "plan": f"/steward/plans/{plan}",
        "plan-done": f"/steward/plans/{shown.plans['west'].plan_id}",
        "plan-stopped": f"/stopped/steward/plans/{shown.plans['stopped'].plan_id}",
        "step": f"/steward/plans/{plan}/steps/b1.s01",
        "history": "/steward/history",
        "history-none": "/nothing/steward/history",
        "chain": "/steward/chain",
        "not-there": "/steward/plans/none",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read(browser: Chrome, shown: Shown, screenshots: Path, scheme: str) -> None:
    """Pages fetch only their own assets, have enough contrast and named controls, run no name, and log no errors."""
    for name, path in paths(shown).items():
        opened(browser, f"{shown.url}{path}", scheme=scheme)
        browser.save_screenshot(str(screenshots / f"pages-{name}-{scheme}.png"))
        assert [each for each in browser.execute_script(FETCHED) if "/steward/assets/" not in each] == [], path
        assert browser.execute_script(FAINT, LEAST_CONTRAST) == [], path
        assert browser.execute_script(NAMELESS) == [], path
        assert browser.execute_script("return window.taken === undefined")
        assert [each for each in console_of(browser) if name != "not-there"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axe_finds_nothing_serious(browser: Chrome, shown: Shown, scheme: str, width: int) -> None:
    found: dict[str, list[str]] = {}
    for name, path in paths(shown).items():
        opened(browser, f"{shown.url}{path}", scheme=scheme, width=width)
        found[name] = serious_violations(browser)
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize("width", [MIDDLE, NARROW])
def test_a_narrow_window_scrolls_down_only(browser: Chrome, shown: Shown, screenshots: Path, width: int) -> None:
    for name, path in paths(shown).items():
        opened(browser, f"{shown.url}{path}", width=width)
        browser.save_screenshot(str(screenshots / f"pages-{name}-{width}.png"))
        assert is_within_the_window(browser), path
        assert browser.execute_script(HEADED), path


def test_by_keyboard(browser: Chrome, shown: Shown) -> None:
    def press(*keys: str) -> None:
        for key in keys:
            ActionChains(browser).send_keys(key).perform()

    opened(browser, f"{shown.url}/steward/")
    press("j", "j", "k", "j")
    href = browser.execute_script("return document.activeElement.getAttribute('href')")
    press(Keys.ENTER)
    wait_until(lambda: browser.current_url.endswith(href), "the row is opened", 10)
    opened(browser, f"{shown.url}/steward/clusters/east")
    press("/")
    assert browser.execute_script("return document.activeElement.name") == "text"
    press("j")
    assert browser.execute_script("return document.activeElement.value") == "j"
    press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    press("?")
    assert browser.execute_script("return document.getElementById('keys').open")
    press(Keys.ESCAPE)
    press("h")
    wait_until(lambda: browser.current_url.endswith("/steward/history"), "history is opened", 10)


def test_fifty_clusters_are_sorted_and_filtered_without_asking_again(browser: Chrome, shown: Shown) -> None:
    """By click and by key; the order is told to screen readers, and stays when the page is brought up to date."""
    opened(browser, f"{shown.url}/fleet/steward/")
    rows = "return [...document.querySelectorAll('tbody tr:not([hidden])')].map(each => each.cells[0].textContent)"
    assert browser.execute_script(rows)[:3] == ["c49", "c48", "c00"]
    head = browser.find_element("xpath", "//th[button='Cluster']")
    head.find_element("tag name", "button").send_keys(Keys.ENTER)
    assert browser.execute_script(rows) == [f"c{number:02}" for number in range(50)]
    head.find_element("tag name", "button").click()
    assert (browser.execute_script(rows)[0], head.get_attribute("aria-sort")) == ("c49", "descending")
    browser.find_element("name", "text").send_keys("C4")
    assert browser.execute_script(rows) == [f"c{number}" for number in range(49, 39, -1)]
    assert browser.find_element("tag name", "output").text == "10 of 50 shown"
    Select(browser.find_element("name", "health")).select_by_visible_text("warning")
    assert browser.execute_script(rows) == []
    browser.execute_script("document.activeElement.blur(); document.querySelector('table').id = 'before'")
    ActionChains(browser).send_keys("r").perform()
    brought = "return document.getElementById('before') === null"
    wait_until(lambda: browser.execute_script(brought), "the page is brought up to date", 30)
    assert browser.execute_script(rows) == []


def test_brokers_are_sorted_by_their_figures(browser: Chrome, shown: Shown) -> None:
    """By number, however it is written; the filter of findings above them is another table's."""
    opened(browser, f"{shown.url}/steward/clusters/east")
    topics = "return [...document.querySelectorAll('.brokers tbody tr')].map(each => each.cells[1].textContent.trim())"
    head = browser.find_element("xpath", "//table[contains(@class, 'brokers')]//th[button='Topics']")
    head.find_element("tag name", "button").send_keys(Keys.ENTER)
    falling = browser.execute_script(topics)
    assert falling == ["4,000", "2,000", "1,000", "500", "250", "125"]
    assert head.get_attribute("aria-sort") == "descending"
    head.find_element("tag name", "button").click()
    assert browser.execute_script(topics) == falling[::-1]
