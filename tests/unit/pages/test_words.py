"""The pages' words, sources, API and login."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI, HTTPException
from pyarrow import dataset

from pulsar_steward.ledger.history import MAX_LINKS
from pulsar_steward.model.tables import DIAGNOSED, SHARDED, SMALL
from pulsar_steward.pages.html import make_app
from pulsar_steward.pages.rendering import (
    MISSING,
    ago,
    duration,
    heat_step,
    link_to,
    number,
    percent,
    polyline,
    rate,
    size,
)
from pulsar_steward.pages.sources import SnapshotCache
from pulsar_steward.snapshots import read
from tests.builders import NOW
from tests.cases import row_by_row
from tests.unit.pages.conftest import Client, pages_of
from tests.unit.pages.scenes import EVERY, HOSTILE, observed, sources_of
from tests.unit.report_checkup.snapshots import a_finding

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan


@row_by_row(
    "seconds, words",
    (0, "0 s"),
    (59, "59 s"),
    (60, "1 min"),
    (3599, "59 min"),
    (3600, "1 h"),
    (3700, "1 h 1 min"),
    (90000, "1 d 1 h"),
)
def test_durations(seconds: int, words: str) -> None:
    """A duration is written in at most two units, and reads the same before and after the present time."""
    assert duration(seconds) == words
    assert ago(NOW)(NOW - timedelta(seconds=seconds)) == words
    assert ago(NOW)(NOW + timedelta(seconds=seconds)) == words


def test_figures_that_are_not_there() -> None:
    """A missing figure is written as a dash, and never as 0."""
    assert {number(None), percent(None), size(None), rate(None)} == {MISSING}
    assert (number(1234), percent(12.4), size(3 << 30), rate(1_250_000)) == ("1,234", "12 %", "3.0 GiB", "1.2")


def test_every_part_of_an_address_stays_a_part() -> None:
    """A link escapes special characters in each part of its path and query, and leaves out empty parameters."""
    assert link_to("/steward", "clusters", "../x?y#z/é", text="a&b", page="", check=None) == (
        "/steward/clusters/..%2Fx%3Fy%23z%2F%C3%A9?text=a%26b"
    )
    assert link_to("") == "/"


def test_drawings_stay_within_their_frame() -> None:
    assert polyline([0.0, 0.0], 10, 10) == "0.0,9.0 10.0,9.0"
    assert polyline([5.0], 10, 10) == "0.0,1.0"
    assert [heat_step(heat) for heat in (0.0, 0.01, 0.2, 0.5, 1.0)] == [0, 0, 2, 3, 4]


def test_what_is_kept_is_bounded() -> None:
    """The cache keeps only the entries that were used last, and does not keep errors."""
    kept = SnapshotCache(2)
    read: list[str] = []

    def reading(key: str) -> str:
        read.append(key)
        if key == "bad":
            raise OSError
        return key

    for key in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(key, partial(reading, key)) == key
    assert read == ["a", "b", "c", "b"]
    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011 - the one above
            kept.get("bad", lambda: reading("bad"))
    assert read[-2:] == ["bad", "bad"]


MOST_READS = 5
"""How often a table of a snapshot is opened at most, as parts of a page need different columns of it."""


class CountingParquet:
    """Stands in for `pyarrow.parquet` in the reader of snapshots, and counts.

    Attributes:
        opened: How often each table was, by its path.
        rows: Rows that were read, by the table's name.
    """

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()

    def read_table(self, path: str, **how: Any) -> Any:
        """Reads a table."""
        found = pq.read_table(path, **how)
        self.opened[path] += 1
        self.rows[path.rpartition("/")[2]] += found.num_rows
        return found

    def dataset(self, path: str, *shape: Any, **how: Any) -> Any:
        """Files of a table that queries read."""
        found = dataset.dataset(path, *shape, **how)
        self.opened[path] += 1
        self.rows[path.rpartition("/")[2]] += found.count_rows()
        return found

    def ParquetDataset(self, path: str, **how: Any) -> Any:  # noqa: N802 - the name that it stands in for
        """Reads a table's schema."""
        return pq.ParquetDataset(path, **how)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingParquet:
    """Counter of all tables and rows that are read from snapshots."""
    counts = CountingParquet()
    monkeypatch.setattr(read, "pq", counts)
    monkeypatch.setattr(read, "dataset", counts)
    return counts


MOVE = "?namespace=acme/orders&from=east&to=west"
"""Query of a move, the only request that reads topics, of one namespace."""


def paths(folder: Path, plans: dict[str, Plan]) -> list[str]:
    """A path of every route, and those that filter and turn pages."""
    parts = PARTS | {"plan_id": plans["east"].plan_id}
    routes = make_app(sources_of(folder), lambda: None).routes
    dag_id, _, run_id = EVERY.partition("/")
    asked = {"/question": f"?dag_id={dag_id}&run_id={run_id.replace('+', '%2B')}&map_index=0"}
    asked |= dict.fromkeys(("/moves", "/api/moves"), MOVE)
    every = [str(route.path) for route in routes]  # type: ignore[attr-defined]  # every kind has one
    return [
        *(f"{path.format(**parts)}{asked.get(path, '')}" for path in every),
        "/clusters/east?severity=critical&text=topic&order=oldest&page=2&brokers=all",
        "/api/clusters/east/findings?check=ack-holes&order=subject&size=500",
    ]


