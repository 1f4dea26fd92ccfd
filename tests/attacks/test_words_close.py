"""A word that is not understood closes: a halt halts, a name is refused, a filter is no question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse
from fastapi.routing import APIRoute

from pulsar_steward.cli.main import run
from pulsar_steward.errors import Halted
from pulsar_steward.ledger.halts import halts_in_force
from pulsar_steward.orchestration.halt_variable import HALT, halted_by_variable
from pulsar_steward.outside_text import shown
from pulsar_steward.pages.html import make_app
from tests.apply.refusals import assert_refused
from tests.builders import CLUSTER, NOW
from tests.ledgers import ledger_at
from tests.unit.cli.recorded import record_move
from tests.unit.pages.conftest import Client
from tests.unit.pages.scenes import sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from tests.apply.worksite import Worksite

# -- a halt by the variable


NOT_UNDERSTOOD = [
    *("all", "ALL", "true", "True", "1", "yes", "on", "stop", "EAST", "East", "east west", "east;west"),
    *("east\nwest", '["east"]', "['east']", '"east"', "'*'", '{"cluster": "east"}', "pulsar_admin_east"),
    *("east/", "eas", "east\u200b", "\u200b", ",", "west, estt", "**", "east*", ".*", "north", "null", "false"),
    *(0, False, ["east"], {"east": True}),
]


def known() -> frozenset[str]:
    """Returns the clusters that the ledger knows."""
    return frozenset({CLUSTER, "west"})


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections in the environment, where Airflow finds them by upper and lower case alike."""
    for name in ("EAST", "WEST", "SOUTH"):
        monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_ADMIN_{name}", "http://127.0.0.1:1")


@pytest.mark.parametrize("value", NOT_UNDERSTOOD, ids=repr)
def test_a_halt_that_is_not_understood_halts_every_cluster(variables: dict[str, Any], value: object) -> None:
    """Every cluster is halted while the variable holds anything but known names or `*`, and the reason quotes it."""
    variables[HALT] = value
    for cluster in (CLUSTER, "west", "south"):
        reason = str(halted_by_variable(cluster, known))
        assert reason.startswith(f"halted by the Airflow variable steward_halt ({shown(value)}); "), cluster
        assert "names no cluster, and so every one is halted" in reason, cluster


@pytest.mark.parametrize("value", ["all", "west", "east"])
def test_a_halt_by_the_variable_stops_a_batch(site: Worksite, variables: dict[str, Any], value: str) -> None:
    """Nothing is called of an approved batch unless the variable names another cluster."""
    plan = site.approved(site.move(0))
    site.switch = lambda name: halted_by_variable(name, known)
    variables[HALT] = value
    if value == "west":
        assert site.carry_out(plan)[0].outcome == "done"
        return
    assert_refused(site, plan, "halted by the Airflow variable", error=Halted)
    assert site.recorded(plan) == [("b1.s01", "refused")]


@pytest.mark.parametrize(
    ("value", "halts"),
    [
        ("east", True),
        (" west ,east,", True),
        ("*", True),
        ("west,*", True),
        ("west", False),
        ("south", False),
        ("", False),
        (" \n", False),
        (None, False),
    ],
)
def test_a_halt_that_is_understood_halts_what_it_names(
    variables: dict[str, Any], value: str | None, *, halts: bool
) -> None:
    """Names of clusters that the ledger or a connection knows halt these clusters, `*` all, and blanks none."""
    variables[HALT] = value
    assert (halted_by_variable(CLUSTER, known) is not None) is halts


@pytest.mark.parametrize("error", [ErrorType.API_SERVER_ERROR, ErrorType.GENERIC_ERROR, ErrorType.PERMISSION_DENIED])
def test_a_halt_that_cannot_be_read_halts(monkeypatch: pytest.MonkeyPatch, error: ErrorType) -> None:
    """A task whose API server does not answer takes the cluster for halted: Airflow itself returns no variable then."""

    class Server:
        def send(self, _: object) -> ErrorResponse:
            return ErrorResponse(error=error, detail={"status_code": 503})

    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Server(), raising=False)
    reason = halted_by_variable(CLUSTER, frozenset)
    assert reason is not None
    assert "cannot be read" in reason


