"""A bookie's own metrics: a real one tells its disks and whether it takes writes, and the simulator tells the same."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from lab.bookie import METRICS, set_read_only, url_of, with_admin_api
from lab.cluster import running_lab
from lab.simulator import BookieSpec, running_servers
from lab.testing import need_lab
from lab.waiting import wait_until
from pulsar_steward.admin.metrics import Exposition
from pulsar_steward.checks.resources.bookie_disk import DIRECTORY, WRITABLE
from pulsar_steward.checks.resources.publishing import STATUS
from pulsar_steward.collect.series import ENDINGS, SERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Lab

TOLD_WITHIN_S = 30


def told(url: str) -> dict[str, float]:
    """Values of what the check of disks reads, by series."""
    body = httpx.get(url, trust_env=False).content
    samples = list(Exposition(iter([body]), len(body) + 1).samples(SERIES["bookie"], ENDINGS["bookie"]))
    values = {sample.series: sample.value for sample in samples}
    return {name: value for name, value in values.items() if name in {STATUS, WRITABLE} or re.match(DIRECTORY, name)}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose bookie answers for itself."""
    need_lab()
    home = tmp_path_factory.mktemp("bookie-metrics")
    with running_lab("bookie-metrics", home=home, brokers=1, bookie_settings={**with_admin_api(), **METRICS}) as lab:
        yield lab


@pytest.mark.live
def test_a_real_bookie_tells_its_disks_in_percent(real: Lab) -> None:
    """One ledger directory, whose path is in the name of its series; 0 until the bookie first looks at its disks."""
    values = told(f"{url_of(real)}/metrics")
    (directory,) = values.keys() - {STATUS, WRITABLE}
    assert re.fullmatch(DIRECTORY, directory)
    wait_until(lambda: 0 < told(f"{url_of(real)}/metrics")[directory] < 100, "its disk is told", TOLD_WITHIN_S)
    assert (values[STATUS], values[WRITABLE]) == (1, 1)


@pytest.mark.live
def test_a_real_bookie_tells_that_it_is_read_only(real: Lab) -> None:
    """Its directories stay writable where somebody set it."""
    set_read_only(real, on=True)
    try:
        deadline = time.monotonic() + TOLD_WITHIN_S
        while (values := told(f"{url_of(real)}/metrics"))[STATUS] and time.monotonic() < deadline:
            time.sleep(0.5)
    finally:
        set_read_only(real, on=False)
    assert (values[STATUS], values[WRITABLE]) == (0, 1)


def test_the_simulator_tells_the_same() -> None:
    """What the check finds in a made-up bookie it finds in a real one."""
    with running_servers(BookieSpec(disks_percent=(40.0, 96.5), writable=False)) as servers:
        values = told(servers.metrics_urls[0].partition("=")[2])
    disks = sorted(value for name, value in values.items() if re.fullmatch(DIRECTORY, name))
    assert (disks, values[STATUS]) == ([40.0, 96.5], 0)
    assert WRITABLE in values
