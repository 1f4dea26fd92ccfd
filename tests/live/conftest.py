"""Real clusters for the live tests: one of three brokers for the whole run, and more of them on demand."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import jars, prerequisites
from lab.cluster import Lab, running_lab
from lab.model import VERSIONS


def need_lab() -> None:
    """Skips where a lab cannot run, saying what to install; with ``CI=true`` it fails instead."""
    missing = prerequisites.missing(maven=not jars.fetched(VERSIONS[0]))
    if not missing:
        return
    reason = f"no real Pulsar on this machine: {'; '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of three brokers without authentication, shared by all: leave its three brokers running."""
    need_lab()
    with running_lab("shared", home=tmp_path_factory.mktemp("labs"), progress=print) as lab:
        yield lab


@pytest.fixture
def start_lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Starts labs of the test's own (the keywords are `lab.model.LabSpec`'s), and stops them after it."""
    need_lab()
    with contextlib.ExitStack() as labs:

        def start(name: str = "own", **options: object) -> Lab:
            return labs.enter_context(running_lab(name, home=tmp_path, progress=print, **options))  # type: ignore[arg-type]  # passed on as given

        yield start
