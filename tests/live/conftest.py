"""Clusters for the live tests, on demand and under Steward's care."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import pytest

from tests.live.care import Care
from tests.live.hands import Hands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.airflow.server import Airflow
    from lab.cluster import Lab

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def care(airflow: Airflow, pulsar: Lab) -> Iterator[Care]:
    """The shared cluster under a name that Steward has never heard of, so with no past."""
    with Care.taken(airflow, pulsar, f"live{next(_numbers)}") as care:
        yield care


@pytest.fixture(scope="module")
def lab(pulsar: Lab) -> Lab:
    """The shared one, with three brokers, unless a module has its own."""
    return pulsar


@pytest.fixture
def hands_with(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Hands]]:
    """Puts a lab, by default the module's, under Steward's care, with these sections of the policy."""
    with contextlib.ExitStack() as open_ledgers:
        yield lambda policy=None, lab=lab: open_ledgers.enter_context(Hands.on(lab, tmp_path, policy))
