"""Real clusters for the live tests: one of three brokers for the whole run, and more of them on demand."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

import pytest

from lab.cluster import Lab, running_lab
from lab.model import LabOptions
from lab.testing import need_lab


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

        def start(name: str = "own", **options: Unpack[LabOptions]) -> Lab:
            return labs.enter_context(running_lab(name, home=tmp_path, progress=print, **options))

        yield start
