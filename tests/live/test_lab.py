"""The lab on real processes: one cluster with token authentication, observed, skewed, broken and repaired."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from lab import process
from lab.cluster import Lab, running_lab
from lab.errors import AdminCallError, LabExistsError
from lab.waiting import wait_until

pytestmark = pytest.mark.live

SESSION_S = 10
GONE_WITHIN_S = 40


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three brokers with tokens, and a metadata session short enough to wait for the end of one."""
    from conftest import need_lab

    need_lab()
    with running_lab("faults", home=tmp_path_factory.mktemp("labs"), progress=print, auth="token") as started:
        yield started
