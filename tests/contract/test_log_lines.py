"""Log lines by level in a broker's metrics: real brokers count them where their log configuration has the appender."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from lab import settings
from lab.cluster import running_lab
from lab.simulator import ClusterSpec, LoadSpec, running_simulator
from lab.testing import need_lab
from lab.waiting import wait_until
from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.pulsar.metrics import Exposition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Lab

BROKER = "broker-1"
LEVELS = {"trace", "debug", "info", "warn", "error", "fatal"}
WITHIN_S = 30
A_WHILE_S = 5.0
"""Long enough for a broker to have read its configuration again; being asked for metrics it writes lines at DEBUG."""


def lines_of(url: str) -> dict[str, float]:
    """A broker's log lines since its start, by level."""
    body = httpx.get(f"{url}/metrics/", trust_env=False).content
    samples = list(Exposition(iter([body]), len(body) + 1).samples({LINES: None}))
    assert {frozenset(sample.labels) for sample in samples} == {frozenset({"cluster", "level"})}
    return {sample.labels["level"]: sample.value for sample in samples}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_lab()
    with running_lab("log-lines", home=tmp_path_factory.mktemp("log-lines"), brokers=1) as running:
        yield running


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_broker_counts_its_lines_by_level(lab: Lab) -> None:
    counted = lines_of(lab.admin_urls[0])
    assert counted.keys() == LEVELS
    assert counted["info"] > 100
    assert (counted["debug"], counted["trace"]) == (0, 0)


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_broker_at_debug_is_seen_while_it_runs(lab: Lab) -> None:
    url = lab.admin_urls[0]
    before = lines_of(url)["debug"]
    lab.log_at(BROKER, "DEBUG")
    wait_until(lambda: lines_of(url)["debug"] > before + 100, "a hundred lines at DEBUG are counted", WITHIN_S)
    lab.log_at(BROKER, "INFO")
    wait_until(lambda: stands_still(url), "lines at DEBUG are counted no more", WITHIN_S)


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_pulsars_own_configuration_counts_no_line_at_debug(lab: Lab) -> None:
    url, log = lab.admin_urls[0], lab.log(BROKER)
    file: Path = lab.home / "conf" / f"{BROKER}.log4j2.xml"
    filtered = settings.logging("DEBUG", counted=True).replace('<AppenderRef ref="lines"/>', FROM_INFO)
    assert FROM_INFO in filtered
    before, written = lines_of(url)["debug"], debug_lines_in(log)

    def logs_at_debug() -> bool:
        lines_of(url)  # which is what an idle broker has to log about
        return debug_lines_in(log) > written + 100

    try:
        file.write_text(filtered, encoding="utf-8")
        wait_until(logs_at_debug, "it logs at DEBUG", WITHIN_S)
        assert lines_of(url)["debug"] == before
    finally:
        lab.log_at(BROKER, "INFO")


FROM_INFO = '<AppenderRef ref="lines" level="INFO"/>'


def stands_still(url: str) -> bool:
    """Whether no line at DEBUG is counted for a while."""
    before = lines_of(url)["debug"]
    time.sleep(A_WHILE_S)
    return lines_of(url)["debug"] == before


def debug_lines_in(log: Path) -> int:
    """Lines at DEBUG in a broker's log."""
    return len(re.findall(r"^\S+ DEBUG ", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE))


def test_the_simulator_counts_the_same() -> None:
    with running_simulator(ClusterSpec(brokers=1, loads=(LoadSpec(debug_lines=7),))) as simulator:
        counted = lines_of(simulator.admin_urls[0])
    assert counted.keys() == LEVELS
    assert counted["debug"] == 7
