"""Steward's pages in a real Airflow: behind its login, in its menu, beside a question, in its colours."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import httpx
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from pulsar_steward.ledger.store import open_ledger
from tests.browser.pages import PATIENCE_S, Pages
from tests.unit.pages.scenes import observations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from lab.airflow.server import Airflow

pytestmark = [
    pytest.mark.browser,
    pytest.mark.airflow,
    pytest.mark.extended("tests/unit/pages/test_words.py", "tests/unit/pages/test_pages.py"),
]

PATHS = (
    "/",
    "/clusters/east",
    "/plans/p",
    "/history",
    "/history.csv",
    "/chain",
    "/metrics",
    "/assets/steward.css",
    "/api/openapi.json",
    "/api/clusters",
    "/question?dag_id=d&run_id=r",
)


@pytest.fixture(scope="module", autouse=True)
def clusters(airflow: Airflow) -> Iterator[None]:
    """Snapshots to show, where this Airflow's tasks write theirs; its ledger is other tests' too: made, and no more."""
    open_ledger(airflow.spec.ledger).dispose()
    snapshots = airflow.spec.steward_home / "snapshots"
    before = set(snapshots.glob("*"))
    observations(snapshots)
    yield
    for folder in set(snapshots.glob("*")) - before:
        shutil.rmtree(folder)


def token(airflow: Airflow, user: str) -> str:
    """The token of a user."""
    login = {"username": user, "password": airflow.passwords[user]}
    answer = httpx.post(f"{airflow.spec.url}/auth/token", json=login, timeout=30)
    return str(answer.json()["access_token"])


def test_only_who_is_logged_in_sees_anything(airflow: Airflow) -> None:
    base = f"{airflow.spec.url}/steward"
    assert {path: httpx.get(f"{base}{path}", timeout=60).status_code for path in PATHS} == dict.fromkeys(PATHS, 401)
    wrong = {"Authorization": "Bearer e30.e30.e30"}
    assert {httpx.get(f"{base}{path}", headers=wrong, timeout=60).status_code for path in PATHS} <= {401, 403}
    for user in airflow.spec.users:
        with httpx.Client(headers={"Authorization": f"Bearer {token(airflow, user)}"}, timeout=60) as client:
            cards = client.get(f"{base}/api/clusters").json()
            assert {"east", "west", "north"} <= {card["cluster"] for card in cards}
            assert client.get(f"{base}/api/chain").status_code == 200
            assert client.post(f"{base}/history").status_code == 405


def test_the_pages_are_in_airflows_menu(browser: Chrome, airflow: Airflow, screenshots: Path) -> None:
    user = next(iter(airflow.spec.users))
    Pages(browser, airflow.spec.url, screenshots).log_in(user, airflow.passwords[user])
    waiting = WebDriverWait(browser, PATIENCE_S)
    browser.get(f"{airflow.spec.url}/plugin/steward")
    waiting.until(lambda each: each.find_elements(By.TAG_NAME, "iframe"))
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    waiting.until(lambda each: "Clusters" in each.find_element(By.TAG_NAME, "body").text)
    assert "Stale" in browser.find_element(By.TAG_NAME, "body").text
    assert browser.execute_script("return document.documentElement.dataset.theme") in {"light", "dark"}
    browser.save_screenshot(str(screenshots / "pages-in-airflow.png"))
    browser.find_element(By.CSS_SELECTOR, ".top a[data-airflow]").click()
    browser.switch_to.default_content()
    waiting.until(lambda each: each.current_url.endswith("/required_actions"))
