"""Kafka clusters are read into snapshots: in few requests, within a time, and what was not read is said."""

from __future__ import annotations

import ast
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsar_steward.collect.kafka.collecting import KEPT
from pulsar_steward.collect.kafka.groups import AGES
from pulsar_steward.collect.kafka.reader import KafkaPartition, KafkaReader, OutOfTime
from pulsar_steward.collect.kafka.settings import ISSUER, KafkaSettings, kafka_in, properties_in, secrets_of_kafka
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.model.finding import Outlook
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import KAFKA_GROUPS, KAFKA_LAGS, KAFKA_PARTITIONS, KAFKA_TOPICS
from pulsar_steward.pages.findings import sections
from pulsar_steward.planners.from_snapshot import Moves, plan_without_steps, planning_facts_of
from pulsar_steward.policy.schema import KafkaPolicy, Policy
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.report.checkup.terminal import lines
from pulsar_steward.report.overview import summary_of
from tests.unit.collect.made_up_kafka import Cluster, taken

COLLECTOR = Path(__file__).resolve().parents[3] / "plugins" / "pulsar_steward" / "collect" / "kafka"

READING = {
    "describe_cluster",
    "describe_configs",
    "list_consumer_group_offsets",
    "list_consumer_groups",
    "list_offsets",
    "list_topics",
    "poll",  # calls back with errors
}
"""Methods of the client that only read."""


def test_the_client_is_only_asked_to_read() -> None:
    called = {
        node.attr
        for file in COLLECTOR.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self._client"
    }
    assert called == READING


def test_a_machine_without_the_client_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigurationError, match="pip install 'pulsar-steward\\[kafka\\]'"):
        KafkaReader(KafkaSettings(servers="kafka:9092"), KafkaPolicy())


def test_a_snapshot_tells_partitions_brokers_and_groups(tmp_path: Path) -> None:
    """A partition without a leader is asked for no offset; a broker that holds replicas and is not listed is down."""
    orders = [KafkaPartition("orders", number) for number in range(5)]
    cluster = Cluster({"app": {orders[0]: 980, orders[1]: 1_000, orders[4]: 0}, "gone": "not allowed"})
    snapshot = taken(cluster, tmp_path)
    meta = snapshot.meta()
    assert (meta.system, meta.servers, meta.pulsar_cluster) == (System.KAFKA, "kafka:9093", "abc")
    assert meta.unread == ("broker 2", "offsets of 1 consumer group, such as gone: not allowed")
    assert [(row.broker, row.read, row.topics) for row in snapshot.brokers()] == [
        ("broker 1", True, 3),
        ("broker 2", False, 2),
        ("broker 3", False, 0),
    ]
    assert snapshot.table(KAFKA_PARTITIONS, ["leader"]).column(0).to_pylist() == [1, 2, 1, 2, None, 1]
    assert snapshot.table(KAFKA_TOPICS).to_pylist() == [{"topic": "orders", "min_in_sync": 2}]
    assert snapshot.table(KAFKA_GROUPS).drop(["state"]).to_pylist() == [
        {"group_id": "app", "partitions": 3, "untold": 1, "lag_messages": 20, "topics": ["orders"]},
        {"group_id": "gone", "partitions": None, "untold": None, "lag_messages": None, "topics": None},
    ]
    assert snapshot.table(KAFKA_LAGS).to_pylist() == [
        {
            "group_id": "app",
            "topic": "orders",
            "partition": 0,
            "committed": 980,
            "start_offset": 0,
            "end_offset": 1_000,
            "behind_seconds": 900,  # 20 minutes
            "timed": True,
        }
    ]
    assert cluster.asked == [("end", 2), ("60", 1), ("300", 1), ("900", 1), ("1800", 1)]


