"""Clusters for the live tests, on demand and under Steward's care."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.live.care import Care

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.airflow.server import Airflow
    from lab.cluster import Lab

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def care(airflow: Airflow, pulsar: Lab) -> Iterator[Care]:
    """The shared cluster under a name that Steward has never heard of, so with no past."""
    with Care.taken(airflow, pulsar, f"live{next(_numbers)}") as care:
        yield care