def test_an_absent_halt_halts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task whose API server knows no such variable goes on."""

    class Server:
        def send(self, _: object) -> ErrorResponse:
            return ErrorResponse(error=ErrorType.VARIABLE_NOT_FOUND)

    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Server(), raising=False)
    assert halted_by_variable(CLUSTER, frozenset) is None


# -- a halt by the command line


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A ledger in Steward's home that knows the cluster east, and nothing of Airflow in the environment."""
    for name in ("STEWARD_LEDGER", "STEWARD_CLUSTER", "STEWARD_SNAPSHOTS", "AIRFLOW_CONN_STEWARD_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    record_move(engine, "0x00000000_0x10000000", NOW)
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("esat", "did you mean east?"),
        ("EAST", "did you mean east?"),
        ("all", "known are east"),
        ("pulsar_admin_east", "known are east"),
        ("east,west", "did you mean east?"),
    ],
)
def test_a_halt_of_a_name_that_nothing_knows_is_refused(
    ledger: Engine, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    """The command halts nothing and fails, and names the nearest cluster and all that are known."""
    assert run(["halt", name, "--reason", "tests"]) == 2
    said = capsys.readouterr()
    assert halts_in_force(ledger) == ()
    assert words in said.err
    assert "nothing was halted" in said.err
    assert run(["resume", name]) == 2


def test_a_forced_halt_is_kept_and_looks_like_no_cluster(ledger: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is forced is listed as that of no known cluster, and halts every one, as nobody knows whose it is."""
    assert run(["halt", "esat", "--reason", "tests", "--force"]) == 0
    capsys.readouterr()
    assert run(["halt"]) == 0
    assert capsys.readouterr().out.endswith("tests (no cluster of this name is known)\n")
    assert run(["metrics"]) == 0
    metrics = capsys.readouterr().out
    assert 'steward_halted{cluster="east"} 1.0' in metrics
    assert "esat" not in metrics
    assert run(["resume", "esat"]) == 0
    assert halts_in_force(ledger) == ()


def test_all_clusters_can_always_be_halted(ledger: Engine) -> None:
    """The halt of every cluster needs no name that is known."""
    assert run(["halt", "--all", "--reason", "tests"]) == 0
    assert [each.cluster for each in halts_in_force(ledger)] == ["*"]


# -- a filter of the pages


FILTERS = ("cluster", "namespace", "person", "kind", "plan_id", "step_id", "severity", "check", "text", "brokers")
NAMES = (*FILTERS, "trouble_id", "name")
IN_WORDS = ("%00", "a%00b", "x" * 50_001)


@pytest.fixture
def pages(ledger: Engine, tmp_path: Path) -> tuple[Client, list[str]]:
    """The pages of a ledger without snapshots, and the paths of all routes."""
    app = make_app(sources_of(tmp_path), lambda: None)
    return Client(app), [route.path for route in app.routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("text", IN_WORDS, ids=["a NUL", "a NUL within", "too long"])
def test_text_that_no_database_takes_is_no_question(pages: tuple[Client, list[str]], text: str) -> None:
    """Every route answers 400 to a filter or a name that holds such text, and names the parameter."""
    client, paths = pages
    for path in paths:
        for name in FILTERS:
            asked = client.get(f"{path.format(**dict.fromkeys(NAMES, 'x'))}?{name}={text}")
            assert (asked.status_code, name in asked.text) == (400, True), path
        if "{" in path and "%" in text:
            assert client.get(path.format(**dict.fromkeys(NAMES, text))).status_code == 400, path


@pytest.mark.parametrize("number", [2**63, 10**30, -1, 0])
def test_a_number_that_no_database_has_is_no_question(pages: tuple[Client, list[str]], number: int) -> None:
    """A place in the ledger that cannot be one is answered with 422."""
    client, _ = pages
    for path in ("/history", "/api/history"):
        assert client.get(f"{path}?before={number}").status_code == 422