@pytest.mark.parametrize(("start", "seconds"), [(980, 900), (Cluster.END, 0)])
def test_a_deleted_message_has_no_age(tmp_path: Path, start: int, seconds: int) -> None:
    """The oldest message that is kept is what a group reads next; if none is kept, nothing waits."""
    snapshot = taken(Cluster({"app": {KafkaPartition("orders", 0): 10}}, start=start), tmp_path)
    assert snapshot.table(KAFKA_LAGS, ["start_offset", "behind_seconds"]).to_pylist() == [
        {"start_offset": start, "behind_seconds": seconds}
    ]
    (finding,) = (each for each in snapshot.findings() if each.check_id == "kafka-group-lag")
    assert f"of which {start - 10:,} were deleted unread" in finding.evidence


def test_offsets_that_nobody_told_are_unknown(tmp_path: Path) -> None:
    """Neither the end of a partition, nor the age of a message, is taken for a group that is current."""
    orders = [KafkaPartition("orders", number) for number in range(5)]
    for number, mute in enumerate((((), orders), (orders, ()))):
        snapshot = taken(Cluster({"app": {orders[0]: 10}}, mute=mute), tmp_path / str(number))
        (verdict,) = (each for each in snapshot.verdicts() if each.check_id == "kafka-group-lag")
        assert (verdict.outlook, verdict.reason) == (
            Outlook.UNKNOWN,
            "Some partitions of 1 consumer group did not tell their offsets.",
        )
        assert snapshot.meta().unread[1:] == ("ends or ages of some partitions of 1 consumer group, such as app",)


def test_an_offset_beyond_the_end_is_no_current_group(tmp_path: Path) -> None:
    """It is kept and told as such; its lag is 0, and no age is asked of it."""
    place = KafkaPartition("orders", 0)
    cluster = Cluster({"app": {place: Cluster.END + 7}, "current": {place: Cluster.END}})
    snapshot = taken(cluster, tmp_path)
    rows = snapshot.table(KAFKA_LAGS, ["group_id", "committed", "end_offset", "timed"]).to_pylist()
    assert rows == [{"group_id": "app", "committed": 1_007, "end_offset": 1_000, "timed": False}]
    assert snapshot.table(KAFKA_GROUPS, ["lag_messages"]).column(0).to_pylist() == [0, 0]
    assert cluster.asked == [("end", 1)]
    (finding,) = (each for each in snapshot.findings() if each.check_id == "kafka-group-lag")
    assert (finding.subject, finding.figures["beyond"]) == ("group app", 1)


def test_topics_that_do_not_tell_their_settings_are_unread(tmp_path: Path) -> None:
    snapshot = taken(Cluster({}, mum="not allowed"), tmp_path)
    assert snapshot.meta().unread[1:] == ("settings of 1 topic, such as orders: not allowed",)
    assert snapshot.table(KAFKA_TOPICS).num_rows == 0


def test_brokers_that_do_not_answer_are_waited_for_once(request: pytest.FixtureRequest) -> None:
    """One time for all requests, of which each takes half of the rest: what comes later is given up at once."""
    mute = socket.create_server(("127.0.0.1", 0))
    request.addfinalizer(mute.close)
    settings = KafkaSettings(servers=f"127.0.0.1:{mute.getsockname()[1]}")
    reader = KafkaReader(settings, KafkaPolicy(request_timeout_seconds=2, total_seconds=60))
    told: list[object] = []

    def asked_for_ever() -> None:
        while True:
            told.extend(reader.committed(["app"]).values())

    with pytest.raises(OutOfTime, match=r"kafka.request_timeout_seconds \(2\) were waited for brokers that do not"):
        asked_for_ever()
    assert 1 <= len(told) <= 2
    assert {type(each) for each in told} == {str}
    with pytest.raises(OutOfTime):
        reader.ends([KafkaPartition("orders", 0)])
    why = reader.topic_settings(["orders"], KEPT)["orders"]
    assert isinstance(why, str)
    assert "were waited for brokers that do not answer" in why


