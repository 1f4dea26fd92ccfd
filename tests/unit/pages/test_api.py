"""The API: every answer is as its own document says, and findings come by pages however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pulsar_steward.ledger.history import MAX_LINKS
from pulsar_steward.pages.html import make_app
from tests.builders import NOW
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import HOSTILE, observed, sources_of
from tests.unit.report_checkup.snapshots import a_finding

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan

MANY = 100_000


def test_every_answer_is_as_documented(client: Client, plans: dict[str, Plan]) -> None:
    """Every route of the API's document answers in the form that it gives, with exactly the fields that it names."""
    document = client.get("/api/openapi.json").json()
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.update({"additionalProperties": False, "required": list(schema["properties"])})
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
    """A request for findings with an invalid page, size or order is refused with status 422, naming the field."""
    answer = client.get(f"/api/clusters/east/findings?{query}")
    assert answer.status_code == 422
    assert [each["loc"] for each in answer.json()["detail"]] == [["query", query.partition("=")[0]]]


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
    """The last page of 100,000 findings ends in every order with the finding that is last in it."""
    severities, checks = ("critical", "warning", "info"), ("ack-holes", "tc-skew")
    rows = [
        a_finding(
            severities[place % 3],
            checks[place % 2],
            subject=f"t-{place:06d}",
            # turned by three places, so that the first and the last by age are not those by name
            first_seen=NOW - timedelta(minutes=(place + 3) % MANY),
        )
        for place in range(MANY)
    ]
    (tmp_path / "ledger.db").write_bytes((shown_folder / "ledger.db").read_bytes())
    observed(tmp_path / "snapshots", "east", NOW, findings=rows)
    client = Client(make_app(sources_of(tmp_path), lambda: None))
    last = {
        "severity": "t-099998",
        "oldest": "t-099997",
        "newest": "t-099996",
        "check": "t-000005",
        "subject": "t-099999",
    }
    for order, subject in last.items():
        page = client.get(f"/api/clusters/east/findings?order={order}&size=500&page=200").json()
        assert (page["total"], page["pages"], len(page["findings"])) == (MANY, 200, 500)
        assert (order, page["findings"][-1]["subject"]) == (order, subject)
    found = client.get("/api/clusters/east/findings?text=T-09999&severity=warning").json()
    assert [each["subject"] for each in found["findings"]] == ["t-099994", "t-099991", "t-099997"]
