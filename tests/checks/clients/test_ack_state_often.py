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
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows

WARNING, INFO = Severity.WARNING, Severity.INFO
OWN, TOPIC = "acme/orders", "persistent://acme/orders/x"
MIB = 1 << 20


def sample(number: int, series: str, value: float, namespace: str = OWN, **labels: str) -> dict[str, object]:
    """A sample of a namespace on a broker."""
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


@pytest.mark.parametrize("namespace", ["pulsar/system", "pulsar/b-0:8080"])
def test_pulsars_own_namespaces_are_left_alone(namespace: str) -> None:
    """The cursors of coordinators and heartbeats are nobody's to write more seldom."""
    assert judged(9_000, 0, namespace=namespace).findings == ()


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


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (None, f"each once in 1 s at most as it sets nothing else ({CURSOR_WRITES})"),
        (0.0, "a second, at each acknowledgement by the namespace's own policy"),
        (10.0, "each 10 times a second at most by the namespace's own policy"),
    ],
)
def test_the_limit_in_force_is_said(own: float | None, words: str) -> None:
    """The evidence has both rates, their share, and the limit with where it stands."""
    (finding,) = judged(6_000, 2_000, own=own).findings
    assert "cursors are written 6,000 times a second" in finding.evidence
    assert "75 % of what its brokers write to bookies, beside 2,000 entries of messages" in finding.evidence
    assert words in finding.evidence


def test_the_thresholds_are_the_policys() -> None:
    """The share and the numbers are taken from the policy."""
    policy = a_policy(ack_state_often={"least_percent": 10, "warning_writes_per_second": 100})
    assert [each.severity for each in judged(100, 900, policy=policy).findings] == [WARNING]


def test_how_often_is_not_made_up_where_brokers_do_not_tell() -> None:
    """Without the series of a broker, large ack states count at the limit, and no number of writes is said."""
    rows: Rows = {
        "snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "b-0:8080", "read": True}],
        "configuration": [{"broker": "b-0:8080", "key": CURSOR_WRITES, "value": "1.0"}],
        "topics": [{"topic": TOPIC, "namespace": OWN, "broker": "b-0:8080"}],
        "subscriptions": [{"topic": TOPIC, "namespace": OWN, "subscription": "s", "message_rate_out": 10.0}],
        "drilled": [{"topic": TOPIC, "subscription": "s", "ack_state_bytes": 10_000_000}],
    }
    (finding,) = judge_rows(ACK_STATE_OFTEN, rows, None).findings
    assert "not all brokers tell" in finding.evidence
    assert "0 times" not in finding.evidence
    assert finding.figures == {"state_bytes_per_second": 10_000_000}


def test_brokers_that_do_not_tell_are_named() -> None:
    """Without the series of a broker, silence proves nothing."""
    rows: Rows = {
        "snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": f"b-{number}:8080", "read": True} for number in range(2)],
        "metrics": [sample(0, MARK_DELETES, 0.0)],
    }
    told = judge_rows(ACK_STATE_OFTEN, rows, None).cannot_tell
    assert told is not None
    assert "b-1:8080" in told
    assert "b-0" not in told
