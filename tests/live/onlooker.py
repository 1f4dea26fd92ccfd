"""Sights of an onlooker while Spark works, on its machines and its pages; and whether a secret is among them."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from lab.spark_cluster import SparkCluster

EVERY_S = 0.5
EXECUTOR = "CoarseGrainedExecutorBackend"


def shows(secret: str, text: str) -> bool:
    """Whether a text holds the secret, as it is or in base 64."""
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return secret in text or encoded in text


@dataclass
class Seen:
    """Texts that were seen.

    Attributes:
        commands: Command lines of Spark's processes.
        pages: URL to how often it answered.
        told: Where the secret was to be seen.
    """

    commands: set[str] = field(default_factory=set)
    pages: dict[str, int] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


def pages_of(cluster: SparkCluster) -> list[str]:
    """Every page of the master and its workers, those of applications included."""
    state = cluster.state()
    applications = [*state["activeapps"], *state["completedapps"]]
    return [
        f"{cluster.page}/",
        f"{cluster.page}/json/",
        *(f"{cluster.page}/app/?appId={each['id']}" for each in applications),
        *(f"{page}/{kind}" for page in cluster.worker_pages() for kind in ("", "json/")),
    ]


def events_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Spark's event log of each application: one file, or a folder of several."""
    logs = {log: log.rglob("events*") if log.is_dir() else [log] for log in folder.iterdir()}
    return {
        log.name: [json.loads(line) for part in parts for line in part.read_text(encoding="utf-8").splitlines()]
        for log, parts in logs.items()
    }


@contextlib.contextmanager
def looking_on(secret: str, pages: Callable[[], Iterable[str]]) -> Iterator[Seen]:
    """Looks at everything over and over, for the length of a ``with`` block.

    Args:
        secret: What is not to be seen.
        pages: The URLs that there are at the moment.
    """
    seen, over = Seen(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(seen, secret, pages, over))
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def _watch(seen: Seen, secret: str, pages: Callable[[], Iterable[str]], over: threading.Event) -> None:
    with httpx.Client(timeout=5, follow_redirects=True) as client:
        while not over.wait(EVERY_S):
            _processes(seen, secret)
            with contextlib.suppress(httpx.HTTPError):
                for url in pages():
                    _page(seen, secret, client, url)


def _processes(seen: Seen, secret: str) -> None:
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = " ".join(each.cmdline())
            if shows(secret, command):
                seen.told.add(f"command line: {command}")
            if "spark" in command:
                seen.commands.add(command)
            if EXECUTOR in command and any(shows(secret, value) for value in each.environ().values()):
                seen.told.add(f"environment of an executor: {command}")


def _page(seen: Seen, secret: str, client: httpx.Client, url: str) -> None:
    with contextlib.suppress(httpx.HTTPError):
        answer = client.get(url)
        if answer.is_success:
            seen.pages[url] = seen.pages.get(url, 0) + 1
            if shows(secret, answer.text):
                seen.told.add(url)
