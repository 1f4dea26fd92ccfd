"""Messages of one notice and of many, as recipients get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.notice import Occasion
from pulsar_steward.notify.compose import MANY, composed, message_id
from tests.unit.notify.notices import AIRFLOW, NASTY, a_notice

if TYPE_CHECKING:
    from tests.golden import Golden


def test_one_notice_is_its_own_message(golden: Golden) -> None:
    """A message of a single notice is encoded as the JSON document that a webhook gets."""
    message = composed("id-1", [a_notice(plan_id="plan-1")], AIRFLOW)
    golden(msgspec.json.format(message.encoded()).decode())


def test_many_questions_are_one_message(golden: Golden) -> None:
    """A message lists the first of many questions, counts the others, and links to the list of all."""
    notices = [a_notice(name=str(number)) for number in range(203)]
    message = composed("id-1", notices, AIRFLOW)
    golden(f"{message.subject}\n{message.text}\n{message.link}")
    assert len(message.notices) == 203


def test_several_clusters_share_a_message() -> None:
    """A message about several clusters has the worst severity, and links to the page of all clusters."""
    west = a_notice(Occasion.FAILED, "2", cluster="west", severity=Severity.CRITICAL)
    message = composed("id-1", [a_notice(Occasion.FAILED), west], AIRFLOW)
    assert (message.clusters, message.severity) == (("east", "west"), Severity.CRITICAL)
    assert message.link == f"{AIRFLOW}/steward/"


def test_every_occasion_has_words_for_many() -> None:
    """Every occasion has words for a message of several notices."""
    assert set(MANY) == set(Occasion)


def test_nothing_is_hidden_in_json() -> None:
    """A message's JSON escapes invisible characters, and decoding it gives the name unchanged."""
    encoded = composed("id-1", [a_notice(cluster=NASTY)], "").encoded()
    assert "\u202e" not in encoded.decode()
    assert msgspec.json.decode(encoded)["clusters"] == [NASTY]


def test_an_id_is_of_a_recipient_and_its_notices() -> None:
    """A message's id is the same for the same recipient and notices, and another one for others."""
    notices = [a_notice(), a_notice(name="2")]
    assert message_id("ops", notices) == message_id("ops", notices)
    assert len({message_id("ops", notices), message_id("dev", notices), message_id("ops", notices[:1])}) == 3


def test_without_an_address_of_airflow_the_path_has_to_do() -> None:
    """A message's link is a path alone when no address of Airflow is configured."""
    assert composed("id-1", [a_notice()], "").link == "/steward/plans/1"
