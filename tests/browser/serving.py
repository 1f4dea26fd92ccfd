"""Steward's pages on a port of their own, for a browser."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

import uvicorn

from lab.ports import LOOPBACK, Ports
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI
    from selenium.webdriver import Chrome

WIDE, MIDDLE, NARROW = 1400, 1024, 390
"""Widths of windows, in pixels."""

AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(result => done(result.violations
    .filter(each => ['serious', 'critical'].includes(each.impact))
    .flatMap(each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 120)}`))));
"""
AXE_WITHIN_S = 300
"""For one page, on a machine that is busy."""


@contextmanager
def served(application: FastAPI) -> Iterator[str]:
    """Serves an application for the length of a ``with`` block; gives its URL."""
    port = Ports(None).take(LOOPBACK, "Steward's pages")
    server = uvicorn.Server(uvicorn.Config(application, host=LOOPBACK, port=port, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, "the pages answer", 30)
        yield f"http://{LOOPBACK}:{port}"
    finally:
        server.should_exit = True
        thread.join()


def opened(browser: Chrome, address: str, *, width: int = WIDE, scheme: str = "light") -> None:
    """Opens a page in a window of this width, in a light or a dark browser."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def console_of(browser: Chrome) -> list[str]:
    """Messages of the browser's console since it was asked last, without those about the page's icon."""
    log: list[dict[str, str]] = browser.get_log("browser")  # type: ignore[no-untyped-call]  # the driver has no types
    return [each["message"] for each in log if "favicon" not in each["message"]]


def is_within_the_window(browser: Chrome) -> bool:
    """True if the page has to be scrolled down only."""
    whole, seen = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    return bool(whole <= seen)


def serious_violations(browser: Chrome) -> list[str]:
    """What axe-core finds on the open page that is serious or critical."""
    browser.set_script_timeout(AXE_WITHIN_S)
    browser.execute_script(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found: list[str] = browser.execute_async_script(AXE)
    return found
