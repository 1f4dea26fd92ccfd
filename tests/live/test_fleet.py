"""A fleet on schedule: two real Pulsar clusters and a real Kafka cluster under one real Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.demo.stages import Stages
from lab.testing import need_kafka, need_lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.airflow.server import Airflow
    from lab.demo.fleet import Seen

pytestmark = [
    pytest.mark.live,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.extended(
        "tests/live/test_healing.py::test_a_cluster_that_fails_keeps_no_other_from_being_asked_about",
        "tests/unit/orchestration/test_kafka.py",
        "tests/unit/orchestration/test_shipping.py::test_a_kafka_cluster_is_observed_by_the_same_job",
        "tests/unit/pages/test_kafka.py",
        "tests/unit/cli/test_fleet.py",
    ),
]


@pytest.fixture(scope="module")
def seen(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """What `make demo SCENARIO=fleet` sees: two rounds, links that are cut, a broker and a cluster that are killed."""
    need_lab()
    need_kafka()
    from lab.demo.fleet import watched  # noqa: PLC0415 - needs confluent-kafka
    from lab.fleet import running_fleet  # noqa: PLC0415 - as above

    with running_fleet(tmp_path_factory.mktemp("fleet"), print) as fleet:
        for name, document in fleet.connections.items():
            airflow.api.add_connection(name, document)
        try:
            yield watched(fleet, airflow, Stages())
        finally:
            for name in fleet.connections:
                airflow.api.remove_connection(name)


def test_all_is_as_it_should_be(seen: Seen) -> None:
    """Three clusters are observed at once; one dies and the others go on; a cut link is told once; Kafka is no plan."""
    assert seen.wrong() == []


def test_the_killed_cluster_is_told_as_such(seen: Seen) -> None:
    """With its address, in the log of its task and in the check-up."""
    (gone,) = (each for each in seen.gone["clusters"] if each["cluster"] == "west")
    for told in (seen.told, gone["could_not_look"]):
        assert "no connection: refused" in told


def test_a_link_that_is_cut_is_told_from_both_ends(seen: Seen) -> None:
    """In one trouble: what waits at the sender, and who is connected at the receiver."""
    (told,) = (each for each in seen.cut["in_common"] if each["check_id"] == "replication-stopped")
    assert "replication between east and west is cut" in told["words"]
    for sender, receiver in (("east", "west"), ("west", "east")):
        assert f"wait to be sent from {sender} to {receiver}" in told["words"]
        assert f"{receiver} sees connections from {sender} to 0 topics" in told["words"]


def test_kafkas_trouble_is_in_the_check_up_and_on_the_pages(seen: Seen) -> None:
    """A broker that is down, beside the troubles of Pulsar clusters."""
    (events,) = (each for each in seen.cut["clusters"] if each["cluster"] == "events")
    assert "kafka-replicas-out-of-sync" in {each["check_ids"][0] for each in events["checkup"]["troubles"]}
    (card,) = (each for each in seen.cards_then if each["cluster"] == "events")
    assert card["found"]["worst"][0]["harm"] == events["checkup"]["troubles"][0]["harm"]
    assert card["activity"] == "observing"