def test_groups_are_read_some_at_a_time_until_the_time_is_over(tmp_path: Path) -> None:
    """The rest is said not to be read; only the partitions that a group is most behind on are asked for ages."""
    committed = {KafkaPartition("orders", number): number for number in range(4)}
    limits = KafkaPolicy(groups_at_once=2, timed_partitions=1)
    cluster = Cluster(dict.fromkeys("abcde", committed), requests=2)
    snapshot = taken(cluster, tmp_path, limits)
    assert snapshot.meta().unread[1:] == ("offsets of 1 consumer group: the time was over",)
    assert {each for kind, each in cluster.asked if kind != "end"} == {1}
    assert len(cluster.asked) == 2 * (1 + next(place for place, age in enumerate(AGES, 1) if age > 1_000 * 60))
    assert sum(snapshot.table(KAFKA_LAGS, ["timed"]).column(0).to_pylist()) == 4


def test_nothing_is_planned_for_kafka(tmp_path: Path) -> None:
    """A check-up proposes nothing, and whatever plans refuses the snapshot; commands are filled in."""
    snapshot = taken(Cluster({"app": {KafkaPartition("orders", 0): 0}}), tmp_path)
    with pytest.raises(ConfigurationError, match="is a snapshot of a Kafka cluster, which Steward only looks at"):
        planning_facts_of(snapshot, Policy(), Moves())
    plan = plan_without_steps(snapshot, Policy())
    assert plan is not None
    checkup = checkup_of(snapshot, plan, Policy())
    assert checkup.planning.batches == ()
    assert {check.section for check in checkup.checks} == {"Kafka"}
    steps = [step for trouble in checkup.troubles for step in trouble.to_do]
    assert any("kafka-topics.sh --bootstrap-server kafka:9093 --describe" in step for step in steps)
    assert any("--describe --group app`" in step for step in steps)
    text = "\n".join(str(line) for line in lines(checkup, 100))
    assert "Check-up of k (calls itself abc), Kafka\n" in text
    assert "SERVERS" not in text
    assert "1 of 3 brokers read, 5 partitions with a leader, 1 consumer group;" in text
    page = as_html(checkup)
    assert ("<b>5</b><span>partitions with a leader</span>" in page, "namespaces</span>" in page) == (True, False)
    (section,) = sections(summary_of(snapshot))  # of Steward's pages
    assert [check.check_id for check in section.checks] == [check.check_id for check in checkup.checks]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"servers": "kafka"}, "'kafka' is no address of a Kafka broker"),
        ({"properties": {"plugin.library.paths": "x.so"}}, "'plugin.library.paths' of Kafka's client may not be given"),
        ({"properties": {"sasl.kerberos.kinit.cmd": "sh"}}, "'sasl.kerberos.kinit.cmd' of Kafka's client"),
        ({"properties": {ISSUER: "http://sso/token"}}, f"`{ISSUER}` has to begin with https"),
        ({"properties": {ISSUER: "https://me:s3cret@sso/token"}}, f"`{ISSUER}` has a user or password"),
        ({"properties": {"sasl.password": "s3cret"}}, "the password would travel unencrypted to kafka:9092"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], words: str) -> None:
    """Those that run something, and a password that others could read."""
    with pytest.raises(ConfigurationError, match=words) as refused:
        KafkaSettings(**{"servers": "kafka:9092", **given})
    assert "s3cret" not in str(refused.value)


def test_settings_travel_by_the_environment(tmp_path: Path) -> None:
    """With their secrets, which are known there as such, and are not printed."""
    file = tmp_path / "kafka.properties"
    file.write_text("# login\nsecurity.protocol=SASL_SSL\n\nsasl.password = a=b \n", encoding="utf-8")
    settings = KafkaSettings(servers="kafka:9092,[::1]:9093", properties=properties_in(file))
    environment = settings.in_environment({"PATH": "/bin"})
    assert kafka_in(environment) == settings
    assert secrets_of_kafka(environment) == ("a=b",)
    assert "a=b" not in repr(settings)
    assert kafka_in({}) is None
    file.write_text("sasl.password", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 1: expected name=value"):
        properties_in(file)