def test_no_request_reads_a_table_that_grows_with_topics(
    shown_folder: Path, plans: dict[str, Plan], counting: CountingParquet
) -> None:
    client = pages_of(shown_folder)
    answered = {path: client.get(path).status_code for path in paths(shown_folder, plans) if MOVE not in path}
    assert {path: status for path, status in answered.items() if status not in {200, 303}} == {}
    assert counting.rows.keys() >= {"findings", "bundles", "namespaces", "brokers"}
    assert counting.rows.keys() <= {table.name for table in (*SMALL, *DIAGNOSED)} - {table.name for table in SHARDED}
    assert max(counting.opened.values()) <= MOST_READS


def test_a_snapshot_that_is_known_is_not_read_again(
    shown_folder: Path, plans: dict[str, Plan], counting: CountingParquet
) -> None:
    """A second request of any route opens no table of a known snapshot, also with another filter, order or page."""
    client = pages_of(shown_folder)
    for path in paths(shown_folder, plans):
        client.get(path)
    assert counting.opened.total() > 0
    counting.opened.clear()
    for path in paths(shown_folder, plans):
        client.get(path)
    client.get("/clusters/east?severity=warning&text=acme&order=newest&page=3")
    assert counting.opened == Counter()


def test_pages_outlive_the_large_tables(shown_folder: Path, plans: dict[str, Plan], tmp_path: Path) -> None:
    """Pages show the same when the sharded tables of a snapshot cannot be read."""
    shutil.copytree(shown_folder, tmp_path / "copy")
    for table in SHARDED:
        for part in (tmp_path / "copy" / "snapshots").glob(f"*/*/{table.name}/*.parquet"):
            part.write_bytes(b"no parquet")
    whole, without = (pages_of(folder) for folder in (shown_folder, tmp_path / "copy"))
    for path in ("/", "/clusters/east", "/clusters/north", f"/plans/{plans['east'].plan_id}", "/metrics"):
        assert without.get(path).text == whole.get(path).text


MANY = 10_000


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
        asked = MOVE if path.endswith("/moves") else ""
        answer = client.get(f"{path.format(cluster='east', plan_id=plans['east'].plan_id)}{asked}")
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


def test_ten_thousand_findings(copied: Path) -> None:
    """The last page of 10,000 findings ends in every order with the finding that is last in it."""
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
    observed(copied / "snapshots", "east", NOW, findings=rows)
    client = pages_of(copied)
    last = {"severity": 9_998, "oldest": 9_997, "newest": 9_996, "check": 5, "subject": 9_999}
    for order, place in last.items():
        page = client.get(f"/api/clusters/east/findings?order={order}&size=500&page=20").json()
        assert (page["total"], page["pages"], len(page["findings"])) == (MANY, 20, 500)
        assert (order, page["findings"][-1]["subject"]) == (order, f"t-{place:06d}")
    found = client.get("/api/clusters/east/findings?text=T-00999&severity=warning").json()
    assert [each["subject"] for each in found["findings"]] == ["t-009994", "t-009991", "t-009997"]


PARTS = {
    "cluster": "east",
    "plan_id": "p",
    "step_id": "b1.s01",
    "name": "steward.css",
    "trouble_id": "tc-skew.at-restart",
}


def refusing() -> None:
    """Refuses everybody."""
    raise HTTPException(401, "Not authenticated")


def paths_of(app: FastAPI) -> list[str]:
    """A path of every route, whatever it is: one that is mounted without the check would be among them."""
    return [str(route.path).format(**PARTS) for route in app.routes]  # type: ignore[attr-defined]  # every kind has one


def test_every_route_is_refused_without_a_login(tmp_path: Path) -> None:
    app = make_app(sources_of(tmp_path), refusing)
    client, paths = Client(app), paths_of(app)
    assert len(paths) > 20
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 401)


def test_nothing_else_answers(tmp_path: Path) -> None:
    """FastAPI's own documents are not served, and every route accepts only GET."""
    app = make_app(sources_of(tmp_path), lambda: None)
    client = Client(app)
    assert [client.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json", "/assets/..%2fapp.py")] == [
        404
    ] * 4
    methods = {method for route in app.routes for method in getattr(route, "methods", ())}
    assert methods == {"GET"}
    assert client.send("POST", "/history").status_code == 405


@pytest.mark.filterwarnings("ignore")  # Airflow's own
def test_airflows_own_check_refuses_every_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin makes the application on demand, and without Airflow's token every route answers 401."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path / "steward"))
    from steward_plugin import PREFIX, LazyPages, PulsarSteward, pages  # noqa: PLC0415 - loads Airflow

    (mounted,) = PulsarSteward.fastapi_apps
    assert isinstance(mounted["app"], LazyPages)
    assert (mounted["url_prefix"], mounted["app"].made) == (PREFIX, False)
    app = pages()
    client = Client(app)
    assert {client.get(path).status_code for path in paths_of(app)} == {401}
