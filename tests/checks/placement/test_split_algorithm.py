"""By what brokers split bundles themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.placement.bundle_load import SPLIT_ALGORITHM, SPLIT_ALGORITHM_CHECK
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from tests.golden import Golden

BY_RANGE, BY_COUNT = "range_equally_divide", "topic_count_equally_divide"


def rows(*algorithms: str | None, topics: tuple[int | None, ...] = (600, 400)) -> Any:
    """A broker with each algorithm, None where it was not read, and bundles with so many topics."""
    return {
        "brokers": [{"broker": f"{number}:1", "read": True} for number in range(len(algorithms))],
        "configuration": [
            {"broker": f"{number}:1", "key": SPLIT_ALGORITHM, "value": value}
            for number, value in enumerate(algorithms)
            if value is not None
        ],
        "bundles": [
            {"namespace": f"acme/n{number}", "bundle": "0x00000000_0xffffffff", "topics": count}
            for number, count in enumerate(topics)
        ],
    }


CASES: dict[str, tuple[Any, int]] = {
    "all by range": (rows(BY_RANGE, BY_RANGE), 2),
    "one by range": (rows(BY_COUNT, BY_RANGE), 1),
    "as somebody typed it": (rows(" Range_Equally_Divide "), 1),
    "by the number of topics": (rows(BY_COUNT, BY_COUNT), 0),
    "by load": (rows("flow_or_qps_equally_divide"), 0),
    "not read": (rows(None), 0),
    "a topic less": (rows(BY_RANGE, topics=(600, 399, None)), 0),
    "no topics known": (rows(BY_RANGE, topics=(None,)), 0),
}


@pytest.mark.parametrize(("snapshot", "brokers"), CASES.values(), ids=CASES)
def test_brokers_that_split_by_range_are_counted(snapshot: Any, brokers: int) -> None:
    """In a cluster of 1000 loaded topics or more, over all bundles."""
    findings = judge_rows(SPLIT_ALGORITHM_CHECK, snapshot).findings
    assert [each.figures for each in findings] == ([{"brokers": brokers, "topics": 1000}] if brokers else [])


def test_it_is_information(golden: Golden) -> None:
    """It is every cluster's default, and no trouble by itself."""
    (finding,) = judge_rows(SPLIT_ALGORITHM_CHECK, rows(BY_COUNT, BY_RANGE)).findings
    assert finding.severity is Severity.INFO
    golden(finding.evidence)
