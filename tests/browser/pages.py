"""Airflow's pages as a person uses them: log in, find what waits, read it, take a step out, approve."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from pulsar_steward.orchestration.question_form import APPROVE, LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

PATIENCE_S = 60
REDRAWN = (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)
"""What the driver says while a page is being drawn anew."""


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
        """Opens *Required Actions*, by way of the login, and waits until it is there.

        Whoever was logged in is logged out, and their page is left first: a page that asks Airflow without its cookie
        goes to the login by itself, and then comes back to its own address. The login's address names the page that
        comes after it; leaving it before its cookie has come is no login.
        """
        self._browser.get("about:blank")
        self._browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self._browser.get(f"{self._url}/required_actions")
        self._fill_in("username", user)
        self._fill_in("password", password)
        self._click(By.CSS_SELECTOR, "button[type=submit]")
        self._until(lambda: urlsplit(self._browser.current_url).path == "/required_actions")

    def open_required_action(self, subject: str) -> None:
        """Opens what waits under this subject."""
        self._click(By.XPATH, f"//a[contains(., {_quoted(subject)}) and contains(@href, 'required_actions')]")
        self._shown(By.XPATH, "//button[normalize-space()='Approve']")

    def open_plan(self, plan_id: str) -> None:
        """Opens the page of a plan."""
        self._browser.get(f"{self._url}/steward/plans/{plan_id}")
        self._shown(By.TAG_NAME, "h1")

    def open_question_of_plan(self, plan_id: str, batch_id: str) -> None:
        """Opens a batch's question by the link on the page of its plan, which is left for Airflow's."""
        self._browser.get(f"{self._url}/steward/plans/{plan_id}")
        self._click(By.CSS_SELECTOR, f"section[id='{batch_id}'] a.button[data-airflow]")
        self._until(lambda: "/required_actions" in urlsplit(self._browser.current_url).path)
        self._shown(By.XPATH, "//button[normalize-space()='Approve']")

    def text(self) -> str:
        """Everything that can be read on the page."""
        read: list[str] = []

        def done() -> bool:
            read.append(self._shown(By.TAG_NAME, "body").text)
            return True

        self._until(done)
        return read[-1]

    def steps(self) -> list[str]:
        """The steps that are ticked, in words."""
        ticked = self._browser.find_elements(By.CSS_SELECTOR, "[aria-label^='Remove b']")
        return [(each.get_attribute("aria-label") or "").removeprefix("Remove ") for each in ticked]

    def take_out(self, step: str) -> None:
        """Unticks a step, as `steps` names it."""
        before = len(self.steps())
        self.remove(step)
        self._until(lambda: len(self.steps()) == before - 1)

    def remove(self, chosen: str) -> None:
        """Removes what is chosen in a field of several, by its words."""
        self._click(By.CSS_SELECTOR, f"[aria-label='Remove {chosen}']")

    def comment(self, words: str) -> None:
        """Fills the comment in."""
        self._fill_in("element_comment", words)

    def leave_out(self, namespace: str) -> None:
        """Chooses a namespace that is to be left out, by typing its name, as people do where there are hundreds."""

        def chosen() -> bool:
            if self._browser.find_elements(By.CSS_SELECTOR, f"[aria-label='Remove {namespace}']"):
                return True
            field = self._shown(By.CSS_SELECTOR, f"#element_{LEFT_OUT} input")
            self._scrolled_to(field)
            field.send_keys(namespace, Keys.ENTER)
            return False

        self._until(chosen)

    def answer(self, option: str = APPROVE) -> None:
        """Presses an option's button, and waits until the page has taken the answer."""
        self._click(By.XPATH, f"//button[normalize-space()='{option}']")
        self._until(lambda: "Awaiting Input" not in self.text())

    def colours_of_answers(self) -> set[str]:
        """Colours behind the buttons of all answers: one, if none of them is emphasised."""
        buttons = self._browser.find_elements(By.CSS_SELECTOR, "[data-testid^='hitl-option-']")
        return {each.value_of_css_property("background-color") for each in buttons}

    def picture(self, name: str, *, of: str | None = None) -> None:
        """Keeps what is seen as a picture, scrolled to an element (an XPath) if one is given."""
        if of is not None:
            self._until(lambda: self._scrolled_to(self._shown(By.XPATH, of)))
        self._browser.save_screenshot(str(self._folder / f"{name}.png"))

    def _shown(self, by: str, what: str) -> WebElement:
        def find(browser: Chrome) -> WebElement | None:
            return next((each for each in browser.find_elements(by, what) if each.is_displayed()), None)

        found = WebDriverWait(self._browser, PATIENCE_S, ignored_exceptions=REDRAWN).until(
            find, f"nothing shown at {what!r}"
        )
        assert found is not None
        return found

    def _fill_in(self, name: str, words: str) -> None:
        def filled() -> bool:
            field = self._shown(By.NAME, name)
            field.clear()
            field.send_keys(words)
            return field.get_attribute("value") == words

        self._until(filled)

    def _click(self, by: str, what: str) -> None:
        """Clicks what is shown and enabled; the page may draw it anew at any moment, and then it is found again."""

        def clicked() -> bool:
            element = self._shown(by, what)
            if not element.is_enabled():
                return False
            self._scrolled_to(element)
            element.click()
            return True

        self._until(clicked)

    def _scrolled_to(self, element: WebElement) -> bool:
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        return True

    def _until(self, reached: Callable[[], object]) -> None:
        try:
            WebDriverWait(self._browser, PATIENCE_S, ignored_exceptions=REDRAWN).until(lambda _: reached())
        except TimeoutException as never:
            shown = self._browser.find_element(By.TAG_NAME, "body").text
            never.msg = f"not reached; the browser shows {self._browser.current_url}:\n{shown}"
            raise


def _quoted(words: str) -> str:
    assert '"' not in words
    return f'"{words}"'
