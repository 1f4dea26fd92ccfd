"""Airflow's pages as a person uses them: log in, find what waits, read it, take a step out, approve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

PATIENCE_S = 60


class Pages:
    """One person's browser.

    Args:
        browser: Chromium.
        url: Where Airflow is.
        folder: Where pictures are kept.
    """

    def __init__(self, browser: Chrome, url: str, folder: Path) -> None:
        self._browser = browser
        self._url = url
        self._folder = folder

    def log_in(self, user: str, password: str) -> None:
        """Opens *Required Actions*, by way of the login."""
        self._browser.get(f"{self._url}/required_actions")
        self._shown(By.NAME, "username").send_keys(user)
        self._shown(By.NAME, "password").send_keys(password)
        self._shown(By.CSS_SELECTOR, "button[type=submit]").click()

    def open_required_action(self, subject: str) -> None:
        """Opens what waits under this subject."""
        self._shown(By.XPATH, f"//a[contains(., {_quoted(subject)}) and contains(@href, 'required_actions')]").click()
        self._shown(By.XPATH, "//button[normalize-space()='Approve']")

    def text(self) -> str:
        """Everything that can be read on the page."""
        return self._shown(By.TAG_NAME, "body").text

    def steps(self) -> list[str]:
        """The steps that are ticked, in words."""
        ticked = self._browser.find_elements(By.CSS_SELECTOR, "[aria-label^='Remove b']")
        return [(each.get_attribute("aria-label") or "").removeprefix("Remove ") for each in ticked]

    def take_out(self, step: str) -> None:
        """Unticks a step, as `steps` names it."""
        before = len(self.steps())
        cross = self._shown(By.CSS_SELECTOR, f"[aria-label='Remove {step}']")
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", cross)
        cross.click()
        self._until(lambda: len(self.steps()) == before - 1)

    def comment(self, words: str) -> None:
        """Fills the comment in."""
        self._shown(By.NAME, "element_comment").send_keys(words)

    def approve(self) -> None:
        """Presses the button, and waits until the page has taken the answer."""
        button = self._shown(By.XPATH, "//button[normalize-space()='Approve']")
        self._until(button.is_enabled)
        button.click()
        self._until(lambda: "Awaiting Input" not in self.text())

    def picture(self, name: str, *, of: str | None = None) -> None:
        """Keeps what is seen as a picture, scrolled to an element (an XPath) if one is given."""
        if of is not None:
            element = self._shown(By.XPATH, of)
            self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        self._browser.save_screenshot(str(self._folder / f"{name}.png"))

    def _shown(self, by: str, what: str) -> WebElement:
        def find(browser: Chrome) -> WebElement | None:
            return next((each for each in browser.find_elements(by, what) if each.is_displayed()), None)

        found = WebDriverWait(self._browser, PATIENCE_S).until(find, f"nothing shown at {what!r}")
        assert found is not None
        return found

    def _until(self, reached: object) -> None:
        assert callable(reached)
        WebDriverWait(self._browser, PATIENCE_S).until(lambda _: reached())


def _quoted(words: str) -> str:
    assert '"' not in words
    return f'"{words}"'
