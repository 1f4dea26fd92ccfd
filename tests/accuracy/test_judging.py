"""What counts as found, missed and false."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.judging import judge
from lab.faults.fault import Expected, Fault
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict

SKEW = Expected("tc-skew", r"^acme/")


def finding(check_id: str, subject: str = "acme/orders", severity: Severity = Severity.WARNING) -> Finding:
    """A finding of a check."""
    return Finding(check_id=check_id, severity=severity, subject=subject, evidence="so it is")


CASES = {
    "found": ([finding("tc-skew")], (1, 0, 0, 0)),
    "found at critical": ([finding("tc-skew", severity=Severity.CRITICAL)], (1, 0, 0, 0)),
    "found twice counts once": ([finding("tc-skew"), finding("tc-skew", "acme/bills")], (1, 0, 0, 0)),
    "nothing there": ([], (0, 1, 0, 0)),
    "information is no finding": ([finding("tc-skew", severity=Severity.INFO)], (0, 1, 0, 0)),
    "another subject is missed, and false": ([finding("tc-skew", "else/where")], (0, 1, 1, 0)),
    "another check is false": ([finding("tc-skew"), finding("ack-holes")], (1, 0, 1, 0)),
    "another check at information is not": (
        [finding("tc-skew"), finding("ack-holes", severity=Severity.INFO)],
        (1, 0, 0, 0),
    ),
    "what is allowed is neither": ([finding("tc-skew"), finding("hot-bundle")], (1, 0, 0, 1)),
}


@pytest.mark.parametrize(("findings", "counts"), CASES.values(), ids=CASES)
def test_findings_are_held_against_labels(findings: list[Finding], counts: tuple[int, int, int, int]) -> None:
    """Found, missed, false and allowed, in this order."""
    fault = Fault(name="f", about="f", expected=(SKEW,), allowed={"hot-bundle": "it is hot as well"})
    judged = judge(fault, findings, [])
    assert (len(judged.found), len(judged.missed), len(judged.false), len(judged.allowed)) == counts
    assert judged.right is (counts[1] == counts[2] == 0)


def test_a_healthy_cluster_is_right_where_nothing_is_found() -> None:
    """With no labels any warning is false, and silence is right."""
    healthy = Fault(name="h", about="h")
    assert judge(healthy, [finding("tc-skew", severity=Severity.INFO)], []).right
    assert not judge(healthy, [finding("tc-skew")], []).right


def test_a_miss_tells_what_its_check_said() -> None:
    """A check that could not judge is another mistake than one that saw no trouble."""
    said = Verdict(check_id="tc-skew", outlook=Outlook.UNKNOWN, reason="A broker could not be read.")
    missed = judge(Fault(name="f", about="f", expected=(SKEW,)), [], [said]).missed
    assert [each.said for each in missed] == ["unknown: A broker could not be read."]


def test_a_check_that_does_not_exist_is_missed() -> None:
    """A label that no check can meet is not passed over in silence."""
    missed = judge(Fault(name="f", about="f", expected=(Expected("no-such-check"),)), [], []).missed
    assert [each.said for each in missed] == ["there is no such check"]
