"""Judging of findings: found, missed or false, and whose a finding is."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.accuracy.judging import judge, judge_together, namespace_of
from lab.faults.fault import Expected, Fault, RealFault, Report
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
    fault = Fault(name="f", about="f", expected=(SKEW,), allowed={"hot-bundle": "it is hot as well"})
    judged = judge(fault, findings, [])
    assert (len(judged.found), len(judged.missed), len(judged.false), len(judged.allowed)) == counts
    assert judged.right is (counts[1] == counts[2] == 0)


def test_an_evidence_that_is_asked_for_has_to_be_there() -> None:
    named, other = (Expected("tc-skew", r"^acme/", evidence) for evidence in ("^so it", "^otherwise"))
    assert judge(Fault(name="f", about="f", expected=(named,)), [finding("tc-skew")], []).right
    judged = judge(Fault(name="f", about="f", expected=(other,)), [finding("tc-skew")], [])
    assert [each.half for each in judged.missed] == [True]
    assert (judged.false, judged.right, judged.verdict) == ((), False, "half")


SAID = finding("tc-skew")
VERDICTS = {
    "found": ((SAID,), ("Split it", "Move it")),
    "half, as its cause is not named": (
        (msgspec.structs.replace(SAID, evidence="it is otherwise"),),
        ("Split it", "Move it"),
    ),
    "half, as nothing is proposed": ((SAID,), ()),
    "half, as the remedy is in the wrong order": ((SAID,), ("Move it", "Split it")),
    "missed": ((), ()),
    "wrong": ((SAID, finding("tc-count")), ()),
    "harmful": ((SAID,), ("Delete subscription app",)),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_report_has_the_worst_verdict_that_holds(verdict: str) -> None:
    """Of a report it counts as well what would make it worse, in the evidence or among the proposed steps."""
    findings, proposed = VERDICTS[verdict]
    report = Report("apache/pulsar#1", "as it is", never=("^Delete",), remedy=("^Split", "^Move"))
    fault = Fault(name="f", about="f", expected=(Expected("tc-skew", "", "^so it"),), report=report)
    assert judge(fault, findings, [], proposed).verdict == verdict.partition(",")[0]


def test_a_healthy_cluster_is_right_where_nothing_is_found() -> None:
    """A cluster without labels is judged right if no check warns, and wrong if a check warns."""
    healthy = Fault(name="h", about="h")
    assert judge(healthy, [finding("tc-skew", severity=Severity.INFO)], []).right
    assert not judge(healthy, [finding("tc-skew")], []).right


def test_a_miss_tells_what_its_check_said() -> None:
    said = Verdict(check_id="tc-skew", outlook=Outlook.UNKNOWN, reason="A broker could not be read.")
    missed = judge(Fault(name="f", about="f", expected=(SKEW,)), [], [said]).missed
    assert [each.said for each in missed] == ["unknown: A broker could not be read."]


def test_a_check_that_does_not_exist_is_missed() -> None:
    """A label that names an unknown check is missed, with the reason that there is no such check."""
    missed = judge(Fault(name="f", about="f", expected=(Expected("no-such-check"),)), [], []).missed
    assert [each.said for each in missed] == ["there is no such check"]


SUBJECTS = {
    "persistent://public/full/t-partition-3": "public/full",
    "persistent://public/full/t subscription a/b c": "public/full",
    "public/full/0x00000000_0x40000000": "public/full",
    "public/full": "public/full",
    "127.0.0.1:8080": "127.0.0.1:8080",
    "east": "east",
}


@pytest.mark.parametrize(("subject", "namespace"), SUBJECTS.items())
def test_the_namespace_is_taken_from_any_subject(subject: str, namespace: str) -> None:
    """The namespace is taken from topics, subscriptions and bundles; brokers and clusters stay as they are."""
    assert namespace_of(subject) == namespace


FULL = RealFault(name="full", about="Full.", expected=(Expected("backlog-near-quota"),))
HALF = RealFault(name="half", about="Healthy: half full.", twin_of=("full",))
BUSY = RealFault(name="busy", about="Busy.", expected=(Expected("broker-load-skew"),), allowed={"gc-pressure": "it is"})


def together(*findings: Finding) -> tuple[dict[str, tuple[int, int, int, int]], list[str]]:
    """Found, missed, false and allowed of each fault; the subjects of what is none's."""
    judged, strays = judge_together((FULL, HALF, BUSY), findings, [])
    counts = {
        name: (len(each.found), len(each.missed), len(each.false), len(each.allowed)) for name, each in judged.items()
    }
    return counts, [stray.subject for stray in strays]


def test_each_finding_is_of_the_fault_whose_namespace_it_is_about() -> None:
    near = finding("backlog-near-quota", "persistent://public/full/t")
    assert together(near) == ({"full": (1, 0, 0, 0), "half": (0, 0, 0, 0), "busy": (0, 1, 0, 0)}, [])
    elsewhere = finding("backlog-near-quota", "persistent://public/half/t")
    assert together(elsewhere) == ({"full": (0, 1, 0, 0), "half": (0, 0, 1, 0), "busy": (0, 1, 0, 0)}, [])


def test_what_is_said_of_brokers_is_of_the_fault_that_expects_or_allows_it() -> None:
    counts, strays = together(finding("broker-load-skew", "127.0.0.1:1"), finding("gc-pressure", "127.0.0.1:1"))
    assert (counts["busy"], counts["half"], strays) == ((1, 0, 0, 1), (0, 0, 0, 0), [])


def test_what_is_of_no_fault_is_told() -> None:
    """A finding that belongs to no fault is returned apart, and is false for none of the faults."""
    counts, strays = together(finding("clock-skew", "east"), finding("ack-holes", "public/default"))
    assert strays == ["east", "public/default"]
    assert all(count[2] == 0 for count in counts.values())


def test_where_a_single_fault_is_looked_at_everything_is_about_it() -> None:
    assert [stray.subject for stray in judge(HALF, [finding("clock-skew", "east")], []).false] == ["east"]
