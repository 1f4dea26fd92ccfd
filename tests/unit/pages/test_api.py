"""The API: every answer is as its own document says, and findings come by pages however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pulsar_steward.ledger.history import MAX_LINKS
from pulsar_steward.pages.app import make_app
from tests.builders import NOW
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import HOSTILE, observed, sources_of
from tests.unit.report_checkup.snapshots import a_finding

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan

MANY = 100_000


def test_every_answer_is_as_documented(client: Client, plans: dict[str, Plan]) -> None:
    """Every route of the API's document answers in the form that the document gives."""
    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert len(document["paths"]) > 10
    for path, operations in document["paths"].items():
        content = operations["get"]["responses"]["200"]["content"]["application/json"]
        answer = client.get(path.format(cluster="east", plan_id=plans["east"].plan_id))
        assert answer.status_code == 200, path
        schema = {**content["schema"], "components": document["components"]}
        jsonschema.validate(answer.json(), schema, jsonschema.Draft202012Validator)


def test_invisible_characters_are_escaped(client: Client) -> None:
    """Invisible characters of a name are escaped in the API's JSON, and decoding gives the original name."""
    answer = client.get("/api/clusters/east/findings?severity=info")
    assert "\\u202e" in answer.text
    assert answer.json()["findings"][0]["subject"] == HOSTILE


@pytest.mark.parametrize("query", ["page=0", "size=501", "order=none", "page=x"])
def test_a_page_that_cannot_be_is_refused(client: Client, query: str) -> None:
    """A request for findings with an invalid page, size or order is refused with status 422."""
    assert client.get(f"/api/clusters/east/findings?{query}").status_code == 422


def test_history_goes_back_page_by_page(client: Client) -> None:
    """The history's pages follow one another without a gap and without a repeated event."""
    whole = client.get("/api/history?size=500").json()
    found: list[dict[str, Any]] = []
    before: int | None = whole["head"]["sequence"] + 1
    while before is not None:
        page = client.get(f"/api/history?size=7&before={before}").json()
        found += page["events"]
        before = page["before"]
    assert found == whole["events"]
    assert [each["sequence"] for each in found] == sorted((each["sequence"] for each in found), reverse=True)
    assert len(found) < MAX_LINKS


def test_a_hundred_thousand_findings(tmp_path: Path, shown_folder: Path, plans: dict[str, Plan]) -> None:
    """The last page of 100,000 findings ends with the last of them, and every order counts them all."""
    severities = ("critical", "warning", "info")
    rows = [a_finding(severities[place % 3], "ack-holes", subject=f"t-{place:06d}") for place in range(MANY)]
    (tmp_path / "ledger.db").write_bytes((shown_folder / "ledger.db").read_bytes())
    observed(tmp_path / "snapshots", "east", NOW, findings=rows)
    client = Client(make_app(sources_of(tmp_path), lambda: None))
    page = client.get("/api/clusters/east/findings?size=500&page=200").json()
    assert (page["total"], page["pages"], len(page["findings"])) == (MANY, 200, 500)
    assert page["findings"][-1]["subject"] == "t-099998"
    for order in ("oldest", "newest", "check", "subject"):
        assert client.get(f"/api/clusters/east/findings?order={order}").json()["total"] == MANY
    found = client.get("/api/clusters/east/findings?text=T-09999&severity=warning").json()
    assert [each["subject"] for each in found["findings"]] == ["t-099991", "t-099994", "t-099997"]
