"""Cursors that are written seldom, by namespace, and by the brokers' default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.clients.cursors import ACK_STATE_SELDOM
from pulsar_steward.model.broker_defaults import CURSOR_WRITES as DEFAULT
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows

WARNING, INFO = Severity.WARNING, Severity.INFO
OWN, OTHER = "acme/orders", "acme/others"


def judged(
    own: object,
    default: tuple[str, ...],
    rates: tuple[float | None, float | None] = (100.0, 50.0),
    policy: Policy | None = None,
) -> Judgement:
    """Judgement of a namespace with a rate of its own and another one, each with two topics on two brokers."""
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}
    persistence = {} if own is None else {"persistence": {"managedLedgerMaxMarkDeleteRate": own}}
    names = {OWN: json.dumps(persistence), OTHER: "{}"}
    topics = [
        (f"persistent://{namespace}/{name}", namespace, f"b-{number}:8080", rate)
        for namespace, rate in zip(names, rates, strict=True)
        for number, name in enumerate(("x", "y"))
    ]
    rows: Rows = {
        "snapshot": [about],
        "namespaces": [{"namespace": name, "policies_json": policies} for name, policies in names.items()],
        "configuration": [
            {"broker": f"b-{number}:8080", "key": DEFAULT, "value": value} for number, value in enumerate(default)
        ],
        "topics": [
            {"topic": topic, "namespace": namespace, "broker": broker} for topic, namespace, broker, _ in topics
        ],
        "subscriptions": [
            {"topic": topic, "namespace": namespace, "subscription": name, "message_rate_out": rate}
            for topic, namespace, _, rate in topics
            for name in ("s", "reader-0a1b2c3d4e")
        ],
    }
    return judge_rows(ACK_STATE_SELDOM, rows, policy)


@pytest.mark.parametrize(
    ("own", "default", "found"),
    [
        pytest.param(None, ("1.0",), {}, id="the default"),
        pytest.param(None, ("0.2", "1.0"), {}, id="every five seconds"),
        pytest.param(None, ("1.0", "0.1"), {"lab": (INFO, 3_000, 10)}, id="the lowest of the brokers'"),
        pytest.param(None, ("0.01",), {"lab": (WARNING, 30_000, 100)}, id="much would come again"),
        pytest.param(0.01, ("1.0",), {OWN: (WARNING, 20_000, 100)}, id="a namespace's own"),
        pytest.param(1, ("0.01",), {"lab": (WARNING, 10_000, 100)}, id="it goes before the default"),
        pytest.param(0.0, ("0.01",), {"lab": (WARNING, 10_000, 100)}, id="no limit"),
        pytest.param(0.0, ("0",), {}, id="no limit at all"),
        pytest.param(0.03, (), {OWN: (INFO, 6_667, 33)}, id="no default was read"),
        pytest.param("seldom", ("1.0",), {}, id="a document that makes no sense"),
    ],
)
def test_what_would_come_again_is_counted(
    own: object, default: tuple[str, ...], found: dict[str, tuple[Severity, int, int]]
) -> None:
    """Messages that would be delivered again are counted for the namespaces concerned, without readers."""
    judgement = judged(own, default)
    seen = {
        each.subject: (each.severity, each.figures["messages"], each.figures["seconds"]) for each in judgement.findings
    }
    assert seen == found
    assert judgement.cannot_tell is None


@pytest.mark.parametrize("default", [(), ("some",)])
def test_what_was_not_read_is_said(default: tuple[str, ...]) -> None:
    """The check cannot tell when the brokers' default was not read or is no number."""
    judgement = judged(None, default)
    assert judgement.findings == ()
    assert judgement.cannot_tell


@pytest.mark.parametrize("rate", [0.0, None])
def test_nothing_that_is_consumed_is_information(rate: float | None) -> None:
    """A namespace that consumes nothing, or nothing known, gives information with a count of zero messages."""
    (finding,) = judged(0.01, ("1.0",), rates=(rate, 50.0)).findings
    assert (finding.subject, finding.severity, finding.figures["messages"]) == (OWN, INFO, 0)
    assert ("what 2 subscriptions get is not told" in finding.evidence) == (rate is None)


@pytest.mark.parametrize("rate", [0.4, 0.6, 2.49])
def test_rates_below_a_message_a_second_add_up(rate: float) -> None:
    """Rates of subscriptions are added up exactly, and only their sum is rounded."""
    (finding,) = judged(0.01, ("1.0",), rates=(rate, 50.0)).findings
    assert finding.figures["messages"] == round(2 * rate * 100)
    assert f"Consumers get {round(2 * rate)} message" in finding.evidence


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), 1e300])
def test_a_rate_that_makes_no_sense_counts_for_nothing(rate: float) -> None:
    """A rate that is no number, or larger than any could be, does not break the check."""
    (finding,) = judged(0.01, ("1.0",), rates=(rate, 50.0)).findings
    assert finding.figures["messages"] == 0


def test_the_thresholds_are_the_policys() -> None:
    """The thresholds in seconds and in messages are taken from the policy."""
    policy = a_policy(ack_state_seldom={"information_seconds": 5, "warning_messages": 1_000})
    (finding,) = judged(None, ("0.2",), policy=policy).findings
    assert (finding.subject, finding.severity) == ("lab", WARNING)
    assert "once in 5 s" in finding.evidence
