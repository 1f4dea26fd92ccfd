"""A bookie's own metrics: a real one tells its disks, whether it takes writes, its process, and auto recovery in it.

The simulator tells the same.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from lab.bookie import ADMIN_API, METRICS, set_read_only, url_of
from lab.cluster import running_lab
from lab.simulator import AuditorSpec, BookieSpec, running_servers
from lab.testing import need_lab
from lab.waiting import wait_until
from pulsar_steward.checks.resources import heap, processors
from pulsar_steward.checks.resources import ledgers_under_replicated as copies
from pulsar_steward.checks.resources.bookie_thread_busy import JOURNAL
from pulsar_steward.checks.resources.bookies import DIRECTORY, WRITABLE
from pulsar_steward.collect.metrics import ENDINGS, SERIES
from pulsar_steward.model.measures import BOOKIE_STATUS
from pulsar_steward.pulsar.metrics import Exposition, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Lab

TOLD_WITHIN_S = 30
AUTO_RECOVERY = {
    "autoRecoveryDaemonEnabled": "true",
    "auditorReplicasCheckInterval": "3600",
    "auditorPeriodicPlacementPolicyCheckInterval": "3600",
}
OF_PROCESS = {"jvm_memory_bytes_used", "jvm_memory_bytes_max", heap.LEFT, heap.LEFT_LIMIT, processors.SECONDS}
OF_AUDITOR = {
    copies.FOUND,
    copies.AUDITS,
    copies.NO_COPY,
    copies.BELOW_ACK_QUORUM,
    copies.BELOW_WRITE_QUORUM,
    copies.OVERDUE,
}
"""Series of auto recovery; `copies.DELETED` is told only once a ledger was deleted before it was copied."""


def samples_of(url: str) -> list[Sample]:
    body = httpx.get(url, trust_env=False).content
    return list(Exposition(iter([body]), len(body) + 1).samples(SERIES["bookie"], ENDINGS["bookie"]))


def told(url: str) -> dict[str, float]:
    """Values of what the check of disks reads, by series."""
    values = {sample.series: sample.value for sample in samples_of(url)}
    return {
        name: value for name, value in values.items() if name in {BOOKIE_STATUS, WRITABLE} or re.match(DIRECTORY, name)
    }


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose bookie answers for itself."""
    need_lab()
    home = tmp_path_factory.mktemp("bookie-metrics")
    settings = {**ADMIN_API, **METRICS, **AUTO_RECOVERY}
    with running_lab("bookie-metrics", home=home, brokers=1, bookie_settings=settings) as lab:
        yield lab


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_bookie_tells_its_disks_in_percent(real: Lab) -> None:
    """A real bookie reports the use of its one ledger directory in percent, in a series named after its path."""
    values = told(f"{url_of(real)}/metrics")
    (directory,) = values.keys() - {BOOKIE_STATUS, WRITABLE}
    assert re.fullmatch(DIRECTORY, directory)
    wait_until(lambda: 0 < told(f"{url_of(real)}/metrics")[directory] < 100, "its disk is told", TOLD_WITHIN_S)
    assert (values[BOOKIE_STATUS], values[WRITABLE]) == (1, 1)


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_bookie_tells_that_it_is_read_only(real: Lab) -> None:
    set_read_only(real, on=True)
    try:
        deadline = time.monotonic() + TOLD_WITHIN_S
        while (values := told(f"{url_of(real)}/metrics"))[BOOKIE_STATUS] and time.monotonic() < deadline:
            time.sleep(0.5)
    finally:
        set_read_only(real, on=False)
    assert (values[BOOKIE_STATUS], values[WRITABLE]) == (0, 1)


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_bookie_tells_its_process_and_its_auto_recovery(real: Lab) -> None:
    url = f"{url_of(real)}/metrics"
    wanted = OF_PROCESS | OF_AUDITOR | {copies.COPIED, JOURNAL}
    wait_until(lambda: wanted <= {sample.series for sample in samples_of(url)}, "it is the auditor", TOLD_WITHIN_S)
    labels = [sample.labels for sample in samples_of(url) if sample.series in (copies.FOUND, copies.COPIED)]
    assert sorted(each["success"] for each in labels) == ["false", "false", "true", "true"]


def test_the_simulator_tells_its_process_and_its_auto_recovery() -> None:
    with running_servers(BookieSpec(auditor=AuditorSpec()), BookieSpec()) as servers:
        first, second = ({each.series for each in samples_of(url.partition("=")[2])} for url in servers.metrics_urls)
    assert first >= OF_PROCESS | OF_AUDITOR | {copies.COPIED, JOURNAL}
    assert first - second == OF_AUDITOR


def test_the_simulator_tells_the_same() -> None:
    """A simulated bookie reports its disks and its read-only state under the series that the check reads."""
    with running_servers(BookieSpec(disks_percent=(40.0, 96.5), writable=False)) as servers:
        values = told(servers.metrics_urls[0].partition("=")[2])
    disks = sorted(value for name, value in values.items() if re.fullmatch(DIRECTORY, name))
    assert (disks, values[BOOKIE_STATUS]) == ([40.0, 96.5], 0)
    assert WRITABLE in values
