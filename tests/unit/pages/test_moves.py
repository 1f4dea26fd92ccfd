"""The page of a namespace's move: the stages of the command, by snapshots; no call that takes a live look."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.model.staged_move import StagedMove, Standing
from tests.cases import cases
from tests.unit.pages.conftest import pages_of
from tests.unit.planners.clusters.replicating import ORDERS, name_of, subscribed, taken, topic_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.pages.conftest import Client

ASKED = f"namespace={ORDERS}&from=east&to=west"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder of snapshots beside an empty ledger."""
    open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}").dispose()
    return tmp_path / "snapshots"


def both(shelf: Path, east: dict[str, Any] | None = None, west: dict[str, Any] | None = None) -> Client:
    """Pages of two clusters, each with one topic of the namespace that is sent to the other one."""
    for name, other, changed in (("east", "west", east or {}), ("west", "east", west or {})):
        taken(shelf, name, topic_of(cluster=other, inbound=True), **{"subscriptions": [subscribed()]} | changed)
    return pages_of(shelf.parent)


def move_of(client: Client) -> StagedMove:
    """The move, as programs get it."""
    return msgspec.json.decode(client.get(f"/api/moves?{ASKED}").content, type=StagedMove)


def test_page_and_api_show_the_same_stages(shelf: Path) -> None:
    """Each with its state, its points and its address; and how old both looks are."""
    client = both(shelf, east={"subscriptions": [subscribed(backlog_entries=700, messages_per_entry=1)]})
    move, page = move_of(client), unescape(client.get(f"/moves?{ASKED}").text)
    assert [each.number for each in move.stages] == list(range(1, 9))
    for stage in move.stages:
        assert f'id="stage-{stage.number}"' in page
        assert f"{stage.number}. {stage.title}" in page
    assert "would miss 700 messages" in page
    assert "east seen" in page
    assert f"steward move-namespace {ORDERS} --from east --to west" in page


@cases(
    "east, number, standing, said",
    ("it is replicated", {}, 2, Standing.READY, "policies at east replicate to west"),
    ("not replicated", {"serving": {ORDERS: ("east",)}}, 2, Standing.NOT_YET, "policies at east do not replicate"),
    ("the tenant is not told", {}, 1, Standing.UNKNOWN, "whether the tenant acme may use both at east"),
    ("lists are not told", {}, 3, Standing.UNKNOWN, "1 topic is loaded at both, of 1 at east"),
    ("resting topics are not told", {}, 4, Standing.UNKNOWN, "topics that are not loaded at east"),
    (
        "clients are at the source",
        {"client_versions": [{"broker": "east-0:8080", "namespace": ORDERS, "client_version": "3.1", "producers": 2}]},
        6,
        Standing.NOT_YET,
        "2 producers, 0 consumers: host not told (3.1) 2",
    ),
)
def test_a_snapshot_tells_what_it_has(
    shelf: Path, east: dict[str, Any], number: int, standing: Standing, said: str
) -> None:
    """What it does not have is not known to be absent."""
    stage = move_of(both(shelf, east=east)).stages[number - 1]
    assert stage.standing is standing
    assert any(said in point.words for point in stage.points)


def test_no_page_offers_the_call_that_deletes(shelf: Path) -> None:
    """Ending the topics at the source takes a live look: a snapshot does not tell all that is stored there."""
    page = both(shelf).get(f"/moves?{ASKED}").text
    assert f"set-clusters {ORDERS} --clusters west<" not in page
    assert "First stages 1, 3, 4" in page


@cases(
    "query, status, said",
    ("nothing is asked", "", 200, "Move a namespace"),
    ("to itself", f"?namespace={ORDERS}&from=east&to=east", 400, "name another cluster"),
    ("no such cluster", f"?namespace={ORDERS}&from=east&to=nowhere", 404, "no diagnosed snapshot"),
    ("no such namespace", "?namespace=a/b&from=east&to=west", 404, "steward move-namespace a/b --to west"),
)
def test_what_cannot_be_shown_is_said(shelf: Path, query: str, status: int, said: str) -> None:
    response = both(shelf).get(f"/moves{query}")
    assert (response.status_code, said in response.text) == (status, True)


def test_a_partial_snapshot_without_the_namespace_does_not_say_that_there_is_none(shelf: Path) -> None:
    """At the target it would be made anew otherwise."""
    client = both(shelf, west={"serving": {}, "about": {"unread_namespaces": ["acme/b"]}})
    assert client.get(f"/moves?{ASKED}").status_code == 404
    assert name_of() not in client.get(f"/moves?{ASKED}").text


def test_pages_of_clusters_lead_to_it(shelf: Path) -> None:
    client = both(shelf)
    assert "/steward/moves" in client.get("/").text
    assert "/steward/moves?from=east" in client.get("/clusters/east").text
