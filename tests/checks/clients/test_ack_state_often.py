"""Cursors that are written often, by namespace: their share of what bookies are given, and the size of ack states."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.clients.cursors import ACK_STATE_OFTEN, MARK_DELETES
from pulsar_steward.checks.resources.slowness import OVERFLOW, WRITES
from pulsar_steward.model.broker_defaults import CURSOR_WRITES
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

WARNING, INFO = Severity.WARNING, Severity.INFO
OWN, TOPIC = "acme/orders", "persistent://acme/orders/x"
MIB = 1 << 20


def sample(number: int, series: str, value: float, namespace: str = OWN, **labels: str) -> dict[str, object]:
    text = json.dumps({"cluster": "lab", "namespace": f"{namespace}/persistent", **labels})
    return {
        "source": f"b-{number}:8080",
        "source_kind": "broker",
        "series": series,
        "labels_json": text,
        "value": value,
    }


def judged(
    cursors: float,
    entries: float,
    *,
    namespace: str = OWN,
    state_bytes: int | None = None,
    rate_out: float = 10.0,
    own: float | None = None,
    policy: Policy | None = None,
) -> Judgement:
    """Judgement of a namespace on two brokers, each with half of these writes a second."""
    persistence = {} if own is None else {"persistence": {"managedLedgerMaxMarkDeleteRate": own}}
    rows: Rows = {
        "snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": f"b-{number}:8080", "read": True} for number in range(2)],
        "namespaces": [{"namespace": namespace, "policies_json": json.dumps(persistence)}],
        "configuration": [{"broker": "b-0:8080", "key": CURSOR_WRITES, "value": "1.0"}],
        "topics": [{"topic": TOPIC, "namespace": OWN, "broker": "b-0:8080"}],
        "subscriptions": [{"topic": TOPIC, "namespace": OWN, "subscription": "s", "message_rate_out": rate_out}],
        "drilled": [{"topic": TOPIC, "subscription": "s", "ack_state_bytes": state_bytes}],
        "metrics": [
            row
            for number in range(2)
            for row in (
                sample(number, MARK_DELETES, cursors / 2, namespace),
                sample(number, WRITES, entries / 4, namespace, quantile="0.5_1.0"),
                sample(number, WRITES + OVERFLOW, entries / 4, namespace),
            )
        ],
    }
    return judge_rows(ACK_STATE_OFTEN, rows, policy)


@pytest.mark.parametrize(
    ("cursors", "entries", "severity"),
    [(5_000, 5_000, WARNING), (5_000, 5_100, None), (4_999, 1_000, INFO), (1_000, 0, INFO), (999, 0, None)],
    ids=["many", "a smaller share", "some", "nothing else", "few"],
)
def test_many_writes_that_are_a_large_share(cursors: float, entries: float, severity: Severity | None) -> None:
    """Writes of all brokers are added up, those over a second included; both the number and the share count."""
    judgement = judged(cursors, entries)
    assert [(each.subject, each.severity) for each in judgement.findings] == ([(OWN, severity)] if severity else [])
    assert judgement.cannot_tell is None


def test_the_limit_in_force_is_said(golden: Golden) -> None:
    """Both rates, their share, and the limit with where it stands; Pulsar's own namespaces are nobody's to change."""
    limits = {"none of its own": None, "at each acknowledgement": 0.0, "ten times a second": 10.0}
    of_pulsar = ("pulsar/system", "pulsar/b-0:8080")
    said = {rule: judged(6_000, 2_000, own=own) for rule, own in limits.items()}
    golden(told({**said, **{name: judged(9_000, 0, namespace=name) for name in of_pulsar}}))


@pytest.mark.parametrize(
    ("state_bytes", "own", "rate_out", "found"),
    [
        (10_000_000, None, 10.0, True),
        (9_999_999, None, 10.0, False),
        (5_000_000, 2.0, 10.0, True),
        (50_000_000, 0.1, 10.0, False),
        (10_000_000, 0.0, 10.0, True),
        (10_000_000, None, 0.0, False),
        (5_000_001, 10.0, 10.0, True),
        (5_000_000, 9_000.0, 10.0, True),
        (4_999_999, 9_000.0, 10.0, False),
    ],
    ids=["default", "smaller", "oftener", "seldom", "no limit", "nothing consumed", "high", "higher", "not so often"],
)
def test_large_ack_states_that_are_written_often(
    state_bytes: int, own: float | None, rate_out: float, *, found: bool
) -> None:
    """Each write writes the whole ack state: its size counts times the limit, and no more often than it was written."""
    judgement = judged(2, 100, state_bytes=state_bytes, own=own, rate_out=rate_out)
    assert [each.severity for each in judgement.findings] == [WARNING] * found
    if found:
        (finding,) = judgement.findings
        assert finding.figures["state_bytes_per_second"] >= 10_000_000
        assert "each write writes it whole" in finding.evidence


def test_what_it_says(golden: Golden) -> None:
    """Without a broker's series, large ack states count at the limit without a number, and silence proves nothing."""
    untold: Rows = {
        "brokers": [{"broker": "b-0:8080", "read": True}],
        "configuration": [{"broker": "b-0:8080", "key": CURSOR_WRITES, "value": "1.0"}],
        "topics": [{"topic": TOPIC, "namespace": OWN, "broker": "b-0:8080"}],
        "subscriptions": [{"topic": TOPIC, "namespace": OWN, "subscription": "s", "message_rate_out": 10.0}],
        "drilled": [{"topic": TOPIC, "subscription": "s", "ack_state_bytes": 10_000_000}],
    }
    brokers = [{"broker": f"b-{number}:8080", "read": True} for number in range(2)]
    own = a_policy(ack_state_often={"least_percent": 10, "warning_writes_per_second": 100})
    cases = {
        "the share and the numbers are the policy's": judged(100, 900, policy=own),
        "how often is not made up where brokers do not tell": judge_rows(ACK_STATE_OFTEN, untold),
        "one of two brokers does not tell": judge_rows(
            ACK_STATE_OFTEN, {"brokers": brokers, "metrics": [sample(0, MARK_DELETES, 0.0)]}
        ),
    }
    golden(told(cases))
