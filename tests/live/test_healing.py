"""A real cluster from piled-up coordinators to an even spread, as its operator sees it: Airflow, brokers, ledger.

One story, told once by the fixture; each test holds it to one promise.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pulsar as client
import pytest
from sqlalchemy import select

from lab.placement import differences
from pulsar_steward.ledger.rows import Decision, EndReason, Outcome
from pulsar_steward.ledger.tables import metadata
from pulsar_steward.model.notice import Event
from tests.written import holders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.care import Care

pytestmark = [pytest.mark.live, pytest.mark.airflow, pytest.mark.spark]

Owned = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Story:
    """Observations, in this order."""

    piled: list[int]
    owned_before: Owned
    owned_observed: Owned
    owned_observed_twice: Owned
    observed_beside: dict[str, str | None]
    second_observation: dict[str, str | None]
    waiting_after_second: int
    first: dict[str, Any]
    second: dict[str, Any]
    first_state: str
    owned_after_the_end: Owned
    owned_with_four: Owned
    healed_state: str
    healed: list[int]


NOWHERE = "nowhere"
"""A cluster without a connection."""


@pytest.fixture(scope="module")
def story(care: Care) -> Story:
    """Piled up; observed twice; a fourth broker joins; observed again; the old question ends, the new is answered."""
    care.lab.pile_up_tcs()
    piled, before = care.placement(), care.lab.owned_bundles()
    beside = care.observe(NOWHERE)
    (first,) = care.approvals(1)
    once = care.lab.owned_bundles()
    again = care.observe()
    twice, waiting = care.lab.owned_bundles(), len(care.waiting())
    care.lab.add_broker()
    care.observe()
    four = care.lab.owned_bundles()
    first_state = care.ended(first)
    (second,) = care.approvals(1)
    after_end = care.lab.owned_bundles()
    care.approve(second, comment="let them spread")
    healed = care.ended(second)
    return Story(
        piled=piled,
        owned_before=before,
        owned_observed=once,
        owned_observed_twice=twice,
        observed_beside=beside,
        second_observation=again,
        waiting_after_second=waiting,
        first=first,
        second=second,
        first_state=first_state,
        owned_after_the_end=after_end,
        owned_with_four=four,
        healed_state=healed,
        healed=care.placement(),
    )


def test_a_cluster_that_fails_keeps_no_other_from_being_asked_about(story: Story) -> None:
    states = story.observed_beside
    assert (states["observe"], states["plan"]) == ("success", "success")
    assert (states["cluster.observe[1]"], states["cluster.plan[1]"]) == ("failed", "upstream_failed")


def test_a_check_up_of_the_fleet_goes_by_airflows_connections(story: Story, care: Care) -> None:
    """The same clusters, read with the tokens of their connections; one without a connection is told as such."""
    del story
    command = [str(care.airflow.spec.python), "-m", "pulsar_steward.cli", "checkup", "--fleet", "connections"]
    variables = {**care.airflow.variables, "STEWARD_CLUSTER": f"{care.cluster},{NOWHERE}"}
    ended = subprocess.run([*command, "--json", "-"], env=variables, capture_output=True, check=False)
    told = {each["cluster"]: each for each in json.loads(ended.stdout)["clusters"]}
    assert told[care.cluster]["checkup"]["about"]["brokers_read"] == len(care.lab.brokers)
    assert f"pulsar_admin_{NOWHERE}" in told[NOWHERE]["could_not_look"]


def test_observing_twice_leaves_every_bundle_where_it_was(story: Story) -> None:
    assert story.owned_observed == story.owned_before
    assert story.owned_observed_twice == story.owned_before


def test_the_same_question_is_not_asked_twice(story: Story) -> None:
    assert story.second_observation["plan"] == "skipped"
    assert story.waiting_after_second == 1


def test_the_text_says_what_moves_why_and_how_to_go_back(story: Story, care: Care) -> None:
    """The approval text says how many coordinators lie on which broker, and whether they can be moved back."""
    body = story.first["body"]
    source = care.lab.brokers[0].broker_id
    assert "16 of 16" in body
    assert source in body
    assert "can be reverted" in body


def test_another_question_takes_the_older_ones_place(story: Story, care: Care) -> None:
    assert story.first_state == "success"
    assert differences(story.owned_with_four, story.owned_after_the_end, besides="public/default") == {}
    newer, older = care.ledger.plans(care.cluster)[:2]
    end = care.ledger.batch(older.plan_id, "b1").end
    assert end is not None
    assert (end.reason, end.by_plan_id) == (EndReason.CHANGED, newer.plan_id)
    assert care.ledger.answers(older.plan_id, "b1") == ()
    assert "Changed: " in story.second["body"]


def test_a_broker_that_joins_gets_its_share(story: Story) -> None:
    """Sixteen coordinators on one broker are spread as 4, 4, 4 and 4 after a fourth broker has joined."""
    assert story.piled == [16, 0, 0]
    assert story.healed_state == "success"
    assert story.healed == [4, 4, 4, 4]


def test_the_ledger_tells_who_approved_what_and_what_came_of_it(story: Story, care: Care) -> None:
    newest = care.ledger.plans(care.cluster)[0]
    plan = care.ledger.plan(newest.plan_id)
    (answer,) = care.ledger.answers(newest.plan_id, "b1")
    assert (answer.decision, answer.answered_by, answer.comment) == (Decision.APPROVED, "alice", "let them spread")
    outcomes = care.ledger.outcomes(newest.plan_id, "b1")
    assert [outcome.step_id for outcome in outcomes] == [step.step_id for step in plan.batch("b1").steps]
    assert {outcome.outcome for outcome in outcomes} == {Outcome.DONE}
    intents = care.ledger.intents(newest.plan_id, "b1")
    assert [intent.step_id for intent in intents] == [outcome.step_id for outcome in outcomes]
    assert all(intent.before["owner"] for intent in intents)
    (proof,) = care.ledger.proofs(newest.plan_id)
    assert proof.proved
    assert story.healed == sorted((row["coordinators"] for row in proof.shown["placement"].values()), reverse=True)


@pytest.fixture
def events(story: Story, care: Care) -> Iterator[list[Event]]:
    """All events that were published for this cluster, read from the topic with a client of the test's own."""
    del story
    connection = client.Client(
        care.lab.service_url,
        authentication=client.AuthenticationToken(care.lab.token),
        logger=client.ConsoleLogger(client.LoggerLevel.Error),
    )
    try:
        reader = connection.create_reader("persistent://public/default/steward-events", client.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(msgspec.json.decode(reader.read_next(5000).data(), type=Event))
        yield [event for event in found if event.cluster == care.cluster]
    finally:
        connection.close()


def test_decisions_outcomes_and_proofs_are_published(story: Story, events: list[Event]) -> None:
    del story
    assert [event.result for event in events if event.event == "decision"] == ["approved"]
    assert {event.result for event in events if event.event == "outcome"} == {"done"}
    assert "proved" in {event.result for event in events if event.event == "proof"}


def test_the_token_is_nowhere(story: Story, care: Care) -> None:
    del story
    token = care.lab.token or ""
    assert token
    database = {str(care.airflow.spec.home / name) for name in ("airflow.db", "airflow.db-wal")}  # holds the connection
    assert holders([token], [care.airflow.spec.home]) <= database
    with care.engine.connect() as connection:
        rows = [str(row) for table in metadata.sorted_tables for row in connection.execute(select(table))]
    assert rows
    assert not any(token in row for row in rows)
