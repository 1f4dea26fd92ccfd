"""Cursors that are written seldom, by namespace, and by the brokers' default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.clients.cursors import ACK_STATE_SELDOM
from pulsar_steward.model.broker_defaults import CURSOR_WRITES as DEFAULT
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

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


def test_what_it_says(golden: Golden) -> None:
    """Rates are added up exactly, and only their sum is rounded; one that makes no sense counts for nothing."""
    rates = (0.0, None, 0.4, 0.6, 2.49, float("nan"), float("inf"), 1e300)
    own = a_policy(ack_state_seldom={"information_seconds": 5, "warning_messages": 1_000})
    cases = {
        "the default was not read": judged(None, ()),
        "the default is no number": judged(None, ("some",)),
        **{f"two rates of {rate}": judged(0.01, ("1.0",), rates=(rate, 50.0)) for rate in rates},
        "the policy's thresholds": judged(None, ("0.2",), policy=own),
    }
    golden(told(cases))
