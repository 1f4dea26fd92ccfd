"""Clusters for the live tests, on demand and under Steward's care."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Unpack

import pytest

from lab.cluster import Lab, running_lab
from lab.testing import need_lab
from tests.live.care import Care

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.model import LabOptions

BROKERS = 3

_numbers = itertools.count(1)


@pytest.fixture
def start_lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Starts labs of the test's own (the keywords are `lab.model.LabSpec`'s), and stops them after it."""
    need_lab()
    with contextlib.ExitStack() as labs:

        def start(name: str = "own", **options: Unpack[LabOptions]) -> Lab:
            return labs.enter_context(running_lab(name, home=tmp_path, progress=print, **options))

        yield start


@pytest.fixture(scope="module")
def care(airflow: Airflow, pulsar: Lab) -> Iterator[Care]:
    """The shared cluster under a name that Steward has never heard of, so with no past; three brokers in the end."""
    with Care.taken(airflow, pulsar, f"live{next(_numbers)}") as care:
        yield care
    for joined in pulsar.brokers[BROKERS:]:
        if pulsar.condition(joined.broker_id) == "running":
            pulsar.stop_broker(joined.broker_id)
