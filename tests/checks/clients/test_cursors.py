"""Cursors whose ack state comes near the largest entry of BookKeeper, is written too often, or too seldom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients.cursors import (
    ACK_STATE_OFTEN,
    ACK_STATE_SELDOM,
    CURSOR_NOT_PERSISTABLE,
    LONG_BYTES,
    LONG_ENTRIES,
    MARK_DELETES,
)
from pulsar_steward.checks.resources.slowness import OVERFLOW, WRITES
from pulsar_steward.model.broker_defaults import CURSOR_WRITES
from pulsar_steward.model.broker_defaults import CURSOR_WRITES as DEFAULT
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

FRAME = 5 * 1024 * 1024 + 10 * 1024
# Entries whose long array fills the frame, and half of it.
FULL, HALF = 30_563_648, 15_281_856
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"

CASES: dict[str, tuple[int | None, int | None, Severity | None]] = {
    "few-entries": (1200, None, None),
    "measured-just-below-half": (HALF, FRAME // 2 - 1, None),
    "measured-half": (HALF, FRAME // 2, Severity.WARNING),
    "measured-just-below-the-frame": (FULL, FRAME - 1, Severity.WARNING),
    "measured-the-frame": (FULL, FRAME, Severity.CRITICAL),
    "measured-though-the-span-is-not-told": (None, FRAME, Severity.CRITICAL),
    "estimate-just-below-half": (HALF - 64, None, None),
    "estimate-half": (HALF, None, Severity.INFO),
    "estimate-just-below-the-frame": (FULL - 64, None, Severity.INFO),
    "estimate-the-frame": (FULL, None, Severity.WARNING),
    "estimate-the-frame-but-little-measured": (FULL, 90_000, Severity.INFO),
    "estimate-half-but-little-measured": (HALF, 90_000, None),
    "persistent://t/n/__change_events": (FULL, FRAME, None),
}


def test_severity_follows_from_the_measured_size_or_else_the_span(scene: Any) -> None:
    """A measured ack state decides the severity, and an estimated one gives one step less."""
    scene.configured()
    for name, (entries, measured, _) in CASES.items():
        scene.subscription(name, entries_since_first_gap=entries)
        if measured is not None:
            scene.drilled(name, ack_state_bytes=measured)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert by_name(judgement) == {name: severity for name, (_, _, severity) in CASES.items() if severity}
    assert next(iter(judgement.findings)).severity is Severity.CRITICAL


def test_thirty_million_entries_fill_a_frame() -> None:
    """The constants reproduce what was observed: near 30 million entries the state no longer fits."""
    most = FRAME * LONG_ENTRIES // LONG_BYTES
    assert 30_000_000 < most < 31_000_000


def test_the_frame_follows_from_the_largest_message(scene: Any) -> None:
    """The most that an ack state may take follows from `maxMessageSize`, or from 5 MiB where it is not read."""
    for broker, message_bytes in (("large:1", "20971520"), ("silent:1", None)):
        scene.add("brokers", broker=broker, read=True).configured(broker, maxMessageSize=message_bytes)
        topic = f"persistent://t/n/{broker.partition(':')[0]}"
        scene.add("topics", topic=topic, broker=broker)
        scene.add("subscriptions", topic=topic, subscription="s", ack_holes=9, entries_since_first_gap=FULL)
    assert by_name(scene.judged(CURSOR_NOT_PERSISTABLE)) == {"silent": Severity.WARNING}


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    scene.configured()
    for number in range(MAX_FINDINGS + 1):
        scene.subscription(f"t{number}").drilled(f"t{number}", ack_state_bytes=FRAME + number)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert judgement.more == 1
    listed = [finding.figures["ack_state_bytes"] for finding in judgement.findings]
    assert listed == list(range(FRAME + MAX_FINDINGS, FRAME, -1))  # without the smallest


UNKNOWN: dict[str, tuple[dict[str, Any], str | None, int | None, bool]] = {
    "small, by arrays": ({}, "true", None, True),
    "small, however it is persisted": ({}, None, None, True),
    "large, if by arrays": ({"entries_since_first_gap": HALF}, None, None, False),
    "large, and measured to be small": ({"entries_since_first_gap": FULL}, None, 500, True),
    "a span that is not told": ({"entries_since_first_gap": None}, "true", None, False),
}


@pytest.mark.parametrize(("changes", "long_array", "measured", "known"), UNKNOWN.values(), ids=UNKNOWN)
def test_silence_means_health_only_where_no_cursor_may_be_too_large(
    scene: Any, changes: dict[str, Any], long_array: str | None, measured: int | None, known: bool
) -> None:
    """The check can tell that all is well only if each cursor is small by its measured size or by its span."""
    scene.configured(**{LONG_ARRAY: long_array}).subscription("t", **changes)
    if measured is not None:
        scene.drilled("t", ack_state_bytes=measured)
    judgement = scene.judged(CURSOR_NOT_PERSISTABLE)
    assert (judgement.findings, judgement.cannot_tell is None) == ((), known)


BATCH_ACKS, MAX_BATCHES = "acknowledgmentAtBatchIndexLevelEnabled", "managedLedgerMaxBatchDeletedIndexToPersist"
OF_BATCHES = {"messages_per_entry": 640, "unacked_messages": 50_000, "entries_since_first_gap": 1200}
# 30 bytes for its position and 110 for 640 bits, and so many of them that a third of the frame is left.
EACH = 140
MOST = FRAME // 3 // EACH

BATCHES: dict[str, tuple[dict[str, Any], dict[str, str], int, bool]] = {
    "off": ({}, {BATCH_ACKS: "false"}, FRAME * 2 // 5, False),
    "not known": ({}, {}, FRAME * 2 // 5, False),
    "on, and much is measured": ({}, {BATCH_ACKS: "true", MAX_BATCHES: str(MOST * 2)}, FRAME * 2 // 5, True),
    "on, and few are persisted": ({}, {BATCH_ACKS: "true", MAX_BATCHES: str(MOST)}, FRAME * 2 // 5, False),
    "on, but few are delivered": (
        {"unacked_messages": MOST},
        {BATCH_ACKS: "true", MAX_BATCHES: "100000"},
        FRAME * 2 // 5,
        False,
    ),
    "on, but without batches": ({"messages_per_entry": 1}, {BATCH_ACKS: "true"}, FRAME * 2 // 5, False),
    "on, but little is measured": ({}, {BATCH_ACKS: "true"}, 2000, False),
}


def test_batches_that_are_acknowledged_in_part_come_on_top(scene: Any, golden: Golden) -> None:
    """An ack state below the threshold is information when batches acknowledged in part may come on top."""
    for name, (changes, settings, measured, _) in BATCHES.items():
        topic = f"persistent://t/n/{name}"
        like = {"topic": topic, "subscription": "s", "ack_holes": 40, "backlog_entries": 50_000}
        scene.add("brokers", broker=name, read=True).configured(name, **settings).topic(name, broker=name)
        scene.add("subscriptions", **like | OF_BATCHES | changes).drilled(name, ack_state_bytes=measured)
    (finding,) = scene.judged(CURSOR_NOT_PERSISTABLE).findings
    assert [name for name, (*_, found) in BATCHES.items() if found] == [
        finding.subject.removeprefix("persistent://t/n/").removesuffix(" subscription s")
    ]
    assert finding.severity is Severity.INFO
    golden(finding.evidence)


def test_what_it_says(golden: Golden) -> None:
    """A measurement is told from an estimate; ranges count by their holes up to the broker's limit, not their span."""

    def of(measured: int | None = None, settings: dict[str, str] | None = None, **like: Any) -> Scene:
        scene = Scene().configured(**settings or {}).subscription("t", **like)
        return scene if measured is None else scene.drilled("t", ack_state_bytes=measured)

    def ranges(holes: int, limit: str) -> Scene:
        settings = {LONG_ARRAY: "false", "managedLedgerMaxUnackedRangesToPersist": limit}
        return of(settings=settings, ack_holes=holes, entries_since_first_gap=FULL)

    unread = Scene()
    unread.rows["brokers"] = []
    cases = {
        "measured": of(FRAME, entries_since_first_gap=FULL),
        "its topic was not asked": of(entries_since_first_gap=FULL),
        "what was persisted last is small": of(2048, entries_since_first_gap=FULL),
        "no hole, and a long backlog": of(ack_holes=0, entries_since_first_gap=FULL),
        "ranges up to a low limit": ranges(90_000, "10000"),
        "ranges up to a high one": ranges(90_000, "1000000"),
        "more ranges": ranges(200_000, "1000000"),
        "batches come on top of a large state": of(FRAME // 2, {BATCH_ACKS: "true"}, **OF_BATCHES),
        "no broker was read": unread,
    }
    golden(told({rule: scene.judged(CURSOR_NOT_PERSISTABLE) for rule, scene in cases.items()}))


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


def test_what_it_says_of_writes(golden: Golden) -> None:
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


OTHER = "acme/others"


def seldom_judged(
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
    judgement = seldom_judged(own, default)
    seen = {
        each.subject: (each.severity, each.figures["messages"], each.figures["seconds"]) for each in judgement.findings
    }
    assert seen == found
    assert judgement.cannot_tell is None


def test_what_it_says_of_seldom_writes(golden: Golden) -> None:
    """Rates are added up exactly, and only their sum is rounded; one that makes no sense counts for nothing."""
    rates = (0.0, None, 0.4, 0.6, 2.49, float("nan"), float("inf"), 1e300)
    own = a_policy(ack_state_seldom={"information_seconds": 5, "warning_messages": 1_000})
    cases = {
        "the default was not read": seldom_judged(None, ()),
        "the default is no number": seldom_judged(None, ("some",)),
        **{f"two rates of {rate}": seldom_judged(0.01, ("1.0",), rates=(rate, 50.0)) for rate in rates},
        "the policy's thresholds": seldom_judged(None, ("0.2",), policy=own),
    }
    golden(told(cases))
