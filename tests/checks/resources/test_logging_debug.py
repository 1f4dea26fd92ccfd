"""Processes that log at DEBUG, by what their appenders count."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.checks.resources.processors import LOGGING_DEBUG as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW
from tests.checks.conftest import judge_rows, minutes_ago, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

HOUR = 3600


def process(
    age: float | None = HOUR, source: str = "a:1", kind: str = "broker", **levels: float
) -> list[dict[str, Any]]:
    """The samples of a process: lines by level, and when it started."""
    of_lines = {"info": 9000.0, **levels}
    rows = [{"series": LINES, "labels_json": json.dumps({"level": name}), "value": n} for name, n in of_lines.items()]
    if age is not None:
        rows.append({"series": STARTED, "labels_json": "{}", "value": NOW.timestamp() - age})
    return [row | {"source": source, "source_kind": kind} for row in rows]


def snapshot(samples: list[dict[str, Any]], *brokers: str) -> Rows:
    return {"brokers": [{"broker": broker, "read": True} for broker in brokers or ("a:1",)], "metrics": samples}


@pytest.mark.parametrize(
    ("levels", "age", "found", "unknown"),
    [
        ({"debug": 36_000}, HOUR, True, False),
        ({"debug": 30_000, "trace": 6_000}, HOUR, True, False),
        ({"DEBUG": 36_000}, HOUR, True, False),
        ({"debug": 35_999}, HOUR, False, False),
        ({"debug": 1}, HOUR, False, False),
        ({"debug": 0}, HOUR, False, True),
        ({"info": 900_000}, HOUR, False, True),
        ({"debug": 36_000}, 59, False, True),
        ({"debug": 6_000}, 75, True, False),
        ({"debug": 5_999}, 75, False, False),
        ({"debug": 36_000}, None, False, True),
        ({"debug": float("nan")}, HOUR, False, True),
    ],
)
def test_lines_at_debug_are_found(levels: dict[str, float], age: float | None, *, found: bool, unknown: bool) -> None:
    """Without an earlier snapshot ten lines a second since the start, over ten minutes at least, are a warning."""
    judgement = judge_rows(CHECK, snapshot(process(age, "a:1", "broker", **levels)))
    assert [finding.severity for finding in judgement.findings] == ([Severity.WARNING] if found else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_what_it_says(golden: Golden) -> None:
    """Lines count since the snapshot before, and since the start of a process that restarted meanwhile."""
    many, none = snapshot(process(100 * HOUR, debug=50_000_000)), snapshot(process(100 * HOUR))
    both = process(debug=0) + process(source="b:1", debug=5)
    worst = process(source="b:8000", kind="bookie", debug=72_000) + process(debug=36_000)
    cases: dict[str, tuple[Any, ...]] = {
        "none was ever counted": (snapshot(process(debug=0)),),
        "one process that counted is enough to tell": (snapshot(both, "a:1", "b:1"),),
        "those of before": (many, None, [minutes_ago(10, many)]),
        "those of lately": (snapshot(process(100 * HOUR, debug=60_000)), None, [minutes_ago(10, none)]),
        "restarted since": (snapshot(process(300, debug=6_000)), None, [minutes_ago(10, many)]),
        "a broker that does not count": (snapshot(process(), "a:1", "b:1"),),
        "the worst comes first": (snapshot(worst),),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))
