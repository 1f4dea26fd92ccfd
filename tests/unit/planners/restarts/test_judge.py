"""Whether a broker may be restarted: what stops it, what does not, and what cannot be told."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import RISKS, broker_meant, restart_verdict
from pulsar_steward.planners.restarts.model import State
from pulsar_steward.report.restart import headline
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import a_policy, broker
from tests.cases import row_by_row
from tests.unit.planners.restarts.scenes import ORDERS, SHOP, topic_on, verdict_on, write_calm
from tests.unit.report_checkup.snapshots import META, a_finding, a_verdict

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.restarts.model import RestartVerdict

CLEAR = {each: a_verdict(each, "clear") for each in RISKS}
ONLY_ONE: dict[str, Any] = {"namespaces": [SHOP], "primary": ["broker-01"], "secondary": []}
ONLY_ONE |= {"auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1"}}}


def found(check_id: str, severity: str, subject: str, **figures: int) -> dict[str, Any]:
    """Tables with one finding."""
    finding = a_finding(severity, check_id, subject=subject, evidence="So it is.", figures_json=json.dumps(figures))
    verdicts = CLEAR | {check_id: a_verdict(check_id, "found")}
    return {"findings": [finding], "verdicts": list(verdicts.values())}


def judged(check_id: str, outlook: str, more: int = 0, **graded: dict[str, int]) -> dict[str, Any]:
    """Tables with another verdict of one check, and no finding that is listed."""
    return {"verdicts": list((CLEAR | {check_id: a_verdict(check_id, outlook, "Why.", more, **graded)}).values())}


LESS_THAN_A_LIMIT = found("limit-reached", "warning", topic_on(0), shut_out=0) | judged(
    "limit-reached", "found", 5, warning={SHOP: 5}
)
"""One finding that is listed and five that are only counted: the worst are listed, and it shuts nobody out."""


def against(verdict: RestartVerdict) -> list[str]:
    """Subjects of the reasons that stop it, or are not told."""
    return [each.subject for each in verdict.reasons if each.state in {State.STOP, State.UNKNOWN}]


def words_on(verdict: RestartVerdict, subject: str) -> str:
    """Words of the only reason with a subject."""
    (words,) = (each.words for each in verdict.reasons if each.subject == subject)
    return words


def test_nothing_speaks_against_a_calm_cluster(tmp_path: Path) -> None:
    place = write_calm(tmp_path / "s")
    facts = restart_facts(open_snapshot(place))
    verdicts = [restart_verdict(facts, each, a_policy()) for each in facts.brokers]
    assert [(each.broker, each.state, against(each)) for each in verdicts] == [
        (broker(number), State.NOTE, []) for number in range(3)
    ]
    assert "gone for about 4 s after a clean shutdown (SIGTERM), 34 s after a crash" in words_on(verdicts[1], "time")
    assert words_on(verdicts[0], "room").startswith(f"{broker(1)}, {broker(2)} take over: on average 16 topics")
    leading = [[each.subject for each in it.reasons if each.subject == "leader"] for it in verdicts]
    assert leading == [["leader"], [], []]


@row_by_row(
    "tables, stopped",
    (found("ack-holes", "critical", f"{topic_on(1)} subscription s"), {1}),
    (found("ack-holes", "warning", f"{topic_on(1)} subscription s"), set()),
    (found("cursor-not-persistable", "warning", f"{topic_on(2)} subscription s"), {2}),
    (found("producer-hold-restart-risk", "critical", topic_on(1), producers=1), {1}),
    (found("producer-hold-restart-risk", "critical", topic_on(1), producers=0), set()),
    (found("limit-reached", "warning", topic_on(1), shut_out=1), {1}),
    (found("limit-reached", "warning", topic_on(1), shut_out=0), set()),
    (found("delayed-index-memory", "warning", broker(1)), {1}),
    (found("failover-time", "warning", broker(0)), {0}),
    (found("failover-time", "warning", "broker-00"), set()),
    (found("cpu-busy", "warning", broker(2)), {0, 1}),
    (found("consumer-fanout", "warning", topic_on(0)), set()),
    (found("consumer-fanout", "critical", topic_on(0)), {0}),
    (found("tc-skew", "warning", "east"), set()),
    (found("ledgers-under-replicated", "warning", "east"), {0, 1, 2}),
    (found("ack-state-seldom", "warning", ORDERS), set()),
    (found("ack-holes", "info", f"{topic_on(1)} subscription s"), set()),
    (found("cluster-placement", "critical", "east", brokers_lost=1), set()),
    (found("backlog-growing", "critical", topic_on(0)), set()),
)
def test_a_finding_stops_brokers_that_it_is_about(tmp_path: Path, tables: dict[str, Any], stopped: set[int]) -> None:
    """Their restart would do the harm now; what is only near does no harm yet."""
    place = write_calm(tmp_path / "s", **tables)
    verdicts = {number: verdict_on(place, number) for number in range(3)}
    assert {number for number, each in verdicts.items() if each.state is State.STOP} == stopped
    assert {each.state for each in verdicts.values()} <= {State.STOP, State.NOTE}


@row_by_row(
    "tables, unknown",
    (judged("ledgers-under-replicated", "unknown"), set()),
    (judged("ensemble-too-large", "unknown"), {0, 1, 2}),
    (judged("failover-time", "unknown"), {0, 1, 2}),
    (judged("bundle-without-owner", "unknown"), set()),
    (judged("ack-state-seldom", "unknown"), set()),
    ({"verdicts": [each for name, each in CLEAR.items() if name != "ack-holes"]}, {0, 1, 2}),
    (judged("ack-holes", "found", 5, critical={SHOP: 5}), {1}),
    (judged("ack-holes", "found", 5, critical={"": 5}), {0, 1, 2}),
    (judged("ack-holes", "found", 5, warning={SHOP: 5}), set()),
    (judged("limit-reached", "found", 5, warning={SHOP: 5}), {1}),
    (LESS_THAN_A_LIMIT, set()),
    ({"about": {"isolation_json": None}}, {0, 1, 2}),
)
def test_what_is_not_told_is_no_yes(tmp_path: Path, tables: dict[str, Any], unknown: set[int]) -> None:
    place = write_calm(tmp_path / "s", **tables)
    states = {number: verdict_on(place, number).state for number in range(3)}
    assert states == {number: State.UNKNOWN if number in unknown else State.NOTE for number in range(3)}


@row_by_row(
    "more, unlisted, said",
    (0, {"": 600}, "Up to 21 more, which are only counted."),
    (2, {"": 600}, "And 2 more, up to 21 with those that are only counted."),
    (2, {SHOP: 600}, "And 2 more, up to 4 with those that are only counted."),
    (2, {"acme/else": 600}, "And 2 more."),
)
def test_what_is_only_counted_is_bounded_by_what_the_broker_has(
    tmp_path: Path, more: int, unlisted: dict[str, int], said: str
) -> None:
    """Ten topics of orders with two subscriptions each, and one of a shop, where the cluster has 600 findings more."""
    listed = [f"{topic_on(1)} subscription s{each}" for each in range(more + 1)]
    findings = [a_finding("critical", "ack-holes", subject=each, evidence="So it is.") for each in listed]
    tables = judged("ack-holes", "found", 600, critical=unlisted) | {"findings": findings}
    words = words_on(verdict_on(write_calm(tmp_path / "s", **tables), 1), "ack-holes")
    assert words.partition("So it is. ")[2] == said


def test_a_broker_that_does_not_answer_stops_the_others(tmp_path: Path) -> None:
    """Of itself nothing is known; checks that could not judge for it are one reason."""
    rows = [
        {"broker": broker(number), "read": number < 2, "topics": 10, "cpu_percent": 1.0, "leader": False}
        | {"read_milliseconds": 3, "failure": None if number < 2 else "no connection: refused"}
        for number in range(3)
    ]
    verdicts = [a_verdict(each, "unknown", "But not everything could be read.") for each in RISKS]
    place = write_calm(tmp_path / "s", about={"unread_brokers": [broker(2)]}, brokers=rows, verdicts=verdicts)
    assert [against(verdict_on(place, number)) for number in (0, 2)] == [["others", "partial"], ["unreachable"]]
    assert [verdict_on(place, number).state for number in (0, 2)] == [State.STOP, State.UNKNOWN]
    assert "reached (no connection: refused). What it holds" in words_on(verdict_on(place, 2), "unreachable")
    assert headline(verdict_on(place, 2)).endswith("may be restarted: it is down or cannot be reached.")


@pytest.mark.parametrize(("minutes", "stops"), [(20, True), (1_000, False)])
def test_a_broker_that_was_there_a_moment_ago_is_waited_for(tmp_path: Path, minutes: int, *, stops: bool) -> None:
    """Unless it is draining; from long ago nothing is known of now."""
    before = META["taken_at"] - timedelta(minutes=minutes)
    rows = [{"broker": broker(7), "read": True, "leader": False, "topics": 1, "read_milliseconds": 3}]
    write_calm(tmp_path / f"taken_at={before:%Y%m%dT%H%M%SZ}", about={"taken_at": before}, brokers=rows, failovers=[])
    place = write_calm(tmp_path / f"taken_at={META['taken_at']:%Y%m%dT%H%M%SZ}")
    told = [verdict_on(place, 0), verdict_on(place, 0, a_policy(brokers={"draining": [broker(7)]}))]
    states = (State.STOP, State.NOTE) if stops else (State.UNKNOWN,) * 2
    assert stops or "no earlier look of the last 6.0 h to compare" in words_on(told[0], "others")
    assert tuple(each.state for each in told) == states


def test_a_namespace_that_no_other_broker_may_have_is_gone(tmp_path: Path) -> None:
    place = write_calm(tmp_path / "s", about={"isolation_json": json.dumps({"shop": ONLY_ONE})})
    assert [against(verdict_on(place, number)) for number in range(3)] == [[], ["room"], []]
    assert any(f"{SHOP} may be on no other broker" in each.words for each in verdict_on(place, 1).reasons)


def test_others_without_room_stop_it(tmp_path: Path) -> None:
    """In topics and in CPU, by the limits for the loss of a broker; a draining broker takes nothing over."""
    place = write_calm(tmp_path / "s")
    few = a_policy(partition_ceiling={"warning_topics_per_broker": 5, "critical_topics_per_broker": 15})
    reason = words_on(verdict_on(place, 0, few), "room")
    assert f"{broker(1)}, {broker(2)} would have 16 topics each, more than 15" in reason
    busy = a_policy(cluster_placement={"warning_cpu_percent_after_loss": 25})
    assert "30 % CPU on average, more than 25 %" in words_on(verdict_on(place, 0, busy), "room")
    draining = a_policy(brokers={"draining": [broker(2)]}, cluster_placement={"warning_cpu_percent_after_loss": 35})
    assert verdict_on(place, 0, draining).state is State.STOP


def test_what_others_do_not_tell_of_their_load_is_not_known(tmp_path: Path) -> None:
    rows = [
        {"broker": broker(number), "read": True, "topics": 10, "leader": False, "read_milliseconds": 3}
        for number in range(3)
    ]
    verdict = verdict_on(write_calm(tmp_path / "s", brokers=rows), 0)
    assert (verdict.state, against(verdict)) == (State.UNKNOWN, ["room"])


def test_brokers_of_one_host_share_its_processors(tmp_path: Path) -> None:
    """Then their CPU is not judged broker by broker, and `cluster-placement` tells what it finds host by host."""
    rows = [
        {"broker": f"one:{number}", "read": True, "topics": 10, "cpu_percent": 80.0, "leader": False}
        | {"read_milliseconds": 3}
        for number in range(3)
    ]
    bundles = [{"namespace": ORDERS, "bundle": "0x00000000_0xffffffff", "owner": "one:1", "topics": 30}]
    tables: dict[str, Any] = {"brokers": rows, "bundles": bundles, "failovers": []}
    facts = restart_facts(open_snapshot(write_calm(tmp_path / "s", **tables)))
    room = [each.words for each in restart_verdict(facts, "one:1", a_policy()).reasons if each.subject == "room"]
    assert any("the CPU of those that take over is not judged" in words for words in room)
    assert not any("80 % CPU" in words for words in room)
    tables |= found("cluster-placement", "critical", "east", brokers_lost=1)
    facts = restart_facts(open_snapshot(write_calm(tmp_path / "t", **tables)))
    assert "cluster-placement" in against(restart_verdict(facts, "one:1", a_policy()))


def test_the_only_broker_takes_everything_along(tmp_path: Path) -> None:
    rows = [{"broker": broker(1), "read": True, "leader": True, "topics": 10, "read_milliseconds": 3}]
    place = write_calm(tmp_path / "s", brokers=rows)
    assert words_on(verdict_on(place, 1), "room") == "No other broker runs: everything is gone until it is back."


def test_an_empty_broker_needs_nobody(tmp_path: Path) -> None:
    """The topic by which a broker checks itself counts nowhere."""
    beat = {"namespace": f"pulsar/{broker(0)}", "bundle": "0x00000000_0xffffffff", "owner": broker(0), "topics": 1}
    rows = [
        {"broker": broker(number), "read": True, "topics": int(number == 0), "leader": False, "read_milliseconds": 3}
        for number in range(3)
    ]
    place = write_calm(tmp_path / "s", bundles=[beat], brokers=rows)
    few = a_policy(partition_ceiling={"warning_topics_per_broker": 1, "critical_topics_per_broker": 1})
    verdict = verdict_on(place, 0, few)
    assert verdict.state is State.NOTE
    assert "time" not in {each.subject for each in verdict.reasons}
    assert words_on(verdict, "room").startswith("It has no topic loaded")


def test_coordinators_that_stand_still_come_with_it(tmp_path: Path) -> None:
    """They are no harm to come: the broker that has the most is told, and no other."""
    place = write_calm(tmp_path / "s", **found("tc-skew", "critical", "east"))
    told = [[each.state for each in verdict_on(place, it).reasons if each.subject == "tc-skew"] for it in range(3)]
    assert told == [[State.NOTE], [], []]


def test_a_broker_has_to_be_named(tmp_path: Path) -> None:
    """By its id, or by its host where it is the only one there."""
    facts = restart_facts(open_snapshot(write_calm(tmp_path / "s")))
    assert restart_verdict(facts, "broker-01", a_policy()).broker == broker(1)
    with pytest.raises(ConfigurationError, match=f"lists no such broker. Listed are {broker(0)}"):
        restart_verdict(facts, "broker-9", a_policy())


@row_by_row(
    "name, said",
    ("127.0.0.1", "2 brokers run on 127.0.0.1: name one with its port. Listed are 127.0.0.1:1, 127.0.0.1:2"),
    ("http://127.0.0.1:2/", "leave http:// out: 127.0.0.1:2"),
)
def test_a_name_that_is_nearly_right_is_put_right(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        broker_meant(name, ("127.0.0.1:1", "127.0.0.1:2", "other:1"))
